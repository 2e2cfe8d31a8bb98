"""`SharedIndex`: the relations between the filters of many tables, computed once for all tables.

In a simulated network most filters stand in the tables of most brokers. A separate index at each broker would compute
the same covering relations a thousand times. A shared index holds all filters ever added and remembers, for each
filter, its covers and the filters below; an event is matched once. Each table has a `SharedIndexPart`, which answers
like an index of the table's own filters.

The shared index trades memory for time: all covering pairs are kept. For a single broker with very many filters an
`Index` of its own is the better choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index

_EVENTS: Final = 10_000
"""number of events whose matches are remembered"""


class SharedIndex:
    """All filters of many tables, with their covering relations."""

    def __init__(self) -> None:
        self._index: Index[Filter] = Index()
        self.larger: dict[Filter, dict[Filter, None]] = {}
        """the covers of each filter, itself included"""
        self.smaller: dict[Filter, dict[Filter, None]] = {}
        self._matched: dict[int, tuple[Mapping[str, object], dict[Filter, None]]] = {}
        """the last events, by identity, with the matching filters: the next broker asks for the same event"""

    def part(self) -> SharedIndexPart:
        """Return an empty part, for a single table."""
        return SharedIndexPart(self)

    def see(self, filter: Filter) -> None:
        """Add a filter, and compute its relations, unless the filter is known."""
        if filter in self.larger:
            return
        self._index.add(filter, filter)
        self._matched.clear()
        self.larger[filter] = dict.fromkeys(self._index.covering(filter))
        self.smaller[filter] = dict.fromkeys(self._index.covered(filter))
        for other in self.larger[filter]:
            self.smaller[other][filter] = None
        for other in self.smaller[filter]:
            self.larger[other][filter] = None

    def overlapping(self, filter: Filter) -> list[Filter]:
        """Return all filters of all tables that overlap a given filter."""
        return self._index.overlapping(filter)

    def matching(self, event: Mapping[str, object]) -> dict[Filter, None]:
        """Return all filters of all tables that an event matches, as the keys of a dict."""
        known = self._matched.get(id(event))
        if known is None:
            if len(self._matched) > _EVENTS:
                self._matched.clear()
            known = self._matched[id(event)] = (event, dict.fromkeys(self._index.match(event)))
        return known[1]


class SharedIndexPart:
    """The filters of a single table: like an `Index` whose ids are the filters themselves.

    >>> from fieldfare.filters import parse
    >>> shared = SharedIndex()
    >>> here, there = shared.part(), shared.part()
    >>> here.add(parse("x < 5"), parse("x < 5"))
    >>> there.add(parse("x < 9"), parse("x < 9"))
    >>> here.covering(parse("x < 3")), there.covered(parse("x < 9")), here.match({"x": 7})
    ([parse('x < 5')], [parse('x < 9')], [])
    """

    __slots__ = ("_own", "_shared")

    def __init__(self, shared: SharedIndex) -> None:
        self._shared = shared
        self._own: dict[Filter, None] = {}

    def add(self, id: Filter, filter: Filter) -> None:
        """Store a filter in the part, and in the shared index if new."""
        self._shared.see(filter)
        self._own[filter] = None

    def add_many(self, items: Iterable[tuple[Filter, Filter]]) -> None:
        """Store several filters in the part, in order."""
        for id, filter in items:
            self.add(id, filter)

    def remove(self, id: Filter) -> None:
        """Forget a filter in the part; the shared index keeps the filter."""
        del self._own[id]

    def __contains__(self, filter: object) -> bool:
        return filter in self._own

    def __len__(self) -> int:
        return len(self._own)

    def __iter__(self) -> Iterator[Filter]:
        return iter(self._own)

    def covering(self, filter: Filter) -> list[Filter]:
        """Return the filters of the part that cover a given filter."""
        self._shared.see(filter)
        return self._both(self._shared.larger[filter])

    def covered(self, filter: Filter) -> list[Filter]:
        """Return the filters of the part which a given filter covers."""
        self._shared.see(filter)
        return self._both(self._shared.smaller[filter])

    def overlapping(self, filter: Filter) -> list[Filter]:
        """Return the filters of the part that overlap a given filter."""
        return [other for other in self._shared.overlapping(filter) if other in self._own]

    def match(self, event: Mapping[str, object]) -> list[Filter]:
        """Return the filters of the part that an event matches."""
        return self._both(self._shared.matching(event))

    def match_many(self, events: Sequence[Event]) -> list[list[Filter]]:
        """Return the matching filters of the part for each of several events."""
        return list(map(self.match, events))

    def _both(self, found: dict[Filter, None]) -> list[Filter]:
        few, many = (found, self._own) if len(found) < len(self._own) else (self._own, found)
        return [filter for filter in few if filter in many]
