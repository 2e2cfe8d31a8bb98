"""JSON: round trips, every way in which a text can be wrong, and the limits."""

from __future__ import annotations

import contextlib
import json as stdlib
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.events.strategies import events, same

from fieldfare.events import Event, EventError, Interval, Limits, json

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@given(events)
def test_what_is_written_is_read(event: Event) -> None:
    text = json.encode(event)
    again = json.decode(text)
    assert same(again, event)
    assert json.encode(again) == text


@given(events)
def test_it_is_json_whatever_its_layout(event: Event) -> None:
    tree = stdlib.loads(json.encode(event))
    for text in (
        stdlib.dumps(tree, indent=1),
        stdlib.dumps(tree, ensure_ascii=False),
        stdlib.dumps(tree, separators=(" , ", "\n:\t")),
    ):
        assert same(json.decode(text), event)
        assert same(json.decode(text.encode()), event)


json_trees = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab", max_size=1), inner, max_size=3),
)


@given(st.dictionaries(st.sampled_from(["a", "b", "c"]), json_trees))
def test_plain_json_is_read_as_the_standard_library_reads_it(tree: dict[str, object]) -> None:
    assert stdlib.loads(json.encode(json.decode(stdlib.dumps(tree)))) == tree


@given(st.binary(max_size=30) | st.text('{}[]":,ab 0-\\u$', max_size=30))
def test_nothing_but_an_event_error_comes_out(data: bytes | str) -> None:
    with contextlib.suppress(EventError):
        json.decode(data)


keys = st.sampled_from(['"a"', '"\\u0061"', '"b"', '":"', '"\\":"', '""', '"a "'])
spaces = st.text(" \t\r\n", max_size=1)
texts = st.recursive(
    st.sampled_from(["1", '"x"', '":"', '"\\":"', '"a\\\\"', '"\\" :"', "[]", "null"]),
    lambda inner: st.lists(st.tuples(keys, spaces, spaces, inner), max_size=3).map(
        lambda members: "{" + ",".join(f"{key}{left}:{right}{value}" for key, left, right, value in members) + "}"
    ),
)


@given(texts)
def test_equal_keys_are_found_wherever_they_are(text: str) -> None:
    doubled = False

    def look(pairs: list[tuple[str, object]]) -> object:
        nonlocal doubled
        doubled |= len(dict(pairs)) < len(pairs)
        return None

    text = f'{{"top":{text}}}'
    stdlib.loads(text, object_pairs_hook=look)
    if doubled:
        with pytest.raises(EventError, match="named twice"):
            json.decode(text)
    else:
        json.decode(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"$time": "2026-11-15T13:00:00.5+01:00"}', NOON.replace(microsecond=500000)),
        ('{"$bytes": "AQI="}', b"\x01\x02"),
        ('{"$float": "Infinity"}', float("inf")),
        ('{"$interval": [1, 2]}', Interval(1, 2)),
        ('{"$interval": [1, null, "(]"]}', Interval(1, None, "(]")),
        ('{"$interval": [{"$float": "-Infinity"}, 2.5, "[)"]}', Interval(float("-inf"), 2.5, "[)")),
        ('{"$interval": [null, {"$time": "2026-11-15T12:00:00Z"}]}', Interval(None, NOON)),
        ('{"$interval": [{"$bytes": "AA=="}, {"$bytes": "AQ=="}]}', Interval(b"\0", b"\1")),
        ('{"$ref": 1}', {"$ref": 1}),
        ('{"$time": 1, "zone": 2}', {"$time": 1, "zone": 2}),
        ('{"$literal": {"$time": {"$bytes": "AQI="}}}', {"$time": b"\x01\x02"}),
        ('{"$literal": {"$literal": 1}}', {"$literal": 1}),
        ("-0.0", -0.0),
        ("9223372036854775807", 2**63 - 1),
        ("1e2", 100.0),
        ('"\\ud83d\\ude00"', "\U0001f600"),
    ],
)
def test_tags_and_numbers(text: str, value: object) -> None:
    assert same(json.decode(f'{{"a": {text}}}'), Event({"a": value}))


