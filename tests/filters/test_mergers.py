"""Mergers hold both filters; perfect ones hold nothing else; the precision of the others is near the truth."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.filters.test_filter import filters, members

from fieldfare.filters import EVERYTHING, NOTHING, Filter, parse
from fieldfare.filters.statistics import Sample


@given(filters, filters)
def test_a_perfect_merger_is_the_union(a: Filter, b: Filter) -> None:
    merged = a.merge(b)
    if merged is not None:
        assert members(merged) == [x or y for x, y in zip(members(a), members(b), strict=True)]
        assert len(merged.branches) <= max(len(a.branches), len(b.branches))


@given(filters, filters)
def test_an_imperfect_merger_never_loses_an_event(a: Filter, b: Filter) -> None:
    merger = a.merge_imperfect(b)
    assert len(merger.filter.branches) <= 1
    assert merger.filter.covers(a)
    assert merger.filter.covers(b)
    assert 0 <= merger.precision <= 1
    union = [x or y for x, y in zip(members(a), members(b), strict=True)]
    found = members(merger.filter)
    assert all(m or not u for m, u in zip(found, union, strict=True))
    if merger.exact:
        assert merger.precision == 1
        assert found == union


boxes = st.tuples(*[st.tuples(st.integers(0, 99), st.integers(0, 99)).map(sorted)] * 4)


@few(10)
@given(boxes)
def test_precision_without_statistics_is_that_of_even_spread(ends: tuple[list[int], ...]) -> None:
    (a, b), (c, d), (e, f), (g, h) = ends
    first = parse(f"x BETWEEN {a} AND {b + 1} AND y BETWEEN {c} AND {d + 1}")
    second = parse(f"x BETWEEN {e} AND {f + 1} AND y BETWEEN {g} AND {h + 1}")
    merger = first.merge_imperfect(second)
    grid = [{"x": x / 3 + 0.1, "y": y / 3 + 0.1} for x in range(0, 303, 3) for y in range(0, 303, 3)]
    passed = [event for event in grid if merger.filter.matches(event)]
    wanted = sum(first.matches(event) or second.matches(event) for event in passed)
    if len(passed) > 500:
        assert merger.precision == pytest.approx(wanted / len(passed), abs=0.1)


def test_precision_from_a_sample() -> None:
    sample = Sample([{"x": x % 10, "y": 1 if x % 10 < 9 else 2} for x in range(1000)])
    merger = parse("x = 0 AND y = 1").merge_imperfect(parse("x = 1 AND y = 2"), sample)
    assert str(merger.filter) == "x IN (0, 1) AND y IN (1, 2)"
    assert not merger.exact
    assert merger.precision == pytest.approx(0.5, abs=0.02)  # x is 0 in half of what passes; y almost always 1


def test_dimensions_of_only_one_filter_are_let_go() -> None:
    merger = parse("x = 1 AND y = 1").merge_imperfect(parse("x = 2 AND z = 1"))
    assert merger.filter == parse("x IN (1, 2)")
    assert parse("x = 1").merge_imperfect(parse("y = 1")).filter == EVERYTHING


def test_nothing_merges_with_everything() -> None:
    assert NOTHING.merge(parse("x = 1")) == parse("x = 1")
    assert NOTHING.merge_imperfect(NOTHING).filter == NOTHING
    assert EVERYTHING.merge_imperfect(parse("x = 1")).exact
