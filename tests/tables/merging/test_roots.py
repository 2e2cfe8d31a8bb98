from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.examples import few
from tests.filters.test_filter import filters
from tests.tables.mergeable import POOL, check_mergers, incomparable, joint, meaning, pool, remembered

from fieldfare.filters import EVERYTHING, Filter, FilterTooComplex, parse
from fieldfare.filters.statistics import Sample
from fieldfare.tables.covers import minimal_cover
from fieldfare.tables.merging.roots import RootMerger, merged
from fieldfare.tables.merging.rules import APART, MergeResult, Merging, Partners, agree_but_one, share, weight
from fieldfare.tables.structures.naive import NaiveTable
from fieldfare.tables.updates import TableUpdate


@pytest.fixture(autouse=True, scope="module")
def _quick() -> Iterator[None]:
    with remembered():
        yield


def between(low: float, high: float, also: str = "") -> Filter:
    return parse(f"x BETWEEN {low} AND {high}{also}")


def box(x: tuple[float, float], y: tuple[float, float]) -> Filter:
    return parse(f"x BETWEEN {x[0]} AND {x[1]} AND y BETWEEN {y[0]} AND {y[1]}")


def exported(how: Merging, *roots: Filter) -> list[Filter]:
    merger = RootMerger(how)
    for root in roots:
        merger.change([root])
    return merger.exported()


PERFECT = {
    "as in the thesis": Merging(cascade=False),
    "best, once": Merging(choice="best", cascade=False),
    "first": Merging(),
    "best": Merging(choice="best"),
    "none": APART,
}
WASTING = {
    "imperfect": Merging(imperfect=True, budget=0.5),
    "imperfect, best": Merging(imperfect=True, budget=0.5, choice="best"),
    "imperfect, any": Merging(imperfect=True, budget=1.0, cascade=False),
    "lazy": Merging(lazy=True, budget=0.6, patience=3, cascade=False),
    "lazy, imperfect": Merging(lazy=True, imperfect=True, budget=0.9, patience=2),
}
WAYS = {**PERFECT, **WASTING}


def by_trying_all(how: Merging) -> Merging:
    return Merging(**{name: getattr(how, name) for name in Merging.__slots__ if name != "search"}, search="scan")


# Vectors of the specification, §20


@pytest.mark.parametrize(
    ("one", "other", "result"),
    [
        ("x < 10", "x != 7", "EXISTS x"),
        ("x BETWEEN 0 AND 20", "x BETWEEN 30 AND 40", "x BETWEEN 0 AND 20 OR x BETWEEN 30 AND 40"),
        ("x BETWEEN 0 AND 20", "x BETWEEN 15 AND 40", "x BETWEEN 0 AND 40"),
        ("x = 1 AND y = 1", "x = 2 AND y = 2", None),
        ("x = 1 AND y = 1", "x = 2 AND z = 1", None),
        ("x = 5 AND y IN (2, 3)", "x = 5 AND y IN (4, 5)", "x = 5 AND y IN (2, 3, 4, 5)"),
    ],
)
def test_vector_8_perfect_merge(one: str, other: str, result: str | None) -> None:
    expected = [parse(one), parse(other)] if result is None else [parse(result)]
    for how in PERFECT.values():
        if how is not APART:
            assert exported(how, parse(one), parse(other)) == expected
            assert exported(by_trying_all(how), parse(other), parse(one)) == ([*reversed(expected)])


def test_vector_9_unmerge() -> None:
    a, b, c = (between(10 * n, 10 * n + 10) for n in range(3))
    merger = RootMerger()
    assert merger.change([a]) == TableUpdate((a,))
    assert merger.change([b]) == TableUpdate((between(0, 20),), (a,))
    assert merger.change([c]) == TableUpdate((between(0, 30),), (between(0, 20),))
    d = between(5, 25)
    assert merger.change([d]) == TableUpdate()
    assert merger.mergers() == [(between(0, 30), (a, b, c), (d,), 0.0)]
    without_b = between(0, 10) | between(20, 30)
    assert merger.change(left=[d]) == TableUpdate()
    assert merger.change(left=[b]) == TableUpdate((without_b,), (between(0, 30),))
    assert merger.change(left=[c]) == TableUpdate((a,), (without_b,))
    assert merger.change(left=[a]) == TableUpdate((), (a,))
    assert merger.exported() == merger.roots() == []


def test_vector_9_what_was_covered_reappears() -> None:
    a, b, d = box((0, 4), (0, 4)), box((4, 8), (0, 4)), box((3, 5), (1, 2))
    merger = RootMerger()
    merger.change([a, b, d])
    assert merger.exported() == [box((0, 8), (0, 4))]
    assert merger.change(left=[b]) == TableUpdate((a, d), (box((0, 8), (0, 4)),))


