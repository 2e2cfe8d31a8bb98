"""Movement graphs, `ploc` and templates, with the tables of the book's example as exact values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.filters import FilterSyntaxError, parse
from fieldfare.filters.dynamic import MYLOC, DynamicFilter
from fieldfare.filters.filter import Filter
from fieldfare.mobility.places import World, by_myloc, flooded, nothing_ahead, reach, within
from fieldfare.routing.places import Places, ploc

SQUARE = {"a": "bc", "b": "ad", "c": "ad", "d": "bc"}


def at(text: str, places: Iterable[str]) -> Filter:
    """Return the filter of a text for some places."""
    return DynamicFilter(text).fill({MYLOC: list(places)})


graphs = st.integers(1, 7).flatmap(
    lambda size: st.dictionaries(
        st.sampled_from("abcdefg"[:size]), st.sets(st.sampled_from("abcdefg"[:size]), max_size=3)
    ).map(lambda some: {place: sorted(some.get(place, ())) for place in "abcdefg"[:size]})
)


@pytest.mark.parametrize(
    ("steps", "places"),
    [(0, ["a", "b", "c", "d"]), (1, ["abc", "abd", "acd", "bcd"]), (2, ["abcd"] * 4), (9, ["abcd"] * 4)],
)
def test_the_table_of_the_book(steps: int, places: list[str]) -> None:
    assert ["".join(sorted(ploc(SQUARE, place, steps))) for place in "abcd"] == places


@given(graphs, st.data())
def test_ploc_is_what_step_after_step_leads_to(graph: Mapping[str, list[str]], data: st.DataObject) -> None:
    start = data.draw(st.sampled_from(sorted(graph)))
    reached = {start}
    for steps in range(8):
        assert ploc(graph, start, steps) == reached
        reached |= {other for place in reached for other in graph[place]}
    assert ploc(graph, start, None) == set(graph)


def test_what_is_quoted_is_no_marker() -> None:
    template = DynamicFilter("""note = 'it''s IN myloc' AND "a IN myloc" = 1 AND place in  MyLoc AND other IN myloc""")
    wanted = """note = 'it''s IN myloc' AND "a IN myloc" = 1 AND place IN ('x', 'y''z') AND other IN ('x', 'y''z')"""
    assert template.fill({MYLOC: ["y'z", "x"]}) == parse(wanted)


def test_a_template_may_have_no_marker_and_a_field_may_be_called_like_it() -> None:
    assert at("x = 1", ["a"]) == parse("x = 1")
    with pytest.raises(FilterSyntaxError):
        at("x IN myloc.y", ["a"])
    assert at("x IN myloc", []).is_empty


def test_a_template_may_make_sense_at_some_places_only() -> None:
    template = "at IN myloc AND at != 'b'"
    assert at(template, "a") == parse("at = 'a'")
    assert at(template, "b").is_empty
    assert at("TRUE", "b").is_full
    with pytest.raises(FilterSyntaxError, match="column 4"):
        at("at ? 1", "a")


@given(graphs, st.lists(st.integers(0, 3), min_size=1, max_size=5), st.integers(0, 2), st.booleans(), st.data())
def test_filters_of_farther_brokers_hold_those_of_nearer_ones(
    graph: Mapping[str, list[str]], more: list[int], around: int, turned: bool, data: st.DataObject
) -> None:
    """F_k ⊇ … ⊇ F_0, also where the template turns the places round; and F_i has what F_0 is after q_i steps."""
    steps = [0, *(sum(more[: i + 1]) for i in range(len(more)))]
    world = World(graph, steps.__getitem__, by_myloc(within(graph, around)))
    template = "x = 1 AND NOT at IN myloc" if turned else "x = 1 AND at IN myloc"
    place = data.draw(st.sampled_from(sorted(graph)))
    filters = [world.filter(template, world.near(place, hop)) for hop in range(len(steps))]
    assert all(far.covers(near) for near, far in pairwise(filters))
    for hop, filter in enumerate(filters):
        for there in ploc(graph, place, steps[hop]):
            assert filter.covers(world.filter(template, frozenset([there])))


def test_places_put_into_the_template_at_once_mean_the_same_if_it_does_not_turn_them_round() -> None:
    world = World(SQUARE, lambda hop: hop, by_myloc(within(SQUARE, 1)))
    template = "service = 'parking' AND location IN myloc"
    assert world.filter(template, frozenset("ab")) == at(template, "abcd")


def test_same_filters_here_are_not_the_same_one_step_farther() -> None:
    """Why brokers stop where `ploc` is the same, and not the filter, as the book's remark would have it."""
    myloc = {"x": "xy", "y": "xy", "p": "p", "q": "q"}
    world = World({"x": "p", "y": "q", "p": "", "q": ""}, lambda hop: hop, by_myloc(myloc.__getitem__))
    near = [world.filter("l IN myloc", world.near(place, 0)) for place in "xy"]
    far = [world.filter("l IN myloc", world.near(place, 1)) for place in "xy"]
    assert near[0] == near[1]
    assert far[0] != far[1]


