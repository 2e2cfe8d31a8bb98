from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.events import Event, Interval
from fieldfare.events.limits import Limits
from fieldfare.events.values import MISSING
from fieldfare.filters import NOTHING, Filter, FilterSyntaxError, parse
from fieldfare.filters.elements import Below, Has, has
from fieldfare.filters.expressions import UNCERTAIN

CART: dict[str, Any] = {
    "items": [
        {"sku": "a", "qty": 1, "tags": ["x", "y"]},
        {"sku": "b", "qty": 5, "parts": [{"id": 1, "ok": True}, {"id": 2, "ok": False}]},
        "loose",
    ],
    "buyer": {"name": "Ann", "home": {"zip": "1", "city": "B"}},
    "total": 6,
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("items HAS (sku = 'a' AND qty = 1)", True),
        ("items HAS (sku = 'a' AND qty = 5)", False),
        ("items HAS (sku = 'a' AND qty = 5 OR sku = 'b')", True),
        ("items HAS (sku = 'a' AND parts IS MISSING)", True),
        ("items HAS (sku = 'b' AND parts IS MISSING)", False),
        ("items HAS (ANY tags = 'x' AND ANY tags = 'y')", True),
        ("items HAS (tags != 'x')", True),  # a list is not the string
        ("items HAS (NOT ANY tags = 'x' AND sku = 'a')", False),
        ("items HAS (parts HAS (id = 2 AND ok = FALSE) AND sku = 'b')", True),
        ("items HAS (parts HAS (id = 1 AND ok = FALSE) AND sku = 'b')", False),
        ("items HAS (parts HAS (id = 2 AND ok = FALSE) AND sku = 'a')", False),
        ("items.parts HAS (id = 2 AND ok = FALSE)", True),
        ("items HAS (NOT parts HAS (id = 2))", True),
        ("items HAS (qty < LENGTH(sku))", False),
        ("items HAS (TRUE)", True),
        ("buyer HAS (name = 'Ann' AND home.zip = '1')", True),
        ("buyer HAS (name = 'Bob')", False),
        ("buyer HAS (home HAS (zip = '1' AND city = 'B'))", True),
        ("buyer HAS (home HAS (zip = '1' AND city = 'C'))", False),
        ("buyer HAS (home IS OBJECT)", True),
        ("total HAS (x = 1)", False),
        ("total HAS (x IS MISSING)", False),
        ("nothing HAS (x IS MISSING)", False),
        ("NOT nothing HAS (x = 1)", True),
        ("NOT items HAS (sku = 'c')", True),
        ("NOT items HAS (sku = 'a')", False),
    ],
)
def test_vectors(text: str, expected: bool) -> None:
    wanted = parse(text)
    assert wanted.matches(Event(CART)) is expected
    assert (~wanted).matches(Event(CART)) is not expected
    assert parse(str(wanted)) == wanted
    assert parse(str(~wanted)) == ~wanted


def test_an_object_may_be_given_flat() -> None:
    wanted = parse("buyer HAS (name = 'Ann' AND home.zip = '1')")
    assert wanted.matches({"buyer.name": "Ann", "buyer.home.zip": "1"})
    assert not wanted.matches({"buyer.name": "Ann", "buyer.home.zip": "2"})
    assert Has("buyer", parse("x = 1")).evaluate({"buyers": 1}) is MISSING


def test_the_fields_below() -> None:
    below = Below(Event(CART).fields, "buyer")
    assert set(below) == {"name", "home", "home.zip", "home.city"}
    assert len(below) == 4
    assert below["home.zip"] == "1"
    assert "zip" not in below


def test_intervals_are_certain_or_not() -> None:
    wanted = parse("items HAS (price < 10)")
    inside, across, outside = (Event({"items": [{"price": Interval(low, low + 4)}]}) for low in (1, 8, 20))
    assert [wanted.matches(event) for event in (inside, across, outside)] == [True, True, False]
    assert [wanted.matches(event, "covers") for event in (inside, across, outside)] == [True, False, False]
    assert Has("items", parse("price < 10")).evaluate(across.fields) is UNCERTAIN


def test_elements_may_be_larger_than_the_usual_limits() -> None:
    large = {"items": [{"x": {str(i): i for i in range(100_000)}, "a": 1}]}
    event = Event(large, limits=Limits(fields=1_000_000))
    assert parse("items HAS (a = 1 AND x.7 = 7)").matches(event)


