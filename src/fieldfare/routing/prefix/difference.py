"""`wdiff`: the difference of two trees, from 0 to 1. Nodes near the root count more, because changes there cost more.

A tree weighs 1 for its root and `WEIGHT` times the weight of its children. Children in both trees are compared in turn;
other children differ with their whole subtrees. `Difference` computes the difference of a tree to its last published
version from the operations, without a look at both trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fieldfare.routing.prefix.tree import ROOT, Tree

WEIGHT: Final = 0.5


def size(tree: Tree, id: int = ROOT) -> float:
    """Return the weight of a subtree, in which the root of the subtree weighs 1."""
    total, level, weight = 0.0, [id], 1.0
    while level:
        total += weight * len(level)
        level = [child for one in level for child in tree[one].children]
        weight *= WEIGHT
    return total


def wdiff(a: Tree, b: Tree) -> float:
    """Return the weighted difference of two trees with common node ids."""
    total, level, weight = 0.0, [ROOT], WEIGHT
    while level:
        both: list[int] = []
        for id in level:
            mine, theirs = a[id].children, b[id].children
            shared = set(mine) & set(theirs)
            both += shared
            total += weight * sum(size(a, child) for child in mine if child not in shared)
            total += weight * sum(size(b, child) for child in theirs if child not in shared)
        level, weight = both, weight * WEIGHT
    return total / (size(a) + size(b))


class Difference:
    """The difference of a tree to its state at the last `reset`.

    Every operation must be reported before it is performed.
    """

    def __init__(self, tree: Tree) -> None:
        self._tree = tree
        self._size = self._published = size(tree)
        self._differing = 0.0
        self._fresh: set[int] = set()
        """new nodes, and nodes below a new node"""

    @property
    def value(self) -> float:
        """The weighted difference, from 0 to 1."""
        return max(0.0, self._differing) / (self._size + self._published)

    def reset(self) -> None:
        """Make the present tree the published tree."""
        self._published = self._size
        self._differing = 0.0
        self._fresh.clear()

    def before_add(self, id: int, parent: int, over: Sequence[int]) -> None:
        """Account for a node that is about to be added."""
        weight = WEIGHT ** (self._tree.depth(parent) + 1)
        self._size += weight
        self._differing += weight
        self._fresh.add(id)
        level = list(over)
        while level:  # the whole subtree moves a level down, and so differs from its published place
            deeper = weight * WEIGHT
            for one in level:
                self._size += deeper - weight
                self._differing += deeper - weight if one in self._fresh else deeper + weight
            self._fresh.update(level)
            level = [child for one in level for child in self._tree[one].children]
            weight = deeper

    def before_remove(self, id: int) -> None:
        """Account for a leaf that is about to be removed."""
        weight = WEIGHT ** self._tree.depth(id)
        self._size -= weight
        self._differing += -weight if id in self._fresh else weight
        self._fresh.discard(id)