# Changes


def test_a_new_root_covers_old_ones() -> None:
    """Roots that a new one covers have left, though nobody deleted them."""
    a, b, c = between(0, 2), between(2, 4), between(8, 9)
    merger = RootMerger()
    merger.change([a, b, c])
    assert merger.follow([between(0, 3), b]) == TableUpdate((between(0, 4),), (between(0, 4) | c,))
    assert merger.follow([EVERYTHING]) == TableUpdate((EVERYTHING,), (between(0, 4),))


def test_what_joins_and_leaves_at_once_stays() -> None:
    a, b = between(0, 2), between(2, 4)
    merger = RootMerger()
    merger.change([a, b])
    assert merger.change([a], [a]) == merger.change([a]) == merger.change(left=[EVERYTHING]) == TableUpdate()
    assert merger.mergers()[0].components == (a, b)


def test_a_merger_that_still_means_the_same_stays() -> None:
    merger = RootMerger()
    merger.change([between(0, 10), between(5, 15), between(10, 20)])
    assert merger.change(left=[between(5, 15)]) == TableUpdate()
    assert merger.mergers()[0].components == (between(0, 10), between(10, 20))


def test_a_merger_that_another_covers_when_it_is_made_anew() -> None:
    tall = [box((0, 1), (3, 4)), box((0, 1), (4, 6)), box((0, 1), (8, 9))]
    wide = [box((-1, 0.5), (2, 7)), box((0.5, 3), (2, 7))]
    merger = RootMerger()
    merger.change(tall)
    merger.change(wide)
    assert len(merger.mergers()) == 2
    assert merger.change(left=tall[2:]).added == ()
    assert merger.mergers() == [(box((-1, 3), (2, 7)), tuple(wide), tuple(tall[:2]), 0.0)]
    assert merger.change(left=wide[:1]).added == (wide[1], box((0, 1), (3, 6)))


def test_mergers_that_lose_a_component_at_the_same_time() -> None:
    """The first one may not merge with what the second one was."""
    ones, twos = ([parse(f"x = {x} AND y = {y}") for x in numbers] for y, numbers in ((1, (1, 2, 3)), (2, (1, 2))))
    merger = RootMerger()
    merger.change([*ones, *twos])
    merger.change(left=[ones[2], twos[1]])
    assert set(merger.exported()) == {parse("x IN (1, 2) AND y = 1"), parse("x = 1 AND y = 2")}


def test_mergers_that_cover_others_merge() -> None:
    top = [box((0, 1), (1, 2)), box((1, 2), (1, 2)), box((0.5, 1.5), (1.2, 1.5))]
    bottom = [box((0, 1), (0, 1)), box((0.5, 1.5), (0.2, 0.5)), box((1, 2), (0, 1))]
    merger = RootMerger()
    for root in (*top, *bottom):
        merger.change([root])
    assert merger.exported() == [box((0, 2), (0, 2))]
    for root in (*bottom, *top):
        merger.change(left=[root])
        check_mergers(merger.mergers(), merger.roots(), merger.exported(), merger.merging)


def test_many_in_one() -> None:
    roots = [parse(f"s = 'k{n}' AND x > 1") for n in range(300)]
    merger = RootMerger()
    merger.change(roots)
    assert len(merger.exported()) == 1
    before = merger.attempts, merger.tests.cover
    merger.change(left=roots[::10])
    merger.change(left=roots[1:2])
    assert len(merger.exported()) == 1
    assert (merger.attempts, merger.tests.cover) == before  # nothing is taken apart
    assert merger.follow([]).removed
    assert merger.exported() == []


def test_filters_too_complex_to_merge_stay_apart() -> None:
    one, other = (
        Filter(box((start + 3 * n, start + 3 * n + 1), (3 * n, 3 * n + width)).branches[0] for n in range(150))
        for start, width in ((0, 1), (1000, 2))
    )
    assert len(one.branches) == len(other.branches) == 150
    with pytest.raises(FilterTooComplex):
        one.merge(other)
    assert exported(Merging(), one, other) == [one, other]


def test_cascade_finds_what_one_merge_does_not() -> None:
    roots = [box((0, 1), (0, 1)), box((0, 2), (1, 2)), box((1, 2), (0, 1))]
    assert exported(Merging(cascade=False), *roots) == [box((0, 2), (0, 1)), box((0, 2), (1, 2))]
    assert exported(Merging(), *roots) == [box((0, 2), (0, 2))]


