"""`Table`: filters with the interfaces from which they came, the interface of every routing table.

An *interface* is the origin of a filter and the target of its events: a neighbour broker, or a local client. A table
answers three questions. Which filters cover all others (`roots`)? Which neighbours must know a filter (`forwards`)?
Which interfaces get an event (`match`)? All structures give the same answers; they differ in the number of filter
comparisons, counted in `tests`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.tables.shared_index import Entries

Interface = TypeVar("Interface", bound=Hashable)
Towards = Callable[[Filter], AbstractSet[Interface]]
"""returns the neighbours that may learn a filter; under advertisements, the neighbours with an overlapping
advertisement"""


@dataclass
class Tests:
    """Numbers of comparisons so far: a cost that does not depend on the machine."""

    __test__ = False  # pytest, this is not for you

    cover: int = 0
    overlap: int = 0
    match: int = 0

    def covers(self, a: Filter, b: Filter) -> bool:
        """Tell whether filter a covers filter b, and count the comparison."""
        self.cover += 1
        return a.covers(b)

    def overlaps(self, a: Filter, b: Filter) -> bool:
        """Tell whether two filters overlap, and count the comparison."""
        self.overlap += 1
        return a.overlaps(b)

    def matches(self, filter: Filter, event: Mapping[str, object]) -> bool:
        """Tell whether an event matches a filter, and count the comparison."""
        self.match += 1
        return filter.matches(event)


class FilterIndex(Protocol):
    """An index in which each filter is its own id: the part of `Index` on which tables rely."""

    def add(self, id: Filter, filter: Filter) -> None:
        """Store a filter under an id."""

    def add_many(self, items: Iterable[tuple[Filter, Filter]]) -> None:
        """Store several filters at once, which is faster than one by one."""

    def remove(self, id: Filter) -> None:
        """Forget the filter of an id."""

    def __contains__(self, id: object) -> bool:
        """Tell whether the id is stored."""

    def covering(self, filter: Filter) -> list[Filter]:
        """Return the ids of the filters that cover a given filter."""

    def covered(self, filter: Filter) -> list[Filter]:
        """Return the ids of the filters which a given filter covers."""

    def overlapping(self, filter: Filter) -> list[Filter]:
        """Return the ids of the filters that overlap a given filter."""

    def match(self, event: Mapping[str, object]) -> list[Filter]:
        """Return the ids of the filters that an event matches."""

    def match_many(self, events: Sequence[Event]) -> list[list[Filter]]:
        """Return the ids of the matching filters for each of several events."""


class Table(ABC, Generic[Interface]):
    """A set of (filter, interface) pairs.

    A *redundant* table keeps every pair. A *non-redundant* table forgets a pair if another filter of the same interface
    covers the filter: a neighbour that removes the covering filter sends the uncovered filters again. Filters are
    listed in the order of arrival, so the same operations give the same table.
    """

    redundant: bool

    def __init__(self, neighbours: Iterable[Interface] = (), *, towards: Towards[Interface] | None = None) -> None:
        """Make an empty table of a broker with some neighbours; all other interfaces are local clients."""
        self.neighbours: frozenset[Interface] = frozenset(neighbours)
        self.towards: Towards[Interface] = towards or (lambda _: self.neighbours)
        self.tests = Tests()

    # Pairs

    @abstractmethod
    def add(self, filter: Filter, interface: Interface) -> bool:
        """Store a pair; False if the pair was stored already, or a filter of the interface covers the new filter.

        A filter that no event can match is refused with a ValueError.
        """

    def add_many(self, pairs: Iterable[tuple[Filter, Interface]]) -> int:
        """Store many pairs; return the number of pairs that changed the table."""
        return sum(self.add(filter, interface) for filter, interface in pairs)

    @abstractmethod
    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair; False if the pair was not stored."""

    @abstractmethod
    def filters(self) -> Iterator[Filter]:
        """Iterate over all stored filters, in the order of arrival."""

    @abstractmethod
    def interfaces(self, filter: Filter) -> AbstractSet[Interface]:
        """Return the interfaces of a filter; an empty set for a filter that is not stored."""

    def drop(self, interface: Interface) -> list[Filter]:
        """Forget all pairs of an interface and return the filters of these pairs."""
        gone = [filter for filter in self.filters() if interface in self.interfaces(filter)]
        for filter in gone:
            self.remove(filter, interface)
        return gone

    def replace(self, interface: Interface, filters: Iterable[Filter]) -> None:
        """Give an interface exactly these filters and no others."""
        self.drop(interface)
        for filter in filters:
            self.add(filter, interface)

    def __len__(self) -> int:
        """Return the number of distinct filters."""
        return sum(1 for _ in self.filters())

    def __contains__(self, filter: object) -> bool:
        return isinstance(filter, Filter) and bool(self.interfaces(filter))

    # Questions

    @abstractmethod
    def roots(self) -> list[Filter]:
        """Return the minimal cover: the filters that no other stored filter covers."""

    @abstractmethod
    def forwards(self, filter: Filter) -> frozenset[Interface]:
        """Return the neighbours that must know a stored filter: no other interface covers the filter for them."""

    @abstractmethod
    def beneath(self, filter: Filter) -> list[Filter]:
        """Return filters which a neighbour may have to learn when a stored filter goes.

        The stored filter covers all of them.

        The list may be too long, never too short.
        """

    @abstractmethod
    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """Return the interfaces with a filter that the event matches."""

    def recipients(self, event: Mapping[str, object], matched: Entries, without: Interface) -> set[Interface]:
        """Return the interfaces with a filter that the event matches, without one of the interfaces.

        `matched` are the matches of the broker's shared index; a table that does not share the index matches itself.
        """
        return self.match(event) - {without}

    @abstractmethod
    def covering(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that cover a given filter."""

    @abstractmethod
    def covered(self, filter: Filter) -> list[Filter]:
        """Return the stored filters which a given filter covers."""

    @abstractmethod
    def overlapping(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that overlap a given filter."""

    # For implementations

    def _told(self, filter: Filter) -> frozenset[Interface]:
        """Return the neighbours that would learn a filter if nothing covered the filter.

        The only interface of a filter is left out: a neighbour does not learn its own filter.
        """
        from_where = self.interfaces(filter)
        towards = frozenset(self.towards(filter))
        return towards - from_where if len(from_where) == 1 else towards


def satisfiable(filter: Filter) -> Filter:
    """Return the filter unchanged; raise a ValueError if no event can match the filter."""
    if filter.is_empty:
        raise ValueError("no event can match this filter: it has no place in a table")
    return filter
