"""Chance with a shape: how values are spread, and when things happen.

A distribution is made once and then asked for a number with a generator of chance: the same seed, the same numbers.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Callable, Iterator
from itertools import accumulate
from random import Random
from typing import Final, TypeAlias

Draw: TypeAlias = Callable[[Random], float]
"""a way to draw a number"""


def uniform(low: float = 0.0, high: float = 1.0) -> Draw:
    """Any number between two, each as likely."""
    return lambda random: random.uniform(low, high)


def gaussian(mean: float = 0.0, deviation: float = 1.0) -> Draw:
    """Draw from a normal distribution: two of three values lie within a deviation of the mean."""
    return lambda random: random.gauss(mean, deviation)


def pareto(shape: float = 1.2, least: float = 1.0) -> Draw:
    """Mostly near the least, with a long tail; the smaller the shape, the longer."""
    return lambda random: least * random.paretovariate(shape)


def zipf(ranks: int, exponent: float = 1.0) -> Callable[[Random], int]:
    """A rank from 0: the second is drawn half as often as the first, the third a third as often (exponent 1).

    >>> draw, random = zipf(100), Random(1)
    >>> sum(draw(random) == 0 for _ in range(1000))
    177
    """
    sums = list(accumulate((rank + 1) ** -exponent for rank in range(ranks)))
    return lambda random: min(bisect(sums, random.random() * sums[-1]), ranks - 1)


_RANK: Final = zipf(100)
SHARES: Final[dict[str, Draw]] = {
    "uniform": uniform(),
    "gaussian": lambda random: min(max(random.gauss(0.5, 0.15), 0.0), 1.0),
    "pareto": lambda random: min((random.paretovariate(1.2) - 1) / 20, 1.0),
    "zipf": lambda random: _RANK(random) / 100,
}
"""by name: numbers from 0 to 1"""


# When things happen: times without end, so many in a second on the average


def constant(random: Random, rate: float) -> Iterator[float]:
    """Yield times at equal distances.

    >>> from itertools import islice
    >>> list(islice(constant(Random(), 4), 3))
    [0.25, 0.5, 0.75]
    """
    number = 0
    while True:
        number += 1
        yield number / rate


def poisson(random: Random, rate: float) -> Iterator[float]:
    """Yield times of a Poisson process: independent of each other, exponential gaps."""
    time = 0.0
    while True:
        time += random.expovariate(rate)
        yield time


def bursts(random: Random, rate: float, size: int = 10) -> Iterator[float]:
    """So many at once, then a pause."""
    for time in poisson(random, rate / size):
        yield from [time] * size


def arrivals(kind: str, random: Random, rate: float, burst: int) -> Iterator[float]:
    """Return a process of times by name: constant, poisson or bursts."""
    if kind == "bursts":
        return bursts(random, rate, burst)
    return {"constant": constant, "poisson": poisson}[kind](random, rate)
