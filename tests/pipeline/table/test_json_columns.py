"""The quick way and the exact way of decoding give the same; no text is lost and none is fatal."""

from __future__ import annotations

import math
import pickle
from typing import Any

import msgspec
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.events import strategies as some

from fieldfare.events import Event, Limits, cloudevents, json
from fieldfare.pipeline.table.event_columns import TIME, Unknown
from fieldfare.pipeline.table.json_columns import Decoder

ENDS = pa.struct({"low": pa.float64(), "high": pa.float64(), "closed": pa.string()})
FIELDS = pa.struct(
    {
        "id": pa.string(),
        "type": pa.string(),
        "time": TIME,
        "a": pa.int64(),
        "b": pa.float64(),
        "c": pa.string(),
        "d": pa.bool_(),
        "e": pa.list_(pa.string()),
        "f": pa.struct({"a": pa.int64(), "at": TIME, "g": pa.list_(pa.int64())}),
        "h": pa.binary(),
        "i": ENDS,
        "j": pa.list_(pa.struct({"a": pa.int64()})),
        "data": pa.struct({"a": pa.int64(), "c": pa.string()}),
    }
)
NAMES = [field.name for field in FIELDS]

times = some.times.map(lambda time: time.isoformat()) | st.sampled_from(
    [
        "2026-11-15T09:30:00Z",
        "2026-11-15t09:30:00.1234567z",
        "0001-01-01T00:00:00+01:00",
        "0000-01-01T00:00:00Z",
        "9999-12-31T23:59:59-12:00",
        "9999-12-31T23:59:59.999999Z",
        "noon",
    ]
)
scalars = (
    some.integers
    | st.sampled_from([2**63, -(2**70), 1.5, 2.0, 2.0**63])
    | some.texts
    | times
    | st.booleans()
    | st.none()
)
members = st.recursive(
    scalars | st.sampled_from([{"$bytes": "QUI="}, {"$interval": [1, 2]}, {"$time": "x"}, {"$float": "NaN"}]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*NAMES, "x"]), inner, max_size=3),
    max_leaves=6,
)
fitting = st.fixed_dictionaries(
    {},
    optional={
        "id": some.texts,
        "type": some.texts,
        "source": some.texts,
        "specversion": st.sampled_from(["1.0", "0.3"]),
        "time": times,
        "a": some.integers,
        "b": st.integers(-(2**54), 2**54) | st.floats(allow_nan=False, allow_infinity=False),
        "c": some.texts,
        "d": st.booleans() | st.none(),
        "e": st.lists(some.texts | st.none(), max_size=3),
        "f": st.fixed_dictionaries({}, optional={"a": some.integers, "at": times, "g": st.lists(st.integers(0, 9))}),
        "data": st.fixed_dictionaries({}, optional={"a": st.integers(0, 9), "c": some.texts, "x": st.integers()}),
        "x": scalars,
        "subject": some.texts,
    },
)
objects = st.dictionaries(st.sampled_from([*NAMES, "x", "source", "$valid"]), members, max_size=5)
texts = st.builds(msgspec.json.encode, fitting | objects)
twice = st.builds(lambda one, two: one[:-1] + b"," + two[1:], texts, texts)
cut = st.builds(lambda text, at: text[: at % (len(text) + 1)], texts, st.integers(0, 999))
garbage = st.binary(max_size=20) | st.sampled_from(
    [
        b"",
        b"[]",
        b"null",
        b'"text"',
        b'{"a": 1e999}',
        b'{"b": NaN}',
        b'{"a": 1' + b"0" * 5000 + b"}",
        b"[" * 3000,
        b'{"f":' * 3000,
        b'{"c": "\\ud800"}',
        b'{"c": "\xff"}',
        b'{"a" : 1, "a": 2, "c": "\\":"}',
        b'{"c": "say \\"yes\\""}',
    ]
)


