"""Advertisements against their definition, field by field."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.filters import parse
from fieldfare.filters.advertisement import Advertisement

PREDICATES = {"a": ["a = 1", "a > 1", "a BETWEEN 0 AND 2"], "b": ["b = 'x'", "b LIKE '%y'", "EXISTS b"]}
PARTS = [p for group in PREDICATES.values() for p in group]
EVENTS: list[dict[str, object]] = [
    {name: value for name, value in zip("abc", values, strict=True) if value is not None}
    for values in itertools.product([None, 0, 1, 2, 5], [None, "x", "zy", 3], [None, 1])
]
texts = st.sampled_from([*PARTS, *(" AND ".join(pair) for pair in itertools.product(*PREDICATES.values()))])


def determines(text: str, event: dict[str, object]) -> bool:
    """The definition: every attribute of the event satisfies the predicate on it."""
    said = {name: p for name, group in PREDICATES.items() for p in group if p in text}
    return all(name in said and parse(said[name]).matches({name: value}) for name, value in event.items())


@given(texts)
def test_determines(text: str) -> None:
    promise = Advertisement(parse(text))
    for event in EVENTS:
        assert promise.determines(event) == determines(text, event)


@given(texts, texts)
def test_relations(first: str, second: str) -> None:
    a, b = Advertisement(parse(first)), Advertisement(parse(second))
    wanted = parse(second)
    ina, inb = [a.determines(event) for event in EVENTS], [b.determines(event) for event in EVENTS]
    assert a.covers(b) == all(x or not y for x, y in zip(ina, inb, strict=True))
    assert a.intersects(wanted) == any(x and wanted.matches(e) for x, e in zip(ina, EVENTS, strict=True))


@pytest.mark.parametrize(("promise", "asked", "intersects"), [
    ("symbol = 'IBM' AND price > 0", "price < 10", True),
    ("symbol = 'IBM' AND price > 0", "price < 0", False),
    ("symbol = 'IBM' AND price > 0", "volume > 5", False),
    ("symbol = 'IBM' AND price > 0", "price < 10 AND volume > 5", False),
    ("symbol = 'IBM' AND price > 0", "price < 10 AND NOT EXISTS volume", True),
    ("symbol = 'IBM'", "type = 'quote' AND symbol = 'IBM'", True),
    ("EXISTS data", "data.user.id = 7", True),
    ("data.user.id = 7", "EXISTS data.user", True),
])  # fmt: skip
def test_intersects(promise: str, asked: str, intersects: bool) -> None:
    assert Advertisement(parse(promise)).intersects(parse(asked)) is intersects


def test_alternatives_are_advertised_one_by_one() -> None:
    with pytest.raises(ValueError, match="on its own"):
        Advertisement(parse("a = 1 OR b = 1"))


def test_only_fields_can_be_promised() -> None:
    with pytest.raises(ValueError, match="fields only"):
        Advertisement(parse("a * 2 > 3"))
