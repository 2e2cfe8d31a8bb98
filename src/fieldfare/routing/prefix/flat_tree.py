"""`FlatTree`: a tree in flat arrays, for the compiled kernels that write and read tags.

Nodes are numbered in the order of their arrival, and numbers are not used again. A changed list of children is appended
behind all others; when most of the array is waste, all nodes are numbered anew: another *generation*.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from collections.abc import Set as AbstractSet
from typing import Final, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from fieldfare.routing.prefix.rows import COLUMNS, KIDS, KIDS_AT, PARENT, PLACE, SHIFTED
from fieldfare.routing.prefix.tree import ROOT, Tree, TreeVersion

Numbers: TypeAlias = NDArray[np.int64]
SPARE: Final = 1000


class Placed(Protocol):
    """The interfaces of a broker at the nodes of a tree."""

    @property
    def interfaces(self) -> AbstractSet[str]:
        """The names of the interfaces with boxes."""

    @property
    def taken(self) -> Collection[int]:
        """The nodes of the tree at which at least one interface of the broker stands."""

    def at(self, id: int) -> frozenset[str]:
        """Return the interfaces at a node."""


class FlatTree:
    """The arrays of a version of a tree."""

    def __init__(self) -> None:
        self.generation = 0
        self.numbers: dict[int, int] = {}
        """row numbers of nodes, by id"""
        self.rows: Numbers = np.zeros((0, COLUMNS), np.int64)
        self.kids: Numbers = np.zeros(0, np.int64)
        self._count = 0
        self._used = 0
        self._seen: TreeVersion | None = None
        self._tree: Tree | None = None

    def follow(self, tree: Tree) -> None:
        """Update the arrays to the present version of a tree."""
        if self._tree is tree and self._seen == tree.version:
            return
        news = tree.news(self._seen) if self._tree is tree and self._seen is not None else None
        if news is None or self._used > 4 * tree.size + SPARE or self._count > 2 * tree.size + SPARE:
            self._begin(tree)
        else:
            came, went = news
            for id in came:
                self._give_number(id)
            above = [tree[id].parent for id in (*came, *went)]
            self._write(tree, dict.fromkeys(id for id in (*came, *above) if tree[id].gone is None))
            for id in went:
                self.numbers.pop(id, None)
        self._seen = tree.version

    def _begin(self, tree: Tree) -> None:
        self.generation += 1
        self._tree, self._used, self._count = tree, 0, 0
        self.numbers = {}
        for id in (ROOT, *tree.preorder()):
            self._give_number(id)
        self._write(tree, self.numbers)

    def _give_number(self, id: int) -> None:
        self.numbers[id] = self._count
        self._count += 1

    def _write(self, tree: Tree, ids: Iterable[int]) -> None:
        """Write the rows of nodes, and the positions of their children."""
        numbers, term = self.numbers, tree.version.term
        if self._seen is None or self._seen.term != term:
            self.rows[:, SHIFTED] = 0
        self.rows = _room(self.rows, self._count)
        for id in ids:
            node = tree[id]
            count, row = len(node.children), self.rows[numbers[id]]
            self.kids = _room(self.kids, self._used + count)
            mine = self.kids[self._used : self._used + count]
            mine[:] = [numbers[child] for child in node.children]
            row[KIDS_AT], row[KIDS] = self._used, count
            row[SHIFTED] = node.shifted.number if node.shifted.term == term else 0
            self.rows[mine, PARENT] = numbers[id]
            self.rows[mine, PLACE] = np.arange(count)
            self._used += count


class InterfaceMasks:
    """The interfaces at nodes, as bits. Only a limited number of interfaces have bits."""

    MOST: Final = 62

    def __init__(self) -> None:
        self.values: Numbers = np.zeros(0, np.int64)
        self.everyone = 0
        self.stale: set[int] = set()
        """nodes whose interfaces have changed"""
        self._bits: dict[str, int] = {}
        self._sets: dict[int, frozenset[str]] = {}
        self._of: tuple[FlatTree, int] | None = None

    def follow(self, flat: FlatTree, places: Placed) -> bool:
        """Update the masks to the present placements; False if there are too many interfaces."""
        same = self._of == (flat, flat.generation)
        if same and not self.stale and len(self.values) >= len(flat.rows):
            return True
        if len(places.interfaces) > self.MOST:
            return False
        if len(self._bits.keys() | places.interfaces) > self.MOST:  # many are gone
            self._bits, self._sets, same = {}, {}, False
        if not same:
            self._of = flat, flat.generation
            self.values = np.zeros(0, np.int64)
            self.stale = set(places.taken)
        self.everyone = self._mask(places.interfaces)
        self.values = _room(self.values, len(flat.rows))
        for id in self.stale:
            if id in flat.numbers:
                self.values[flat.numbers[id]] = self._mask(places.at(id))
        self.stale = set()
        return True

    def _mask(self, interfaces: Iterable[str]) -> int:
        mask = 0
        for one in interfaces:
            mask |= 1 << self._bits.setdefault(one, len(self._bits))
        return mask

    def names(self, mask: int) -> frozenset[str]:
        """Return the interfaces of a mask."""
        found = self._sets.get(mask)
        if found is None:
            if len(self._sets) > SPARE:
                self._sets.clear()
            found = self._sets[mask] = frozenset(one for one, bit in self._bits.items() if mask >> bit & 1)
        return found


def _room(array: Numbers, size: int) -> Numbers:
    """Return the array, or a larger array with the same content at its beginning."""
    if len(array) >= size:
        return array
    larger = np.zeros((max(size, 2 * len(array)), *array.shape[1:]), np.int64)
    larger[: len(array)] = array
    return larger