def test_time_is_a_timestamp_and_other_fields_only_if_asked() -> None:
    text = '{"time": "2026-11-15T12:00:00Z", "at": "2026-11-15T12:00:00Z", "in": {"at": "2026-11-15T12:00:00Z"}}'
    assert json.decode(text)["time"] == NOON
    assert json.decode(text)["at"] == "2026-11-15T12:00:00Z"
    assert json.decode(text, timestamps=["in.at"])["in.at"] == NOON
    assert json.decode(text, timestamps=())["time"] == "2026-11-15T12:00:00Z"
    assert json.decode('{"time": "noon"}')["time"] == "noon"
    assert json.decode('{"time": "2026-W46-7T12:00Z"}')["time"] == "2026-W46-7T12:00Z"


def test_how_time_and_the_validity_period_are_written() -> None:
    event = Event({"time": NOON, "at": NOON}, valid=Interval(NOON, None, "[)"))
    assert stdlib.loads(json.encode(event)) == {
        "time": "2026-11-15T12:00:00Z",
        "at": {"$time": "2026-11-15T12:00:00Z"},
        "$valid": ["2026-11-15T12:00:00Z", None, "[)"],
    }
    assert json.decode('{"$valid": [null, "2026-11-15T12:00:00Z"]}').valid == Interval(None, NOON)


BAD = [
    ('{"a": 1, "a": 1}', "field 'a': named twice"),
    ('{"a": {"b": 1, "b": 2}}', "field 'a.b': named twice"),
    ('{"a": [{"b": 1}, {"b": 1, "b": 2}]}', "field 'a.b': named twice"),
    ('{"a" :1,"a":2}', "field 'a': named twice"),
    ('{"a":1,"\\u0061":2}', "field 'a': named twice"),
    ('{"a\\"":1,"a\\"":2,"b":":"}', "field 'a\"': named twice"),
    ('{"a": {"b": 9223372036854775808}}', "field 'a.b': the integer 9223372036854775808 does not fit in 64 bits"),
    ('{"a": -9223372036854775809}', "field 'a': the integer -9223372036854775809 does not fit in 64 bits"),
    ('{"a": ' + "1" * 5000 + "}", f"field 'a': the integer {'1' * 40} does not fit in 64 bits"),
    ('{"a": [1e400]}', "field 'a': the number 1e400 is too large for a float"),
    ('{"a": NaN}', 'field \'a\': NaN is not JSON; write {"$float": "NaN"}'),
    ('{"a": -Infinity}', 'field \'a\': -Infinity is not JSON; write {"$float": "-Infinity"}'),
    (b'{"a": {"b": "\xff"}}', "field 'a.b': the string is not Unicode: bytes that are not UTF-8, or a lone surrogate"),
    (b'{"\xff": 1}', "the field name '\\udcff' is not Unicode: bytes that are not UTF-8, or a lone surrogate"),
    ('{"a": "\\ud800"}', "field 'a': the string is not Unicode: bytes that are not UTF-8, or a lone surrogate"),
    ('{"a": "\ud800"}', "field 'a': the string is not Unicode: bytes that are not UTF-8, or a lone surrogate"),
    ("[1]", "the event must be a JSON object"),
    ("null", "the event must be a JSON object"),
    ("", "not JSON: Expecting value (line 1, column 1)"),
    ('{"a": 1', "not JSON: Expecting ',' delimiter (line 1, column 8)"),
    ('{"a": 1} x', "not JSON: Extra data (line 1, column 10)"),
    ("{'a': 1}", "not JSON: Expecting property name enclosed in double quotes (line 1, column 2)"),
    ("[" * 100_000, "nested deeper than the limit of 32"),
    ('{"a":' * 100_000, "nested deeper than the limit of 32"),
    ('{"a": ' + "[" * 50 + "]" * 50 + "}", "field 'a': nested deeper than the limit of 32"),
    ('{"a": {"$time": 5}}', "field 'a': $time: 5 is not a string"),
    ('{"a": {"$time": "noon"}}', "field 'a': $time: 'noon' is not an RFC 3339 timestamp such as 2026-11-15T09:30:00Z"),
    ('{"a": [{"$bytes": "?"}]}', "field 'a': $bytes: '?' is not base64: Only base64 data is allowed"),
    ('{"a": {"$float": "1"}}', "field 'a': $float: '1' is none of NaN, Infinity, -Infinity"),
    ('{"a": {"b": {"$interval": 1}}}', "field 'a.b': $interval: 1 is not a list such as [low, high, '[)']"),
    ('{"a": {"$interval": [2, 1]}}', "field 'a': $interval: the interval Interval('[2, 1]') is empty"),
    ('{"a": {"$interval": [99999999999999999999, null]}}', "field 'a': the integer 99999999999999999999 does not fit"),
    ('{"$valid": 1}', "field '$valid': 1 is not a list such as [low, high, '[)']"),
    ('{"$valid": ["noon", null]}', "field '$valid': 'noon' is not an RFC 3339 timestamp"),
    (
        '{"time": {"$time": "0001-01-01T00:00:00+01:00"}}',
        "field 'time': $time: the timestamp 0001-01-01T00:00:00+01:00",
    ),
]


