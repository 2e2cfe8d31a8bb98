from __future__ import annotations

from typing import Any

import pytest
from tests.matching.strategies import POINTS
from tests.matching.suite import FILTERS, MatcherSuite

from fieldfare.events.values import MISSING
from fieldfare.filters import parse
from fieldfare.filters.branch import Branch
from fieldfare.filters.expressions import UNCERTAIN
from fieldfare.matching import Counting, Matcher
from fieldfare.matching.classic.counting import ValueIndex


class TestCounting(MatcherSuite):
    def make(self) -> Matcher[Any]:
        return Counting()


def test_nothing_is_left_behind() -> None:
    matcher = Counting[str]()
    matcher.add_many(FILTERS.items())
    for text in FILTERS:
        matcher.remove(text)
    index = matcher._owners
    assert (index._indexes, index._computed, index._lenient, matcher._everything) == ({}, {}, {}, {})


@pytest.mark.parametrize(
    ("text", "kept_as"),
    [
        ("a = 1", "_points"),
        ("a IN (1, 'x', NULL, TRUE)", "_points"),
        ("a >= 1", "_ranges"),
        ("a BETWEEN 'a' AND 'b'", "_ranges"),
        ("a LIKE 'x%'", "_ranges"),
        ("a < 1 OR a > 2", "_others"),
        ("a != 1", "_others"),
        ("a LIKE '%x'", "_others"),
        ("ANY a = 1", "_others"),
        ("a IS NULL OR a IS MISSING", "_others"),
        ("a IS STRING", "_others"),
        ("a = 1 OR a > 2", "_others"),
    ],
)
def test_where_a_constraint_is_kept(text: str, kept_as: str) -> None:
    (branch,) = parse(text).branches
    index = ValueIndex[int]()
    index.setdefault(branch["a"], 7)
    assert [name for name in ("_points", "_ranges", "_others") if getattr(index, name)] == [kept_as]
    index.remove(branch["a"])
    assert (index.entries, index.lenient, index._points, index._others) == ({}, {}, {}, {})
    assert not any(ranges for ranges, _ in index._ranges.values())


def test_many_ranges_against_each_by_itself() -> None:
    ends = [-1, 0, 0.5, 1, 2, 2.5]
    texts = [f"a {op} {end}" for op in ("<", "<=", ">", ">=") for end in ends]
    texts += [
        f"a {left} {low} AND a {right} {high}"
        for low in ends
        for high in ends
        if low < high
        for left in (">", ">=")
        for right in ("<", "<=")
    ]
    constraints = [parse(text).branches[0]["a"] for text in texts]
    index = ValueIndex[int]()
    for number, wanted in enumerate(constraints):
        assert index.setdefault(wanted, number) == number
        assert index.setdefault(wanted, -1) == number
    for number in range(0, len(constraints), 3):
        index.remove(constraints[number])
    left = {number: wanted for number, wanted in enumerate(constraints) if number % 3}
    for value in (value for group in POINTS for value in group):
        assert set(index.satisfied(value, "overlaps")) == {
            number for number, wanted in left.items() if wanted.matches(value)
        }


def test_what_is_uncertain_may_satisfy_all_but_surely_none() -> None:
    branch: Branch
    (branch,) = parse("a < 1").branches
    index = ValueIndex[str]()
    index.setdefault(branch["a"], "x")
    assert index.satisfied(UNCERTAIN, "overlaps") == ["x"]
    assert index.satisfied(UNCERTAIN, "covers") == index.satisfied(MISSING, "overlaps") == []
