"""A few filters over two fields, and the events that tell the filters apart, for random runs of brokers."""

from __future__ import annotations

from itertools import product

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter

UNIVERSE: tuple[Event, ...] = tuple(Event({"x": x, "y": y}) for x, y in product(range(4), repeat=2))
"""the sixteen points of a 4 × 4 grid: two filters of `FILTERS` differ on at least one of them"""


def texts() -> list[str]:
    """Return the texts of ranges and boxes over the grid, so that some cover, some overlap and some merge."""
    ranges = [f"{field} BETWEEN {low} AND {high}" for field in "xy" for low in range(4) for high in range(low, 4)]
    both = [f"x BETWEEN {a} AND {b} AND y BETWEEN {c} AND {d}" for a, b, c, d in
            ((0, 1, 0, 3), (0, 0, 1, 2), (1, 3, 2, 2), (2, 3, 2, 3), (0, 3, 1, 1), (1, 1, 0, 1))]  # fmt: skip
    return [*ranges, *both]


FILTERS: tuple[Filter, ...] = tuple(map(parse, texts()))
