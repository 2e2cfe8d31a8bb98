"""`W1`, `W2` and `W3`: the workloads of the engine's design, to compare measured figures with the planned figures.

W1  20 integer attributes, 5 constrained by ranges; a filter lets 0.01 % to 1 % of the events pass
W2  10 attributes of 10,000 words, Zipf 1.0; two or three equalities and a range
W3  40 attributes of all types, Zipf 1.0; 3 to 6 predicates: =, IN, STARTS WITH, !=, EXISTS and ranges
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from fieldfare_lab.bench.reference_workloads import Made
from fieldfare_lab.bench.rules import Event, Predicate, Rule

DOMAIN: Final = 1001
WORDS: Final = 10_000
TYPES: Final = ("str", "int", "str", "float", "int", "bool", "str", "time")
PREFIXES: Final = (2, 3, 4, 6)
START: Final = datetime(2025, 1, 1, tzinfo=UTC)


def w1(rng: Generator, filters: int, events: int) -> Made:
    """Five ranges in a filter, over 20 integer attributes of 0 to 1000; the width decides the share of events."""
    attributes, constrained = 20, 5
    chosen = rng.permuted(np.tile(np.arange(attributes), (filters, 1)), axis=1)[:, :constrained]
    pass_rate = np.exp(rng.uniform(np.log(1e-4), np.log(1e-2), filters))
    width = np.maximum(1, np.round(pass_rate ** (1 / constrained) * DOMAIN)).astype(int)
    shape = rng.integers(0, 4, (filters, constrained))
    low = (rng.random((filters, constrained)) * (DOMAIN - width[:, None] + 1)).astype(int)

    def predicate(field: int, kind: int, low: int, width: int) -> Predicate:
        if kind < 2:
            return Predicate(f"a{field}", "between", (low, low + width - 1))
        return Predicate(f"a{field}", *(("<=", (width - 1,)) if kind == 2 else (">=", (DOMAIN - width,))))

    rows = zip(chosen.tolist(), shape.tolist(), low.tolist(), width.tolist(), strict=True)
    rules = [[predicate(*one, w) for one in zip(fs, ks, ls, strict=True)] for fs, ks, ls, w in rows]
    values = rng.integers(0, DOMAIN, (events, attributes)).tolist()
    return rules, [{f"a{i}": value for i, value in enumerate(row)} for row in values]


def w2(rng: Generator, filters: int, events: int) -> Made:
    """Equalities of popular words and a range of integers."""
    attributes, words = 10, vocabulary()
    favourites = np.array([rng.permutation(WORDS) for _ in range(attributes)])
    chosen = rng.permuted(np.tile(np.arange(attributes), (filters, 1)), axis=1)[:, :3]
    value = favourites[chosen, zipf(rng, WORDS, 1.0, (filters, 3))].tolist()
    width = rng.integers(100, 500, filters)
    low = (rng.random(filters) * (DOMAIN - width)).astype(int)
    equal, ranged = rng.integers(2, 4, filters).tolist(), rng.integers(0, 2, filters).tolist()
    rules = [
        [Predicate(f"s{a}", "=", (words[v],)) for a, v in zip(fs[:count], vs, strict=False)]
        + [Predicate("xy"[which], "between", (start, start + wide))]
        for fs, vs, count, which, start, wide in zip(
            chosen.tolist(), value, equal, ranged, low.tolist(), width.tolist(), strict=True
        )
    ]
    strings = favourites[np.arange(attributes), zipf(rng, WORDS, 1.0, (events, attributes))].tolist()
    numbers = rng.integers(0, DOMAIN, (events, 2)).tolist()
    return rules, [
        {**{f"s{i}": words[v] for i, v in enumerate(row)}, "x": x, "y": y}
        for row, (x, y) in zip(strings, numbers, strict=True)
    ]


def w3(rng: Generator, filters: int, events: int) -> Made:
    """Predicates with eight operators over 40 attributes of all types; popular attributes are in most events."""
    attributes = [(f"{kind}{i}", kind) for i, kind in enumerate(TYPES * 5)]
    weight = 1 / np.arange(1, len(attributes) + 1)
    favourites = {name: rng.permutation(WORDS) for name, kind in attributes if kind == "str"}
    order = np.argsort(-(np.log(weight) + rng.gumbel(size=(filters, len(attributes)))), axis=1)
    sizes = rng.integers(3, 7, filters).tolist()
    rules: list[Rule] = [
        [_any_predicate(rng, attributes[a][0], attributes[a][1], favourites) for a in row[:size]]
        for row, size in zip(order[:, :6].tolist(), sizes, strict=True)
    ]
    made: list[Event] = [{} for _ in range(events)]
    presence = np.minimum(1, 2.2 * weight**0.45)
    for (name, kind), share in zip(attributes, presence.tolist(), strict=True):
        values = _values(rng, name, kind, events, favourites)
        for event, value, there in zip(made, values, (rng.random(events) < share).tolist(), strict=True):
            if there:
                event[name] = value
    return rules, made


def _any_predicate(rng: Generator, name: str, kind: str, favourites: dict[str, NDArray[Any]]) -> Predicate:
    """A predicate on an attribute of W3; the shares of the operators come from the design."""
    draw = rng.random()

    def is_(op: str, *operands: Any) -> Predicate:
        return Predicate(name, op, operands)

    if kind == "bool":
        return is_("=", draw < 0.5)
    if kind == "float":
        low = float(rng.normal())
        if draw < 0.8:
            return is_("<=" if draw < 0.4 else ">=", low)
        return is_("between", low, low + abs(float(rng.normal())) * 0.5)
    if kind == "time":
        start = START + timedelta(days=int(rng.integers(0, 300)))
        end = start + timedelta(days=int(rng.integers(1, 60)))
        return is_(">=", start) if draw < 0.6 else is_("between", start, end)
    if kind == "str":
        words = [vocabulary()[v] for v in favourites[name][zipf(rng, WORDS, 1.0, int(rng.integers(2, 9)))].tolist()]
        op = _at(draw, {0.5: "=", 0.7: "in", 0.9: "starts", 0.95: "!=", 1: "exists"})
        prefix = words[0][: PREFIXES[int(rng.integers(0, 4))]]
        return is_(op, *{"in": sorted(set(words)), "starts": [prefix], "exists": []}.get(op, words[:1]))
    number = int(rng.integers(0, DOMAIN))
    op = _at(draw, {0.25: "=", 0.35: "in", 0.55: "<=", 0.75: ">=", 0.92: "between", 0.96: "!=", 1: "exists"})
    several = sorted({number, *rng.integers(0, DOMAIN, int(rng.integers(1, 8))).tolist()})
    low = int(rng.integers(0, 900))
    operands = {
        "in": several,
        "<=": [int(rng.integers(50, 600))],
        ">=": [int(rng.integers(400, 950))],
        "between": [low, low + int(rng.integers(5, 300))],
        "exists": [],
    }
    return is_(op, *operands.get(op, [number]))


def _at(draw: float, shares: dict[float, str]) -> str:
    return next(op for bound, op in shares.items() if draw < bound)


def _values(rng: Generator, name: str, kind: str, count: int, favourites: dict[str, NDArray[Any]]) -> list[Any]:
    if kind == "str":
        return [vocabulary()[v] for v in favourites[name][zipf(rng, WORDS, 1.0, count)].tolist()]
    if kind == "float":
        return list(rng.normal(size=count).tolist())
    if kind == "bool":
        return list((rng.random(count) < 0.5).tolist())
    if kind == "time":
        return [START + timedelta(microseconds=us) for us in rng.integers(0, 365 * 86_400_000_000, count).tolist()]
    return list(rng.integers(0, DOMAIN, count).tolist())


def zipf(rng: Generator, count: int, skew: float, size: int | tuple[int, ...]) -> NDArray[np.int64]:
    """Draw ranks below `count`; rank 0 is the most likely, and skew 0 is uniform."""
    cumulated = _cumulated(count, skew)
    ranks: NDArray[np.int64] = np.searchsorted(cumulated, rng.random(size) * cumulated[-1]).astype(np.int64)
    return ranks


@cache
def _cumulated(count: int, skew: float) -> NDArray[np.float64]:
    return np.cumsum(1 / np.arange(1, count + 1) ** skew)


@cache
def vocabulary() -> list[str]:
    """Make 10,000 different words of two to four syllables; some syllables are much more frequent than others."""
    rng = np.random.default_rng(7)
    syllables = [a + b for a in "bcdfglmnprstv" for b in "aeiou"]
    words: dict[str, None] = {}
    while len(words) < WORDS:
        picks = np.minimum(rng.geometric(0.06, rng.integers(2, 5)) - 1, len(syllables) - 1)
        words["".join(syllables[i] for i in picks.tolist())] = None
    return list(words)
