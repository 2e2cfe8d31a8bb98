"""`JointMerger`: merging of the filters for several neighbours at once, as the thesis proposes (§13.7).

Filters for the same neighbours can merge as if there were a single neighbour. So exported filters are grouped by the
set of neighbours that must know them, each group has a `RootMerger` of its own, and a merger goes to the neighbours of
its group. A merger may cover filters of other groups: a filter goes to the neighbours of its group, except those in the
groups of all mergers above (equation 8.1 of the thesis).

**Only a single broker of a network may do so**, or the network may never come to rest. The group of a filter depends on
the neighbours' own filters. So a neighbour's filter can change the form of the filters sent back, hence the form of the
neighbour's own exports; if the change returns here and changes the groups again, there is no end. (Four filters and
four brokers in a row suffice: see `tests/tables/merging/test_joint.py`.) `NeighbourMerger` has no such effect, and
merges more.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Generic, NamedTuple

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Tests
from fieldfare.tables.covers import minimal_cover
from fieldfare.tables.merging.per_neighbour import ForwardsChange, OutgoingMerger
from fieldfare.tables.merging.roots import RootMerger
from fieldfare.tables.merging.rules import APART, PERFECT, Merging
from fieldfare.tables.updates import TableUpdate, TableUpdates, in_order


class JointEntry(NamedTuple, Generic[Interface]):
    """An exported filter, merged or not, with the neighbours that learn the filter."""

    filter: Filter
    group: frozenset[Interface]


class JointMerger(OutgoingMerger[Interface]):
    """The filters for neighbours, merged for several neighbours at once.

    >>> from fieldfare.filters import parse
    >>> low, high = parse("x BETWEEN 0 AND 5"), parse("x BETWEEN 5 AND 9")
    >>> merger = JointMerger("abc")
    >>> both = {"a": TableUpdate((low,)), "b": TableUpdate((low,))}
    >>> merger.change(both) == both
    True
    >>> merger.change({"a": TableUpdate((high,)), "b": TableUpdate((high,))})["a"]
    TableUpdate(added=(parse('x BETWEEN 0 AND 9'),), removed=(parse('x BETWEEN 0 AND 5'),))
    """

    def __init__(
        self,
        neighbours: Iterable[Interface],
        merging: Merging = PERFECT,
        tests: Tests | None = None,
        *,
        weak: bool = False,
    ) -> None:
        """Make a merger without filters. With `weak`, only filters for all neighbours, or all but one, are merged."""
        super().__init__(neighbours, merging, tests)
        self.weak = weak
        self._groups: dict[frozenset[Interface], RootMerger] = {}
        self._above: dict[JointEntry[Interface], dict[JointEntry[Interface], None]] = {}
        """for all entries the mergers of other groups that cover them"""
        self._told: dict[Interface, Counter[Filter]] = {}
        """number of entries with a filter for a neighbour: one, or for a moment two of different groups"""
        self._before: dict[tuple[Interface, Filter], bool] = {}
        """whether a neighbour knew a filter before the present change, for all filters that the change touched"""

    # What there is

    def mergers(self) -> list[JointEntry[Interface]]:
        """Return the mergers with their groups of neighbours."""
        return [JointEntry(m.filter, group) for group, merger in self._groups.items() for m in merger.mergers()]

    def exported(self, neighbour: Interface) -> set[Filter]:
        """Return the filters which a neighbour knows."""
        return set(self._told.get(neighbour, ()))

    # Changes

    def _move(self, moves: Sequence[ForwardsChange[Interface]]) -> TableUpdates[Interface]:
        joined: dict[frozenset[Interface], list[Filter]] = {}
        left: dict[frozenset[Interface], list[Filter]] = {}
        for filter, old, new in moves:
            if old:
                left.setdefault(old, []).append(filter)
            if new:
                joined.setdefault(new, []).append(filter)
        self._before = {}
        for group in dict.fromkeys((*left, *joined)):
            merger = self._groups.setdefault(group, RootMerger(self._how(group), self.tests))
            update = merger.change(joined.get(group, ()), left.get(group, ()))
            for filter in update.removed:
                self._leave(JointEntry(filter, group))
            for filter in update.added:
                self._enter(JointEntry(filter, group))
            if not merger.roots():
                del self._groups[group]
        return self._difference()

    def _how(self, group: frozenset[Interface]) -> Merging:
        return APART if self.weak and len(self.neighbours - group) > 1 else self.merging

    def _difference(self) -> TableUpdates[Interface]:
        added: dict[Interface, list[Filter]] = {}
        removed: dict[Interface, list[Filter]] = {}
        for (neighbour, filter), before in self._before.items():
            if before != (filter in self._told.get(neighbour, ())):
                (removed if before else added).setdefault(neighbour, []).append(filter)
        return {
            neighbour: TableUpdate(tuple(added.get(neighbour, ())), tuple(removed.get(neighbour, ())))
            for neighbour in in_order((*added, *removed))
        }

    # Who is told

    def _enter(self, entry: JointEntry[Interface]) -> None:
        """Export an entry, and hide the smaller entries of other groups, or the entry below larger ones."""
        others = [other for other in self._above if other.group != entry.group and other.group & entry.group]
        self._above[entry] = {other: None for other in others if self._hides(other, entry)}
        self._count(entry, 1)
        for other in others:
            if other not in self._above[entry] and self._hides(entry, other):  # never each other
                self._count(other, -1)
                self._above[other][entry] = None
                self._count(other, 1)

    def _leave(self, entry: JointEntry[Interface]) -> None:
        self._count(entry, -1)
        del self._above[entry]
        for other, above in self._above.items():
            if entry in above:
                self._count(other, -1)
                del above[entry]
                self._count(other, 1)

    def _hides(self, larger: JointEntry[Interface], smaller: JointEntry[Interface]) -> bool:
        """Tell whether a merger makes an entry of another group superfluous."""
        return self._groups[larger.group].merges(larger.filter) and self.tests.covers(larger.filter, smaller.filter)

    def _count(self, entry: JointEntry[Interface], sign: int) -> None:
        """Count an entry in or out, for the neighbours of its group without a larger filter."""
        for neighbour in entry.group.difference(*(larger.group for larger in self._above[entry])):
            told = self._told.setdefault(neighbour, Counter())
            self._before.setdefault((neighbour, entry.filter), entry.filter in told)
            told[entry.filter] += sign
            if not told[entry.filter]:
                del told[entry.filter]


def merged_exports(
    forwards: Mapping[Filter, AbstractSet[Interface]],
    mergers: Iterable[JointEntry[Interface]],
    neighbours: Iterable[Interface],
) -> dict[Interface, list[Filter]]:
    """Return the filters for each neighbour by the definition, as an oracle for `JointMerger`."""
    made = list(mergers)
    reduced = {
        filter: set(told).difference(*(m.group for m in made if m.filter.covers(filter)))
        for filter, told in forwards.items()
    }
    return {
        neighbour: minimal_cover(
            [
                *(m.filter for m in made if neighbour in m.group),
                *(filter for filter, told in reduced.items() if neighbour in told),
            ]
        )
        for neighbour in neighbours
    }
