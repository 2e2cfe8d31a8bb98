"""Merging of outgoing filters: `NeighbourMerger` merges for each neighbour.

`OutgoingMerger` is the base of both mergers.

A merger stands behind a table: updates from `tables.updates.apply` go in, and other updates with the same meaning (if
merging is perfect) come out.

**The filters for a neighbour must not depend on the filters of the same neighbour.** Their meaning does not, but with
merging their form might; and if both sides merge, each may answer a change of form with another, for ever. So each
neighbour has a `RootMerger` of its own, over just the filters which the neighbour must know. Such merging also merges
more than `joint`, which only merges filters for the same neighbours.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import Final, Generic, NamedTuple

from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.tables.base import Interface, Tests
from fieldfare.tables.merging.feedback import MergingFeedback
from fieldfare.tables.merging.roots import Merger, RootMerger
from fieldfare.tables.merging.rules import PERFECT, Merging
from fieldfare.tables.updates import TableUpdate, TableUpdates, in_order

_FEW: Final = 64
"""filters that are compared pairwise; with more, they get an index"""


class ForwardsChange(NamedTuple, Generic[Interface]):
    """A filter, the neighbours that knew the filter, and those that know the filter now."""

    filter: Filter
    old: frozenset[Interface]
    new: frozenset[Interface]


class OutgoingMerger(ABC, Generic[Interface]):
    """The filters for neighbours before and after merging."""

    def __init__(self, neighbours: Iterable[Interface], merging: Merging = PERFECT, tests: Tests | None = None) -> None:
        """Make a merger without filters; comparisons are counted in `tests`."""
        self.neighbours = frozenset(neighbours)
        self.merging = merging
        self.tests = tests or Tests()
        self._forwards: dict[Filter, frozenset[Interface]] = {}
        self._index: Index[Filter] | None = None

    def forwards(self) -> dict[Filter, frozenset[Interface]]:
        """Return the filters before merging, with the neighbours that must know them."""
        return dict(self._forwards)

    @abstractmethod
    def exported(self, neighbour: Interface) -> set[Filter]:
        """Return the filters which a neighbour knows, after merging."""

    def change(self, updates: Mapping[Interface, TableUpdate]) -> TableUpdates[Interface]:
        """Translate updates for neighbours into merged updates.

        A neighbour forgets filters below a new filter, and ignores filters below a known filter. The merger does the
        same, so that its picture of the neighbour agrees with the table's.
        """
        changed: dict[Filter, set[Interface]] = {}

        def forwards(filter: Filter) -> set[Interface]:
            return changed.setdefault(filter, set(self._forwards.get(filter, ())))

        new = dict.fromkeys(filter for update in updates.values() for filter in update.added)
        related = {filter: self._related(filter, new) for filter in new}
        for neighbour, update in updates.items():
            for filter in update.removed:
                forwards(filter).discard(neighbour)
            for filter in update.added:
                larger, smaller = related[filter]
                if not any(neighbour in forwards(other) for other in larger):
                    for other in smaller:
                        forwards(other).discard(neighbour)
                    forwards(filter).add(neighbour)
        return self._tell({filter: frozenset(told) for filter, told in changed.items()})

    def follow(self, forwards: Mapping[Filter, AbstractSet[Interface]]) -> TableUpdates[Interface]:
        """Send exactly these filters to these neighbours; none may cover another for the same neighbour."""
        nobody: frozenset[Interface] = frozenset()
        wanted = {filter: frozenset(told) for filter, told in forwards.items()}
        return self._tell({**dict.fromkeys(self._forwards, nobody), **wanted})

    def _tell(self, forwards: Mapping[Filter, frozenset[Interface]]) -> TableUpdates[Interface]:
        """Send some filters to other neighbours than before."""
        moves: list[ForwardsChange[Interface]] = []
        for filter, new in forwards.items():
            old = self._forwards.get(filter, frozenset())
            if old != new:
                self._remember(filter, new)
                moves.append(ForwardsChange(filter, old, new))
        return self._move(moves)

    @abstractmethod
    def _move(self, moves: Sequence[ForwardsChange[Interface]]) -> TableUpdates[Interface]:
        """Move filters from old neighbours to new ones; return the update of each neighbour."""

    # The filters before merging

    def _remember(self, filter: Filter, told: frozenset[Interface]) -> None:
        known = filter in self._forwards
        if told:
            self._forwards[filter] = told
        else:
            self._forwards.pop(filter, None)
        if self._index is not None and known != bool(told):
            if told:
                self._index.add(filter, filter)
            else:
                self._index.remove(filter)
        elif self._index is None and len(self._forwards) > _FEW:
            self._index = Index((other, other) for other in self._forwards)

    def _related(self, filter: Filter, new: Iterable[Filter]) -> tuple[list[Filter], list[Filter]]:
        """Return the covers of a filter, and the covered filters, among all stored and some new filters."""
        larger: Iterable[Filter] = self._forwards
        smaller: Iterable[Filter] = self._forwards
        if self._index is not None:
            larger, smaller = self._index.covering(filter), self._index.covered(filter)
        covers = self.tests.covers
        return (
            [other for other in dict.fromkeys((*larger, *new)) if other != filter and covers(other, filter)],
            [other for other in dict.fromkeys((*smaller, *new)) if other != filter and covers(filter, other)],
        )


class NeighbourMerger(OutgoingMerger[Interface]):
    """The filters for neighbours, merged separately for each neighbour.

    >>> from fieldfare.filters import parse
    >>> low, high = parse("x BETWEEN 0 AND 5"), parse("x BETWEEN 5 AND 9")
    >>> merger = NeighbourMerger("ab")
    >>> both = {"a": TableUpdate((low,)), "b": TableUpdate((low,))}
    >>> merger.change(both) == both
    True
    >>> merger.change({"a": TableUpdate((high,))})
    {'a': TableUpdate(added=(parse('x BETWEEN 0 AND 9'),), removed=(parse('x BETWEEN 0 AND 5'),))}
    """

    def __init__(self, neighbours: Iterable[Interface], merging: Merging = PERFECT, tests: Tests | None = None) -> None:
        super().__init__(neighbours, merging, tests)
        self._mergers: dict[Interface, RootMerger] = {}
        self._feedback: dict[Interface, MergingFeedback] = {}

    def note_forwards(self, neighbour: Interface, wanted: int, unwanted: Sequence[Mapping[str, object]]) -> None:
        """Count wanted and unwanted events of a neighbour; `relieve` acts on the counts."""
        if self.merging.budget and neighbour in self._mergers:
            self._feedback.setdefault(neighbour, MergingFeedback(self.merging.budget)).note(wanted, unwanted)

    @property
    def overdue(self) -> list[Interface]:
        """The neighbours with a larger share of unwanted events than the budget allows."""
        return in_order(one for one, feedback in self._feedback.items() if feedback.overdue)

    def relieve(self, neighbour: Interface) -> TableUpdate:
        """Take apart the mergers to blame for unwanted events of a neighbour; return the update for the neighbour.

        The roots merge again only with a partner in a later change, within the rest of the budget.
        """
        events, allowed = self._feedback[neighbour].judge()
        merger = self._mergers.get(neighbour)
        if merger is None:
            return TableUpdate()
        merger.merging = replace(self.merging, imperfect=False, lazy=False)
        return merger.relieve(events, allowed)

    def _merging_for(self, neighbour: Interface) -> Merging:
        """Return the options of merging for a neighbour, with the rest of the budget."""
        feedback = self._feedback.get(neighbour)
        if feedback is None:
            return self.merging
        how = replace(self.merging, budget=feedback.budget)
        return how if feedback.budget else replace(how, imperfect=False, lazy=False)  # statistics may deny all waste

    def exported(self, neighbour: Interface) -> set[Filter]:
        """Return the filters which a neighbour knows, after merging."""
        return set(self._mergers[neighbour].exported()) if neighbour in self._mergers else set()

    def mergers(self, neighbour: Interface) -> list[Merger]:
        """Return the mergers which a neighbour knows."""
        return self._mergers[neighbour].mergers() if neighbour in self._mergers else []

    def _move(self, moves: Sequence[ForwardsChange[Interface]]) -> TableUpdates[Interface]:
        joined: dict[Interface, list[Filter]] = {}
        left: dict[Interface, list[Filter]] = {}
        for filter, old, new in moves:
            for neighbour in new - old:
                joined.setdefault(neighbour, []).append(filter)
            for neighbour in old - new:
                left.setdefault(neighbour, []).append(filter)
        updates: TableUpdates[Interface] = {}
        for neighbour in in_order((*left, *joined)):
            merger = self._mergers.setdefault(neighbour, RootMerger(self.merging, self.tests))
            merger.merging = self._merging_for(neighbour)
            update = merger.change(joined.get(neighbour, ()), left.get(neighbour, ()))
            if update != TableUpdate():
                updates[neighbour] = update
            if not merger.roots():
                del self._mergers[neighbour]
                self._feedback.pop(neighbour, None)
        return updates
