"""Class filters: covering is assignability, merging is the union of sets of names."""

from __future__ import annotations

from itertools import product

import pytest

from fieldfare.filters import Filter, parse
from fieldfare.filters.type_hierarchy import instance_of

DIRECT = {
    "event": ["quote", "news"],
    "quote": ["stock quote", "bond quote"],
    "stock quote": ["live quote"],
    "news": ["live quote"],  # several superclasses
}
ABOVE = {
    "event": {"event"},
    "quote": {"quote", "event"},
    "news": {"news", "event"},
    "stock quote": {"stock quote", "quote", "event"},
    "bond quote": {"bond quote", "quote", "event"},
    "live quote": {"live quote", "stock quote", "quote", "news", "event"},
}


def of(name: str) -> Filter:
    return instance_of(DIRECT, name)


@pytest.mark.parametrize(("name", "type"), list(product(ABOVE, ABOVE)))
def test_a_class_matches_and_covers_what_is_assignable_to_it(name: str, type: str) -> None:
    assert of(name).matches({"type": type}) is (name in ABOVE[type])
    assert of(name).covers(of(type)) is (name in ABOVE[type])


def test_classes_overlap_if_they_share_a_subclass() -> None:
    assert of("stock quote").overlaps(of("news"))
    assert not of("bond quote").overlaps(of("news"))


def test_merging() -> None:
    # the common superclass is among them
    assert of("quote").merge(of("bond quote")) == of("quote")
    # all direct subclasses, but not the superclass itself: its proper subclasses
    assert of("stock quote").merge(of("bond quote")) == of("quote") - parse("type = 'quote'")
    # the book has no perfect merger here; sets do
    merged = of("bond quote").merge(of("news"))
    assert merged == parse("type IN ('bond quote', 'live quote', 'news')")


def test_content_is_joined_by_and() -> None:
    wide = of("quote") & parse("price > 45")
    assert wide.covers(of("stock quote") & parse("price > 50 AND id = 'IBM'"))
    assert not wide.covers(of("news") & parse("price > 50"))
    assert wide.merge(of("bond quote") & parse("price > 45")) == wide


def test_the_type_may_be_any_field() -> None:
    assert instance_of(DIRECT, "stock quote", "data.kind").matches({"data": {"kind": "live quote"}})


def test_a_circle_ends() -> None:
    assert instance_of({"a": ["b"], "b": ["a"]}, "a") == instance_of({"a": ["b"], "b": ["a"]}, "b")


def test_a_class_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="no class 'qoute'"):
        of("qoute")
