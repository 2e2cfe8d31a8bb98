"""The workload generator of the thesis: filters and events of one schema (the hardest case: schemas never interact).

Chapters 4, 6 and 7 use a range for each attribute, inside [0, 100]; chapter 8 draws from seven operators. Bounds are
whole numbers, drawn uniformly; a range is two bounds in order.
"""

from __future__ import annotations

import random
from collections.abc import Callable

from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import EVERYTHING, Filter
from fieldfare.filters.intervals import Intervals, interval
from fieldfare.filters.valueset import ValueSet

Draw = Callable[[random.Random, int], Intervals]


def range_(rng: random.Random, highest: int) -> Intervals:
    """Draw a closed range, a ≤ x ≤ b."""
    low, high = sorted((rng.randint(0, highest), rng.randint(0, highest)))
    return interval(low, high)


def operator(rng: random.Random, highest: int) -> Intervals:
    """Draw one of <, >, ≤, ≥, =, ≠ and a range, all with the same probability."""
    value = rng.randint(0, highest)
    match rng.randrange(7):
        case 0:
            return interval(None, value, "()")
        case 1:
            return interval(value, None, "()")
        case 2:
            return interval(None, value)
        case 3:
            return interval(value, None)
        case 4:
            return interval(value, value)
        case 5:
            return ~interval(value, value)
    return range_(rng, highest)


class Workload:
    """Random filters and events over the attributes a, b, c…; the same for the same seed."""

    def __init__(self, seed: int, dimensions: tuple[int, int], draw: Draw = range_, highest: int = 100) -> None:
        """Prepare the generator; filters constrain from `dimensions[0]` to `dimensions[1]` attributes."""
        self._rng = random.Random(seed)
        self._dimensions = dimensions
        self._draw = draw
        self._highest = highest
        self._names = "abcdefgh"[: dimensions[1]]

    def filter(self) -> Filter:
        """Draw the next filter; an equal filter may have come before."""
        count = self._rng.randint(*self._dimensions)
        drawn = EVERYTHING
        for name in sorted(self._rng.sample(self._names, count)):
            values = ValueSet(numbers=self._draw(self._rng, self._highest))
            drawn = drawn.intersect(Filter.where(name, Constraint(values)))
        return drawn

    def filters(self, count: int) -> list[Filter]:
        """Draw `count` filters, no two of them equal."""
        found: dict[Filter, None] = {}
        while len(found) < count:
            found[self.filter()] = None
        return list(found)

    def events(self, count: int) -> list[dict[str, object]]:
        """Draw `count` events with a value for every attribute."""
        return [{name: self._rng.randint(0, self._highest) for name in self._names} for _ in range(count)]