def same(one: object, other: object) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or (math.isnan(one) and math.isnan(other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other


def meaning(row: dict[str, Any]) -> dict[str, Any]:
    """A row with its rest decoded: the same value may be written in two ways."""
    return row | {"rest": row["rest"] and json.decode(row["rest"])}


@given(
    st.lists(texts | fitting.map(msgspec.json.encode) | twice | cut | garbage, max_size=6),
    st.sampled_from(["keep", "quarantine", "drop"]),
)
def test_quick_and_exact_agree(rows: list[bytes], unknown: Unknown) -> None:
    decoder = Decoder(FIELDS, unknown)
    found = decoder(pa.array(rows, pa.binary()).view(pa.string()))
    exact = pa.array([decoder.row(row) for row in rows], decoder.result)
    assert found.type == decoder.result
    found.validate(full=True)
    for row, quick, slow in zip(rows, found.to_pylist(), exact.to_pylist(), strict=True):
        assert same(meaning(quick), meaning(slow)), row


@given(some.events)
def test_fields_and_rest_are_the_whole_event(event: Event) -> None:
    row = Decoder(pa.struct({"id": pa.string()})).row(json.encode(event))
    if row["reason"] is None:
        left = json.decode(row["rest"]) if isinstance(row["rest"], bytes) else Event()
        told = {name: value for name, value in row["fields"].items() if value is not None}  # type: ignore[attr-defined]
        expected = {name: value for name, value in event.tree.items() if name != "id" or value is not None}
        assert some.same(Event({**told, **left.tree}, valid=left.valid), Event(expected, valid=event.valid))


def read(decoder: Decoder, *rows: bytes | str) -> list[dict[str, Any]]:
    return decoder(pa.array(list(rows))).to_pylist()  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("text", "field", "reason"),
    [
        ('{"a": "n/a"}', "a", "declared as a long, and it is the string 'n/a'"),
        ('{"a": 1.5}', "a", "declared as a long, and it is the number 1.5"),
        ('{"a": true}', "a", "declared as a long, and it is the bool True"),
        ('{"a": 9223372036854775808}', "a", "the integer 9223372036854775808 does not fit in 64 bits"),
        ('{"b": 9007199254740993}', "b", "declared as a double, and it is the number 9007199254740993"),
        ('{"f": {"at": "noon"}}', "f.at", "declared as a timestamp, and it is the string 'noon'"),
        ('{"e": "x"}', "e", "declared as a list, and it is the string 'x'"),
        (
            '{"f": {"at": "9999-12-31T23:59:59-12:00"}}',
            "f.at",
            "declared as a timestamp, and it is the string '9999-12-31T23:59:59-12:00'",
        ),
        ('{"i": 5}', "i", "declared as an interval, and it is the number 5"),
        (
            '{"i": {"low": 1, "high": 2, "closed": "on Sundays"}}',
            "i",
            "declared as an interval, and closed must be one of '[]', '[)', '(]', '()', not 'on Sundays'",
        ),
        (
            '{"i": {"low": 3, "high": 2, "closed": "[]"}}',
            "i",
            "declared as an interval, and the interval Interval('[3.0, 2.0]') is empty",
        ),
        ('{"i": {"low": 1}}', "i", "declared as an interval, and it is the object {'low': 1}"),
        ('{"a": 1, "a": 2}', "a", "named twice"),
        ('{"a": 1', "", "not JSON: Expecting ',' delimiter (line 1, column 8)"),
        ('{"specversion": "1.0"}', "id", "a CloudEvent needs it"),
    ],
)
def test_a_bad_event_says_why(text: str, field: str, reason: str) -> None:
    (row,) = read(Decoder(FIELDS), text)
    assert (row["field"], row["reason"], row["fields"]) == (field, reason, None)


def test_an_object_may_say_a_declared_interval() -> None:
    said, tagged = read(
        Decoder(FIELDS), '{"i": {"low": 1, "high": null, "closed": "(]"}}', '{"i": {"$interval": [1, 2, "[)"]}}'
    )
    assert said["fields"]["i"] == {"low": 1.0, "high": None, "closed": "(]"}
    assert tagged["fields"]["i"] == {"low": 1.0, "high": 2.0, "closed": "[)"}


def test_limits_hold_on_the_quick_way() -> None:
    decoder = Decoder(FIELDS, limits=Limits(bytes=100, depth=2, fields=4, string=5))
    rows = read(
        decoder,
        '{"c": "12345"}',
        '{"c": "123456"}',
        '{"f": {"g": [1]}}',
        '{"e": ["", "", "", "", ""]}',
        '{"c":"' + "x" * 99 + '"}',
    )
    assert [row["reason"] is None for row in rows] == [True, False, False, False, False]


def test_undeclared_attributes_are_found_and_kept() -> None:
    event = cloudevents.encode(Event({"sum": 5}), id="7", source="/till", type="sale")
    quick, none = read(
        Decoder(pa.struct({"sum": pa.int64()})), '{"id": "7", "time": "2026-11-15T09:30:00Z", "sum": 1}', '{"sum": 2}'
    )
    assert (quick["id"], quick["time"].isoformat(), quick["source"]) == ("7", "2026-11-15T09:30:00+00:00", None)
    assert msgspec.json.decode(quick["rest"]) == {"id": "7", "time": "2026-11-15T09:30:00Z"}
    assert none["rest"] is None
    (cloud,) = read(Decoder(pa.struct({"data": pa.struct({"sum": pa.int64()})})), event)
    assert (cloud["id"], cloud["source"], cloud["type"], cloud["fields"]) == (
        "7",
        "/till",
        "sale",
        {"data": {"sum": 5}},
    )


def test_few_bad_events_do_not_make_the_good_ones_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    decoder = pickle.loads(pickle.dumps(Decoder(FIELDS)))
    one_by_one: list[bytes | None] = []
    exact = Decoder.row

    def row(self: Decoder, text: bytes | None) -> dict[str, object]:
        one_by_one.append(text)
        return exact(self, text)

    monkeypatch.setattr(Decoder, "row", row)
    rows = [b'{"a": %d, "e": ["x"], "f": {"a": 1}, "x": 5}' % number for number in range(3000)]
    rows[1234] = b"{"
    found = read(decoder, *rows)
    assert one_by_one == [b"{"]
    assert [row["fields"] and row["fields"]["a"] for row in found] == [*range(1234), None, *range(1235, 3000)]
