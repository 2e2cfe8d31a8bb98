"""`Lane`: patterns that wait equally long for late events, with the events and the timers of these patterns."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush
from typing import Any, TypeAlias

from fieldfare.patterns.runs import NEVER
from fieldfare.patterns.stamps import Key, Occurrence

Place: TypeAlias = "tuple[str, tuple[Any, ...]]"
"""Name of a pattern, and a key."""


class Lane:
    """Patterns that wait equally long for late events, with the events and timers of these patterns."""

    def __init__(self, disorder: int) -> None:
        """Begin without events, at no time."""
        self.disorder = disorder
        self.clock = -NEVER
        """Time up to which events and timers were handled."""
        self.seen = -NEVER
        """Latest end of an event."""
        self.waiting: list[tuple[Key, int, Occurrence]] = []
        self.timers: list[tuple[int, int, Place, int]] = []
        """Deadline, number of the entry, place, and id of the instance."""
        self.late = 0
        """Events that came too late, and were left out."""
        self.count = 0
        """Number of held events so far."""
        self.stored: set[int] = set()
        """Numbers of held events that are rows; see `rows`."""
        self._entries = 0

    def start(self, deadline: int, place: Place, id: int) -> None:
        """Start a timer of an instance."""
        self._entries += 1
        heappush(self.timers, (deadline, self._entries, place, id))

    def hold(self, event: Occurrence) -> None:
        """Keep an event until no earlier event can come; leave out an event that is later than allowed."""
        if event.high < max(self.clock, self.seen - self.disorder):
            self.late += 1
            return
        self.count += 1
        self.seen = max(self.seen, event.high)
        heappush(self.waiting, (event.key, self.count, event))

    def due(self, now: int) -> Iterator[Occurrence]:
        """Yield the held events before which nothing can come any more."""
        until = max(self.seen, now) - self.disorder
        while self.waiting and self.waiting[0][0][0] < until:
            yield heappop(self.waiting)[2]
        self.clock = max(self.clock, until)