@pytest.mark.parametrize(("text", "message"), BAD, ids=[str(text)[:30] for text, _ in BAD])
def test_bad_texts(text: bytes | str, message: str) -> None:
    with pytest.raises(EventError) as caught:
        json.decode(text)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("limits", "at", "over", "message"),
    [
        (Limits(bytes=9), '{"a": 12}', '{"a": 123}', "10 bytes, more than the limit of 9"),
        (Limits(fields=2), '{"a":{"b":1}}', '{"a":{"b":1,"c":1}}', "the event has 3 fields, more than the limit of 2"),
        (Limits(fields=2), '{"a":[1,2]}', '{"a":[1,2,3]}', "field 'a': a list of 3 elements, more than the limit of 2"),
        (Limits(depth=2), '{"a":{"b":1}}', '{"a":{"b":{}}}', "field 'a.b': nested deeper than the limit of 2"),
        (Limits(depth=2), '{"a":[1]}', '{"a":[[]]}', "field 'a': nested deeper than the limit of 2"),
        (Limits(string=2), '{"a":"ab"}', '{"a":"abc"}', "field 'a': 3 characters, more than the limit of 2"),
        (Limits(string=2), '{"a":"éé"}', '{"a":"ééé"}', "field 'a': 3 characters, more than the limit of 2"),
        (Limits(string=2), '{"ab":1}', '{"abc":1}', "the field name 'abc': 3 characters, more than the limit of 2"),
        (
            Limits(string=2),
            '{"a":{"$bytes":"AQI="}}',
            '{"a":{"$bytes":"AQID"}}',
            "field 'a': 3 bytes, more than the limit of 2",
        ),
    ],
)
def test_limits(limits: Limits, at: str, over: str, message: str) -> None:
    json.decode(at, limits=limits)
    with pytest.raises(EventError) as caught:
        json.decode(over, limits=limits)
    assert str(caught.value) == message


def test_reserved_name() -> None:
    with pytest.raises(EventError, match=r"field '\$valid': the name is reserved"):
        json.encode(Event({"$valid": 1}))


@given(st.lists(events, max_size=4))
def test_lines(given_events: list[Event]) -> None:
    lines = list(json.encode_lines(given_events))
    assert all(line.endswith(b"\n") and line.count(b"\n") == 1 for line in lines)
    assert same(tuple(json.decode_lines(b"".join(lines).splitlines(keepends=True))), tuple(given_events))


def test_a_bad_line_is_named_and_blank_lines_are_skipped() -> None:
    lines = json.decode_lines(['{"a": 1}\n', "\n", '{"a": 1e400}\n'])
    assert next(lines) == Event(a=1)
    with pytest.raises(EventError, match=r"^field 'a': the number 1e400 is too large for a float \(line 3\)$"):
        next(lines)
