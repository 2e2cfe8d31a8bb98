"""Profiles against queries: every structure gives the answers of the definition, whatever comes and goes."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from tests.examples import few
from tests.tables.spaces import everyday, rectangle, rectangles

from fieldfare.filters import Filter, parse
from fieldfare.filters.filter import NOTHING
from fieldfare.matching.index import Index
from fieldfare.profiles.double_forest import DoubleForest
from fieldfare.profiles.indexed import IndexedPairing
from fieldfare.profiles.pairs import NaivePairing, Operator, Pairing, Side
from fieldfare.tables.structures.forest import Forest

Which = Literal["profiles", "queries"]
Space = Pairing[str, str]
OPERATORS: list[Operator] = ["cover", "overlap"]
STRUCTURES: dict[str, Callable[[Operator], Space]] = {
    "set-based": NaivePairing,
    "forests": lambda operator: DoubleForest(operator, bounds=False),
    "forests and bounds": DoubleForest,
    "index": lambda operator: IndexedPairing(Index(kernels="numpy"), Index(kernels="numpy"), operator),
}
whichever = pytest.mark.parametrize("make", STRUCTURES.values(), ids=STRUCTURES)
either = pytest.mark.parametrize("operator", OPERATORS)


def between(low: int, high: int) -> Filter:
    return parse(f"x BETWEEN {low} AND {high}")


QUERIES = {"Q1": (0, 10), "Q2": (12, 20), "Q3": (2, 10), "Q4": (15, 22), "Q5": (12, 14)}
PROFILES = {"P1": (1, 5), "P2": (5, 10), "P3": (5, 25), "P4": (17, 20), "P5": (7, 9)}


def example(space: Space) -> Space:
    """The worked example of the thesis, figure 6.4."""
    for name, ends in QUERIES.items():
        space.queries.add(between(*ends), name)
    for name, ends in PROFILES.items():
        space.profiles.add(between(*ends), name)
    return space


def partners(side: Side[str]) -> dict[str, set[str]]:
    return {
        name: {n for f in side.partners(filter) for n in side.other.ids(f)}
        for filter in side
        for name in side.ids(filter)
    }


@whichever
def test_worked_example(make: Callable[[Operator], Space]) -> None:
    space = example(make("cover"))
    assert partners(space.queries) == {
        "Q1": {"P1", "P2", "P5"},
        "Q2": {"P4"},
        "Q3": {"P2", "P5"},
        "Q4": {"P4"},
        "Q5": set(),
    }
    assert partners(space.profiles) == {
        "P1": {"Q1"},
        "P2": {"Q1", "Q3"},
        "P3": set(),
        "P4": {"Q2", "Q4"},
        "P5": {"Q1", "Q3"},
    }


def test_worked_example_has_these_forests() -> None:
    space = DoubleForest[str, str]("cover")
    example(space)

    def shape(forest: Forest, side: Side[str]) -> dict[str, list[str]]:
        def names(filters: Any) -> list[str]:
            return sorted(name for filter in filters for name in side.ids(filter))

        below = {names([filter])[0]: names(node.children) for filter, node in forest.nodes.items()}
        return {"": names(forest.roots()), **{name: children for name, children in below.items() if children}}

    assert shape(space.query_forest, space.queries) == {"": ["Q1", "Q2", "Q4"], "Q1": ["Q3"], "Q2": ["Q5"]}
    assert shape(space.profile_forest, space.profiles) == {"": ["P1", "P3"], "P3": ["P2", "P4"], "P2": ["P5"]}


@whichever
def test_worked_example_overlapping(make: Callable[[Operator], Space]) -> None:
    space = example(make("overlap"))
    meet = {q: {p for p, (c, d) in PROFILES.items() if c <= b and a <= d} for q, (a, b) in QUERIES.items()}
    assert partners(space.queries) == meet


@whichever
@either
def test_preloaded_filters_take_no_comparison(make: Callable[[Operator], Space], operator: Operator) -> None:
    dice = random.Random(5)
    profiles, queries = ([rectangle(dice) for _ in range(40)] for _ in range(2))
    plain, space = make(operator), make(operator)
    space.profiles.preload(profiles)
    space.queries.preload(queries)
    assert (len(space.profiles), list(space.pairs())) == (0, [])
    before = space.tests.cover + space.tests.overlap
    for i, (profile, query) in enumerate(zip(profiles, queries, strict=True)):
        assert set(space.queries.add(query, f"q{i}")) == set(plain.queries.add(query, f"q{i}"))
        assert set(space.profiles.add(profile, f"p{i}")) == set(plain.profiles.add(profile, f"p{i}"))
    for i, query in enumerate(queries):
        space.queries.remove(query, f"q{i}")
    assert space.tests.cover + space.tests.overlap == before
    assert not list(space.pairs())
    assert set(space.queries.stored()) == set(queries)
    space.queries.forget(queries)
    assert not space.queries.stored()


@whichever
def test_ids_share_a_filter(make: Callable[[Operator], Space]) -> None:
    space = make("cover")
    narrow, wide = between(3, 4), between(0, 9)
    space.profiles.add(narrow, "a")
    assert space.queries.add(wide, "ana") == [narrow]
    tests = space.tests.cover
    assert space.queries.add(wide, "ben") == space.queries.add(wide, "ben") == [narrow]
    assert space.tests.cover == tests
    assert space.queries.ids(wide) == {"ana", "ben"}
    assert space.queries.remove(wide, "ana") == [narrow]
    assert space.profiles.partners(narrow) == [wide]
    assert space.queries.remove(wide, "ben") == [narrow]
    assert (space.profiles.partners(narrow), len(space.queries), wide in space.queries) == ([], 0, False)


@whichever
def test_one_filter_on_both_sides(make: Callable[[Operator], Space]) -> None:
    space = make("cover")
    space.profiles.add(between(3, 4), "a")
    assert space.queries.add(between(3, 4), "ana") == [between(3, 4)]
    assert space.queries.remove(between(3, 4), "ana") == [between(3, 4)]
    assert between(3, 4) in space.profiles


@whichever
def test_a_question_is_not_stored(make: Callable[[Operator], Space]) -> None:
    space = example(make("cover"))
    assert space.queries.partners(between(5, 10)) == [between(5, 10), between(7, 9)]
    assert space.profiles.partners(between(16, 19)) == [between(12, 20), between(15, 22)]
    assert between(16, 19) not in space.profiles
    assert set(space.queries.stored()) == {between(*ends) for ends in QUERIES.values()}


def test_bounds_save_comparisons() -> None:
    def cost(space: Space) -> int:
        dice = random.Random(3)
        for i in range(200):
            space.profiles.add(rectangle(dice, 100), f"p{i}")
            space.queries.add(rectangle(dice, 100), f"q{i}")
        return space.tests.cover + space.tests.overlap

    for operator in OPERATORS:
        plain, bounded = cost(DoubleForest(operator, bounds=False)), cost(DoubleForest(operator))
        assert bounded < 0.95 * plain
        assert bounded < (0.7 if operator == "cover" else 1) * 200 * 200, "what it takes to compare all with all"


@whichever
def test_refusals(make: Callable[[Operator], Space]) -> None:
    space = make("cover")
    with pytest.raises(ValueError, match="no event"):
        space.profiles.add(NOTHING, "a")
    with pytest.raises(ValueError, match="no event"):
        space.queries.partners(NOTHING)
    with pytest.raises(ValueError, match="'cover' or 'overlap'"):
        make("equal")  # type: ignore[arg-type]
    space.profiles.add(between(1, 2), "a")
    for filter, id in ((between(1, 3), "a"), (between(1, 2), "b")):
        with pytest.raises(KeyError):
            space.profiles.remove(filter, id)
    assert space.profiles.ids(between(1, 2)) == {"a"}


class Coming(RuleBasedStateMachine):
    """Filters come and go on both sides; the model recomputes all answers from what is there."""

    operator: Operator

    @initialize()
    def start(self) -> None:
        self.spaces = [make(self.operator) for make in STRUCTURES.values()]
        self.kept: dict[Which, dict[Filter, set[str]]] = {"profiles": {}, "queries": {}}
        self.expected: dict[Which, set[Filter]] = {"profiles": set(), "queries": set()}

    def meets(self, which: Which, mine: Filter, other: Filter) -> bool:
        query, profile = (other, mine) if which == "profiles" else (mine, other)
        return query.covers(profile) if self.operator == "cover" else query.overlaps(profile)

    def answer(self, which: Which, filter: Filter) -> list[Filter]:
        across = self.kept["queries" if which == "profiles" else "profiles"]
        return [other for other, ids in across.items() if ids and self.meets(which, filter, other)]

    def tidy(self, which: Which, filter: Filter) -> None:
        if filter not in self.expected[which] and not self.kept[which].get(filter):
            self.kept[which].pop(filter, None)

    def sides(self, which: Which) -> list[Side[str]]:
        return [getattr(space, which) for space in self.spaces]

    sides_of = st.sampled_from(["profiles", "queries"])
    names = st.sampled_from("abc")
    some = st.one_of(rectangles, everyday)

    @rule(which=sides_of, filter=some, id=names)
    def add(self, which: Which, filter: Filter, id: str) -> None:
        self.kept[which].setdefault(filter, set()).add(id)
        for side in self.sides(which):
            assert side.add(filter, id) == self.answer(which, filter)

    @precondition(lambda self: any(ids for kept in self.kept.values() for ids in kept.values()))
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        held = [(which, f, id) for which, kept in self.kept.items() for f, ids in kept.items() for id in sorted(ids)]
        which, filter, id = data.draw(st.sampled_from(held))
        self.kept[which][filter].remove(id)
        for side in self.sides(which):
            assert side.remove(filter, id) == self.answer(which, filter)
        self.tidy(which, filter)

    @rule(which=sides_of, filter=some)
    def preload(self, which: Which, filter: Filter) -> None:
        self.kept[which].setdefault(filter, set())
        self.expected[which].add(filter)
        for side in self.sides(which):
            side.preload([filter])

    @precondition(lambda self: any(self.expected.values()))
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        which, filter = data.draw(
            st.sampled_from([(w, f) for w, kept in self.kept.items() for f in kept if f in self.expected[w]])
        )
        self.expected[which].remove(filter)
        for side in self.sides(which):
            side.forget([filter])
        self.tidy(which, filter)

    @rule(which=sides_of, filter=some)
    def ask(self, which: Which, filter: Filter) -> None:
        for side in self.sides(which):
            assert side.partners(filter) == self.answer(which, filter)

    @invariant()
    def the_pairs_are_those_of_the_definition(self) -> None:
        pairs = [(p, q) for p, ids in self.kept["profiles"].items() if ids for q in self.answer("profiles", p)]
        for space in self.spaces:
            assert list(space.pairs()) == pairs
            assert {(p, q) for q in space.queries for p in space.queries.partners(q)} == set(pairs)
            assert space.profiles.stored() == list(self.kept["profiles"])
            assert space.queries.stored() == list(self.kept["queries"])

    @invariant()
    def the_forests_are_pure(self) -> None:
        for space in self.spaces:
            if isinstance(space, DoubleForest):
                for forest, side in ((space.profile_forest, space.profiles), (space.query_forest, space.queries)):
                    assert forest.nodes.keys() == set(side.stored())
                    for node in (forest.top, *forest.nodes.values()):
                        kids = list(node.children)
                        assert all(node.filter.covers(kid) for kid in kids)
                        assert not any(a.covers(b) for a in kids for b in kids if a is not b)


class Covering(Coming):
    operator: Operator = "cover"


class Overlapping(Coming):
    operator: Operator = "overlap"


TestCovering = pytest.mark.timeout(1200)(Covering.TestCase)
TestOverlapping = pytest.mark.timeout(1200)(Overlapping.TestCase)
TestCovering.settings = TestOverlapping.settings = settings(few(40), stateful_step_count=20)


def test_conditions_that_imply_each_other() -> None:
    """`HAS (qty > 5)` implies `HAS (qty > 2)`."""
    few, many = parse("NOT items HAS (qty > 2)"), parse("items HAS (qty > 5)")
    assert not few.overlaps(many)
    space: DoubleForest[str, str] = DoubleForest("overlap")
    space.profiles.add(many, "a")
    space.profiles.add(parse("items HAS (qty > 2)"), "b")
    assert space.queries.add(few, "ana") == []
