"""Filters of clients and events of publishers in the experiments on routing.

A filter is a symbol and a range of prices, `symbol = 'S3' AND price BETWEEN 20 AND 59`: few different symbols make
equal filters likely, ranges on a grid cover each other and can be merged. With *locality*, the clients of a broker
draw most symbols from the symbols of the broker's part of the network, and so do publishers.
"""

from __future__ import annotations

import random
from functools import cache

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.simulation.topologies import Topology

STEPS = 10
"""number of steps of the grid of prices; each step is ten wide"""


class Interests:
    """A generator of the filters and events at each broker; the same seed gives the same sequence."""

    def __init__(
        self, seed: int, topology: Topology, *, symbols: int = 50, locality: float = 0.0, width: int = 4
    ) -> None:
        """Prepare the generator.

        Ranges are up to `width` steps wide; `locality` is the share of symbols from a broker's own part of the network.
        """
        self.rng = random.Random(seed)
        self.symbols = symbols
        self.locality = locality
        self.width = width
        order = depth_first(topology)
        self._place = {broker: i / len(order) for i, broker in enumerate(order)}

    def symbol(self, broker: str) -> str:
        """Draw a symbol for a client of a broker."""
        if self.rng.random() < self.locality:
            own = max(1, self.symbols // 20)
            first = int(self._place[broker] * self.symbols)
            return f"S{(first + self.rng.randrange(own)) % self.symbols}"
        return f"S{self.rng.randrange(self.symbols)}"

    def filter(self, broker: str) -> Filter:
        """Draw the filter of a client of a broker."""
        low = self.rng.randrange(STEPS)
        high = min(STEPS, low + 1 + self.rng.randrange(self.width))
        return _filter(self.symbol(broker), low * 10, high * 10 - 1)

    def event(self, broker: str) -> Event:
        """Draw an event of a publisher at a broker."""
        return Event({"symbol": self.symbol(broker), "price": self.rng.randrange(STEPS * 10)})


def depth_first(topology: Topology) -> list[str]:
    """Return the brokers in depth-first order, so that brokers of a part of the network stand together."""
    neighbours = topology.neighbours()
    found: dict[str, None] = {}
    waiting = list(reversed(topology.brokers))
    while waiting:
        broker = waiting.pop()
        if broker not in found:
            found[broker] = None
            waiting += reversed(neighbours[broker])
    return list(found)


@cache
def _filter(symbol: str, low: int, high: int) -> Filter:
    return parse(f"symbol = '{symbol}' AND price BETWEEN {low} AND {high}")
