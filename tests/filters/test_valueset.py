"""The algebra against brute force: every operation, value by value, over a universe with the edges in it."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from tests.filters.strategies import DAY, TICK, UNIVERSE, value_sets

from fieldfare.events.values import MISSING, Interval
from fieldfare.filters import patterns, valueset
from fieldfare.filters.valueset import ValueSet, between, like, one_of


def members(values: ValueSet) -> list[bool]:
    return [value in values for value in UNIVERSE]


@given(value_sets(), value_sets())
def test_operations_are_those_of_sets(a: ValueSet, b: ValueSet) -> None:
    ina, inb = members(a), members(b)
    assert members(a | b) == [x or y for x, y in zip(ina, inb, strict=True)]
    assert members(a & b) == [x and y for x, y in zip(ina, inb, strict=True)]
    assert members(a - b) == [x and not y for x, y in zip(ina, inb, strict=True)]
    assert members(~a) == [not x for x in ina]


@given(value_sets(), value_sets())
def test_relations_are_exact(a: ValueSet, b: ValueSet) -> None:
    ina, inb = members(a), members(b)
    assert (a >= b) == all(x or not y for x, y in zip(ina, inb, strict=True))
    assert a.overlaps(b) == any(x and y for x, y in zip(ina, inb, strict=True))
    assert (a == b) == (ina == inb)
    assert a.is_empty == (not any(ina))
    assert a.is_full == all(ina)


@given(value_sets(), value_sets())
def test_equal_sets_hash_alike_whatever_they_were_made_of(a: ValueSet, b: ValueSet) -> None:
    for one, other in (((a | b), (b | a)), (~(a & b), ~a | ~b), (a, (a & b) | (a - b)), (a, ~~a)):
        assert one == other
        assert hash(one) == hash(other)


@given(value_sets(), value_sets(), value_sets())
def test_covering_is_transitive(a: ValueSet, b: ValueSet, c: ValueSet) -> None:
    wide, middle, narrow = a | b | c, a | b, a
    assert wide >= middle >= narrow
    assert wide >= narrow


@pytest.mark.parametrize(
    ("inside", "values"),
    [
        (True, [1, 1.0]),
        (False, [True, "1", None, 0, 1.5, math.nan, MISSING, (1,)]),
    ],
)
def test_equality_of_numbers(inside: bool, values: list[object]) -> None:
    assert all((value in one_of([1])) is inside for value in values)


def test_int_and_float_are_one_exact_domain() -> None:
    assert 2**53 in one_of([float(2**53)])
    assert 2**53 + 1 not in one_of([float(2**53)])
    assert -0.0 in one_of([0])
    assert one_of([0]) == one_of([-0.0])
    assert 2**63 - 1 in between(2**63 - 2, float(2**63), "()")  # 2.0**63 is one more
    assert 2**63 - 1 in between(2**63 - 1, None)


def test_nan_equals_nothing_and_lies_in_no_interval() -> None:
    nan = float("nan")
    assert nan not in one_of([nan])
    assert nan not in between(-math.inf, math.inf)
    assert nan in valueset.PRESENT
    assert between(math.nan, 5).is_empty


def test_a_prefix_is_an_interval() -> None:
    assert like(patterns.like("ab%")) == between("ab", "ac", "[)")
    assert like(patterns.like("\U0010ffff%")) == between("\U0010ffff", None)
    assert like(patterns.like("\ud7ff%")) == between("\ud7ff", "\ue000", "[)")


def test_strings_times_and_bytes_have_successors() -> None:
    assert between("a", None, "(]") == between("a\0", None)
    assert between(DAY, None, "(]") == between(DAY + TICK, None)
    assert between(b"a", b"a\0", "()").is_empty
    assert not between(1, math.nextafter(1, 2), "()").is_empty  # numbers are taken as dense


@pytest.mark.parametrize(
    ("values", "interval", "meets", "holds"),
    [
        (between(0, 10), Interval(5, 8), True, True),
        (between(0, 10), Interval(5, 18), True, False),
        (between(0, 10), Interval(10, 18, "(]"), False, False),
        (between(0, 10) - one_of([6]), Interval(5, 8), True, False),
        (between(0, 10), Interval("a", "b"), False, False),
        (like(patterns.like("%b")), Interval("a", "c"), True, False),
        (like(patterns.like("a%")), Interval("ab", "abz"), True, True),
        (between(None, 5), Interval(None, 4), True, True),
        (between(DAY, None), Interval(DAY, None), True, True),
    ],
)
def test_interval_values(values: ValueSet, interval: Interval, meets: bool, holds: bool) -> None:
    assert (values.meets(interval), values.holds(interval)) == (meets, holds)


def test_what_no_field_can_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="no field can hold"):
        object() in valueset.PRESENT  # noqa: B015
    with pytest.raises(TypeError, match="one kind"):
        between(1, "a")
    with pytest.raises(TypeError, match="no order"):
        between(True, None)
    with pytest.raises(TypeError, match="cannot be compared"):
        one_of([(1,)])  # type: ignore[list-item]
