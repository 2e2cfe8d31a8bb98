"""Where a broker runs: its clock, its queue, and the links it was told of."""

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
    """How wrong a broker's clock is."""

    offset: float = 0.0
    """seconds that it is ahead at the start"""
    drift: float = 0.0
    """seconds that it gains in each second"""

    def local(self, now: float) -> float:
        """What the clock shows."""
        return now + self.offset + self.drift * now

    def true(self, local: float) -> float:
        """When it shows that."""
        return (local - self.offset) / (1 + self.drift)


class Cable(Link, Generic[M]):
    """A link with what it leads to, and its counters."""

    __slots__ = ("end", "traffic")

    def __init__(self, source: str, end: Site[M], wire: Wire, random: Random, traffic: Traffic) -> None:
        super().__init__(source, end.name, wire, random)
        self.end = end
        self.traffic = traffic


class Site(Generic[M]):
    """Where a broker runs, from its start until it crashes."""

    __slots__ = ("alarm", "broker", "busy", "links", "name", "shown", "skew", "up", "work")

    def __init__(self, name: str, broker: M, skew: Skew | None, work: Work) -> None:
        self.name = name
        self.broker = broker
        self.skew = skew
        self.work = work
        self.up = True
        self.links: dict[str, Cable[M]] = {}
        """those that the broker was told of"""
        self.busy = -inf
        """until when it works on what it has"""
        self.alarm = inf
        """when its next tick is due, in true time"""
        self.shown = -inf
        """the time that it was last given: a clock that is wrong still goes forward"""

    def local(self, now: float) -> float:
        """The time that the broker is given."""
        if self.skew is None:
            return now
        self.shown = max(self.shown, self.skew.local(now))
        return self.shown


def cost_of(processing: Processing) -> Callable[[Message, object], float] | None:
    """The processing as a function of the message and the broker, if there is any."""
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
