"""The tree selects what filters select, whatever was inserted and removed in whatever order; and it keeps its shape."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filters.strategies import UNIVERSE, value_sets
from tools.prefix.samples import (
    EVENTS,
    MIXED,
    UNSAID,
    all_filters,
    events,
    exact,
    filters,
    limits,
    optimized,
    placed,
)
from tools.samples import FILTERS as RANGES

from fieldfare.events.event import Event
from fieldfare.events.values import MISSING
from fieldfare.filters import parse
from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter
from fieldfare.filters.valueset import ValueSet
from fieldfare.routing.prefix.invariants import check
from fieldfare.routing.prefix.labels import ALPHABET, Order, by_popularity, by_selectivity
from fieldfare.routing.prefix.optimizer import Optimizer, part
from fieldfare.routing.prefix.selection import match, select
from fieldfare.routing.prefix.tag_reader import forward
from fieldfare.routing.prefix.tree import ROOT, Tree
from fieldfare.routing.prefix.updates import height


def shape(tree: Tree, id: int = ROOT) -> dict[str, object]:
    return {str(tree.label(child).filter): shape(tree, child) for child in tree[id].children}


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        # the paper's two examples of a split
        (["x > 5", "x < 9 AND y > 2"], {"x > 5": {"x > 5 AND x < 9": {"y > 2": {}}}, "x <= 5": {"y > 2": {}}}),
        (["x <= 6", "x > 1 AND z < 7"], {"x <= 6": {"x > 1 AND x <= 6": {"z < 7": {}}}, "x > 6": {"z < 7": {}}}),
        # the other cases
        (["x = 1 AND y = 1", "x = 1 AND y = 2"], {"x = 1": {"y = 1": {}, "y = 2": {}}}),
        (["x > 1", "x > 2 AND y = 1"], {"x > 1": {"x > 2": {"y = 1": {}}}}),
        (["x = 1", "y = 1", "x = 2", "x > 3", "x BETWEEN 0 AND 2 AND z = 1"],
         {"x BETWEEN 0 AND 2": {"x = 1": {}, "x = 2": {}, "z = 1": {}}, "y = 1": {}, "x > 3": {}}),
        (["x = 1", "y = 1"], {"x = 1": {}, "y = 1": {}}),
        (["z = 1", "y = 1", "y = 2", "x = 1", "y < 3"], {"z = 1": {}, "y < 3": {"y = 1": {}, "y = 2": {}}, "x = 1": {}}),
        # what remains beside one sibling is another one: no second node for it
        (["x = 1", "x BETWEEN 2 AND 4", "x IN (1, 2, 3)"], {"x = 1": {}, "x BETWEEN 2 AND 4": {"x IN (2, 3)": {}}}),
        # patterns are not split
        (["s CONTAINS 'a'", "s CONTAINS 'b'", "s = 'ab'"], {"s CONTAINS 'a'": {}, "s CONTAINS 'b'": {}, "s = 'ab'": {}}),
    ],
)  # fmt: skip
def test_cases(texts: list[str], expected: dict[str, object]) -> None:
    tree = optimized(map(parse, texts)).tree
    check(tree)
    assert shape(tree) == expected
    assert list(shape(tree)) == list(expected)


@given(st.lists(filters, max_size=12), st.sampled_from([0, 1, 3, 16]))
def test_selects_what_filters_select(wanted: Sequence[Filter], splits: int) -> None:
    optimizer = optimized(wanted, splits)
    check(optimizer.tree)
    places = placed(wanted, optimizer.publish(0.0))
    assert places.loose == 0
    for event in EVENTS:
        tag = match(places.tree, event)
        assert forward(places.tree, tag, places) == exact(wanted, event)
        assert places.anew(event) == exact(wanted, event)


@given(st.lists(st.sampled_from(RANGES), min_size=8, max_size=40), st.randoms())
def test_selects_what_many_ranges_select(wanted: list[Filter], random: Random) -> None:
    optimizer = optimized(wanted)
    removed = [filter for filter in wanted if random.random() < 0.4]
    for filter in removed:
        for box in filter.boxes:
            optimizer.remove(box)
    check(optimizer.tree)
    left = list(wanted)
    for filter in removed:
        left.remove(filter)
    places = placed(left, optimizer.publish(0.0))
    assert places.loose == 0
    for event in EVENTS[:16]:
        assert places.forward(places.enter(event), event) == exact(left, event)
    for filter in left:
        for box in filter.boxes:
            optimizer.remove(box)
    assert optimizer.tree.size == 0


@given(st.lists(st.tuples(value_sets(), value_sets()), min_size=1, max_size=6), st.data())
def test_sets_of_every_kind_are_split_exactly(sides: list[tuple[ValueSet, ValueSet]], data: st.DataObject) -> None:
    found = [Filter.where("a", Constraint(a)) & Filter.where("b", Constraint(b)) for a, b in sides]
    wanted = [filter for filter in found if not filter.is_empty]
    optimizer = optimized(wanted)
    check(optimizer.tree)
    places = placed(wanted, optimizer.publish(0.0))
    values = st.sampled_from(UNIVERSE)
    for a, b in data.draw(st.lists(st.tuples(values, values), min_size=10, max_size=10)):
        event = Event({name: value for name, value in (("a", a), ("b", b)) if value is not MISSING})
        assert places.forward(places.enter(event), event) == exact(wanted, event)


@given(st.lists(all_filters, max_size=10), limits)
def test_a_limit_only_adds(wanted: Sequence[Filter], limit: int | None) -> None:
    places = placed(wanted, optimized(wanted).publish(0.0))
    deep = height(places.tree)
    for event in EVENTS:
        found = forward(places.tree, match(places.tree, event, limit), places)
        assert found is not None
        assert found >= exact(wanted, event)
        if (limit is None or limit > deep) and UNSAID not in wanted:
            assert found == exact(wanted, event)
        if limit == 0:
            assert found == (set(map(str, range(len(wanted)))))


@given(st.lists(filters, max_size=10), events, events)
def test_who_wants_an_event_wants_one_that_selects_more(wanted: Sequence[Filter], one: Event, other: Event) -> None:
    places = placed(wanted, optimized(wanted).publish(0.0))
    few, many = ({id for id, _, _ in select(places.tree, event)} for event in (one, other))
    if few <= many:
        assert exact(wanted, one) <= exact(wanted, other)


def test_orders() -> None:
    boxes = [box for text in ("a = 1 AND b = 1", "b = 2", "b = 1 AND c > 0", "c < 9") for box in parse(text).boxes]
    assert by_popularity(boxes) == Order(("b", "c", "a"))
    assert by_selectivity(boxes, [{"a": 1, "b": 1, "c": 5}, {"b": 9, "c": 7}]) == Order(("b", "a", "c"))
    (box,) = parse("a = 1 AND b = 1 AND d = 1 AND $a < $d AND c = 1").boxes
    assert [label.dimension for label in Order(("c", "b")).path(box)][:4] == ["c", "b", "a", "d"]
    assert [label.dimension for label in ALPHABET.path(box)][:4] == ["a", "b", "c", "d"]


@given(st.lists(filters, min_size=1, max_size=8), st.permutations(["x", "y", "s", "tags"]))
def test_any_order_will_do(wanted: Sequence[Filter], names: list[str]) -> None:
    order = Order(tuple(names))
    optimizer = Optimizer(Tree(order=order), [box for filter in wanted for box in filter.boxes])
    check(optimizer.tree)
    for event in EVENTS:
        selected = {ROOT, *(id for id, _, _ in select(optimizer.tree, event))}
        for filter in wanted:
            ends = {id for box in filter.boxes for id in optimizer.ends(box)}
            assert bool(selected & ends) == filter.matches(event)


def _said(filter: Filter) -> bool:
    """Is nothing of it left out of its paths?"""
    return all(len(ALPHABET.path(box)) == len(box) for box in filter.boxes)


def test_only_what_cannot_be_said_is_left_out() -> None:
    assert [filter for filter in (*MIXED, UNSAID) if not _said(filter)] == [UNSAID]


@given(st.lists(filters, max_size=8), st.integers(1, 4))
def test_parts_together_are_the_whole(wanted: Sequence[Filter], parts: int) -> None:
    boxes = [box for filter in wanted for box in filter.boxes]
    shares: list[list[Branch]] = [[] for _ in range(parts)]
    for box in boxes:
        shares[part(ALPHABET.path(box), parts)].append(box)
    trees = [Optimizer(boxes=share).tree for share in shares]
    for tree in trees:
        check(tree)
    whole = Optimizer(boxes=boxes).tree
    assert sum(tree.size for tree in trees) == whole.size
    for event in EVENTS:
        assert sum(len(match(tree, event).steps) for tree in trees) == len(match(whole, event).steps)


def test_the_papers_rule_for_passing_filters_on_would_lose_events() -> None:
    """Only the first of these makes a child of the root; but who knows only the first lets events of the second pass by."""
    first, second = parse("x > 5 AND y > 3"), parse("x > 5 AND z < 7")
    tree = optimized([first, second]).tree
    assert len(tree[ROOT].children) == 1
    assert second.matches({"x": 6, "z": 1})
    assert not first.matches({"x": 6, "z": 1})
