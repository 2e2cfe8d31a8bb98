"""A pipe: a single direction of a connection in virtual time, with delays, and in order like TCP."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from fieldfare.simulation.clock import VirtualClock
from fieldfare.simulation.links import Link, Wire


class Pipe(Link):
    """Frames from end to end; a broken pipe loses the frames on the way, silently."""

    __slots__ = ("_clock", "_latest", "delay", "receiver")

    receiver: Callable[[object], None]
    """gets each frame at the other end"""
    delay: float
    """seconds that each frame takes longer than usual"""

    def __init__(self, clock: VirtualClock, source: str, target: str, wire: Wire, random: Random) -> None:
        super().__init__(source, target, wire, random)
        self._clock = clock
        self.delay = self._latest = 0.0

    def send(self, frame: object) -> None:
        """Let a frame arrive at the other end after the delay of the link, behind all earlier frames."""
        if self.up:
            for time in self.arrivals(self._clock.now, 0):
                self._latest = max(self._latest, time + self.delay)  # in order, also after the end of the delay
                self._clock.schedule(self._latest, self._arrive, frame)

    def _arrive(self, frame: object) -> None:
        if self.up:
            self.receiver(frame)
