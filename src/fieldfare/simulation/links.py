"""Links: how long a message is on its way, and whether it arrives.

A link keeps its order always, as TCP does. Time on a link is time to get onto it (size by bandwidth, one message after
another) and time to travel (latency, constant or by chance). What overtakes on the way waits for what was sent before.

A link is reliable unless told otherwise: what is lost is sent again after a timeout, and what follows is held back
until it is there. An unreliable link really loses messages, or delivers them twice; brokers do not expect that.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final, TypeAlias

Latency: TypeAlias = float | Callable[[Random], float]
"""seconds, or a way to draw them"""


def uniform(low: float, high: float) -> Latency:
    """Any time between two, each as likely."""
    return lambda random: random.uniform(low, high)


def exponential(mean: float, least: float = 0.0) -> Latency:
    """Mostly short, sometimes long; never shorter than the least."""
    return lambda random: least + random.expovariate(1 / mean)


def lognormal(median: float, sigma: float = 0.5) -> Latency:
    """As measured between hosts on the internet: a long tail."""
    return lambda random: random.lognormvariate(math.log(median), sigma)


@dataclass(frozen=True, slots=True)
class Wire:
    """What a link is made of."""

    latency: Latency = 0.01
    """seconds on the way"""
    bandwidth: float = math.inf
    """bytes per second"""
    loss: float = 0.0
    """the probability that a transmission is lost"""
    duplication: float = 0.0
    """the probability that one arrives twice; a reliable link throws the second away"""
    reliable: bool = True
    """whether what is lost is sent again"""
    timeout: float = 0.2
    """seconds until it is"""

    def __post_init__(self) -> None:
        if not (0 <= self.loss < 1 and 0 <= self.duplication <= 1):
            raise ValueError("loss and duplication are probabilities, and something must arrive")
        if self.bandwidth <= 0 or self.timeout < 0 or (not callable(self.latency) and self.latency < 0):
            raise ValueError("time goes forward: bandwidth must be positive, latency and timeout not negative")

    @property
    def plain(self) -> bool:
        """Whether every message takes the same time and arrives once."""
        return not (callable(self.latency) or self.loss or self.duplication or self.bandwidth < math.inf)


PLAIN: Final = Wire()
"""each message takes as long as the other"""


class Link:
    """One direction of a link, from when it comes up until it goes down; then another one takes its place."""

    __slots__ = ("_free", "_last", "_random", "latency", "source", "target", "up", "wire")

    latency: float | None
    """how long every message takes, if all take the same"""

    def __init__(self, source: str, target: str, wire: Wire, random: Random) -> None:
        """A link that is up and empty."""
        self.source = source
        self.target = target
        self.wire = wire
        self.up = True
        self.latency = None if callable(wire.latency) or not wire.plain else wire.latency
        self._random = random
        self._free = -math.inf
        """when the last message had left the sender"""
        self._last = -math.inf
        """when the last message arrives"""

    def arrivals(self, now: float, size: int) -> tuple[float, ...]:
        """When a message that is sent now arrives: once, on an unreliable link also never or twice."""
        wire, chance = self.wire, self._random.random
        self._free = max(now, self._free) + size / wire.bandwidth
        travel = wire.latency(self._random) if callable(wire.latency) else wire.latency
        while wire.loss and chance() < wire.loss:
            if not wire.reliable:
                return ()
            travel += wire.timeout
        self._last = max(self._last, self._free + travel)
        if wire.duplication and not wire.reliable and chance() < wire.duplication:
            return self._last, self._last
        return (self._last,)
