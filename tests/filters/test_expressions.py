"""Predicates that are no value sets: computed, compared, called. Evaluated exactly, covered and overlapped safely."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few

from fieldfare.events.values import Interval
from fieldfare.filters import Filter, functions, parse

ATOMS = [
    "a * 2 > 3", "a * 2 > 1", "a + b = 2", "a > $b", "a >= $b", "a = $b", "a != $b", "b < a", "LENGTH(s) > 1", "a / b < 2",
    "LENGTH(s) = 2", "CIDR(s, '10.0.0.0/8')", "CIDR(s, '10.1.0.0/16')", "a < 2", "s LIKE '1%'", "-a < 0", "a % 2 = 0",
    "b BETWEEN a AND 2", "b NOT BETWEEN a AND 2", "b IN (a, 2)", "MATCHES(s, '%.%')", "t HAS (x = 1)", "t HAS (x > 0)",
]  # fmt: skip
EVENTS = [
    {name: value for name, value in zip("abst", values, strict=True) if value != "absent"}
    for values in itertools.product(
        [0, 1, 2, 3.5, "1", "absent"],
        [0, 1, 2, None, "absent"],
        ["10.1.2.3", "10.2.2.3", "1", "xy", 5],
        ["absent", ({"x": 1},), ({"x": 0}, {"x": 2}), {"x": 1}],
    )
]
filters = st.recursive(
    st.sampled_from(ATOMS).map(parse),
    lambda inner: st.one_of(
        st.builds(Filter.__and__, inner, inner), st.builds(Filter.__or__, inner, inner), inner.map(Filter.__invert__)
    ),
    max_leaves=5,
)


def members(wanted: Filter) -> list[bool]:
    return [wanted.matches(event) for event in EVENTS]


@few(30)
@given(filters, filters)
def test_relations_are_safe(a: Filter, b: Filter) -> None:
    pairs = list(zip(members(a), members(b), strict=True))
    if a.covers(b):
        assert all(x or not y for x, y in pairs)
    if any(x and y for x, y in pairs):
        assert a.overlaps(b)
    assert members(a & b) == [x and y for x, y in pairs]
    assert members(a | b) == [x or y for x, y in pairs]
    assert members(~a) == [not x for x, _ in pairs]


@given(filters, filters, filters)
def test_covering_is_reflexive_and_transitive(a: Filter, b: Filter, c: Filter) -> None:
    for x, y, z in itertools.permutations((a, b, c)):
        assert x.covers(x)
        assert (x | y).covers(x)
        assert x.covers(x & y)
        if x.covers(y) and y.covers(z):
            assert x.covers(z)


@given(filters)
def test_text_parses_back(a: Filter) -> None:
    if not a.is_empty:
        assert parse(str(a)) == a


@pytest.mark.parametrize(("text", "event", "matches"), [
    ("price * quantity > 1000", {"price": 11, "quantity": 100}, True),
    ("price * quantity > 1000", {"price": 11}, False),
    ("price / quantity > 0", {"price": 11, "quantity": 0}, False),
    ("price * 2 != 4", {"price": "x"}, False),
    ("NOT price * 2 != 4", {"price": "x"}, True),
    ("bid > $ask", {"bid": 2, "ask": 1.5}, True),
    ("bid > $ask", {"bid": 2, "ask": "1"}, False),
    ("bid != $ask", {"bid": 2, "ask": "1"}, True),
    ("bid != $ask", {"bid": 2}, False),
    ("bid = $ask", {"bid": 1, "ask": True}, False),
    ("LOWER(name) = 'ab'", {"name": "AB"}, True),
    ("ABS(x) > 1", {"x": -2}, True),
    ("ABS(x) > 1", {"x": "-2"}, False),
    ("9007199254740993 - x = 1", {"x": 9007199254740992}, True),
])  # fmt: skip
def test_evaluation(text: str, event: dict[str, object], matches: bool) -> None:
    assert parse(text).matches(event) is matches


@pytest.mark.parametrize(("wide", "narrow", "covers"), [
    ("a * 2 > 1", "a * 2 > 3", True),
    ("a * 2 > 3", "a * 2 > 1", False),
    ("a >= $b", "b < a", True),
    ("CIDR(ip, '10.0.0.0/8')", "CIDR(ip, '10.1.0.0/16') AND x = 1", True),
    ("CIDR(ip, '10.1.0.0/16')", "CIDR(ip, '10.0.0.0/8')", False),
    ("NOT CIDR(ip, '10.0.0.0/8')", "NOT CIDR(ip, '10.0.0.0/8') AND x = 1", True),
    ("items HAS (sku = 1)", "items HAS (sku = 1 AND qty > 2)", True),
    ("items HAS (sku = 1 AND qty > 2)", "items HAS (sku = 1)", False),
    ("ANY items.sku = 1", "items HAS (sku = 1 AND qty > 2)", True),
])  # fmt: skip
def test_covering_of_computed_predicates(wide: str, narrow: str, covers: bool) -> None:
    assert parse(wide).covers(parse(narrow)) is covers


def test_what_is_computed_from_an_interval_may_be_anything() -> None:
    event = {"a": Interval(1, 2)}
    assert parse("a * 2 > 100").matches(event)
    assert not parse("a * 2 > 1").matches(event, "covers")


def test_a_pattern_too_complex_to_analyse_is_kept_opaque() -> None:
    wanted = parse(f"name LIKE '%a{'_' * 12}'")
    assert wanted.matches({"name": "xxa" + "b" * 12})
    assert not wanted.matches({"name": "xxa" + "b" * 11})
    assert not wanted.matches({"name": 5})
    assert wanted.covers(wanted & parse("x = 1"))
    assert parse(str(wanted)) == wanted


def test_own_functions() -> None:
    functions.register("test_initial", lambda text: text[0])
    wanted = parse("TEST_INITIAL(name) IN ('a', 'b')")
    assert wanted.matches({"name": "anna"})
    assert not wanted.matches({"name": ""})  # it raised: no value
    assert not wanted.matches({"name": "carl"})
    assert parse(str(wanted)) == wanted
