"""Processing times measured on the present machine, for simulations with realistic queues.

`calibrate` fills a broker with more and more filters and measures the CPU time of events and filter updates. Times are
interpolated between the measured sizes and extrapolated beyond the largest. Two calibrations differ, and so do runs
with calibrated times: take constant times where a run must be repeatable.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from random import Random
from typing import Final, NamedTuple
from weakref import WeakKeyDictionary

from fieldfare.filters import parse
from fieldfare.protocol.messages import (
    Advertise,
    Connect,
    FilterUpdate,
    Forward,
    InterestUpdate,
    Message,
    Publish,
    Subscribe,
    Unsubscribe,
)
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import COVERING, Strategy
from fieldfare.simulation.content import Market, Region
from fieldfare.simulation.host import Processing

SIZES: Final = (10, 100, 1000)
"""of tables that are measured"""
_LOOK: Final = 16
"""how often a table is measured: once in so many tells"""


class Line(NamedTuple):
    """A function of straight lines between points."""

    xs: Sequence[float]
    ys: Sequence[float]

    def at(self, x: float) -> float:
        """Return the value at a place: level before the first point, the last slope after the last, unless falling.

        >>> line = Line([10, 20, 40], [1.0, 2.0, 6.0])
        >>> line.at(5), line.at(15), line.at(50)
        (1.0, 1.5, 8.0)
        """
        if x <= self.xs[0] or len(self.xs) == 1:
            return self.ys[0]
        right = next((place for place, limit in enumerate(self.xs) if x <= limit), len(self.xs) - 1)
        (x0, x1), (y0, y1) = self.xs[right - 1 : right + 1], self.ys[right - 1 : right + 1]
        grown = y0 + (y1 - y0) * (x - x0) / (x1 - x0)
        return max(grown, y1) if x > x1 else grown


class Costs(NamedTuple):
    """Seconds of CPU time by the size of a broker's table."""

    event: Line
    tell: Line


def calibrate(
    strategy: Strategy = COVERING,
    sizes: Sequence[int] = SIZES,
    *,
    rounds: int = 100,
    clock: Callable[[], float] = time.process_time,
) -> Costs:
    """Measure the CPU time of an event and of a filter update, each the mean of many."""
    dice = Random(0)
    market = Market(dice)
    quote = market.publisher(dice, Region()).event
    broker = Broker("b", strategy)
    for neighbour in ("x", "y"):
        broker.receive(Connect(), neighbour, 0.0)
    broker.receive(Advertise("all", parse("TRUE")), "p", 0.0)
    told = 0

    def tell() -> Message:
        nonlocal told
        told += 1
        filters = (market.filter(dice, Region()),)
        return InterestUpdate("x", (0, told), filters) if strategy.overlay == "sources" else FilterUpdate(filters)

    def mean(messages: list[tuple[Message, str]]) -> float:
        start = clock()
        for message, sender in messages:
            broker.receive(message, sender, 0.0)
        return max(clock() - start, 0.0) / len(messages)

    events, tells, measured = [], [], []
    for size in sizes:
        for _ in range(max(0, size - told)):
            broker.receive(tell(), "x", 0.0)
        for message, sender in [(tell(), "x"), (Publish(quote(dice)), "p")] * 10:  # the index makes itself ready
            broker.receive(message, sender, 0.0)
        events.append(mean([(Publish(quote(dice)), "p") for _ in range(rounds)]))
        measured.append(float(size))
        tells.append(mean([(tell(), "x") for _ in range(rounds)]))
    return Costs(Line(measured, events), Line(measured, tells))


def measured(costs: Costs) -> Processing:
    """Return processing times by the present size of each broker's table."""
    sizes: WeakKeyDictionary[Broker, int] = WeakKeyDictionary()
    tells: WeakKeyDictionary[Broker, int] = WeakKeyDictionary()

    def event(broker: Broker) -> float:
        return costs.event.at(sizes.get(broker, 0))

    def tell(broker: Broker) -> float:
        number = tells[broker] = tells.get(broker, -1) + 1
        if number % _LOOK == 0:
            sizes[broker] = broker.entries  # which takes a while to count
        return costs.tell.at(sizes[broker])

    changes: tuple[type[Message], ...] = (FilterUpdate, InterestUpdate, Subscribe, Unsubscribe)
    return {Forward: event, Publish: event, **dict.fromkeys(changes, tell)}
