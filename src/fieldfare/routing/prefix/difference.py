"""`wdiff`: how different two trees are, from 0 to 1. Nodes near the root count more: changes there cost more.

A tree weighs 1 for its root and `WEIGHT` times what its children weigh. Children that two trees have in common are
compared in turn; others differ with all that is below them. `Difference` says the same of a tree and what it was when
it was last published, without looking at both: it follows the operations.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from fieldfare.routing.prefix.tree import ROOT, Tree

WEIGHT: Final = 0.5


def size(tree: Tree, id: int = ROOT) -> float:
    """The weight of a node with all below it, itself being 1."""
    total, level, weight = 0.0, [id], 1.0
    while level:
        total += weight * len(level)
        level = [child for one in level for child in tree[one].children]
        weight *= WEIGHT
    return total


def wdiff(a: Tree, b: Tree) -> float:
    """The weighted difference of two trees whose nodes have common ids."""
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
    """Of a tree to what it was when `settle` was last called. Tell it of every operation before it is performed."""

    def __init__(self, tree: Tree) -> None:
        """No difference yet."""
        self._tree = tree
        self._size = self._published = size(tree)
        self._differing = 0.0
        self._fresh: set[int] = set()
        """nodes that are new, or below one that is"""

    @property
    def value(self) -> float:
        """From 0 to 1."""
        return max(0.0, self._differing) / (self._size + self._published)

    def reset(self) -> None:
        """The tree as it is has been published."""
        self._published = self._size
        self._differing = 0.0
        self._fresh.clear()

    def before_add(self, id: int, parent: int, over: Sequence[int]) -> None:
        """A node is going to be added."""
        weight = WEIGHT ** (self._tree.depth(parent) + 1)
        self._size += weight
        self._differing += weight
        self._fresh.add(id)
        level = list(over)
        while level:  # all that is below goes one deeper, and is no longer where it was
            deeper = weight * WEIGHT
            for one in level:
                self._size += deeper - weight
                self._differing += deeper - weight if one in self._fresh else deeper + weight
            self._fresh.update(level)
            level = [child for one in level for child in self._tree[one].children]
            weight = deeper

    def before_remove(self, id: int) -> None:
        """A leaf is going to be removed."""
        weight = WEIGHT ** self._tree.depth(id)
        self._size -= weight
        self._differing += -weight if id in self._fresh else weight
        self._fresh.discard(id)
