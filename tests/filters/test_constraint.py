"""Quantifiers over lists against brute force: all short lists over a few values."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few

from fieldfare.events.values import MISSING, Interval
from fieldfare.filters import valueset
from fieldfare.filters.constraint import FULL, Constraint, all_of, any_of
from fieldfare.filters.valueset import ValueSet, between, one_of

SETS = [
    one_of([0]), one_of([1]), one_of([0, 1]), between(1, None), between(None, 0), one_of(["a"]), valueset.PRESENT,
    valueset.PRESENT - one_of([0]), valueset.PRESENT - one_of([1, "a"]), valueset.ABSENT, valueset.EMPTY,
    valueset.one_of([None]),
]  # fmt: skip
SCALARS = [-1, 0, 0.5, 1, 2, "a", "b", None, True, {"x": 1}]
LISTS = [
    *(items for length in range(3) for items in itertools.product(SCALARS, repeat=length)),
    *itertools.combinations_with_replacement(SCALARS, 3),  # in any order it would be the same, as with two
]
UNIVERSE: list[object] = [MISSING, *SCALARS, *LISTS]

sets = st.sampled_from(SETS)
constraints = st.recursive(
    st.one_of(sets.map(Constraint), sets.map(any_of), sets.map(all_of)),
    lambda inner: st.one_of(
        st.builds(Constraint.__and__, inner, inner),
        st.builds(lambda a, b: a.union(b) or a, inner, inner),
        st.builds(lambda a, i: (ways := a.complement())[i % len(ways)], inner, st.integers(0, 3)),
    ),
    max_leaves=4,
)


def members(wanted: Constraint) -> list[bool]:
    return [wanted.matches(value) for value in UNIVERSE]


@few(50)
@given(sets)
def test_any_and_all_mean_what_they_say(values: ValueSet) -> None:
    for value in UNIVERSE:
        elements = value if isinstance(value, tuple) else [] if value is MISSING else [value]
        there = value is not MISSING
        assert any_of(values).matches(value) == (there and any(element in values for element in elements))
        assert all_of(values).matches(value) == (there and all(element in values for element in elements))


@given(constraints, constraints)
def test_relations_are_exact(a: Constraint, b: Constraint) -> None:
    ina, inb = members(a), members(b)
    assert members(a & b) == [x and y for x, y in zip(ina, inb, strict=True)]
    assert (a >= b) == all(x or not y for x, y in zip(ina, inb, strict=True))
    assert a.overlaps(b) == any(x and y for x, y in zip(ina, inb, strict=True))
    assert (a == b) == (ina == inb)
    union = a.union(b)
    if union is not None:
        assert members(union) == [x or y for x, y in zip(ina, inb, strict=True)]


@given(constraints)
def test_the_complement_is_the_union_of_its_ways(a: Constraint) -> None:
    outside = [any(way.matches(value) for way in a.complement()) for value in UNIVERSE]
    assert outside == [not inside for inside in members(a)]


def test_a_conjunction_of_hits_is_not_a_hit_of_the_intersection() -> None:
    both = any_of(one_of([0])) & any_of(one_of([1]))
    assert both.matches((0, 1))
    assert not both.matches(0)
    assert not both.matches((0,))


def test_what_cannot_hold_admits_no_list() -> None:
    never = any_of(one_of([0])) & all_of(one_of([1]))
    assert never.is_empty
    assert not (all_of(one_of([0])) & all_of(one_of([1]))).is_empty  # the empty list
    assert FULL.is_full


def test_intervals_in_lists() -> None:
    wide = any_of(between(0, 10))
    assert wide.matches((Interval(5, 20), "a"))
    assert not wide.matches((Interval(5, 20), "a"), "covers")
    assert wide.matches((Interval(5, 8), "a"), "covers")
