"""What every matcher must do. A test class inherits `MatcherSuite` and says how to `make` one.

The vectors of `strategies` are asked of the matcher one by one, all filters at once, and in a long random churn; then hypothesis
makes up filters and events and compares with what each filter says by itself.
"""

from __future__ import annotations

import itertools
import random
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from operator import itemgetter
from types import MappingProxyType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from tests.examples import few
from tests.matching.strategies import MODES, NOON, RANGES, VECTORS, Tree, events, filters, modes

from fieldfare.events import Event, Interval
from fieldfare.filters import EVERYTHING, NOTHING, Filter, FilterSyntaxError, parse
from fieldfare.filters.constraint import Mode
from fieldfare.matching import Matcher
from fieldfare.matching.match.batch_rows import MANY

FILTERS = {text: parse(text) for text in (*VECTORS, *RANGES)}
CASES: list[tuple[str, Tree, Mode, bool]] = [
    *((text, event, mode, True) for text, (hits, _) in VECTORS.items() for event in hits for mode in MODES),
    *((text, event, mode, False) for text, (_, misses) in VECTORS.items() for event in misses for mode in MODES),
    *((text, event, mode, True) for text, (all_of, _, _) in RANGES.items() for event in all_of for mode in MODES),
    *(
        (text, event, mode, mode == "overlaps")
        for text, (_, some, _) in RANGES.items()
        for event in some
        for mode in MODES
    ),
    *((text, event, mode, False) for text, (_, _, none) in RANGES.items() for event in none for mode in MODES),
]
BOOK = {
    "F1": "Stock = 'Foo Inc.' AND Price < 15",
    "F2": "Stock = 'Foo Inc.' AND Price < 12",
    "F3": "Stock = 'AB Inc.' AND Price > 16",
    "F4": "Volume > 1000000",
    "G": "Stock = 'Foo Inc.' AND (Price > 15 OR Volume > 1000000)",
}


def expected(wanted: Mapping[Any, Filter], event: Mapping[str, object], mode: Mode = "overlaps") -> set[Any]:
    """What the filters themselves say."""
    return {id for id, one in wanted.items() if one.matches(event, mode)}


@cache
def all_expected() -> list[set[str]]:
    """What all filters say to each case, once for all matchers."""
    return [expected(FILTERS, event, mode) for _, event, mode, _ in CASES]


