"""Routers in areas, after the topology generator BRITE, and the delay of a message between any two routers.

Areas and their routers lie on a plane. In an area each new router chooses some of the earlier routers, by Waxman's
rule near routers rather than far routers; areas are joined in the same way, by a link between two routers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from heapq import heappop, heappush
from random import Random
from typing import Final, NamedTuple, TypeAlias

from fieldfare.simulation.topologies import Edge, Topology

Place: TypeAlias = tuple[float, float]

_SIDE: Final = 0.4
"""of an area, where the plane has a side of 1"""


class Routers(NamedTuple):
    """A topology, the delay of each link, and the shortest delay between any two routers."""

    topology: Topology
    links: Mapping[tuple[str, str], float]
    """both ways"""
    delays: Mapping[str, Mapping[str, float]]


def routers(
    areas: int = 4, size: int = 25, links: int = 2, *, longest: float = 0.0257, beta: float = 0.2, seed: int = 0
) -> Routers:
    """Make areas of routers; each new router gets `links` links to earlier routers of the area.

    Args:
        areas: how many there are.
        size: routers in each.
        links: of a new router to earlier routers.
        longest: seconds between the two routers farthest from each other.
        beta: of Waxman's rule: a larger value chooses more routers far away.
        seed: of all chance.
    """
    dice = Random(f"routers {seed}")
    middles = [_somewhere(dice) for _ in range(areas)]
    places = [
        (x + _SIDE * (dx - 0.5), y + _SIDE * (dy - 0.5))
        for x, y in middles
        for dx, dy in (_somewhere(dice) for _ in range(size))
    ]
    pairs: list[tuple[int, int]] = []
    for area in range(areas):
        inside = _waxman(places[area * size : (area + 1) * size], links, beta, dice)
        pairs += [(area * size + i, area * size + j) for i, j in inside]
    for one, other in _waxman(middles, links, beta, dice):
        pairs.append((one * size + dice.randrange(size), other * size + dice.randrange(size)))
    names = tuple(f"b{number}" for number in range(len(places)))
    lengths = {(names[i], names[j]): math.dist(places[i], places[j]) for i, j in pairs}
    both = lengths | {(b, a): length for (a, b), length in lengths.items()}
    topology = Topology(names, tuple(Edge(a, b) for a, b in lengths))
    far = shortest(topology, both)
    unit = longest / max(max(row.values()) for row in far.values())
    return Routers(
        topology,
        {pair: length * unit for pair, length in both.items()},
        {a: {b: length * unit for b, length in row.items()} for a, row in far.items()},
    )


def shortest(topology: Topology, links: Mapping[tuple[str, str], float]) -> dict[str, dict[str, float]]:
    """The length of the shortest way between any two (Dijkstra's algorithm)."""
    neighbours = topology.neighbours()
    found: dict[str, dict[str, float]] = {}
    for start in topology.brokers:
        done: dict[str, float] = {}
        queue = [(0.0, start)]
        while queue:
            length, broker = heappop(queue)
            if broker not in done:
                done[broker] = length
                for other in neighbours[broker]:
                    heappush(queue, (length + links[broker, other], other))
        found[start] = done
    return found


def _somewhere(dice: Random) -> Place:
    return dice.random(), dice.random()


def _waxman(places: Sequence[Place], links: int, beta: float, dice: Random) -> list[tuple[int, int]]:
    """Join each router to some earlier routers, with a weight falling with the distance."""
    reach = beta * math.sqrt(2)
    pairs: list[tuple[int, int]] = []
    for new in range(1, len(places)):
        left = list(range(new))
        for _ in range(min(links, new)):
            weights = [math.exp(-math.dist(places[new], places[old]) / reach) for old in left]
            old = dice.choices(left, weights)[0]
            left.remove(old)
            pairs.append((old, new))
    return pairs
