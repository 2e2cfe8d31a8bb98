"""Links: delay, loss and duplication of messages.

A link keeps the order of messages, like TCP. The delay of a message is the time to get onto the link (size by
bandwidth, after earlier messages) and the time to travel (latency, constant or random). No message overtakes another.

A link is reliable by default: a lost message is sent again after a timeout, and holds back later messages. A link that
is not really loses messages, or delivers messages twice; brokers are not made for such links.
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
    """Draw latencies between two bounds, all equally likely."""
    return lambda random: random.uniform(low, high)


def exponential(mean: float, least: float = 0.0) -> Latency:
    """Draw latencies from an exponential distribution, on top of a least latency."""
    return lambda random: least + random.expovariate(1 / mean)


def lognormal(median: float, sigma: float = 0.5) -> Latency:
    """Draw latencies with a long tail, like latencies measured between hosts of the internet."""
    return lambda random: random.lognormvariate(math.log(median), sigma)


@dataclass(frozen=True, slots=True)
class Wire:
    """The properties of a link."""

    latency: Latency = 0.01
    """seconds from end to end"""
    bandwidth: float = math.inf
    """bytes per second"""
    loss: float = 0.0
    """the probability that a transmission is lost"""
    duplication: float = 0.0
    """the probability of a second arrival; a reliable link discards the second"""
    reliable: bool = True
    """whether a lost message is sent again"""
    timeout: float = 0.2
    """seconds until a lost message is sent again"""

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
"""a constant latency, without loss"""


class Link:
    """A single direction of a link, from coming up to going down; the next time up has another `Link`."""

    __slots__ = ("_free", "_last", "_random", "latency", "source", "target", "up", "wire")

    latency: float | None
    """seconds from end to end if constant for all messages, else None"""

    def __init__(self, source: str, target: str, wire: Wire, random: Random) -> None:
        """Make a link: up, without messages."""
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
        """Return the arrival times of a message sent now: a single time; on an unreliable link also none or two."""
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