class MatcherSuite(ABC):
    """The tests. Each begins with an empty matcher."""

    @abstractmethod
    def make(self) -> Matcher[Any]:
        """An empty matcher."""

    def filled(self, wanted: Mapping[Any, Filter | str]) -> Matcher[Any]:
        matcher = self.make()
        matcher.add_many(wanted.items())
        return matcher

    # What it holds

    def test_empty(self) -> None:
        matcher = self.make()
        assert matcher.match({"a": 1}) == matcher.match({}) == []
        assert (len(matcher), "x" in matcher, matcher.count({"a": 1})) == (0, False, 0)

    def test_add_and_remove(self) -> None:
        matcher = self.make()
        matcher.add("x", "a = 1")
        matcher.add("y", parse("a < 2 AND b = 1"))
        assert (len(matcher), "x" in matcher, "y" in matcher, "z" in matcher) == (2, True, True, False)
        event = {"a": 1, "b": 1}
        assert (sorted(matcher.match(event)), matcher.count(event)) == (["x", "y"], 2)
        assert (matcher.match({"a": 1}), matcher.match({"a": 5}), matcher.count({"b": 1})) == (["x"], [], 0)
        matcher.remove("x")
        assert (len(matcher), "x" in matcher, matcher.match(event)) == (1, False, ["y"])
        matcher.remove("y")
        assert (len(matcher), matcher.match(event)) == (0, [])

    def test_an_id_is_used_once(self) -> None:
        matcher = self.filled({"x": "a = 1"})
        with pytest.raises(KeyError):
            matcher.add("x", "a = 2")
        with pytest.raises(KeyError):
            matcher.add_many([("x", "a = 2")])
        assert (len(matcher), matcher.match({"a": 1}), matcher.match({"a": 2})) == (1, ["x"], [])

    def test_only_what_is_there_can_go(self) -> None:
        matcher = self.filled({"x": "a = 1"})
        with pytest.raises(KeyError):
            matcher.remove("y")
        matcher.remove("x")
        with pytest.raises(KeyError):
            matcher.remove("x")
        assert len(matcher) == 0

    def test_update_replaces_or_adds(self) -> None:
        matcher = self.filled({"x": "a = 1 OR b = 1"})
        matcher.update("x", "a = 2")
        matcher.update("y", parse("a = 2"))
        assert (len(matcher), matcher.match({"a": 1, "b": 1}), sorted(matcher.match({"a": 2}))) == (2, [], ["x", "y"])
        matcher.update("x", "a = 2")
        assert (len(matcher), sorted(matcher.match({"a": 2}))) == (2, ["x", "y"])

    def test_what_cannot_be_read_changes_nothing(self) -> None:
        matcher = self.filled({"x": "a = 1"})
        for change in (matcher.add, matcher.update):
            for id in ("x", "new"):
                with pytest.raises((FilterSyntaxError, KeyError)):
                    change(id, "a = = 1")
        assert (len(matcher), "new" in matcher, matcher.match({"a": 1})) == (1, False, ["x"])

    def test_add_many_takes_any_iterable(self) -> None:
        matcher = self.make()
        matcher.add_many([])
        matcher.add_many((number, f"a >= {number}" if number % 2 else parse(f"a >= {number}")) for number in range(100))
        assert (len(matcher), sorted(matcher.match({"a": 41.5}))) == (100, list(range(42)))

    def test_ids_are_any_hashable_values(self) -> None:
        ids = ["x", 0, 1.5, None, (1, "x"), frozenset({1}), b"x", object(), "", -1, 2**80, NOON, Event({"a": 1})]
        matcher = self.filled(dict.fromkeys(ids, "a = 1"))
        found = matcher.match({"a": 1})
        assert len(found) == len(ids)
        assert set(found) == set(ids)
        for id in ids:
            assert id in matcher
            matcher.remove(id)
        assert matcher.match({"a": 1}) == []

    def test_one_filter_under_two_ids(self) -> None:
        for text in (
            "a = 1",
            "a BETWEEN 0 AND 2",
            "a = 1 OR b = 1",
            "NOT (b = 2)",
            "a + b > 1 OR a = 1",
            "EXISTS a OR NOT EXISTS a",
        ):
            matcher = self.filled({"x": text, "y": parse(text)})
            assert sorted(matcher.match({"a": 1, "b": 1})) == ["x", "y"]
            matcher.remove("x")
            assert matcher.match({"a": 1, "b": 1}) == ["y"]
            matcher.add("x", text)
            matcher.remove("y")
            assert matcher.match({"a": 1, "b": 1}) == ["x"]

    def test_everything_and_nothing(self) -> None:
        matcher = self.filled({"all": EVERYTHING, "none": NOTHING, "one": "a = 1"})
        assert len(matcher) == 3
        assert (matcher.match({}), sorted(matcher.match({"a": 1})), matcher.match({"z": None})) == (
            ["all"],
            ["all", "one"],
            ["all"],
        )
        matcher.update("all", NOTHING)
        matcher.update("none", EVERYTHING)
        assert matcher.match({}) == ["none"]
        matcher.remove("all")
        matcher.remove("none")
        assert (matcher.match({}), matcher.match({"a": 1})) == ([], ["one"])

    def test_the_result_is_the_callers(self) -> None:
        matcher = self.filled({"x": EVERYTHING, "y": "a = 1"})
        matcher.match({"a": 1}).clear()
        assert sorted(matcher.match({"a": 1})) == ["x", "y"]

    def test_events_of_any_shape(self) -> None:
        matcher = self.filled({"x": "u.id = 7", "y": "ANY l = 2"})
        tree: Tree = {"u": {"id": 7}, "l": [1, [2]]}
        for event in (tree, Event(tree), MappingProxyType(tree), Event(tree, type="t")):
            assert sorted(matcher.match(event)) == ["x", "y"]
        assert tree == {"u": {"id": 7}, "l": [1, [2]]}

    # What it finds

    def test_each_vector_alone(self) -> None:
        for text, cases in itertools.groupby(sorted(CASES, key=itemgetter(0)), itemgetter(0)):
            matcher = self.filled({"x": text})
            asked = [case[1:] for case in cases]
            for event, mode, hit in asked:
                assert matcher.match(event, mode) == (["x"] if hit else []), (text, event, mode)
            matcher.remove("x")
            for event, mode, _ in asked:
                assert matcher.match(event, mode) == [], (text, event, mode)

    def test_all_vectors_at_once(self) -> None:
        matcher = self.filled(FILTERS)
        for (text, event, mode, hit), wanted in zip(CASES, all_expected(), strict=True):
            found = matcher.match(event, mode)
            assert len(set(found)) == len(found) == matcher.count(event, mode)
            assert (text in found) == hit
            assert set(found) == wanted, (event, mode)

    @pytest.mark.parametrize(
        ("stock", "price", "volume", "found"),
        [
            ("Foo Inc.", 11, 10, {"F1", "F2"}),
            ("Foo Inc.", 12, 10, {"F1"}),
            ("Foo Inc.", 15, 1_000_001, {"F4", "G"}),
            ("Foo Inc.", 15, 1_000_000, set()),  # not above a million, whatever the book says
            ("Foo Inc.", 16, 10_000, {"G"}),
            ("AB Inc.", 17, 10_000, {"F3"}),
            ("AB Inc.", 16, 2_000_000, {"F4"}),
            ("Bar", 1, 1, set()),
        ],
    )
    def test_the_book(self, stock: str, price: int, volume: int, found: set[str]) -> None:
        assert set(self.filled(BOOK).match({"Stock": stock, "Price": price, "Volume": volume})) == found

    def test_a_disjunction_gives_its_id_once(self) -> None:
        matcher = self.filled({"x": "a = 1 OR b = 1 OR c = 1 OR a + b = 2", "y": "a = 1"})
        assert sorted(matcher.match({"a": 1, "b": 1, "c": 1})) == ["x", "y"]
        assert matcher.count({"a": 1, "b": 1, "c": 1}) == 2

    def test_wide_filters(self) -> None:
        names = [f"n{number}" for number in range(60)]
        wanted = {
            "all": parse(" AND ".join(f"{name} > {number}" for number, name in enumerate(names))),
            "any": parse(" OR ".join(f"{name} < 0" for name in names)),
            "pairs": parse(" OR ".join(f"({a} = 'x' AND {b} = 'y')" for a, b in itertools.pairwise(names))),
            "list": parse(f"n0 IN ({', '.join(map(str, range(0, 2000, 2)))})"),
        }
        matcher = self.filled(wanted)
        most: Tree = {name: number + 1 for number, name in enumerate(names)}
        for change in (
            {},
            {"n59": 59},
            {"n0": -1},
            {"n0": 998},
            {"n7": "x", "n8": "y"},
            {"n7": "y", "n8": "x"},
            {"n9": Interval(-1, 99)},
        ):
            event = {**most, **change}
            assert set(matcher.match(event)) == expected(wanted, event)

    def test_attributes_that_no_filter_names(self) -> None:
        matcher = self.filled({"x": "a = 1", "y": "NOT EXISTS n5"})
        event: Tree = {f"n{number}": [number, {"deep": None}] for number in range(300)}
        assert matcher.match(event) == []
        assert matcher.match({**event, "a": 1}) == ["x"]
        assert matcher.match({"": 1, "a.b": 1, "\0": 1}) == ["y"]

    def test_churn(self) -> None:
        chance, matcher, held = random.Random(7), self.make(), dict[int, Filter]()
        pool, trees = list(FILTERS.values()), [case[1] for case in CASES]
        for _ in range(400):
            id, wanted = chance.randrange(40), chance.choice(pool)
            if id not in held:
                matcher.add(id, wanted)
                held[id] = wanted
            elif chance.random() < 0.5:
                matcher.remove(id)
                del held[id]
            else:
                matcher.update(id, wanted)
                held[id] = wanted
            event, mode = chance.choice(trees), chance.choice(MODES)
            assert set(matcher.match(event, mode)) == expected(held, event, mode), (event, mode)
            assert len(matcher) == len(held)

    def test_agrees_with_each_filter(self) -> None:
        @few(20)
        @given(st.lists(filters(), max_size=6), st.lists(events(), min_size=1, max_size=4), modes)
        def agrees(wanted: list[Filter], trees: list[Tree], mode: Mode) -> None:
            held = dict(enumerate(wanted))
            matcher = self.filled(held)
            for event in trees:
                found = matcher.match(event, mode)
                assert len(found) == len(set(found))
                assert set(found) == expected(held, event, mode)

        agrees()

    def test_many_events_at_once(self) -> None:
        """Plain ones are matched as a batch, if there are enough of them; others are not, and none is mixed up."""
        plain = [{"a": number, "b": f"x{number % 3}", "c": number / 2} for number in range(MANY)]

        @few(20)
        @given(st.lists(filters(), max_size=6), st.lists(events(), max_size=4), st.booleans(), modes)
        def agrees(wanted: list[Filter], trees: list[Tree | Event], mixed: bool, mode: Mode) -> None:
            held = dict(enumerate(wanted))
            matcher = self.filled(held)
            several = [tree if isinstance(tree, Event) else Event(tree) for tree in (*trees, *plain)]
            several = several[::2] + several[1::2] if mixed else several
            found = matcher.match_many(several, mode)
            assert list(map(set, found)) == [expected(held, event, mode) for event in several]
            assert all(len(ids) == len(set(ids)) for ids in found)

        agrees()

    def test_agrees_through_any_history(self) -> None:
        def begin() -> History:
            return History(self.make())

        run_state_machine_as_test(begin, settings=settings(few(10), stateful_step_count=12))  # type: ignore[arg-type]  # a factory will do


