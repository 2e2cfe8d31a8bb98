"""`eq`, `stock` and `begen`: three workloads with known totals, because everything follows from a seed.

Six engines in C, Rust, Java, Go, Spark SQL and NumPy found the same totals. The order of calls of the random generator
defines a workload, so a moved line makes another workload; the tests compare with the original where the original is.
"""

from __future__ import annotations

import bisect
import itertools
import random
from collections.abc import Callable
from typing import Final, TypeAlias

from fieldfare_lab.bench.rules import Event, Predicate, Rule

Made: TypeAlias = tuple[list[Rule], list[Event]]

SEED: Final = 42
EVENTS: Final = 20_000
EXPECTED: Final = {
    ("eq", 1_000): 43,
    ("eq", 10_000): 472,
    ("eq", 100_000): 4_849,
    ("stock", 1_000): 19_127,
    ("stock", 10_000): 176_308,
    ("stock", 100_000): 1_807_628,
    ("begen", 1_000): 35_799,
    ("begen", 10_000): 265_668,
}
"""matches over the first 20,000 events of seed 42"""

_CARDINALITIES: Final = (10, 20, 50, 100, 200, 500, 1000, 1000, 1000, 1000)
_DOMAIN: Final = 1000


def eq(rng: random.Random, filters: int, events: int) -> Made:
    """Three equalities on different attributes out of ten string attributes with 10 to 1000 values."""

    def value(attribute: int) -> str:
        return f"v{rng.randrange(_CARDINALITIES[attribute])}"

    rules = [[Predicate(f"s{i}", "=", (value(i),)) for i in sorted(rng.sample(range(10), 3))] for _ in range(filters)]
    return rules, [{f"s{i}": value(i) for i in range(10)} for _ in range(events)]


def stock(rng: random.Random, filters: int, events: int) -> Made:
    """A symbol (or a sector) and a price range, often more; 500 symbols, Zipf 0.8."""
    popularity = _zipf(500, 0.8)

    def rule() -> Rule:
        if rng.random() < 0.9:
            made = [Predicate("symbol", "=", (f"SYM{_pick(rng, popularity)}",))]
        else:
            made = [Predicate("sector", "=", (f"sec{rng.randrange(20)}",))]
        centre, width = rng.uniform(0, 1000), rng.uniform(10, 200)
        low, high = round(max(0, centre - width / 2), 2), round(min(1000, centre + width / 2), 2)
        made.append(Predicate("price", "between", (low, high)))
        if rng.random() < 0.5:
            made.append(Predicate("volume", ">=", (rng.randrange(1_000_000),)))
        if rng.random() < 0.3:
            op = rng.choice(["<=", ">="])
            made.append(Predicate("change", op, (round(rng.uniform(-10, 10), 2),)))
        if rng.random() < 0.2:
            made.append(Predicate("exchange", "=", (f"ex{rng.randrange(10)}",)))
        return made

    def event() -> Event:
        price = round(rng.uniform(0, 1000), 2)
        return {
            "symbol": f"SYM{_pick(rng, popularity)}",
            "exchange": f"ex{rng.randrange(10)}",
            "sector": f"sec{rng.randrange(20)}",
            "price": round(price + 0.001, 3),
            "change": round(rng.uniform(-10, 10) + 0.0003, 3),
            "volume": rng.randrange(1_000_000),
            "bid": max(0.001, round(price - 1.001, 3)),
            "ask": round(price + 1.001, 3),
        }

    return [rule() for _ in range(filters)], [event() for _ in range(events)]


def begen(rng: random.Random, filters: int, events: int) -> Made:
    """About five predicates over 400 integer dimensions, chosen by Zipf 1.0; an event has 15 of the 400."""
    popularity = _zipf(400, 1.0)

    def dimensions(count: int) -> list[int]:
        chosen: set[int] = set()
        while len(chosen) < count:
            chosen.add(_pick(rng, popularity))
        return sorted(chosen)

    def predicate(dimension: int) -> Predicate:
        if rng.random() < 0.3:
            return Predicate(f"d{dimension}", "=", (rng.randrange(_DOMAIN),))
        width = int(_DOMAIN * rng.uniform(0.05, 0.5))
        low = rng.randrange(_DOMAIN - width)
        return Predicate(f"d{dimension}", "between", (low, low + width))

    rules = [[predicate(d) for d in dimensions(max(1, int(rng.gauss(5, 1.5))))] for _ in range(filters)]
    return rules, [{f"d{d}": rng.randrange(_DOMAIN) for d in dimensions(15)} for _ in range(events)]


THREE: Final[dict[str, Callable[[random.Random, int, int], Made]]] = {"eq": eq, "stock": stock, "begen": begen}


def generate(name: str, filters: int, events: int, seed: int = SEED) -> Made:
    """Generate the rules and events of `eq`, `stock` or `begen`."""
    return THREE[name](random.Random(seed), filters, events)


def _zipf(count: int, skew: float) -> list[float]:
    return list(itertools.accumulate(1 / rank**skew for rank in range(1, count + 1)))


def _pick(rng: random.Random, cumulated: list[float]) -> int:
    return bisect.bisect(cumulated, rng.random() * cumulated[-1])
