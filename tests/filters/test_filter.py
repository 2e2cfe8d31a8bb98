"""Filters against brute force: random conditions over two fields, judged on every event of a small universe."""

from __future__ import annotations

import itertools
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few

from fieldfare.events import Event
from fieldfare.events.values import Interval
from fieldfare.filters import EVERYTHING, NOTHING, Filter, FilterTooComplex, parse

ATOMS = [
    "a < 1", "a <= 1", "a = 1", "a != 1", "a > 1", "a BETWEEN 0 AND 2", "a IN (0, 2)", "EXISTS a", "NOT EXISTS a",
    "a = 'x'", "a LIKE '%x'", "a CONTAINS 'y'", "a STARTS WITH 'x'", "a IS NULL", "a IS NUMBER",
    "b < 1", "b = 1", "b != 1", "b NOT BETWEEN 0 AND 2", "EXISTS b", "b IN (0, 'x')", "b = TRUE", "b NOT LIKE '%x'",
    "ANY b = 1", "ALL b < 1", "ANY b = 'x'", "ALL (b = 'x' OR b > 0)",
]  # fmt: skip
VALUES_A: list[object] = [
    -1,
    0,
    0.5,
    1,
    1.5,
    2,
    3,
    math.nan,
    "",
    "x",
    "y",
    "yx",
    "xy",
    "xz",
    "zx",
    "zyz",
    "xx",
    "xyx",
    "z",
    None,
    True,
    (),
    b"",
]
VALUES_B: list[object] = [-1, 0, 0.5, 1, 1.5, 2, 3, "x", "zx", "z", True, False, None, (), (0,), (1,), (0, 1), ("x",), (3, "x"), (1, "x"), (0, "x"), ("z",), (-1, 3), (1, "z"), ("x", "z"), (2, "z"), (1, 0, "x"), (0, "z"), (0, "x", "z"), (1, "x", "z"), (0, 1, "z"), (0, 1, "x", "z")]  # fmt: skip
ABSENT = object()
UNIVERSE: list[dict[str, object]] = [
    {name: value for name, value in (("a", a), ("b", b)) if value is not ABSENT}
    for a, b in itertools.product([*VALUES_A, ABSENT], [*VALUES_B, ABSENT])
]

filters = st.recursive(
    st.sampled_from(ATOMS).map(parse),
    lambda inner: st.one_of(
        st.builds(Filter.__and__, inner, inner),
        st.builds(Filter.__or__, inner, inner),
        st.builds(Filter.__sub__, inner, inner),
        inner.map(Filter.__invert__),
    ),
    max_leaves=4,
)


def members(wanted: Filter) -> list[bool]:
    return [wanted.matches(event) for event in UNIVERSE]


@few(50)
@given(filters, filters)
def test_operations_are_those_of_sets(a: Filter, b: Filter) -> None:
    ina, inb = members(a), members(b)
    assert members(a & b) == [x and y for x, y in zip(ina, inb, strict=True)]
    assert members(a | b) == [x or y for x, y in zip(ina, inb, strict=True)]
    assert members(~a) == [not x for x in ina]


@given(filters, filters)
def test_covering_and_overlap_never_lose_an_event_and_are_exact_without_lists(a: Filter, b: Filter) -> None:
    ina, inb = members(a), members(b)
    covers = all(x or not y for x, y in zip(ina, inb, strict=True))
    overlaps = any(x and y for x, y in zip(ina, inb, strict=True))
    assert covers or not a.covers(b)
    assert a.overlaps(b) or not overlaps
    if _plain(a) and _plain(b):
        assert a.covers(b) == covers
        assert a.overlaps(b) == overlaps


def _plain(wanted: Filter) -> bool:
    return all(side.is_plain for branch in wanted.branches for side in branch.values())


plain_filters = st.recursive(
    st.sampled_from([atom for atom in ATOMS if "ANY" not in atom and "ALL" not in atom]).map(parse),
    lambda inner: st.one_of(
        st.builds(Filter.__and__, inner, inner), st.builds(Filter.__or__, inner, inner), inner.map(Filter.__invert__)
    ),
    max_leaves=4,
)


