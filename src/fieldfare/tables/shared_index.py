"""`SharedIndex`: how the filters of many tables relate, worked out once for all of them.

In a simulated network every broker has tables, and the same filters stand in most of them. To ask an index at each
broker anew which of its filters cover a new one would be to work out the same relations a thousand times. A universe
has one index of all filters that it ever saw and remembers, for each of them, what covers it and what it covers; an
event is matched once. Each table has a `SharedIndexPart` of it, which answers like an index of its own filters would.

It trades memory for time: all pairs in which one covers the other are kept. For one broker with very many filters an
index of its own is the better choice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index

_EVENTS: Final = 10_000
"""that are remembered"""


class SharedIndex:
    """All filters of many tables."""

    def __init__(self) -> None:
        """None yet."""
        self._index: Index[Filter] = Index()
        self.larger: dict[Filter, dict[Filter, None]] = {}
        """the filters that cover one, itself included"""
        self.smaller: dict[Filter, dict[Filter, None]] = {}
        self._matched: dict[int, tuple[Mapping[str, object], dict[Filter, None]]] = {}
        """the last events, by identity, with what they match: they will be asked about at the next broker"""

    def part(self) -> SharedIndexPart:
        """An empty part."""
        return SharedIndexPart(self)

    def see(self, filter: Filter) -> None:
        """Take up a filter, if it is new."""
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
        """All that overlap a filter."""
        return self._index.overlapping(filter)

    def matching(self, event: Mapping[str, object]) -> dict[Filter, None]:
        """All that an event matches."""
        known = self._matched.get(id(event))
        if known is None:
            if len(self._matched) > _EVENTS:
                self._matched.clear()
            known = self._matched[id(event)] = (event, dict.fromkeys(self._index.match(event)))
        return known[1]


class SharedIndexPart:
    """The filters of one table: like an `Index` whose ids are the filters themselves.

    >>> from fieldfare.filters import parse
    >>> universe = SharedIndex()
    >>> here, there = universe.part(), universe.part()
    >>> here.add(parse("x < 5"), parse("x < 5"))
    >>> there.add(parse("x < 9"), parse("x < 9"))
    >>> here.covering(parse("x < 3")), there.covered(parse("x < 9")), here.match({"x": 7})
    ([parse('x < 5')], [parse('x < 9')], [])
    """

    __slots__ = ("_own", "_universe")

    def __init__(self, universe: SharedIndex) -> None:
        """No filters."""
        self._universe = universe
        self._own: dict[Filter, None] = {}

    def add(self, id: Filter, filter: Filter) -> None:
        """Take up a filter."""
        self._universe.see(filter)
        self._own[filter] = None

    def add_many(self, items: Iterable[tuple[Filter, Filter]]) -> None:
        """Take up filters."""
        for id, filter in items:
            self.add(id, filter)

    def remove(self, id: Filter) -> None:
        """Forget a filter; the universe does not."""
        del self._own[id]

    def __contains__(self, filter: object) -> bool:
        return filter in self._own

    def __len__(self) -> int:
        return len(self._own)

    def __iter__(self) -> Iterator[Filter]:
        return iter(self._own)

    def covering(self, filter: Filter) -> list[Filter]:
        """Those that cover a filter."""
        self._universe.see(filter)
        return self._both(self._universe.larger[filter])

    def covered(self, filter: Filter) -> list[Filter]:
        """Those that a filter covers."""
        self._universe.see(filter)
        return self._both(self._universe.smaller[filter])

    def overlapping(self, filter: Filter) -> list[Filter]:
        """Those that overlap a filter."""
        return [other for other in self._universe.overlapping(filter) if other in self._own]

    def match(self, event: Mapping[str, object]) -> list[Filter]:
        """Those that an event matches."""
        return self._both(self._universe.matching(event))

    def match_many(self, events: Sequence[Event]) -> list[list[Filter]]:
        """Those that each of several events matches."""
        return list(map(self.match, events))

    def _both(self, found: dict[Filter, None]) -> list[Filter]:
        few, many = (found, self._own) if len(found) < len(self._own) else (self._own, found)
        return [filter for filter in few if filter in many]
