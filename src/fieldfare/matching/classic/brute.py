"""Brute force: a test of every filter on every event.

There is no index and no preprocessing. Brute force is slow and obviously right, so all other matchers are checked
against it.
"""

from __future__ import annotations

from collections.abc import Mapping

from fieldfare.events.event import fields_of
from fieldfare.filters import Filter
from fieldfare.filters.constraint import Mode
from fieldfare.matching.matcher import Id, Matcher, as_filter


class BruteForce(Matcher[Id]):
    """A matcher that tests each filter in turn.

    >>> matcher = BruteForce[str]()
    >>> matcher.add("cheap", "price < 10")
    >>> matcher.match({"price": 5})
    ['cheap']
    """

    def __init__(self) -> None:
        self._filters: dict[Id, Filter] = {}

    def add(self, id: Id, filter: Filter | str) -> None:
        """Store the filter in a dict, without any index."""
        if id in self._filters:
            raise KeyError(id)
        self._filters[id] = as_filter(filter)

    def remove(self, id: Id) -> None:
        """Drop the filter of an id."""
        del self._filters[id]

    def match(self, event: Mapping[str, object], mode: Mode = "overlaps") -> list[Id]:
        """Test each filter; the event is flattened only once."""
        fields = fields_of(event)
        return [
            id
            for id, wanted in self._filters.items()
            if any(branch.matches(fields, mode) for branch in wanted.branches)
        ]

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, id: object) -> bool:
        return id in self._filters
