"""`Entry`: tags for events where they enter, by a walk in a small tree and by the engine in a large one.

For the engine every node is a filter: the conjunction of its path, which never changes as long as the node is there. So
one match gives the selected nodes, and their places among their siblings are the tag, the same as the walk's. When the
tree changes, the engine takes up what is new.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.routing.prefix.fpt import Fpt
from fieldfare.routing.prefix.tree import ROOT, Tree, Version
from fieldfare.routing.prefix.walk import Selected, select, tag

LARGE: Final = 50
"""with so many nodes the engine is faster than the walk"""


class Entry:
    """Makes tags by a tree, which may change: it finds out what is new."""

    def __init__(self, large: int = LARGE) -> None:
        """The engine is used if the tree has so many nodes."""
        self._large = large
        self._index: Index[int] = Index()
        self._seen: Version | None = None
        self._places: dict[int, tuple[Version, dict[int, int]]] = {}
        """by node: the places of its children, and the version that last changed them"""

    def fpt(self, tree: Tree, event: Mapping[str, object], limit: int | None = None) -> Fpt:
        """The tag of an event."""
        return tag(tree, self.select(tree, event, limit), limit)

    def select(self, tree: Tree, event: Mapping[str, object], limit: int | None = None) -> list[Selected]:
        """The nodes that it selects, in preorder."""
        if tree.size < self._large:
            return select(tree, event, limit)
        if self._seen != tree.version:
            self._learn(tree)
        below: dict[int, list[tuple[int, int]]] = {}
        for id in self._index.match(event):
            parent = tree.nodes[id].parent
            below.setdefault(parent, []).append((self._among(tree, parent)[id], id))
        found: list[Selected] = []
        work = [(ROOT, 0, 0)]
        while work:
            one = work.pop()
            id, depth, _ = one
            if depth:
                found.append(one)
            if id in below and depth != limit:
                work += [(child, depth + 1, place) for place, child in sorted(below[id], reverse=True)]
        return found

    def _among(self, tree: Tree, parent: int) -> dict[int, int]:
        """The places of a node's children."""
        node, known = tree.nodes[parent], self._places.get(parent)
        if known is None or known[0] != node.changed:
            places = {child: place for place, child in enumerate(node.children)}
            known = self._places[parent] = node.changed, places
        return known[1]

    def _learn(self, tree: Tree) -> None:
        """Let the engine have the nodes that are there now."""
        news = None if self._seen is None else tree.news(self._seen)
        if news is None:
            self._index, self._places = Index(), {}
            news = list(tree.preorder()), []
        came, went = news
        for id in went:
            self._places.pop(id, None)
            if id in self._index:
                self._index.remove(id)
        self._index.add_many((id, _filter(tree, id)) for id in came)
        self._seen = tree.version


def _filter(tree: Tree, id: int) -> Filter:
    """What an event must satisfy to select a node. Of nested labels on one attribute the innermost says it all."""
    return Filter([Branch({label.dimension: label.constraint for label in tree.path(id)})])