class History(RuleBasedStateMachine):
    """Anything that may happen to a matcher, beside a dict of filters to which the same happens."""

    ids = st.integers(0, 7)

    def __init__(self, matcher: Matcher[int]) -> None:
        super().__init__()
        self.matcher = matcher
        self.held: dict[int, Filter] = {}

    @initialize(wanted=st.lists(filters(), max_size=6))
    def begin(self, wanted: list[Filter]) -> None:
        self.held = dict(enumerate(wanted))
        self.matcher.add_many(self.held.items())

    @rule(id=ids, wanted=filters())
    def add(self, id: int, wanted: Filter) -> None:
        if id in self.held:
            with pytest.raises(KeyError):
                self.matcher.add(id, wanted)
        else:
            self.matcher.add(id, wanted)
            self.held[id] = wanted

    @rule(id=ids, wanted=filters())
    def update(self, id: int, wanted: Filter) -> None:
        self.matcher.update(id, wanted)
        self.held[id] = wanted

    @rule(id=ids)
    def remove(self, id: int) -> None:
        if id in self.held:
            self.matcher.remove(id)
            del self.held[id]
        else:
            with pytest.raises(KeyError):
                self.matcher.remove(id)

    @rule(event=events(), mode=modes)
    def match(self, event: Tree, mode: Mode) -> None:
        found = self.matcher.match(event, mode)
        assert len(found) == len(set(found))
        assert set(found) == expected(self.held, event, mode)
        assert self.matcher.count(event, mode) == len(found)

    @invariant()
    def holds_the_same(self) -> None:
        assert len(self.matcher) == len(self.held)
        assert [id in self.matcher for id in range(9)] == [id in self.held for id in range(9)]

    def teardown(self) -> None:
        for id in self.held:
            self.matcher.remove(id)
        assert (len(self.matcher), self.matcher.match({"a": 1, "f": {"x": 1}})) == (0, [])