@given(plain_filters, plain_filters)
def test_the_normal_form_is_one(a: Filter, b: Filter) -> None:
    """Filters that mean the same are the same: equal, and of equal hash."""
    same = members(a) == members(b)
    assert (a == b) == same
    assert (a.covers(b) and b.covers(a)) == same
    for one, other in ((a | b, b | a), (~(a & b), ~a | ~b), (a, (a & b) | (a - b)), (~~a, a)):
        assert one == other
        assert hash(one) == hash(other)


@given(filters)
def test_text_parses_back_to_an_equal_filter(a: Filter) -> None:
    if not a.is_empty:
        assert parse(str(a)) == a


@given(st.lists(filters, min_size=3, max_size=3))
def test_covering_is_reflexive_and_transitive(three: list[Filter]) -> None:
    a, b, c = three
    for x, y, z in itertools.permutations((a, b, c)):
        assert x.covers(x)
        assert (x | y).covers(x)
        assert x.covers(x & y)
        if x.covers(y) and y.covers(z):
            assert x.covers(z)


@given(plain_filters)
def test_interval_events(a: Filter) -> None:
    """An interval stands for its points: overlaps if one of them matches, covers if all do."""
    for low, high in ((0, 1), (0.5, 1.5), (-1, 3), (1, 1.25)):
        points = [low, (low + high) / 2, high, *(p for p in (0, 0.5, 1, 1.5, 2) if low < p < high)]
        points += [p + 1e-9 for p in points if p < high] + [p - 1e-9 for p in points if p > low]
        for b in (0, "x", ABSENT):
            rest = {} if b is ABSENT else {"b": b}
            event = {"a": Interval(low, high), **rest}
            assert a.matches(event) == any(a.matches({"a": point, **rest}) for point in points)
            assert a.matches(event, "covers") == all(a.matches({"a": point, **rest}) for point in points)


def test_several_branches_cover_jointly() -> None:
    halves = parse("(a <= 5 AND b = 1) OR (a > 5 AND a < 10 AND b = 1)")
    assert halves.covers(parse("a BETWEEN 3 AND 8 AND b = 1"))
    corner = parse("(a BETWEEN 0 AND 2 AND b BETWEEN 0 AND 1) OR (a BETWEEN 0 AND 1 AND b BETWEEN 0 AND 2)")
    assert corner.covers(parse("a BETWEEN 0 AND 1 AND b BETWEEN 0 AND 2"))
    assert not corner.covers(parse("a BETWEEN 0 AND 2 AND b BETWEEN 0 AND 2"))


def test_everything_and_nothing() -> None:
    assert EVERYTHING.is_full
    assert NOTHING.is_empty
    assert EVERYTHING.covers(NOTHING)
    assert not NOTHING.overlaps(EVERYTHING)
    assert ~EVERYTHING == NOTHING
    assert (parse("a < 1 OR a >= 1 OR a IS NOT NUMBER OR a IS NAN OR NOT EXISTS a")) == EVERYTHING
    assert str(EVERYTHING) == "TRUE"


def test_nested_fields_and_plain_mappings() -> None:
    wanted = parse("data.user.id = 7 AND EXISTS data.user")
    assert wanted.matches({"data": {"user": {"id": 7}}})
    assert wanted.matches(Event({"data": {"user": {"id": 7}}}))
    assert wanted.matches({"data.user.id": 7, "data.user": None})
    assert not wanted.matches({"data": {"user": 7}})
    assert wanted.fields() == {"data.user.id", "data.user"}


def test_too_many_alternatives_are_refused() -> None:
    text = " AND ".join(f"(a{i} = 1 OR b{i} = 1)" for i in range(9))
    with pytest.raises(FilterTooComplex, match="512 alternatives"):
        parse(text)


def test_a_large_disjunction_of_values_is_one_branch() -> None:
    wanted = parse(" OR ".join(f"a = {i}" for i in range(300)))
    assert len(wanted.branches) == 1
