"""Merging what goes out to neighbours: `NeighbourMerger`, which merges for each of them, and what `aggregate` shares.

It stands behind a table: what `forwarding.apply` says neighbours are to be told goes in, and out comes what to tell
them instead. With perfect merging it means the same to each neighbour.

**The filters told to a neighbour must not depend on what that neighbour told us.** Their meaning does not, but with
merging their form might; and if both sides merge, each may answer a change of form with another one, for ever. So
each neighbour has a `RootMerger` of its own, over just the filters that it must know. That also merges more than
`aggregate` does, which only merges filters that go to the same neighbours.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, Generic, NamedTuple

from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.tables.base import Interface, Tests
from fieldfare.tables.merging.roots import Merger, RootMerger
from fieldfare.tables.merging.rules import PERFECT, Merging
from fieldfare.tables.updates import TableUpdate, TableUpdates, in_order

_FEW: Final = 64
"""filters that are compared one by one; beyond, they get an index"""


class ForwardsChange(NamedTuple, Generic[Interface]):
    """A filter, who was to be told of it, and who is now."""

    filter: Filter
    old: frozenset[Interface]
    new: frozenset[Interface]


class OutgoingMerger(ABC, Generic[Interface]):
    """Which filters must which neighbours know? And what are they told instead?"""

    def __init__(self, neighbours: Iterable[Interface], merging: Merging = PERFECT, tests: Tests | None = None) -> None:
        """Nothing told yet."""
        self.neighbours = frozenset(neighbours)
        self.merging = merging
        self.tests = tests or Tests()
        self._forwards: dict[Filter, frozenset[Interface]] = {}
        self._index: Index[Filter] | None = None

    def forwards(self) -> dict[Filter, frozenset[Interface]]:
        """The filters that go in, and the neighbours that must know them."""
        return dict(self._forwards)

    @abstractmethod
    def exported(self, neighbour: Interface) -> set[Filter]:
        """What a neighbour is told."""

    def change(self, updates: Mapping[Interface, TableUpdate]) -> TableUpdates[Interface]:
        """What to tell neighbours instead of these updates.

        A neighbour forgets what a newer filter covers, and ignores what it has covered: so do we, lest our picture of
        what it was to be told differ from the table's.
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
        """Let just these filters go to these neighbours; none may cover another that goes to the same neighbour."""
        nobody: frozenset[Interface] = frozenset()
        wanted = {filter: frozenset(told) for filter, told in forwards.items()}
        return self._tell({**dict.fromkeys(self._forwards, nobody), **wanted})

    def _tell(self, forwards: Mapping[Filter, frozenset[Interface]]) -> TableUpdates[Interface]:
        """Let some filters go to other neighbours than before."""
        moves: list[ForwardsChange[Interface]] = []
        for filter, new in forwards.items():
            old = self._forwards.get(filter, frozenset())
            if old != new:
                self._remember(filter, new)
                moves.append(ForwardsChange(filter, old, new))
        return self._move(moves)

    @abstractmethod
    def _move(self, moves: Sequence[ForwardsChange[Interface]]) -> TableUpdates[Interface]:
        """Let filters leave old neighbours and come to new ones; gives what each is to be told."""

    # The filters that go in

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
        """The filters that cover one, and those that it covers, among all that go in and some that are new."""
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
    """What neighbours are told, merged for each of them.

    >>> from fieldfare.filters import parse
    >>> low, high = parse("x BETWEEN 0 AND 5"), parse("x BETWEEN 5 AND 9")
    >>> merger = NeighbourMerger("ab")
    >>> both = {"a": TableUpdate((low,)), "b": TableUpdate((low,))}
    >>> merger.change(both) == both
    True
    >>> merger.change({"a": TableUpdate((high,))})
    {'a': Update(added=(parse('x BETWEEN 0 AND 9'),), removed=(parse('x BETWEEN 0 AND 5'),))}
    """

    def __init__(self, neighbours: Iterable[Interface], merging: Merging = PERFECT, tests: Tests | None = None) -> None:
        """Nothing told yet."""
        super().__init__(neighbours, merging, tests)
        self._mergers: dict[Interface, RootMerger] = {}

    def exported(self, neighbour: Interface) -> set[Filter]:
        """What a neighbour is told."""
        return set(self._mergers[neighbour].exported()) if neighbour in self._mergers else set()

    def mergers(self, neighbour: Interface) -> list[Merger]:
        """The mergers that a neighbour is told."""
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
            update = merger.change(joined.get(neighbour, ()), left.get(neighbour, ()))
            if update != TableUpdate():
                updates[neighbour] = update
            if not merger.roots():
                del self._mergers[neighbour]
        return updates
