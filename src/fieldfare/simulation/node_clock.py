"""`NodeClock`: the clocks of a simulated machine: wrong from the start, set forward or back, too fast or too slow.

As on a real machine, both clocks tick at one rate (`slew` changes it, as a time service does), and only the wall clock
jumps.
"""

from __future__ import annotations

from fieldfare.simulation.clock import VirtualClock

EPOCH = 1e9
"""wall clock at the start of a run, where the clock is right"""


class NodeClock:
    """The wall clock of a machine, and a clock that never jumps.

    >>> clock = NodeClock(VirtualClock(10.0))
    >>> clock.jump(-3600.0)
    >>> clock.wall() - EPOCH, clock.ticks(), clock.error
    (-3590.0, 10.0, 3600.0)
    """

    def __init__(self, virtual: VirtualClock) -> None:
        """Begin with the right time."""
        self._virtual = virtual
        self._ahead = 0.0
        self._rate = 1.0
        self._since = self._ticks = virtual.now
        self._error = 0.0
        self._highest = 0.0

    def ticks(self) -> float:
        """Return seconds since the start of the run, as counted by the machine."""
        return self._ticks + (self._virtual.now - self._since) * self._rate

    def wall(self) -> float:
        """Return the time of the wall clock."""
        return EPOCH + self.ticks() + self._ahead

    @property
    def error(self) -> float:
        """Upper bound of the difference between this wall clock and a right one, at any time until now."""
        return self._error + abs(self._rate - 1.0) * (self._virtual.now - self._since)

    @property
    def highest(self) -> float:
        """The highest time that the wall clock has shown."""
        return max(self._highest, self.wall())

    def jump(self, seconds: float) -> None:
        """Set the wall clock forward or back."""
        self._highest = self.highest
        self._error = self.error + abs(seconds)
        self._settle()
        self._ahead += seconds

    def slew(self, rate: float) -> None:
        """Let the clocks run too fast or too slow from now on; 1.0 is right."""
        self._error = self.error
        self._settle()
        self._rate = rate

    def _settle(self) -> None:
        self._ticks, self._since = self.ticks(), self._virtual.now

    def until(self, ticks: float) -> float:
        """Return the virtual time at which the machine has counted so many seconds, at the present rate."""
        return self._virtual.now + (ticks - self.ticks()) / self._rate
