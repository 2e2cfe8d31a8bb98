"""Filters for tests of profiles and queries: rectangles on a small grid, which meet often, and everyday ones."""

from __future__ import annotations

import random

from hypothesis import strategies as st

from fieldfare.filters import Filter, parse, valueset
from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import Constraint


def box(sides: dict[str, tuple[int, int]]) -> Filter:
    """A filter of closed ranges."""
    return Filter([Branch({name: Constraint(valueset.between(*ends)) for name, ends in sides.items()})])


def rectangle(dice: random.Random, size: int = 10) -> Filter:
    """Two ranges within [0, size], as in the experiments of the thesis."""

    def ends() -> tuple[int, int]:
        low, high = sorted((dice.randint(0, size), dice.randint(0, size)))
        return low, high

    return box({"x": ends(), "y": ends()})


_ends = st.tuples(st.integers(0, 5), st.integers(0, 5)).map(lambda ends: (min(ends), max(ends)))
rectangles: st.SearchStrategy[Filter] = st.one_of(
    st.builds(lambda x, y: box({"x": x, "y": y}), _ends, _ends),
    st.builds(lambda x: box({"x": x}), _ends),
)

EVERYDAY = [
    parse(text)
    for text in (
        "TRUE",
        "x = 3",
        "x > 2",
        "x != 3",
        "NOT x > 2",
        "EXISTS x",
        "x IS MISSING",
        "x < 2 OR x > 4",
        "x < 3 OR y < 3",
        "(x < 2 AND y > 3) OR (x > 4 AND y < 2)",
        "x IN (1, 3, 5)",
        "x IN (1, 'a')",
        "x < $y",
        "x <= $y AND x < 4",
        "x != $y",
        "x + y > 4",
        "s = 'ab'",
        "s STARTS WITH 'a'",
        "s CONTAINS 'b'",
        "s LIKE 'a%b'",
        "NOT s LIKE 'a%'",
        "s > 'a' AND x > 2",
        "ANY t = 'a'",
        "ANY t = 'a' AND ANY t = 'b'",
        "ALL t IN ('a', 'b')",
        "NOT ANY t = 'a'",
        "t IS LIST AND x = 3",
    )
]
everyday = st.sampled_from(EVERYDAY)
