"""Cuts against brute force, and the edges of every order."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.filters.intervals import EMPTY, FULL, Intervals, after_prefix, interval, point, points, prefix

GRID = [-math.inf, *(n / 2 for n in range(-1, 10)), math.inf]
ends = st.one_of(st.none(), st.sampled_from([-math.inf, 0, 1, 2.0, 3, 4, math.inf]))
pieces = st.builds(interval, ends, ends, st.sampled_from(["[]", "[)", "(]", "()"]))
sets = st.lists(pieces, max_size=4).map(lambda parts: Intervals.__or__(EMPTY, EMPTY) if not parts else _union(parts))


def _union(parts: list[Intervals]) -> Intervals:
    whole = EMPTY
    for part in parts:
        whole |= part
    return whole


def members(values: Intervals) -> list[bool]:
    return [value in values for value in GRID]


@given(ends, ends, st.sampled_from(["[]", "[)", "(]", "()"]))
def test_an_interval_holds_what_lies_between_its_ends(low: float | None, high: float | None, closed: str) -> None:
    for value in GRID:
        above = low is None or low < value or (low == value and closed[0] == "[")
        below = high is None or value < high or (value == high and closed[1] == "]")
        assert (value in interval(low, high, closed)) == (above and below)


@given(sets, sets)
def test_operations(a: Intervals, b: Intervals) -> None:
    pairs = list(zip(members(a), members(b), strict=True))
    assert members(a | b) == [x or y for x, y in pairs]
    assert members(a & b) == [x and y for x, y in pairs]
    assert members(a - b) == [x and not y for x, y in pairs]
    assert members(~a) == [not x for x, _ in pairs]
    assert (a >= b) == all(x or not y for x, y in pairs)
    assert (a == b) == all(x == y for x, y in pairs)


@given(sets)
def test_pieces_make_up_the_set(a: Intervals) -> None:
    whole = EMPTY
    for low, high in a.pieces():
        start = not low
        whole |= Intervals(start, tuple(cut for cut in (low, high) if cut is not None))
    assert whole == a


def test_edges_of_the_orders_leave_no_cut_behind() -> None:
    assert interval(-math.inf, math.inf) == FULL
    assert interval("", None) == FULL
    assert interval(datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)) == FULL
    assert interval(None, "", "[)") == EMPTY
    assert interval(math.inf, None, "(]") == EMPTY
    assert interval(datetime.max.replace(tzinfo=UTC), None, "(]") == EMPTY
    assert interval(2, 1) == EMPTY


def test_points() -> None:
    assert points([3, 1, 2, 1.0, math.nan]) == interval(1, 1) | interval(2, 2) | interval(3, 3)
    assert points(["b", "a"]).points() == ["a", "b"]
    assert interval("a", "b").points() is None
    assert points([]).points() == []
    assert [point(*piece) for piece in (points([5]) | interval(7, 8)).pieces()] == [(5,), None]


@pytest.mark.parametrize("text", ["a", "ab", "\U0010ffff", "a\U0010ffff", "\ud7ff", "z\U0010ffff\U0010ffff"])
def test_a_prefix_ends_where_the_next_one_begins(text: str) -> None:
    inside = [text, text + "\0", text + "z", text + "\U0010ffff" * 3]
    assert all(word in prefix(text) for word in inside)
    end = after_prefix(text)
    assert end is None or end not in prefix(text)
    assert text[:-1] not in prefix(text)
