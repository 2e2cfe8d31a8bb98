"""`Entry`: tags for events where they enter, by a walk in a small tree and by the engine in a large one.

For the engine every node is a filter: the conjunction of its path, which never changes as long as the node is there. So
one match gives the selected nodes, and their places among their siblings are the tag, the same as the walk's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.routing.prefix.fpt import Fpt
from fieldfare.routing.prefix.tree import ROOT, Tree, Version
from fieldfare.routing.prefix.walk import Selected, select, tag

LARGE: Final = 50
"""with so many nodes the engine is faster than the walk"""

Ranked: TypeAlias = tuple[int, int, int, int]
"""a node: its number in preorder, its id, its depth, and its place among its siblings"""


class Entry:
    """Makes tags by a tree, which may change: it finds out what is new."""

    def __init__(self, large: int = LARGE) -> None:
        """The engine is used if the tree has so many nodes."""
        self._large = large
        self._index: Index[int] = Index()
        self._nodes: dict[int, Ranked] = {}
        self._seen: Version | None = None

    def fpt(self, tree: Tree, event: Mapping[str, object], limit: int | None = None) -> Fpt:
        """The tag of an event."""
        return tag(tree, self.select(tree, event, limit), limit)

    def select(self, tree: Tree, event: Mapping[str, object], limit: int | None = None) -> list[Selected]:
        """The nodes that it selects, in preorder."""
        if tree.size < self._large:
            return select(tree, event, limit)
        if self._seen != tree.version:
            self._learn(tree)
        nodes = self._nodes
        ranked = sorted([nodes[id] for id in self._index.match(event)])
        return [(id, depth, place) for _, id, depth, place in ranked if limit is None or depth <= limit]

    def _learn(self, tree: Tree) -> None:
        """Let the engine have the nodes that are there now."""
        there = _ranked(tree)
        for id in self._nodes.keys() - there.keys():
            self._index.remove(id)
        self._index.add_many((id, _filter(tree, id)) for id in there if id not in self._nodes)
        self._nodes, self._seen = there, tree.version


def _ranked(tree: Tree) -> dict[int, Ranked]:
    """All nodes but the root, numbered in preorder."""
    found: dict[int, Ranked] = {}
    work = [(ROOT, 0, 0)]
    while work:
        id, depth, place = work.pop()
        if depth:
            found[id] = len(found), id, depth, place
        children = tree[id].children
        work += [(children[place], depth + 1, place) for place in range(len(children) - 1, -1, -1)]
    return found


def _filter(tree: Tree, id: int) -> Filter:
    """What an event must satisfy to select a node. Of nested labels on one attribute the innermost says it all."""
    return Filter([Branch({label.dimension: label.constraint for label in tree.path(id)})])