def test_what_follows_for_the_single_fields() -> None:
    assert str(parse("items HAS (a = 1 AND ANY b = 2 AND c IS MISSING AND d != 3 AND ALL e > 4)")) == (
        "ANY items.a = 1 AND ANY items.b = 2 AND EXISTS items.d AND EXISTS items.e"
        " AND items HAS (a = 1 AND ANY b = 2 AND c IS MISSING AND d != 3 AND ALL e > 4)"
    )


def test_this_or_that_is_one_with_this_or_one_with_that() -> None:
    assert parse("i HAS (a = 1 AND b = 2 OR c = 3)") == parse("i HAS (a = 1 AND b = 2) OR i HAS (c = 3)")
    assert has("i", NOTHING) == NOTHING


def test_covering() -> None:
    wide, narrow = parse("i HAS (a > 1 OR b = 2)"), parse("i HAS (a > 5 AND c = 1)")
    assert wide.covers(narrow)
    assert not narrow.covers(wide)
    assert parse("ANY i.a > 1").covers(narrow)
    assert not parse("j HAS (a > 1)").covers(narrow)
    assert parse("i HAS (j HAS (x > 1))").covers(parse("i HAS (j HAS (x > 2 AND y = 1))"))


def test_has_is_a_condition_and_no_value() -> None:
    with pytest.raises(FilterSyntaxError, match="expected a value, found the condition i HAS"):
        parse("i HAS (a = 1) = TRUE")


def test_fields() -> None:
    assert parse("i HAS (a = 1 AND j HAS (b = 2))").fields() == {"i", "i.a", "i.j", "i.j.b"}


names = st.sampled_from("ab")
leaves = st.sampled_from([1, 2, None, [1, 2], [], "x"])
objects = st.recursive(
    st.dictionaries(names, leaves, max_size=2),
    lambda inner: st.dictionaries(names, leaves | inner | st.lists(inner, max_size=3), max_size=2),
    max_leaves=8,
)
predicates = st.sampled_from(
    ["{} = 1", "{} != 1", "ANY {} = 1", "ANY {} != 1", "ALL {} = 1", "{} IS MISSING", "EXISTS {}", "{} IS OBJECT"]
)
conditions = st.recursive(
    st.builds(str.format, predicates, st.sampled_from(["a", "b", "a.b", "b.a"])),
    lambda inner: st.one_of(
        st.builds("({}) AND ({})".format, inner, inner),
        st.builds("({}) OR ({})".format, inner, inner),
        st.builds("NOT ({})".format, inner),
        st.builds("{} HAS ({})".format, st.sampled_from(["a", "b", "a.b"]), inner),
    ),
    max_leaves=4,
)


def meaning(text: str) -> Filter | None:
    try:
        return parse(text)
    except FilterSyntaxError:  # nothing can match
        return None


def elements_at(event: dict[str, Any], path: str) -> list[dict[str, Any]]:
    """The objects at a path, lists looked through on the way."""
    found: list[Any] = [event]
    for step in path.split("."):
        found = [item[step] for item in flattened(found) if isinstance(item, dict) and step in item]
    return [item for item in flattened(found) if isinstance(item, dict)]


def flattened(items: list[Any]) -> list[Any]:
    return [inner for item in items for inner in (flattened(item) if isinstance(item, list) else [item])]


@given(st.sampled_from(["a", "b", "a.b"]), conditions, st.lists(objects, min_size=1, max_size=4))
def test_has_means_that_some_element_matches(path: str, condition: str, events: list[dict[str, Any]]) -> None:
    inner, wanted = meaning(condition), meaning(f"{path} HAS ({condition})")
    if inner is None or wanted is None:
        return
    for event in events:
        expected = any(inner.matches(element) for element in elements_at(event, path))
        assert wanted.matches(event) is expected
        assert (~wanted).matches(event) is not expected


@given(conditions, conditions, st.lists(objects, min_size=1, max_size=4))
def test_the_text_parses_back_and_covering_is_safe(one: str, other: str, events: list[dict[str, Any]]) -> None:
    first, second = meaning(one), meaning(other)
    if first is None or second is None:
        return
    for made in (first, ~first, first & second, first | second, first - second):
        assert made.is_empty or parse(str(made)) == made
    if first.covers(second):
        assert not any(second.matches(event) and not first.matches(event) for event in events)