def test_states_other_than_places() -> None:
    """What I can still afford: with every step I have spent one more."""
    world = World(
        {"3": "2", "2": "1", "1": "0", "0": ""}, lambda hop: hop, lambda text, state: parse(f"{text} <= {state}")
    )
    assert world.filter("price", world.near("2", 0)) == parse("price <= 2")
    assert world.filter("price", world.near("2", 2)) == parse("price <= 2")
    gaining = World({"1": "2", "2": "3", "3": ""}, lambda hop: hop, lambda text, state: parse(f"{text} <= {state}"))
    assert gaining.filter("price", gaining.near("1", 1)) == parse("price <= 2")


def test_too_many_alternatives_become_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldfare.filters.filter.MAX_BRANCHES", 3)
    world = World(dict.fromkeys("123456789", ""), flooded, lambda text, place: parse(f"x{place} = 1"))
    assert world.filter("", frozenset("123")) == parse("x1 = 1 OR x2 = 1 OR x3 = 1")
    assert world.filter("", frozenset("1234")).is_full


def test_reach_grows_with_what_hops_take() -> None:
    steps = reach([1.0, 2.0], [0.5, 0.5], residence=2.0)
    assert [steps(hop) for hop in range(4)] == [0, 1, 2, 4]
    assert [nothing_ahead(hop) for hop in range(3)] == [0, 0, 0]
    assert [flooded(hop) for hop in range(3)] == [0, None, None]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: reach([], [], 1.0),
        lambda: reach([1.0], [1.0, 1.0], 1.0),
        lambda: reach([1.0], [1.0], 0.0),
        lambda: ploc(SQUARE, "z", 1),
        lambda: World({"a": "z"}, nothing_ahead),
        lambda: World(SQUARE, lambda hop: 1),
    ],
)
def test_what_makes_no_sense_is_said(wrong: object) -> None:
    assert callable(wrong)
    with pytest.raises(ValueError, match=r"."):
        wrong()


def test_the_places_of_a_node() -> None:
    places = Places(SQUARE, here=1, ahead=1)
    assert places.near("a") == {"a", "b", "c"}
    places.check("d")
    with pytest.raises(ValueError, match="the movement graph has no place 'hal'; did you mean 'hall'"):
        Places({"hall": [], "yard": []}).check("hal")
    for wrong in (3, "", ["a"]):
        with pytest.raises(ValueError, match="a place is a text"):
            Places().check(wrong)
    Places().check("anywhere")
    assert Places(here=3).near("anywhere") == {"anywhere"}


@given(graphs, st.integers(0, 4), st.integers(0, 3), st.lists(st.integers(0, 6), min_size=1, max_size=20))
def test_neighbours_are_asked_for_the_place_after_the_next_step(
    graph: Mapping[str, list[str]], ahead: int, here: int, ways: list[int]
) -> None:
    """The anchor serves while one more step stays inside; with one step ahead the place is the anchor mostly."""
    places, place, anchor = Places(graph, here, ahead), min(graph), None
    for way in ways:
        anchor = places.anchor(place, anchor)
        asked = ploc(graph, anchor, ahead)
        assert place in asked
        assert not ahead or asked >= {place, *graph[place]}
        place = sorted({place, *graph[place]})[way % (1 + len(set(graph[place]) - {place}))]
