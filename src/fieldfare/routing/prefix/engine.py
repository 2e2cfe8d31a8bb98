"""`Entry`: tags for events where they enter, by a walk in a small tree and by the engine in a large one.

For the engine every node is a filter: the conjunction of its path, which never changes as long as the node is there. So
one match gives the selected nodes, and their places among their siblings are the tag, the same as the walk's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.routing.prefix.fpt import Fpt, Step
from fieldfare.routing.prefix.tree import ROOT, Tree, Version
from fieldfare.routing.prefix.walk import Selected, select, tag

LARGE: Final = 200
"""with so many nodes the engine is faster than the walk"""


class Entry:
    """Makes tags by a tree, which may change: it finds out what is new."""

    def __init__(self, large: int = LARGE) -> None:
        """The engine is used if the tree has so many nodes."""
        self._large = large
        self._index: Index[int] = Index()
        self._nodes: set[int] = set()
        self._seen: Version | None = None
        self._places: dict[int, dict[int, int]] = {}
        """of the children of a node, made when first asked for"""

    def fpt(self, tree: Tree, event: Mapping[str, object], limit: int | None = None) -> Fpt:
        """The tag of an event."""
        return tag(tree, self.select(tree, event, limit), limit)

    def select(self, tree: Tree, event: Mapping[str, object], limit: int | None = None) -> list[Selected]:
        """The nodes that it selects, in preorder."""
        if tree.size < self._large:
            return select(tree, event, limit)
        if self._seen != tree.version:
            self._learn(tree)
        return self._sorted(tree, self._index.match(event), limit)

    def _learn(self, tree: Tree) -> None:
        """Let the engine have the nodes that are there now."""
        there = set(tree.preorder())
        for id in self._nodes - there:
            self._index.remove(id)
        self._index.add_many((id, _filter(tree, id)) for id in there - self._nodes)
        self._nodes, self._seen = there, tree.version
        self._places.clear()

    def _sorted(self, tree: Tree, ids: list[int], limit: int | None) -> list[Selected]:
        """Selected nodes in preorder. With a node those above it are selected."""
        below: dict[int, list[tuple[int, int]]] = {}
        for id in ids:
            parent = tree[id].parent
            below.setdefault(parent, []).append((self._place(tree, parent, id), id))
        found: list[Selected] = []
        work = [Selected(ROOT, Step(0, 0))]
        while work:
            one = work.pop()
            depth = one.step.depth
            if depth:
                found.append(one)
            if depth != limit and one.id in below:
                children = sorted(below[one.id], reverse=True)
                work += [Selected(id, Step(depth + 1, place)) for place, id in children]
        return found

    def _place(self, tree: Tree, parent: int, id: int) -> int:
        places = self._places.get(parent)
        if places is None:
            children = tree[parent].children
            places = self._places[parent] = {child: place for place, child in enumerate(children)}
        return places[id]


def _filter(tree: Tree, id: int) -> Filter:
    """What an event must satisfy to select a node. Of nested labels on one attribute the innermost says it all."""
    return Filter([Branch({label.dimension: label.constraint for label in tree.path(id)})])
