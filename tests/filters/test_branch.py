"""Overlap where computed conditions imply each other: it agrees with covering, and never says no in error."""

from __future__ import annotations

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few

from fieldfare.filters import Filter, parse
from fieldfare.filters import branch as branches

ATOMS = [
    "i HAS (q > 2)", "i HAS (q > 5)", "i HAS (q > 5 AND s = 'a')", "i HAS (s = 'a')", "i HAS (q IN (3, 6))", "ANY i.q > 2",
    "PATH('//i', q > 2)", "PATH('//i', q > 5)", "PATH('//*', q > 2)", "PATH('/j/*', q > 5)", "i.j HAS (q > 5)",
    "CIDR(ip, '10.0.0.0/8')", "CIDR(ip, '10.1.0.0/16')", "CIDR(ip, '10.1.2.0/24')", "CIDR(ip, '11.0.0.0/8')",
    "CIDR(ip, '10.0.0.0/8') = FALSE", "CIDR(ip, '10.1.0.0/16') IS BOOL", "q > 2", "LENGTH(ip) > 8", "EXISTS ip",
]  # fmt: skip
ITEMS: list[object] = [
    None, {"q": 3}, {"q": 6, "s": "a"}, [{"q": 1, "s": "a"}, {"q": 6}], [{"q": 3, "s": "a"}], [{"q": 7, "j": {"q": 8}}], {"j": [{"q": 3}, {"q": 6}]}, [], 5,
]  # fmt: skip
ADDRESSES: list[object] = [None, "10.9.0.1", "10.1.9.1", "10.1.2.3", "11.0.0.1", "nowhere", ["10.1.2.3", "11.0.0.1"]]
EVENTS = [
    {name: value for name, value in (("i", i), ("j", j), ("ip", ip), ("q", q)) if value is not None}
    for i, j, ip, q in itertools.product(ITEMS, [None, {"i": {"q": 6}}], ADDRESSES, [None, 6])
]


def meanings(atoms: list[str]) -> st.SearchStrategy[Filter]:
    """Often denied, for what is denied is what implications can contradict."""
    some = st.sampled_from(atoms).map(parse)
    return st.recursive(
        some | some.map(Filter.__invert__),
        lambda inner: st.one_of(
            st.builds(Filter.__and__, inner, inner),
            st.builds(Filter.__or__, inner, inner),
            inner.map(Filter.__invert__),
        ),
        max_leaves=3,
    )


kin = st.sampled_from([ATOMS[:6], ATOMS[6:11], ATOMS[11:17], ATOMS])
"""atoms that have to do with each other"""
pairs = kin.flatmap(lambda atoms: st.tuples(meanings(atoms), meanings(atoms)))
triples = kin.flatmap(lambda atoms: st.tuples(meanings(atoms), meanings(atoms), meanings(atoms)))


def check_agreement(wide: Filter, narrow: Filter, other: Filter) -> None:
    assert wide.overlaps(other) == other.overlaps(wide)
    if wide.covers(narrow):
        assert narrow.is_empty or wide.overlaps(narrow)
        assert wide.overlaps(other) or not narrow.overlaps(other)


@given(triples)
def test_what_does_not_overlap_the_whole_does_not_overlap_a_part(three: tuple[Filter, Filter, Filter]) -> None:
    for a, b, c in (three, three[::-1]):
        check_agreement(a, b, c)
        check_agreement(a, a & b, c)
        check_agreement(a | b, a, c)


def test_so_do_single_conditions() -> None:
    """All of them, denied and not: there are few."""
    some = [side for atom in map(parse, ATOMS) for side in (atom, ~atom)]
    for a, b, c in itertools.product(some, some, some):
        if a.covers(b):
            check_agreement(a, b, c)


@few(50)
@given(pairs)
def test_never_no_in_error(two: tuple[Filter, Filter]) -> None:
    a, b = two
    common = [event for event in EVENTS if a.matches(event) and b.matches(event)]
    both = a & b
    assert a.overlaps(b) or not common
    assert a.overlaps(b) or both.is_empty
    assert [event for event in EVENTS if both.matches(event)] == common


def test_nor_of_single_conditions() -> None:
    some = [side for atom in map(parse, ATOMS) for side in (atom, ~atom)]
    matching = {side: {i for i, event in enumerate(EVENTS) if side.matches(event)} for side in some}
    for a, b in itertools.combinations_with_replacement(some, 2):
        assert a.overlaps(b) or matching[a].isdisjoint(matching[b])


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("NOT i HAS (q > 2)", "i HAS (q > 5)", False),
        ("NOT i HAS (q > 5)", "i HAS (q > 2)", True),
        ("NOT i HAS (q > 2)", "i HAS (q > 5) AND x = 1", False),
        ("NOT i HAS (q > 2) AND x = 1", "j HAS (q > 5)", True),
        ("NOT i HAS (q > 2) OR x = 1", "i HAS (q > 5)", True),
        ("NOT i HAS (q > 2) OR x = 1", "i HAS (q > 5) AND x = 2", False),
        ("NOT PATH('//i', q > 2)", "PATH('/j//i', q > 5)", False),
        ("NOT PATH('//i', q > 2)", "j.i HAS (q > 5)", False),
        ("NOT PATH('/j//i', q > 2)", "PATH('//i', q > 5)", True),
        ("NOT CIDR(ip, '10.0.0.0/8')", "CIDR(ip, '10.1.0.0/16')", False),
        ("NOT CIDR(ip, '10.1.0.0/16')", "CIDR(ip, '10.0.0.0/8')", True),
    ],
)
def test_what_is_implied_cannot_be_denied(one: str, other: str, expected: bool) -> None:
    a, b = parse(one), parse(other)
    assert a.overlaps(b) is b.overlaps(a) is expected
    assert (a & b).is_empty is (b & a).is_empty is not expected


def test_only_computed_conditions_are_asked_what_they_imply(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(sides: object) -> bool:
        raise AssertionError(sides)

    plain, other, computed = parse("x > 2 AND y = 1"), parse("x > 5"), parse("x + y > 2")
    monkeypatch.setattr(branches, "_contradictory", refuse)
    assert plain.overlaps(other)
    assert plain.overlaps(computed)
    assert computed.overlaps(plain)
    assert not (plain & other).is_empty


def test_no_branch_contradicts_itself() -> None:
    """What reaches from one branch into the other here would be nothing."""
    some, rest = parse("x < 5 AND PATH('//i', q > 5)"), parse("NOT x < 5 AND NOT PATH('//i', q > 2)")
    assert set((some | rest).branches) == {*some.branches, *rest.branches}


@few(30)
@given(
    st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=40), st.randoms()
)
def test_the_normal_form_does_not_depend_on_the_order(
    corners: list[tuple[int, int, int]], chance: random.Random
) -> None:
    """Also where the effort does not suffice; and what comes out comes out again."""
    boxes = [parse(f"a >= {a} AND a < {a + 3} AND b > {b} AND c != {c}").boxes[0] for a, b, c in corners]
    form = branches.normal_form(boxes)
    chance.shuffle(boxes)
    assert set(branches.normal_form(boxes)) == set(form)
    assert set(branches.normal_form(reversed(form))) == set(form)
