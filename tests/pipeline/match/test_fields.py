"""Columns become the fields that they were made of, whatever is nested in what; none of it needs Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql.pandas.types import to_arrow_type
from tests.events import strategies as some

from fieldfare import Event, Interval, parse
from fieldfare.events import EventError, arrow, json
from fieldfare.pipeline.lake.history import events_of
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare.pipeline.match.fields import as_batch
from fieldfare.pipeline.match.operator import matches
from fieldfare.pipeline.match.pairs import Mode
from fieldfare.pipeline.table.json_columns import Decoder
from fieldfare.pipeline.table.schema import inferred

names = st.sampled_from(["a", "b", "low", "high", "closed", "a.b"])
signs = st.sampled_from(["on Sundays", "x"])
kinds: list[st.SearchStrategy[Any]] = [st.integers(0, 3), st.booleans(), signs, some.times, some.datas]
nested = st.recursive(
    st.one_of(*kinds, some.intervals()),
    lambda inner: (
        st.lists(inner | st.none(), max_size=3)
        | st.one_of(*(st.lists(kind, max_size=3) for kind in [*kinds, some.intervals(st.integers(0, 9))]))
        | st.dictionaries(names, inner, max_size=3)
        | st.fixed_dictionaries({"low": st.integers(0, 3), "high": st.integers(0, 3), "closed": signs})
        | st.lists(st.fixed_dictionaries({}, optional={"a": st.integers(0, 3), "b": inner}), max_size=2)
    ),
    max_leaves=8,
)


def events(trees: list[dict[str, Any]]) -> list[Event]:
    found = []
    for tree in trees:
        try:
            found.append(Event({**tree, "n": 1}))
        except EventError:  # a path that is there twice, once with a dot in a name
            continue
    return found


def told(value: Any) -> Any:
    """A value without what columns cannot tell from missing: nulls in objects."""
    if isinstance(value, Mapping):
        return {name: told(one) for name, one in value.items() if one is not None}
    return tuple(map(told, value)) if isinstance(value, tuple) else value


def columns(given: Sequence[Event]) -> pa.StructArray:
    kind = to_arrow_type(inferred(given), timezone="UTC")
    return Decoder(kind)(pa.array([json.encode(event).decode() for event in given], pa.string()))


@given(st.lists(st.dictionaries(names, nested, max_size=4), max_size=4).map(events))
def test_an_event_is_the_same_after_it_was_columns(given: list[Event]) -> None:
    found = columns(given)
    good = found.field("reason").is_null()  # where others have a field of another kind, an event may be refused
    expected = [Event(told(event.tree)) for event, kept in zip(given, good.to_pylist(), strict=True) if kept]
    read = found.filter(good)
    assert list(events_of(read.field("fields"), read.field("rest").to_pylist())) == expected


@pytest.mark.parametrize(
    "value",
    [
        [{"name": "a", "spec": {"cpu": 4, "at": [{"zone": "x"}, None]}}, None],
        [Interval(1, 2), None, Interval(3, None, "(]")],
        [{"a": Interval("x", "y", "[)")}],
        [[{"a": 1}], [{"a": 2}, {"a": 3}]],
        {"low": 5, "high": 20},
        {"low": 1, "high": 2, "closed": "on Sundays"},
        {"low": 1, "high": 2, "closed": "[]"},
        {"low": 1, "high": "x", "closed": "[]"},
        [{"low": 1, "high": 2, "closed": "[]"}],
    ],
)
def test_what_is_nested_is_matched_and_published_as_in_a_node(value: object, tmp_path: Path) -> None:
    event = Event({"v": value, "n": 1})
    found = columns([event, Event({"n": 2})])
    fields, rest = found.field("fields"), found.field("rest")
    assert found.field("reason").null_count == 2
    assert list(events_of(fields, rest.to_pylist())) == [event, Event({"n": 2})]
    filters = [
        *("v HAS (name = 'a')", "ANY v.spec.cpu = 4", "ANY v > 2", "ANY v.a = 2", "v HAS (PATH('//at', zone = 'x'))"),
        *("v.low < 10", "v.high = 2", "v.closed = 'on Sundays'", "v > 0", "EXISTS v", "NOT EXISTS v", "ANY v.low = 1"),
    ]
    assert matched(tmp_path, filters, fields, rest, mode="overlap") == brute(filters, [event, Event({"n": 2})])


DAY = date(2026, 6, 1)
NOON = datetime(2026, 6, 1, 12)  # noqa: DTZ001 - as a timestamp without a zone is
MIDNIGHT = datetime(2026, 6, 1, tzinfo=UTC)


@pytest.mark.parametrize(
    ("given", "event"),
    [
        ([Decimal("2.5"), None], [2.5, None]),
        ([DAY, None], [MIDNIGHT, None]),
        ([NOON], [NOON.replace(tzinfo=UTC)]),
        ([{"a": Decimal(2), "b": {"c": DAY}}, None], [{"a": 2, "b": {"c": MIDNIGHT}}, None]),
        ([[Decimal("2.5")], None, []], [[2.5], None, []]),
        ({"low": DAY, "high": DAY + timedelta(days=1), "closed": "[)"}, Interval(MIDNIGHT, MIDNIGHT + timedelta(1), "[)")),
        ({"low": NOON, "high": None, "closed": None}, Interval(NOON.replace(tzinfo=UTC), None)),
        ({"low": Decimal("2.5"), "high": Decimal("3.5"), "closed": "()"}, Interval(2.5, 3.5, "()")),
        ({"low": 2, "high": 3}, {"low": 2, "high": 3}),
    ],
)  # fmt: skip
def test_decimals_dates_and_times_without_a_zone_are_values_everywhere(
    given: object, event: object, tmp_path: Path
) -> None:
    array = _typed(given)
    assert arrow.from_batch(as_batch(array, None, intervals=True)) == [Event({"v": event, "n": 1}), Event({"n": 2})]
    behind = as_batch(
        pa.concat_arrays([array, array]).slice(1, 2), None, intervals=True
    )  # offsets that do not begin at 0
    assert arrow.from_batch(behind) == [Event({"n": 2}), Event({"v": event, "n": 1})]
    filters = ["ANY v > 1", "v > 1", "v HAS (a > 1)", "v.low > 1", "ANY v > TIMESTAMP '2026-01-01T00:00:00Z'",
               "v > TIMESTAMP '2026-01-01T00:00:00Z'"]  # fmt: skip
    expected = brute(filters, [Event({"v": event, "n": 1}), Event({"n": 2})])
    assert matched(tmp_path, filters, array, mode="overlap") == expected
    assert any(expected)


def _typed(value: object) -> pa.Array:
    rows = [{"v": value, "n": 1}, {"v": None, "n": 2}]
    kind = pa.array(rows).type
    if isinstance(value, dict) and value.get("high", 0) is None:  # Arrow cannot guess the type of a null
        low = kind.field("v").type.field("low").type
        kind = pa.struct({"v": pa.struct({"low": low, "high": low, "closed": pa.string()}), "n": pa.int64()})
    return pa.array(rows, kind)


@pytest.mark.parametrize(
    "value",
    [(1.0, 2.0, "yes"), (3.0, 2.0, "[]"), (2.0, 2.0, "[)"), (None, None, "[]"), (float("nan"), 2.0, "[]")],
)
def test_ends_that_make_no_interval_are_a_missing_field(value: tuple[object, ...], tmp_path: Path) -> None:
    ends = pa.struct({"low": pa.float64(), "high": pa.float64(), "closed": pa.string()})
    given = pa.array([{"v": dict(zip(("low", "high", "closed"), value, strict=True)), "n": 1}], pa.struct({"v": ends, "n": pa.int64()}))  # fmt: skip
    filters = ["v > 0", "NOT EXISTS v", "n = 1", "q = 2"]
    found = matched(tmp_path, filters, given, pa.array(['{"q": 2}']), mode="overlap")
    assert found == brute(filters, [Event({"n": 1, "q": 2})])


def test_a_path_below_has_looks_at_all_keys_of_a_map(tmp_path: Path) -> None:
    kind = pa.map_(pa.string(), pa.struct({"z": pa.struct({"q": pa.int64()}), "day": pa.date32()}))
    value = [("k", {"z": {"q": 1}, "day": DAY})]
    deep = pa.struct({"m": kind, "s": pa.struct({"m": kind}), "l": pa.list_(pa.struct({"m": kind})), "o": kind})
    given = pa.array([{"m": value, "s": {"m": value}, "l": [{"m": value}], "o": value}], deep)
    filters = ["m HAS (PATH('//z', q = 1))", "s HAS (PATH('//z', q = 1))", "l HAS (PATH('//z', q = 1))",
               "m HAS (PATH('//z', q = 2))", "EXISTS m", "ANY l.m.k.z.q = 1", "o.k.z.q = 1"]  # fmt: skip
    tree = {"k": {"z": {"q": 1}, "day": MIDNIGHT}}
    expected = brute(filters, [Event({"m": tree, "s": {"m": tree}, "l": [{"m": tree}], "o": tree})])
    assert matched(tmp_path, filters, given) == expected
    assert len(expected[0]) == 6
    other = as_batch(given, ["o.x"])  # what no filter looks at is left out
    assert other.schema.field("o").type == pa.struct([pa.field("x", pa.struct([pa.field("z", pa.struct([("q", pa.int64())])), pa.field("day", pa.timestamp("us", "UTC"))]))])  # fmt: skip


def matched(path: Path, filters: list[str], fields: Any, rest: Any = None, mode: Mode = "point") -> list[set[str]]:
    version = catalogue.write_version(path, [Subscription(text, text) for text in filters])
    found = matches(catalogue.opened(str(path), version), fields, rest, mode=mode)
    return [{one["subscription"] for one in row["matches"]} for part in found for row in part.to_pylist()]


def brute(filters: list[str], events: list[Event]) -> list[set[str]]:
    return [{text for text in filters if parse(text).matches(event)} for event in events]
