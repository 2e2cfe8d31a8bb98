"""Virtual time: a queue of actions, run in an order that never varies.

Actions of the same time run in the order of scheduling. Nothing waits: a day without actions takes no time. Actions in
the background (ticks) run when due, but `drain` does not wait for background actions.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from math import inf
from typing import TypeAlias

Action: TypeAlias = Callable[..., object]


class VirtualClock:
    """A clock that moves only by `run`, `drain` and `advance`.

    >>> clock = VirtualClock()
    >>> clock.schedule(2.0, print, "two")
    >>> clock.schedule(1.0, print, "one")
    >>> clock.drain()
    one
    two
    >>> clock.now
    2.0
    """

    __slots__ = ("_background", "_number", "_queue", "now")

    now: float
    """seconds since the start"""

    def __init__(self, now: float = 0.0) -> None:
        """Start with an empty queue at a virtual time in seconds."""
        self.now = now
        self._number = 0
        self._background = 0
        self._queue: list[tuple[float, int, Action, tuple[object, ...]]] = []

    @property
    def pending(self) -> int:
        """The number of scheduled actions, background actions aside."""
        return len(self._queue) - self._background

    def schedule(self, time: float, action: Action, *arguments: object) -> None:
        """Schedule an action; an action for the present time runs after all actions already due."""
        if time < self.now:
            raise ValueError(f"it is {self.now} already, too late for {time}")
        self._number += 1
        heappush(self._queue, (time, self._number, action, arguments))

    def schedule_background(self, time: float, action: Action, *arguments: object) -> None:
        """Schedule an action without making `drain` wait for the action."""
        self._background += 1
        self.schedule(time, self._in_background, action, arguments)

    def _in_background(self, action: Action, arguments: tuple[object, ...]) -> None:
        self._background -= 1
        action(*arguments)

    def run(self, until: float = inf) -> None:
        """Run all actions due up to a time, background actions too; then set the clock to the time."""
        queue = self._queue
        while queue and queue[0][0] <= until:
            time, _, action, arguments = heappop(queue)
            self.now = time
            action(*arguments)
        if until < inf:
            self.now = max(self.now, until)

    def drain(self, until: float = inf) -> None:
        """Run until only background actions are scheduled."""
        queue = self._queue
        while len(queue) > self._background and queue[0][0] <= until:
            time, _, action, arguments = heappop(queue)
            self.now = time
            action(*arguments)

    def advance(self, seconds: float) -> None:
        """Run all actions of the next seconds."""
        self.run(self.now + seconds)
