"""`Table`: filters with the interfaces they came from. What every routing table here can do.

An *interface* is where a filter came from and where its events go: a neighbour broker, or a local client. A table
answers three questions: which filters say it all (`roots`), which neighbours must know a filter (`forwards`), and which
interfaces does an event concern (`match`)? All structures give the same answers; they differ in how many comparisons
of filters that takes, which is counted in `tests`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Generic, Protocol, TypeAlias, TypeVar

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter

Interface = TypeVar("Interface", bound=Hashable)
Towards = Callable[[Filter], AbstractSet[Interface]]
"""the neighbours that may be told of a filter; under advertisements those that advertise something overlapping it"""


@dataclass
class Tests:
    """Comparisons made so far: the cost that depends on no machine."""

    __test__ = False  # pytest, this is not for you

    cover: int = 0
    overlap: int = 0
    match: int = 0

    def covers(self, a: Filter, b: Filter) -> bool:
        """Does a cover b?"""
        self.cover += 1
        return a.covers(b)

    def overlaps(self, a: Filter, b: Filter) -> bool:
        """Do a and b overlap?"""
        self.overlap += 1
        return a.overlaps(b)

    def matches(self, filter: Filter, event: Mapping[str, object]) -> bool:
        """Does the event match?"""
        self.match += 1
        return filter.matches(event)


class FilterIndex(Protocol):
    """An index of filters under themselves: what a table on an index needs of it."""

    def add(self, id: Filter, filter: Filter) -> None:
        """Take up a filter."""

    def add_many(self, items: Iterable[tuple[Filter, Filter]]) -> None:
        """Take up filters."""

    def remove(self, id: Filter) -> None:
        """Forget a filter."""

    def __contains__(self, id: object) -> bool:
        """Is it there?"""

    def covering(self, filter: Filter) -> list[Filter]:
        """Those that cover a filter."""

    def covered(self, filter: Filter) -> list[Filter]:
        """Those that a filter covers."""

    def overlapping(self, filter: Filter) -> list[Filter]:
        """Those that overlap a filter."""

    def match(self, event: Mapping[str, object]) -> list[Filter]:
        """Those that an event matches."""

    def match_many(self, events: Sequence[Event]) -> list[list[Filter]]:
        """Those that each of several events matches."""


MakeIndex: TypeAlias = Callable[[], FilterIndex]
"""an empty index"""


class Table(ABC, Generic[Interface]):
    """A set of (filter, interface) pairs.

    A table is *redundant* if it keeps every pair it was given, and *non-redundant* if it forgets the pairs whose filter
    is covered by another one of the same interface: a neighbour that removes the covering filter says itself what that
    uncovers. Order is the order of arrival wherever filters are listed, so the same operations give the same table.
    """

    redundant: bool

    def __init__(self, neighbours: Iterable[Interface] = (), *, towards: Towards[Interface] | None = None) -> None:
        """An empty table of a broker with some neighbours; all other interfaces are local clients."""
        self.neighbours: frozenset[Interface] = frozenset(neighbours)
        self.towards: Towards[Interface] = towards or (lambda _: self.neighbours)
        self.tests = Tests()

    # Pairs

    @abstractmethod
    def add(self, filter: Filter, interface: Interface) -> bool:
        """Store a pair; False if nothing changed, since it was there or is covered by what the interface has.

        A filter that nothing can match is refused with a ValueError.
        """

    def add_many(self, pairs: Iterable[tuple[Filter, Interface]]) -> int:
        """Store many pairs; says how many of them changed something."""
        return sum(self.add(filter, interface) for filter, interface in pairs)

    @abstractmethod
    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair; False if it was not there."""

    @abstractmethod
    def filters(self) -> Iterator[Filter]:
        """All stored filters."""

    @abstractmethod
    def interfaces(self, filter: Filter) -> AbstractSet[Interface]:
        """Where a filter came from; empty if it is not stored."""

    def drop(self, interface: Interface) -> list[Filter]:
        """Forget all pairs of an interface; gives their filters."""
        gone = [filter for filter in self.filters() if interface in self.interfaces(filter)]
        for filter in gone:
            self.remove(filter, interface)
        return gone

    def replace(self, interface: Interface, filters: Iterable[Filter]) -> None:
        """Let an interface have just these filters."""
        self.drop(interface)
        for filter in filters:
            self.add(filter, interface)

    def __len__(self) -> int:
        """How many different filters are stored?"""
        return sum(1 for _ in self.filters())

    def __contains__(self, filter: object) -> bool:
        return isinstance(filter, Filter) and bool(self.interfaces(filter))

    # Questions

    @abstractmethod
    def roots(self) -> list[Filter]:
        """The minimal cover: the filters that no other stored filter covers."""

    @abstractmethod
    def forwards(self, filter: Filter) -> frozenset[Interface]:
        """The neighbours that must know a stored filter: they have no cover of it from elsewhere."""

    @abstractmethod
    def beneath(self, filter: Filter) -> list[Filter]:
        """All that a neighbour may have to be told of when a stored filter goes, or more; it covers them all."""

    @abstractmethod
    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """The interfaces that want an event."""

    @abstractmethod
    def covering(self, filter: Filter) -> list[Filter]:
        """The stored filters that cover a given one."""

    @abstractmethod
    def covered(self, filter: Filter) -> list[Filter]:
        """The stored filters that a given one covers."""

    @abstractmethod
    def overlapping(self, filter: Filter) -> list[Filter]:
        """The stored filters that overlap a given one."""

    # For implementations

    def _told(self, filter: Filter) -> frozenset[Interface]:
        """The neighbours that would be told of a filter if nothing covered it: not the only one that it came from."""
        from_where = self.interfaces(filter)
        towards = frozenset(self.towards(filter))
        return towards - from_where if len(from_where) == 1 else towards


def satisfiable(filter: Filter) -> Filter:
    """The filter itself; ValueError if nothing can match it."""
    if filter.is_empty:
        raise ValueError("no event can match this filter: it has no place in a table")
    return filter
