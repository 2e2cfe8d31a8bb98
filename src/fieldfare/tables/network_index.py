"""`NetworkIndex`: a shared index for the tables of a whole simulated network, which remembers all relations.

In a simulated network most filters stand in the tables of most brokers, and an event visits many brokers. Separate
indexes would compute the same covering relations a thousand times. This index remembers, for each filter, its covers
and the filters below, and the matches of the last events.

The index trades memory for time: all covering pairs are kept. A single broker is better served by a `SharedIndex`.
While filters are few they are compared one by one, and the answers outlive the index: random runs make thousands of
small networks with the same filters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.tables.shared_index import Entries, Entry, SharedIndex

_EVENTS: Final = 10_000
"""number of events whose matches are remembered"""
_LOOSE: Final = 1000
"""number of filters that no part holds and that are still remembered: many come back soon"""

_covers = lru_cache(maxsize=1 << 16)(Filter.covers)
_overlaps = lru_cache(maxsize=1 << 16)(Filter.overlaps)


class NetworkIndex(SharedIndex):
    """The filters of many brokers, with their covering relations."""

    few = 100
    """number of filters that are compared one by one"""

    def __init__(self) -> None:
        super().__init__()
        self._larger: dict[Entry, dict[Entry, None]] = {}
        """the covers of each filter, itself included"""
        self._smaller: dict[Entry, dict[Entry, None]] = {}
        self._loose: dict[Entry, None] = {}
        """filters that no part holds"""
        self._matched: dict[int, tuple[Mapping[str, object], dict[Entry, None]]] = {}
        """the last events, by identity, with the matching filters: the next broker asks for the same event"""

    def _add(self, fresh: dict[Filter, Entry]) -> None:
        super()._add(fresh)
        self._matched.clear()
        for filter, entry in fresh.items():
            larger = self._larger[entry] = dict.fromkeys(self._covering(filter))
            smaller = self._smaller[entry] = dict.fromkeys(self._covered(filter))
            for other in larger:
                self._smaller.setdefault(other, {})[entry] = None
            for other in smaller:
                self._larger.setdefault(other, {})[entry] = None

    def _covering(self, filter: Filter) -> Entries:
        if len(self._entries) > self.few:
            return self._index.covering(filter)
        return [entry for other, entry in self._entries.items() if _covers(other, filter)]

    def _covered(self, filter: Filter) -> Entries:
        if len(self._entries) > self.few:
            return self._index.covered(filter)
        return [entry for other, entry in self._entries.items() if _covers(filter, other)]

    def overlapping(self, filter: Filter) -> Entries:
        """Return the filters of all parts that overlap a given filter."""
        if len(self._entries) > self.few:
            return self._index.overlapping(filter)
        return [entry for other, entry in self._entries.items() if _overlaps(filter, other)]

    def _forget(self, entry: Entry) -> None:
        """Remember a filter that no part holds for a while."""
        if len(self._loose) >= _LOOSE:
            gone = [one for one in self._loose if not one.holders and one is not entry]
            self._loose.clear()
            for one in gone:
                self._drop(one)
        self._loose[entry] = None

    def _drop(self, entry: Entry) -> None:
        super()._forget(entry)
        self._matched.clear()
        for other in self._larger.pop(entry):
            self._smaller.get(other, {}).pop(entry, None)
        for other in self._smaller.pop(entry):
            self._larger.get(other, {}).pop(entry, None)

    def _seen(self, filter: Filter) -> Entry:
        if filter not in self._entries:
            with self.holding((filter,)):
                pass
        return self._entries[filter]

    def may_cover(self, filter: Filter) -> Entries:
        """Return the filters that cover a given filter."""
        return self._larger[self._seen(filter)]

    def covers(self, entry: Entry, filter: Filter) -> bool:
        """Return True: `may_cover` is exact here."""
        return True

    def covered(self, filter: Filter) -> Entries:
        """Return the filters of all parts which a given filter covers."""
        return self._smaller[self._seen(filter)]

    def match(self, event: Mapping[str, object]) -> Entries:
        """Return the filters of all parts that an event matches, as the keys of a dict."""
        known = self._matched.get(id(event))
        if known is None:
            if len(self._matched) > _EVENTS:
                self._matched.clear()
            known = self._matched[id(event)] = (event, dict.fromkeys(self._index.match(event)))
        return known[1]

    def match_many(self, events: Sequence[Event]) -> Sequence[Entries]:
        """Return the matching filters of all parts for each of several events."""
        return list(map(self.match, events))
