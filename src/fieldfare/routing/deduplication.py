"""`Deduplication`: the events seen lately, so that a broker handles each event once.

Two sets take turns: after the time to remember, the younger set becomes the older, and the older set is forgotten. So
each event is remembered at least for this time, and at most twice as long.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

import msgspec

EventId: TypeAlias = tuple[str, str, int]
"""a publisher, the broker that counted if the publisher did not, and the count"""


class Deduplication(msgspec.Struct):
    """Events, remembered for some seconds: longer than an event takes to cross the network.

    >>> seen, event = Deduplication(10.0), ("ana", "", 1)
    >>> seen.is_new(event, 0.0), seen.is_new(event, 9.0), seen.is_new(event, 30.0)
    (True, False, True)
    """

    remember: float
    since: float = 0.0
    younger: set[EventId] = set()
    older: set[EventId] = set()

    def __contains__(self, event: EventId) -> bool:
        """Tell whether the event was seen lately."""
        return event in self.younger or event in self.older

    def is_new(self, event: EventId, now: float) -> bool:
        """Tell whether an event is seen for the first time, and remember the event."""
        return bool(self.new([event], now))

    def new(self, events: Iterable[EventId], now: float) -> list[int]:
        """Remember events, and return the places of those seen for the first time."""
        self.since = min(self.since, now)  # the clock may be set back
        if now - self.since > self.remember:
            forget = now - self.since > 2 * self.remember
            self.older, self.younger, self.since = (set() if forget else self.younger), set(), now
        younger, older, places = self.younger, self.older, []
        for place, event in enumerate(events):
            if event not in younger and event not in older:
                younger.add(event)
                places.append(place)
        return places
