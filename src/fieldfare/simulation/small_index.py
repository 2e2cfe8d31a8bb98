"""`SmallIndex`: an index for the few filters of a small run, by comparisons that are remembered across runs.

The index of a node is made for many filters, and half of the time of a small run would go into its arrays.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from fieldfare.events.event import Event, fields_of
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import unnamed


@lru_cache(maxsize=100_000)
def _covers(a: Filter, b: Filter) -> bool:
    return a.covers(b)


@lru_cache(maxsize=100_000)
def _overlaps(a: Filter, b: Filter) -> bool:
    return a.overlaps(b)


class SmallIndex(dict[Filter, Filter]):
    """Filters, each its own id, compared one by one.

    >>> from fieldfare.filters import parse
    >>> index = SmallIndex()
    >>> index.add(parse("price < 10"), parse("price < 10"))
    >>> index.match({"price": 5}), index.covered(parse("price < 20"))
    ([parse('price < 10')], [parse('price < 10')])
    """

    def add(self, id: Filter, filter: Filter) -> None:
        """Store a filter under an id."""
        if id in self:
            raise ValueError(f"the id is in use: {id}")
        self[id] = unnamed(filter)

    def add_many(self, items: Iterable[tuple[Filter, Filter]]) -> None:
        """Store several filters."""
        for id, filter in items:
            self.add(id, filter)

    def remove(self, id: Filter) -> None:
        """Forget the filter of an id."""
        del self[id]

    def covering(self, filter: Filter) -> list[Filter]:
        """Return the ids of the filters that cover a given filter."""
        other = unnamed(filter)
        return [id for id, one in self.items() if _covers(one, other)]

    def covered(self, filter: Filter) -> list[Filter]:
        """Return the ids of the filters which a given filter covers."""
        other = unnamed(filter)
        return [id for id, one in self.items() if _covers(other, one)]

    def overlapping(self, filter: Filter) -> list[Filter]:
        """Return the ids of the filters that overlap a given filter."""
        other = unnamed(filter)
        return [id for id, one in self.items() if _overlaps(one, other)]

    def match(self, event: Mapping[str, object]) -> list[Filter]:
        """Return the ids of the filters that an event matches."""
        fields = fields_of(event)
        return [id for id, one in self.items() if one.matches_fields(fields)]

    def match_many(self, events: Sequence[Event]) -> list[list[Filter]]:
        """Return the ids of the matching filters for each of several events."""
        return [self.match(event) for event in events]
