"""Strategies and a small universe: every set that the strategies make is told apart by some value of the universe."""

from __future__ import annotations

import itertools
import math
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st

from fieldfare.events.values import MISSING, Scalar
from fieldfare.filters import patterns, valueset
from fieldfare.filters.valueset import ValueSet

DAY = datetime(2026, 1, 1, tzinfo=UTC)
TICK = timedelta(microseconds=1)

NUMBERS: list[Scalar] = [0, 1, 2.5, 2**53, 2**53 + 2]  # not + 1: dense, though no number lies between
WORDS = ["", "a", "b", "ab", "ba", "abb"]
TIMES: list[Scalar] = [DAY, DAY + TICK]
OTHERS: list[Scalar] = [None, True, False, b"", b"a"]
CONSTANTS: list[Scalar] = [*NUMBERS, *WORDS, *TIMES, *OTHERS]

LIKES = ["%a", "%ab", "%a%", "%bb%", "a%b", "_", "_%", "a_", "%a_", "b%", "%", "a%b%", "__%"]

ALL_WORDS = [
    *("".join(word) for length in range(4) for word in itertools.product("ABabc", repeat=length)),
    *("".join(word) for length in (4, 5) for word in itertools.product("abc", repeat=length)),
    *(  # between one of the words and the next
        f"{start}A{''.join(word)}"
        for start in WORDS
        for length in (2, 3, 4)
        for word in itertools.product("abc", repeat=length)
    ),
]
"""c stands for all the letters that no pattern mentions"""

UNIVERSE: list[object] = [
    MISSING, *OTHERS, math.nan, (), ("a",), {}, {"x": 1},
    -math.inf, -1, -0.0, 0, 0.5, 1, 2, 2.5, 3, 2**53 - 1, 2**53, float(2**53), 2**53 + 1, 2**53 + 2, 2**53 + 3, math.inf,
    *ALL_WORDS, "\0", "a\0", "b\0", "ab\0", "ba\0", "abb\0", "\U0010ffff",
    DAY - TICK, DAY, DAY + TICK, DAY + 2 * TICK, b"\0", b"a\0", b"b",
]  # fmt: skip


def ranges() -> st.SearchStrategy[ValueSet]:
    ordered = st.sampled_from([NUMBERS, WORDS, TIMES, [b"", b"a"]])
    closed = st.sampled_from(["[]", "[)", "(]", "()"])

    def between(group: list[Scalar], i: int, j: int, how: str, open_end: int) -> ValueSet:
        low, high = sorted((group[i % len(group)], group[j % len(group)]))  # type: ignore[type-var]
        return valueset.between(
            None if open_end == 1 else low,
            None if open_end == 2 else high,
            how,
        )

    index = st.integers(0, 5)
    return st.builds(between, ordered, index, index, closed, st.integers(0, 2))


def value_sets() -> st.SearchStrategy[ValueSet]:
    """Sets of every shape, patterns included."""
    leaves = st.one_of(
        st.lists(st.sampled_from(CONSTANTS), max_size=3).map(valueset.one_of),
        ranges(),
        st.sampled_from(LIKES).map(lambda text: valueset.like(patterns.like(text))),
        st.sampled_from(["aB", "%B", "a%"]).map(lambda text: valueset.like(patterns.like(text, ignore_case=True))),
        st.sampled_from([valueset.PRESENT, valueset.ABSENT, valueset.FULL, valueset.NAN]),
    )
    return st.recursive(
        leaves,
        lambda inner: st.one_of(
            st.builds(ValueSet.__or__, inner, inner),
            st.builds(ValueSet.__and__, inner, inner),
            st.builds(ValueSet.__sub__, inner, inner),
            inner.map(ValueSet.__invert__),
        ),
        max_leaves=4,
    )
