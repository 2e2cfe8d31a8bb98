"""What clients want and publishers say in the experiments on routing.

A filter is a symbol and a range of prices, `symbol = 'S3' AND price BETWEEN 20 AND 59`: few different symbols make
equal filters likely, ranges on a grid cover each other and fit together. With *locality*, the clients of a broker draw
most of their symbols from those that belong to its part of the network, and publishers do so too.
"""

from __future__ import annotations

import random
from functools import cache

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.simulation.topologies import Topology

STEPS = 10
"""of the grid of prices, each ten wide"""


class Interests:
    """Filters and events of brokers, from a seed."""

    def __init__(
        self, seed: int, topology: Topology, *, symbols: int = 50, locality: float = 0.0, width: int = 4
    ) -> None:
        """Ranges are up to so many steps wide; `locality` is the share of symbols from a broker's own part."""
        self.rng = random.Random(seed)
        self.symbols = symbols
        self.locality = locality
        self.width = width
        order = depth_first(topology)
        self._place = {broker: i / len(order) for i, broker in enumerate(order)}

    def symbol(self, broker: str) -> str:
        """A symbol that somebody at a broker cares for."""
        if self.rng.random() < self.locality:
            own = max(1, self.symbols // 20)
            first = int(self._place[broker] * self.symbols)
            return f"S{(first + self.rng.randrange(own)) % self.symbols}"
        return f"S{self.rng.randrange(self.symbols)}"

    def filter(self, broker: str) -> Filter:
        """Something that a client of a broker wants."""
        low = self.rng.randrange(STEPS)
        high = min(STEPS, low + 1 + self.rng.randrange(self.width))
        return _filter(self.symbol(broker), low * 10, high * 10 - 1)

    def event(self, broker: str) -> Event:
        """Something that happens near a broker."""
        return Event({"symbol": self.symbol(broker), "price": self.rng.randrange(STEPS * 10)})


def depth_first(topology: Topology) -> list[str]:
    """The brokers in an order in which those of a part of the network stand together."""
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
