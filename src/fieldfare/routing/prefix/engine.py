"""`Entry`: tags for events where they enter, by a walk in a small tree and by the engine in a large one.

For the engine every node is a filter: the conjunction of its path, which never changes as long as the node is there. So
one match gives the selected nodes, and their places among their siblings are the tag, the same as the walk's. When the
tree changes, the engine takes up what is new.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.routing.prefix.fpt import Fpt, encode
from fieldfare.routing.prefix.tree import ROOT, Tree, Version
from fieldfare.routing.prefix.walk import Below, Selected, select, tag, write

LARGE: Final = 50
"""with so many nodes the engine is faster than the walk"""


class Entry:
    """Makes tags by a tree, which may change: it finds out what is new."""

    def __init__(self, large: int = LARGE) -> None:
        """The engine is used if the tree has so many nodes."""
        self._large = large
        self._index: Index[int] = Index()
        self._seen: Version | None = None

    def fpt(self, tree: Tree, event: Mapping[str, object], limit: int | None = None) -> Fpt:
        """The tag of an event."""
        return tag(tree, self.select(tree, event, limit), limit)

    def select(self, tree: Tree, event: Mapping[str, object], limit: int | None = None) -> list[Selected]:
        """The nodes that it selects, in preorder."""
        if tree.size < self._large:
            return select(tree, event, limit)
        below = self._below(tree, event)
        found: list[Selected] = []
        work = [(ROOT, 0, 0)]
        while work:
            one = work.pop()
            id, depth, _ = one
            if depth:
                found.append(one)
            if id in below and depth != limit:
                depth += 1
                work += [(child, depth, place) for place, child in sorted(below[id], reverse=True)]
        return found

    def write(self, tree: Tree, event: Mapping[str, object], limit: int | None = None) -> bytes:
        """The tag as it is on a wire."""
        if tree.size < self._large:
            return encode(self.fpt(tree, event, limit))
        return write(tree, self._below(tree, event), limit)

    def _below(self, tree: Tree, event: Mapping[str, object]) -> Below:
        """The selected nodes."""
        if self._seen != tree.version:
            self._learn(tree)
        nodes, below = tree.nodes, defaultdict[int, list[tuple[int, int]]](list)
        for id in self._index.match(event):
            node = nodes[id]
            below[node.parent].append((node.place, id))
        return below

    def _learn(self, tree: Tree) -> None:
        """Let the engine have the nodes that are there now."""
        news = None if self._seen is None else tree.news(self._seen)
        if news is None:
            self._index = Index()
            news = list(tree.preorder()), []
        came, went = news
        for id in went:
            if id in self._index:
                self._index.remove(id)
        self._index.add_many((id, _filter(tree, id)) for id in came)
        self._seen = tree.version


def _filter(tree: Tree, id: int) -> Filter:
    """What an event must satisfy to select a node. Of nested labels on one attribute the innermost says it all."""
    return Filter([Branch({label.dimension: label.constraint for label in tree.path(id)})])