def test_best_takes_the_simplest_and_widest() -> None:
    roots = [between(4, 5, " AND y = 1"), parse("x = 1 AND y != 1"), parse("x = 1 AND y = 1")]
    assert exported(Merging(), *roots)[0] == parse("(x = 1 OR x BETWEEN 4 AND 5) AND y = 1")
    assert exported(Merging(choice="best"), *roots)[0] == parse("x = 1 AND EXISTS y")
    small, large, new = box((1, 2), (0, 2)), box((1, 2), (6, 9)), box((1, 2), (2, 6))
    assert Merging().join(MergeResult(small), MergeResult(new)) == MergeResult(box((1, 2), (0, 6)))
    merger = RootMerger(Merging(choice="best"))
    assert merger._better(MergeResult(box((1, 2), (0, 9))), MergeResult(box((1, 2), (0, 6))))  # as simple, but wider
    assert not merger._better(MergeResult(box((1, 2), (0, 6))), MergeResult(large | new))
    assert merger._better(MergeResult(small, 0.1), MergeResult(EVERYTHING, 0.2))


def test_weight() -> None:
    texts = [
        "EXISTS x",
        "x != 1",
        "x < 1 OR x > 2 AND x < 3",
        "x > 0 AND y > 0",
        "s LIKE '%a' AND y IN (1, 2)",
        "x = 1 OR y = 1",
    ]
    weights = [weight(parse(text)) for text in texts]
    assert weights == [(1, 1, 1), (1, 1, 2), (1, 1, 2), (1, 2, 2), (1, 2, 3), (2, 2, 2)]
    assert sorted(weights) == weights


def test_the_first_is_the_oldest_and_mergers_come_before_roots() -> None:
    merger = RootMerger()
    merger.change([parse("x = 1 AND y = 1"), parse("x = 2 AND y = 2"), parse("x = 1 AND y = 3")])
    assert merger.exported() == [parse("x = 1 AND y IN (1, 3)"), parse("x = 2 AND y = 2")]
    merger.change([parse("x = 3 AND y = 2"), parse("x = 2 AND y IN (1, 3)")])
    assert merger.exported() == [parse("x IN (2, 3) AND y = 2"), parse("x IN (1, 2) AND y IN (1, 3)")]


# Waste


def test_imperfect_within_the_budget() -> None:
    near, far = (box((0, 4), (0, 4)), box((1, 5), (1, 5))), (box((0, 4), (0, 4)), box((90, 91), (90, 91)))
    for budget, kept in ((0.0, 2), (0.05, 2), (0.2, 1)):
        how = Merging(imperfect=True, budget=budget)
        assert len(exported(how, *near)) == kept
        assert len(exported(how, *far)) == 2
    merger = RootMerger(Merging(imperfect=True, budget=0.2))
    merger.change(near)
    assert merger.exported() == [box((0, 5), (0, 5))]
    assert merger.mergers()[0].waste == pytest.approx(1 - 23 / 25, abs=0.01)
    assert merger.change(left=near[:1]) == TableUpdate(near[1:], (box((0, 5), (0, 5)),))
    assert len(exported(Merging(imperfect=True, budget=1.0), parse("x = 1"), parse("y = 1"))) == 2  # not alike


def test_waste_by_what_was_seen() -> None:
    a, b = parse("x = 0 AND y = 1"), parse("x = 1 AND y = 2")
    always_one = Sample([{"x": n % 10, "y": 1} for n in range(1000)])
    together = Sample([{"x": n % 2, "y": n % 3} for n in range(600)])
    assert len(exported(Merging(imperfect=True, budget=0.4, statistics=always_one), a, b)) == 2
    assert len(exported(Merging(imperfect=True, budget=0.6, statistics=together), a, b)) == 1


def test_old_waste_counts_as_much_as_it_fills() -> None:
    how = Merging(imperfect=True, budget=0.3)
    wasting, exact = MergeResult(box((0, 5), (0, 5)), 0.2), MergeResult(box((5, 10), (0, 5)))
    for other, result, waste in ((exact, (0, 10), 0.1), (MergeResult(box((5, 6), (0, 5)), 0.3), (0, 6), 1.3 / 6)):
        joined = how.join(wasting, other)
        assert joined is not None
        assert joined.filter == box(result, (0, 5))
        assert joined.waste == pytest.approx(waste)
    assert Merging(imperfect=True, budget=0.05).join(wasting, exact) is None
    assert share(box((0, 5), (0, 5)), between(0, 1), how.statistics) == 1.0  # no part of it: be careful


