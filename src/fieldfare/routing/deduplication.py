"""`Deduplication`: which events were here lately, so that none is told twice.

Two sets take turns: when the younger has been filled for as long as events are to be remembered, it becomes the older,
and what was the older is forgotten. So each event is remembered for that long at least, and twice that long at most.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

EventId: TypeAlias = tuple[str, str, int]
"""a publisher, the broker that counted if it did not do so itself, and the count"""


class Deduplication(msgspec.Struct):
    """Events, remembered for so many seconds: more than it takes them to cross the network.

    >>> seen, event = Deduplication(10.0), ("ana", "", 1)
    >>> seen.is_new(event, 0.0), seen.is_new(event, 9.0), seen.is_new(event, 30.0)
    (True, False, True)
    """

    remember: float
    since: float = 0.0
    younger: set[EventId] = set()
    older: set[EventId] = set()

    def __contains__(self, event: EventId) -> bool:
        """Was it here lately?"""
        return event in self.younger or event in self.older

    def is_new(self, event: EventId, now: float) -> bool:
        """Is this the first time? It is noted."""
        self.since = min(self.since, now)  # a clock that was set back
        if now - self.since > self.remember:
            forget = now - self.since > 2 * self.remember
            self.older, self.younger, self.since = (set() if forget else self.younger), set(), now
        if event in self:
            return False
        self.younger.add(event)
        return True
