"""One machine for many path filters finds just what each of them finds alone."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.filters.test_paths import AUCTION, conditions, objects, wheres

from fieldfare.events import Event, Interval
from fieldfare.filters import Filter, FilterSyntaxError, parse
from fieldfare.filters.constraint import Mode
from fieldfare.filters.paths import Selector, path, selector
from fieldfare.matching import BruteForce, Counting, DecisionDiagram, DecisionTree, Matcher
from fieldfare.matching.classic.paths import PathMatcher
from fieldfare.matching.index import Index


def test_the_auction_of_the_book() -> None:
    matcher = PathMatcher[str]()
    matcher.add("fast", "//cpu", "manufacturer = 'AMD' AND clock >= 700")
    matcher.add("faster", "//cpu", "clock >= 900")
    matcher.add("exact", "/auction/item/cpu", "clock = 800")
    matcher.add("elsewhere", "/item/cpu", "clock = 800")
    matcher.add("any board", "/auction//board")
    matcher.add("any", "//*", parse("socket = 'Socket A'"))
    for event in (AUCTION, Event(AUCTION)):
        assert set(matcher.match(event)) == {"fast", "exact", "any board", "any"}
    assert matcher.match({}) == []


def test_intervals() -> None:
    matcher = PathMatcher[int]()
    matcher.add(1, "//cpu", "clock >= 700")
    event = {"cpu": {"clock": Interval(600, 800)}}
    assert (matcher.match(event), matcher.match(event, "covers")) == ([1], [])


def test_add_and_remove() -> None:
    matcher = PathMatcher[str]()
    matcher.add("x", "//a", "b = 1")
    matcher.add("y", "//a", "b = 1")
    with pytest.raises(KeyError):
        matcher.add("x", "//b")
    with pytest.raises(KeyError):
        matcher.remove("z")
    for wrong in (("a", "b = 1"), ("//a", "b = = 1")):
        with pytest.raises((ValueError, FilterSyntaxError)):
            matcher.add("z", *wrong)
    assert (len(matcher), "x" in matcher, "z" in matcher) == (2, True, False)
    matcher.remove("x")
    assert matcher.match({"c": {"a": {"b": 1}}}) == ["y"]


def test_selectors_that_begin_alike_share_their_nodes() -> None:
    matcher = PathMatcher[str]()
    for text in ("/a/b/c", "/a/b/d", "/a/b", "/a//b", "/a//c"):
        matcher.add(text, text)
    (a,) = matcher._root.steps.values()
    deeper = a.gap
    assert deeper is not None
    assert (set(a.steps), set(a.steps["b"].steps), set(deeper.steps)) == ({"b"}, {"c", "d"}, {"b", "c"})
    for text in ("/a/b", "/a//b", "/a/b/d", "/a//c"):
        matcher.remove(text)
    assert (set(a.steps["b"].steps), bool(a.gap)) == ({"c"}, False)
    assert matcher.match({"a": {"b": {"c": {}}}}) == ["/a/b/c"]


filters = st.lists(st.tuples(wheres, conditions), max_size=12)


@given(filters, filters, st.lists(objects, min_size=1, max_size=4), st.sampled_from(["overlaps", "covers"]))
def test_agrees_with_each_path_filter(
    kept: list[tuple[Selector, Filter]], removed: list[tuple[Selector, Filter]], events: list[Any], mode: Mode
) -> None:
    matcher = PathMatcher[int]()
    for id, (where, condition) in enumerate([*removed, *kept]):
        matcher.add(id, where, condition)
    for id in range(len(removed)):
        matcher.remove(id)
    held = {id: path(*wanted) for id, wanted in enumerate(kept, len(removed))}
    for event in events:
        found = matcher.match(event, mode)
        assert len(set(found)) == len(found)
        assert set(found) == {id for id, wanted in held.items() if wanted.matches(event, mode)}
    for id in held:
        matcher.remove(id)
    assert (len(matcher), matcher._root.is_bare) == (0, True)


@pytest.mark.parametrize("make", [BruteForce, Counting, DecisionDiagram, DecisionTree, Index])
def test_any_matcher_takes_path_filters(make: type[Matcher[str]]) -> None:
    matcher = make()
    texts = [
        "PATH('//cpu', clock >= 700)",
        "NOT PATH('//cpu')",
        "PATH('/auction//cpu', clock > 900) OR auction.minprice < 60",
    ]
    matcher.add_many((text, text) for text in texts)
    assert set(matcher.match(AUCTION)) == {texts[0], texts[2]}
    assert matcher.match({}) == [texts[1]]


@given(wheres, objects)
def test_one_alone(where: Selector, event: dict[str, Any]) -> None:
    matcher = PathMatcher[str]()
    matcher.add("x", where)
    assert bool(matcher.match(event)) is path(where).matches(event)
    assert selector(where.text) == where
