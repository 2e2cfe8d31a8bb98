"""`Tagger`: tags for entering events, by a walk in a small tree and by the matching engine in a large tree.

For the engine every node is a filter: the conjunction of its path, which never changes while the node exists. So a
single match returns the selected nodes, and their places among their siblings are the same tag as the walk's. After a
change of the tree the engine gets the new nodes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from types import ModuleType
from typing import Final

import numpy as np

from fieldfare.filters.branch import Branch
from fieldfare.filters.filter import Filter
from fieldfare.matching.backend import choose
from fieldfare.matching.index import Index
from fieldfare.routing.prefix import tag as tags
from fieldfare.routing.prefix.flat_tree import FlatTree
from fieldfare.routing.prefix.selection import Below, Selected, select, tag_of, write
from fieldfare.routing.prefix.tag import Tag, encode
from fieldfare.routing.prefix.tree import ROOT, Tree, TreeVersion

LARGE: Final = 50
"""number of nodes from which on the engine is faster than the walk"""
LONGEST: Final = 6
"""bytes of a step, at most"""


class Tagger:
    """Makes tags by a tree, which may change between calls."""

    def __init__(self, large: int = LARGE) -> None:
        """Make a tagger that uses the engine from `large` nodes on."""
        self._large = large
        self._index: Index[int] = Index()
        self._seen: TreeVersion | None = None
        self._kernels: ModuleType | None = None
        self._flat = FlatTree()
        self._stamped: tuple[TreeVersion, bytes] | None = None

    def tag(self, tree: Tree, event: Mapping[str, object], limit: int | None = None) -> Tag:
        """Return the tag of an event."""
        return tag_of(tree, self.select(tree, event, limit), limit)

    def select(self, tree: Tree, event: Mapping[str, object], limit: int | None = None) -> list[Selected]:
        """Return the selected nodes in preorder."""
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
        """Return the tag of an event in wire form."""
        if tree.size < self._large:
            return encode(self.tag(tree, event, limit))
        kernels = self.kernels
        if kernels is None or limit is not None:
            return write(tree, self._below(tree, event), limit)
        if self._seen != tree.version:
            self._learn(tree)
        flat = self.flat(tree)
        selected = [flat.numbers[id] for id in self._index.match(event)]
        steps = np.empty(LONGEST * len(selected), np.uint8)
        size, since = kernels.write_tag(np.array(selected, np.int64), flat.rows, steps)
        head = bytearray(self.stamp(tree))
        tags.write(head, since)
        head.append(0)  # no limit
        return bytes(head) + steps[:size].tobytes()

    @property
    def kernels(self) -> ModuleType | None:
        """The compiled kernels; None while the engine has none."""
        if self._kernels is None and choose() is not None:
            from fieldfare.routing.prefix import kernels  # noqa: PLC0415 - imports numba

            kernels.warm_up()
            self._kernels = kernels
        return self._kernels

    def flat(self, tree: Tree) -> FlatTree:
        """Return the tree as arrays."""
        self._flat.follow(tree)
        return self._flat

    def stamp(self, tree: Tree) -> bytes:
        """Return the first bytes of all tags of the present version."""
        if self._stamped is None or self._stamped[0] != tree.version:
            self._stamped = tree.version, tags.stamp(tree.version)
        return self._stamped[1]

    def _below(self, tree: Tree, event: Mapping[str, object]) -> Below:
        """Return the selected nodes, by parent."""
        if self._seen != tree.version:
            self._learn(tree)
        nodes, below = tree.nodes, defaultdict[int, list[tuple[int, int]]](list)
        for id in self._index.match(event):
            node = nodes[id]
            below[node.parent].append((node.place, id))
        return below

    def _learn(self, tree: Tree) -> None:
        """Add the new nodes to the engine, and remove the old."""
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
    """Return the filter of a node. Of nested labels on the same attribute the innermost implies the others."""
    return Filter([Branch({label.dimension: label.constraint for label in tree.path(id)})])