def test_lazy_keeps_a_merger_within_the_budget() -> None:
    parts = [between(10 * n, 10 * n + 10) for n in range(5)]
    merger = RootMerger(Merging(lazy=True, budget=0.5))
    merger.change(parts)
    whole = between(0, 50)
    assert merger.change(left=parts[1:2]) == merger.change(left=parts[2:3]) == TableUpdate()
    assert merger.exported() == [whole]
    assert merger.mergers()[0].waste == pytest.approx(0.4, abs=0.01)
    assert merger.change(left=parts[3:4]) == TableUpdate((parts[0] | parts[4],), (whole,))
    assert merger.mergers()[0].waste == 0
    assert merger.change(left=parts[:1]) == TableUpdate((parts[4],), (parts[0] | parts[4],))  # one is no merger


def test_lazy_counts_what_a_larger_root_covers_too() -> None:
    a, b, c = between(0, 1), between(1, 2), between(2, 3)
    for budget, wasted in ((0.1, False), (0.5, True)):
        merger = RootMerger(Merging(lazy=True, budget=budget))
        merger.change([a, b, c])
        merger.follow([parse("x <= 1"), b, c])
        assert merger.exported() == [parse("x <= 3")]  # merged with the new one, either way
        assert (merger.mergers()[0].waste > 0) == wasted


def test_unwanted_events_end_patience() -> None:
    parts = [between(10 * n, 10 * n + 10) for n in range(4)]
    merger = RootMerger(Merging(lazy=True, budget=0.5, patience=2))
    merger.change(parts)
    assert merger.unwanted({"x": 15}) == TableUpdate()  # no waste: it was not let pass by a merger
    merger.change(left=parts[1:2])
    for event in ({"x": 15}, {"y": 1}):
        assert merger.unwanted(event) == TableUpdate()
    assert merger.unwanted({"x": 15}) == TableUpdate((parts[0] | between(20, 40),), (between(0, 40),))
    assert merger.unwanted({"x": 15}) == TableUpdate()
    patient = RootMerger(Merging(lazy=True, budget=0.5))
    patient.change(parts)
    patient.change(left=parts[1:2])
    assert {patient.unwanted({"x": 15}) for _ in range(10)} == {TableUpdate()}


# Partners


@given(st.lists(filters, max_size=8), filters)
def test_all_that_merge_are_found(others: list[Filter], one: Filter) -> None:
    """Any filters, not just those that are compared in tables."""
    for how in (Merging(), Merging(imperfect=True, budget=1.0)):
        partners = Partners(how.keys)
        for other in dict.fromkeys(others):
            partners.add(other)
        found = {other for other in partners.of(one) if how.join(MergeResult(other), MergeResult(one)) is not None}
        possible = {other for other in others if how.join(MergeResult(other), MergeResult(one)) is not None}
        assert {
            other for other in possible if other != one and not one.covers(other) and not other.covers(one)
        } <= found
        for other in dict.fromkeys(others):
            partners.remove(other)
        assert partners.of(one) == []


def test_pairs_of_the_pool() -> None:
    how = Merging()
    partners = Partners(how.keys)
    for filter in POOL:
        partners.add(filter)
    tried = 0
    for one in POOL[::21]:
        found = partners.of(one)
        tried += len(found)
        merging = {other for other in POOL if one.merge(other) is not None}
        assert {other for other in merging if not one.covers(other) and not other.covers(one)} <= set(found)
    assert tried < len(POOL) ** 2 / 21 / 3


def test_what_only_trying_all_finds() -> None:
    """Three corners of a square and the fourth; two computed fields of which one implies the other."""
    corners = parse("(x <= 2 AND y <= 1) OR (x <= 1 AND y <= 2)"), box((1, 2), (1, 2))
    computed = parse("x < $y"), parse("NOT (x < $y) AND x <= $y")
    for one, other in (corners, corners[::-1], computed, computed[::-1]):
        assert one.merge(other) is not None
        assert not agree_but_one([one, other])
        partners = Partners(Merging().keys)
        partners.add(one)
        assert partners.of(other) == [one]


def test_no_pair_is_tried_that_cannot_merge() -> None:
    merger = RootMerger()
    merger.change(box((n, n + 1), (n, n + 1)) for n in range(300))
    assert (len(merger.exported()), merger.attempts) == (300, 0)


# Any history


