"""Content of events and filters: a market, sensors, or plain numbers.

A subject makes filters like filters written by people, and publishers with advertisements. All content lies on a circle
of length 1. A client with a *region* of the circle subscribes to content of the region, and a publisher publishes such
content: so clients of the same broker have similar interests.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from random import Random
from typing import Final, NamedTuple, Protocol

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.simulation.distributions import Draw, gaussian, zipf


class Region(NamedTuple):
    """A stretch of the circle."""

    start: float = 0.0
    width: float = 1.0

    def at(self, share: float) -> float:
        """Return the place at a share of the stretch.

        >>> Region(0.75, 0.5).at(0.5)
        0.0
        """
        return (self.start + self.width * share) % 1.0

    def __contains__(self, place: object) -> bool:
        return isinstance(place, float) and (place - self.start) % 1.0 <= self.width


class Publisher(NamedTuple):
    """A publisher: an advertisement, and a source of events inside the advertisement."""

    promised: Filter
    """every event of theirs matches it"""
    event: Callable[[Random], Event]
    """the next one"""


class Subject(Protocol):
    """A subject makes filters and publishers for a region of content."""

    def filter(self, random: Random, region: Region) -> Filter:
        """Make a filter for content of a region."""

    def publisher(self, random: Random, region: Region) -> Publisher:
        """Make a publisher of content of a region."""


class Market:
    """Quotes of shares: few symbols are popular, and prices walk at random."""

    def __init__(self, random: Random, symbols: int = 200, skew: float = 1.0) -> None:
        """Make a market with symbols in order of popularity."""
        self.symbols = [_ticker(number) for number in range(symbols)]
        self.prices = {symbol: random.lognormvariate(math.log(50), 0.8) for symbol in self.symbols}
        self._skew = skew
        self._ranked = lru_cache(maxsize=None)(self._find)

    def _find(self, region: Region) -> tuple[list[str], Callable[[Random], int]]:
        """Return the symbols of a region with ranks; neighbours in popularity lie far apart: all regions have some."""
        golden = (math.sqrt(5) - 1) / 2
        inside = [symbol for number, symbol in enumerate(self.symbols) if (number * golden) % 1.0 in region]
        inside = inside or [self.symbols[int(region.start * len(self.symbols))]]
        return inside, zipf(len(inside), self._skew)

    def _symbol(self, random: Random, region: Region) -> str:
        inside, rank = self._ranked(region)
        return inside[rank(random)]

    def filter(self, random: Random, region: Region) -> Filter:
        """Make a filter: mostly a symbol and a price range; sometimes any price, a limit, or symbols by prefix."""
        symbol = self._symbol(random, region)
        price = self.prices[symbol] * random.uniform(0.9, 1.1)
        kind = random.random()
        if kind < 0.5:
            half = random.uniform(0.02, 0.15)
            return parse(f"symbol = '{symbol}' AND price BETWEEN {price * (1 - half):.2f} AND {price * (1 + half):.2f}")
        if kind < 0.65:
            return parse(f"symbol = '{symbol}'")
        if kind < 0.9:
            return parse(f"symbol = '{symbol}' AND price {random.choice('<>')} {price:.2f}")
        return parse(f"symbol STARTS WITH '{symbol[:2]}'")

    def publisher(self, random: Random, region: Region) -> Publisher:
        """Make an exchange with quotes for the symbols of a region."""
        inside, rank = self._ranked(region)
        names = ", ".join(f"'{symbol}'" for symbol in inside)

        def quote(random: Random) -> Event:
            symbol = inside[rank(random)]
            price = self.prices[symbol] = self.prices[symbol] * math.exp(random.gauss(0, 0.01))
            return Event({"symbol": symbol, "price": round(price, 2), "volume": 100 * random.randint(1, 50)})

        return Publisher(parse(f"symbol IN ({names})"), quote)


def _ticker(number: int) -> str:
    """Three letters, others for each number."""
    code = (number * 7919 + 4321) % 26**3
    return "".join(chr(65 + code // 26**digit % 26) for digit in range(3))


_USUAL: Final = {"temperature": (15, 8), "humidity": (60, 15), "noise": (55, 10), "dust": (25, 9)}
"""mean and deviation of what they measure"""
_SIDE: Final = 100.0
"""the sensors stand in a square of so many kilometres; the circle leads from west to east, and through the kinds"""


def _kind(random: Random, region: Region) -> str:
    return list(_USUAL)[int(region.at(random.random()) * len(_USUAL))]


class Sensors:
    """Measurements at places; each publisher is a sensor."""

    def filter(self, random: Random, region: Region) -> Filter:
        """An area, a threshold, a range of values, or an area and a threshold."""
        kind = _kind(random, region)
        mean, deviation = _USUAL[kind]
        x, y, reach = region.at(random.random()) * _SIDE, random.random() * _SIDE, random.uniform(3, 20)
        area = f"x BETWEEN {x - reach:.1f} AND {x + reach:.1f} AND y BETWEEN {y - reach:.1f} AND {y + reach:.1f}"
        high = mean + deviation * random.uniform(0.5, 2.5)
        choice = random.random()
        if choice < 0.25:
            return parse(f"kind = '{kind}' AND {area}")
        if choice < 0.45:
            return parse(f"kind = '{kind}' AND value > {high:.1f}")
        if choice < 0.65:
            low = mean + deviation * random.uniform(-1, 1)
            return parse(f"kind = '{kind}' AND value BETWEEN {low:.1f} AND {low + deviation * random.random():.1f}")
        return parse(f"kind = '{kind}' AND value > {high:.1f} AND {area}")

    def publisher(self, random: Random, region: Region) -> Publisher:
        """Make a sensor with a single kind and place."""
        kind = _kind(random, region)
        place = {"x": round(region.at(random.random()) * _SIDE, 1), "y": round(random.random() * _SIDE, 1)}
        value = gaussian(*_USUAL[kind])
        return Publisher(
            parse(f"kind = '{kind}' AND x = {place['x']} AND y = {place['y']}"),
            lambda random: Event({"kind": kind, **place, "value": round(value(random), 1)}),
        )


class Numbers:
    """Events of numbers from 0 to 1, spread as you like; a filter has a range for the first or for two numbers."""

    def __init__(self, draw: Draw, fields: int = 4, width: float = 0.1) -> None:
        """So many fields, and ranges so wide on the average."""
        self._draw = draw
        self._fields = fields
        self._width = width

    def filter(self, random: Random, region: Region) -> Filter:
        """Make a filter: a range of the first number, inside the region, and sometimes a range of another number."""
        ranges = [self._range("a0", region.at(self._draw(random)), random)]
        if self._fields > 1 and random.random() < 0.5:
            ranges.append(self._range(f"a{random.randrange(1, self._fields)}", self._draw(random), random))
        return parse(" AND ".join(ranges))

    def _range(self, name: str, centre: float, random: Random) -> str:
        half = self._width * random.random()
        return f"{name} BETWEEN {centre - half:.4f} AND {centre + half:.4f}"

    def publisher(self, random: Random, region: Region) -> Publisher:
        """Make a publisher with first numbers inside the region."""

        def event(random: Random) -> Event:
            first = {"a0": round(region.at(self._draw(random)), 4)}
            return Event(first | {f"a{n}": round(self._draw(random), 4) for n in range(1, self._fields)})

        low, high = round(region.start, 4), round(region.start + region.width, 4)
        if region.width >= 1:
            promised = "EXISTS a0"
        elif high < 1:
            promised = f"a0 BETWEEN {low} AND {high}"
        else:
            promised = f"a0 >= {low} OR a0 <= {round(high - 1, 4)}"
        return Publisher(parse(promised), event)
