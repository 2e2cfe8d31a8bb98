"""Events that are still MessagePack match as events with fields do, and their other fields are never made."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.matching.match.test_json_reader import FILTERS
from tests.matching.strategies import filters, modes, trees

from fieldfare.events import Event, encoded, msgpack
from fieldfare.events.encoded import EncodedEvent
from fieldfare.filters import Filter
from fieldfare.filters.constraint import Mode
from fieldfare.matching.index import Index
from fieldfare.matching.match.batch_rows import MANY

NAMED = [*FILTERS, '"a\\b" = 1', "é = 1", "x.y = 1", "NOT EXISTS x.y", "a.b.c = 2"]
INDEXES = {
    "few": Index(enumerate(NAMED[:9]), kernels="lazy"),
    "all": Index(enumerate(FILTERS), kernels="numba"),
    "numpy": Index(enumerate(FILTERS), kernels="numpy"),
    "unwritable names": Index(enumerate(NAMED), kernels="numba"),
    "wide": Index(enumerate([*FILTERS, *(f"n{n} = 1" for n in range(70))]), kernels="numba"),
}
ROWS: list[dict[str, Any]] = [
    {"a": 1, "z": {}}, {"a": [1]}, {"a": {"b": 1}}, {"b": {"c": 1}}, {"b": [{"c": 1}, {"c": 2}]}, {"b": {"c": {"d": "x"}}},
    {"b": {"c": None}}, {"b": {"c": b"x"}}, {"b": b"x", "z": {}}, {"b": "x", "z": []}, {"b": [], "a": {}}, {"u": {"x": 1}},
    {"u": [{"x": 1}]}, {"z": [], "s": "axb", "k": 2}, {"z": {}, "a\\b": 1, "é": 1}, {"a": {"b": {"c": 2}}, "x": {"y": 1}},
]  # fmt: skip


def encoded_events(given_trees: list[dict[str, object]]) -> tuple[list[Event], list[Event]]:
    """Events with fields, and the same events still encoded: each has a nested object."""
    whole = [Event({**tree, "nested": {"x": 1}}) for tree in given_trees]
    return whole, [msgpack.decode(msgpack.encode(event)) for event in whole]


def check(index: Index[int], whole: list[Event], still: list[Event], mode: Mode = "overlaps") -> None:
    expected = [sorted(index.match(event, mode)) for event in whole]
    assert [sorted(index.match(event, mode)) for event in still] == expected
    assert [sorted(found) for found in index.match_many(still, mode)] == expected
    assert [sorted(found) for found in index.match_many(still * MANY, mode)] == expected * MANY


@given(st.lists(filters(), max_size=4), st.lists(trees, max_size=3), modes)
def test_encoded_events_match_as_events_with_fields(
    wanted: list[Filter], given_trees: list[dict[str, object]], mode: Mode
) -> None:
    for kernels in ("lazy", "numba"):
        check(Index(enumerate(wanted), kernels=kernels), *encoded_events(given_trees), mode)


NAMES = st.sampled_from(["a", "b", "c", "d", "k", "s", "u", "x", "y", "time", "é", "a\\b", "n1"])
NESTED = st.dictionaries(
    NAMES,
    st.recursive(
        st.sampled_from([1, 2, 0.5, "x", "axb", "2026-11-15T09:30:00Z", b"x", None, True]),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
        max_leaves=6,
    ),
    max_size=5,
)


def test_nested_events_of_all_kinds_match_as_events_with_fields() -> None:
    for index in INDEXES.values():
        check(index, *encoded_events(ROWS))


@given(st.sampled_from(sorted(INDEXES)), st.lists(NESTED, min_size=1, max_size=3), modes)
def test_nested_events_match_as_events_with_fields(name: str, given_trees: list[dict[str, Any]], mode: Mode) -> None:
    check(INDEXES[name], *encoded_events(given_trees), mode)


def test_fields_that_no_filter_looks_at_are_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: object) -> Any:
        raise AssertionError("all fields were made")

    monkeypatch.setattr(encoded, "frozen_tree", refuse)
    event = msgpack.from_json(b'{"a": 1, "b": {"c": "x", "d": [[1, 2]]}, "z": {"y": [1]}}')
    assert type(event) is EncodedEvent
    index: Index[int] = Index(enumerate(["a = 1", "b.c = 'x'", "b.c = 'y'"]), kernels="lazy")
    assert index.match(event) == [0, 1]
    index.add_many((n, f"k = {n}") for n in range(3, 20))
    index.add(20, "z.x = 1 OR a > 0")
    assert sorted(index.match(event)) == [0, 1, 20]
    assert [sorted(found) for found in index.match_many([event] * MANY)] == [[0, 1, 20]] * MANY


@pytest.mark.parametrize("kernels", ["lazy", "numba"])
def test_a_filter_on_a_new_field_is_seen_at_once(kernels: str) -> None:
    event = msgpack.from_json(b'{"a": 1, "b": {"c": "x"}, "z": {"y": 5}}')
    index: Index[int] = Index([(0, "a = 1")], kernels=kernels)
    assert index.match(event) == [0]
    index.add(1, "z.y = 5")
    assert sorted(index.match(event)) == [0, 1]
    index.add(2, "b.c LIKE 'x%'")
    assert [sorted(found) for found in index.match_many([event] * MANY)] == [[0, 1, 2]] * MANY
