"""Virtual time: what happens when, in an order that never varies.

A queue of actions by time; actions of the same time run in the order in which they were scheduled. Nothing waits: a day
takes as long as what happens in it. Actions in the background (ticks) run when their time comes, but nobody waits for
them.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import TypeAlias

Action: TypeAlias = Callable[..., object]


class VirtualClock:
    """A clock that goes only when it is told to.

    >>> clock = VirtualClock()
    >>> clock.schedule(2.0, print, "two")
    >>> clock.schedule(1.0, print, "one")
    >>> clock.settle()
    one
    two
    >>> clock.now
    2.0
    """

    __slots__ = ("_background", "_number", "_queue", "now")

    now: float
    """seconds since the start"""

    def __init__(self, now: float = 0.0) -> None:
        """Start at a time."""
        self.now = now
        self._number = 0
        self._background = 0
        self._queue: list[tuple[float, int, Action, tuple[object, ...]]] = []

    @property
    def pending(self) -> int:
        """How many actions are scheduled, without those in the background."""
        return len(self._queue) - self._background

    def schedule(self, time: float, action: Action, *arguments: object) -> None:
        """Do something at a time; what is scheduled for now comes after all that is due by now."""
        if time < self.now:
            raise ValueError(f"it is {self.now} already, too late for {time}")
        self._number += 1
        heappush(self._queue, (time, self._number, action, arguments))

    def schedule_background(self, time: float, action: Action, *arguments: object) -> None:
        """The same, for what `settle` need not wait for."""
        self._background += 1
        self.schedule(time, self._in_background, action, arguments)

    def _in_background(self, action: Action, arguments: tuple[object, ...]) -> None:
        self._background -= 1
        action(*arguments)

    def run(self, until: float = inf) -> None:
        """Do all that is due up to a time, also in the background; it is that time then."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            time, _, action, arguments = heappop(queue)
            self.now = time
            action(*arguments)
        if until < inf:
            self.now = max(self.now, until)

    def settle(self, until: float = inf) -> None:
        """Run until nothing is scheduled any more, without waiting for what is in the background."""
        queue = self._queue
        while len(queue) > self._background and queue[0][0] <= until:
            time, _, action, arguments = heappop(queue)
            self.now = time
            action(*arguments)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.run(self.now + seconds)