class History(RuleBasedStateMachine):
    """Filters come to a table and go; many mergers follow its roots, and each must be right after every step."""

    @initialize()
    def start(self) -> None:
        self.table: NaiveTable[int] = NaiveTable(redundant=True)
        self.mergers = {name: RootMerger(how) for name, how in WAYS.items()}
        self.twins = {name: RootMerger(by_trying_all(how)) for name, how in WAYS.items()}
        self.known: dict[str, set[Filter]] = {name: set() for name in WAYS}

    def follow(self) -> None:
        roots = self.table.roots()
        for name, merger in self.mergers.items():
            update = merger.follow(roots)
            self.told(name, update)
            assert self.twins[name].follow(roots) == update, name

    def told(self, name: str, update: TableUpdate) -> None:
        known = self.known[name]
        assert not known & set(update.added)
        assert known >= set(update.removed)
        self.known[name] = (known - set(update.removed)) | set(update.added)

    @rule(filter=pool)
    def add(self, filter: Filter) -> None:
        self.table.add(filter, 0)
        self.follow()

    @rule(number=st.integers(0, 1000))
    def remove(self, number: int) -> None:
        stored = list(self.table.filters())
        if stored:
            self.table.remove(stored[number % len(stored)], 0)
            self.follow()

    @rule(number=st.integers(0, 1000))
    def remove_root(self, number: int) -> None:
        roots = self.table.roots()
        if roots:
            self.table.remove(roots[number % len(roots)], 0)
            self.follow()

    @rule(some=st.lists(pool, max_size=5), numbers=st.lists(st.integers(0, 1000), max_size=4))
    def many_at_once(self, some: list[Filter], numbers: list[int]) -> None:
        stored = list(self.table.filters())
        for number in numbers if stored else ():
            self.table.remove(stored[number % len(stored)], 0)
        self.table.add_many((filter, 0) for filter in some)
        self.follow()

    @rule(x=st.integers(0, 3), y=st.integers(0, 3))
    def event(self, x: int, y: int) -> None:
        event = {"x": x, "y": y}
        if not self.table.match(event):
            for name, merger in self.mergers.items():
                update = merger.unwanted(event)
                self.told(name, update)
                assert self.twins[name].unwanted(event) == update

    @invariant()
    def right(self) -> None:
        if not hasattr(self, "table"):
            return
        roots = self.table.roots()
        for name, merger in self.mergers.items():
            how = WAYS[name]
            assert set(merger.roots()) == set(roots)
            assert set(merger.exported()) == self.known[name]
            check_mergers(merger.mergers(), roots, merger.exported(), how)
            assert merger.attempts <= self.twins[name].attempts
            if how.cascade and how.choice != "none" and not how.lazy and not how.imperfect:
                assert not any(a.merge(b) is not None for a, b in itertools.combinations(merger.exported(), 2))
        assert self.mergers["none"].exported() == self.mergers["none"].roots()

    def teardown(self) -> None:
        if not hasattr(self, "table"):
            return
        self.table.drop(0)
        self.follow()
        for merger in self.mergers.values():
            assert merger.exported() == merger.roots() == merger.mergers() == []
            assert not merger._partners._all
            assert not merger._partners._found


def test_any_history() -> None:
    run_state_machine_as_test(History, settings=settings(few(40), stateful_step_count=20))


# At once


@given(st.lists(pool, max_size=12))
def test_merged_means_the_same(some: list[Filter]) -> None:
    result = merged(some)
    assert joint(result) == joint(some)
    assert len(result) <= len(minimal_cover(some))
    assert incomparable(result)
    assert not any(a.merge(b) is not None for a, b in itertools.combinations(result, 2))


@given(st.lists(pool, max_size=12), st.sampled_from([0.1, 0.5, 1.0]))
def test_merged_imperfectly_loses_nothing(some: list[Filter], budget: float) -> None:
    result = merged(some, perfect=False, budget=budget)
    assert joint(result) | joint(some) == joint(result)
    assert all(any(larger.covers(filter) for larger in result) for filter in some)
    assert incomparable(result)


def test_merged() -> None:
    assert merged([]) == []
    assert merged([between(0, 1), between(1, 2), between(0, 2)]) == [between(0, 2)]
    assert merged([between(0, 1), between(1, 2), parse("y = 1")]) == [between(0, 2), parse("y = 1")]
    diagonal = [box((n, n + 1), (n, n + 1)) for n in range(5)]
    assert merged(diagonal) == diagonal
    assert merged(diagonal, perfect=False) == [box((0, 5), (0, 5))]
    nowhere = Sample([{"x": 9, "y": 9}])
    assert merged(diagonal, perfect=False, statistics=nowhere, budget=0.1) == diagonal
    assert meaning(merged(POOL)[0]) == meaning(EVERYTHING)
