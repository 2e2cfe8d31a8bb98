"""The host of a broker: a clock, a queue, and the links known to the broker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import inf
from random import Random
from typing import Any, Final, Generic, TypeAlias, TypeVar

from fieldfare.protocol.messages import Message
from fieldfare.simulation.counters import Traffic, Work
from fieldfare.simulation.links import Link, Wire
from fieldfare.simulation.protocol import Machine

M = TypeVar("M", bound=Machine)
Seconds: TypeAlias = float | Callable[[Any], float]
"""always the same, or a function of the broker"""
Processing: TypeAlias = Callable[[Message], float] | Mapping[type[Message], Seconds] | float | None
"""seconds that a broker works on a message: by a function, by its kind, always the same, or none"""


@dataclass(frozen=True, slots=True)
class Skew:
    """The error of a host's clock."""

    offset: float = 0.0
    """seconds ahead at the start"""
    drift: float = 0.0
    """seconds gained in each second"""

    def local(self, now: float) -> float:
        """Return the time shown by the clock at a true time."""
        return now + self.offset + self.drift * now

    def true(self, local: float) -> float:
        """Return the true time at which the clock shows a time."""
        return (local - self.offset) / (1 + self.drift)


class Cable(Link, Generic[M]):
    """A link with the host at the end, and counters."""

    __slots__ = ("end", "traffic")

    def __init__(self, source: str, end: Host[M], wire: Wire, random: Random, traffic: Traffic) -> None:
        super().__init__(source, end.name, wire, random)
        self.end = end
        self.traffic = traffic


class Host(Generic[M]):
    """The host of a broker, from the start until a crash; a restart makes another host."""

    __slots__ = ("alarm", "broker", "busy", "links", "name", "shown", "skew", "up", "work")

    def __init__(self, name: str, broker: M, skew: Skew | None, work: Work) -> None:
        self.name = name
        self.broker = broker
        self.skew = skew
        self.work = work
        self.up = True
        self.links: dict[str, Cable[M]] = {}
        """the links known to the broker, by neighbour"""
        self.busy = -inf
        """the time at which all messages in the queue are processed"""
        self.alarm = inf
        """the true time of the next tick"""
        self.shown = -inf
        """the last time given to the broker: a wrong clock still goes forward"""

    def local(self, now: float) -> float:
        """Return the time given to the broker at a true time."""
        if self.skew is None:
            return now
        self.shown = max(self.shown, self.skew.local(now))
        return self.shown


def cost_of(processing: Processing) -> Callable[[Message, object], float] | None:
    """Return the processing time as a function of message and broker, or None if processing takes no time."""
    if processing is None:
        return None
    if callable(processing):
        function: Final = processing
        return lambda message, _broker: function(message)
    if isinstance(processing, Mapping):
        costs: Final = dict(processing)

        def by_kind(message: Message, broker: object) -> float:
            cost = costs.get(type(message), 0.0)
            return cost(broker) if callable(cost) else cost

        return by_kind
    seconds: Final = processing
    return lambda _message, _broker: seconds
