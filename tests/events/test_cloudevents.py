"""CloudEvents: the shape of events, the rules of the specification, and both ways against the official SDK."""

from __future__ import annotations

import contextlib
import json as stdlib
from datetime import UTC, datetime
from typing import Any

import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from hypothesis import given
from hypothesis import strategies as st
from tests.events.strategies import events, intervals, same, times, values

from fieldfare.events import Event, EventError, Interval, Limits, cloudevents

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
REQUIRED = {"specversion": "1.0", "id": "1", "source": "/till", "type": "sale"}

texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
attributes = st.builds(
    lambda required, optional: {"specversion": "1.0", **required, **optional},
    st.fixed_dictionaries({"id": texts, "source": texts, "type": texts}),
    st.fixed_dictionaries(
        {},
        optional={
            "time": times,
            "subject": texts,
            "dataschema": texts,
            "text": st.text("ab/", max_size=4),
            "flag1": st.booleans(),
            "number": st.integers(-(2**31), 2**31 - 1),
        },
    ),
)
json_data = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abc", max_size=2), inner, max_size=3),
    max_leaves=6,
)


def text(**changes: object) -> str:
    return stdlib.dumps({**REQUIRED, **changes})


@given(attributes, st.lists(values, max_size=1), st.none() | intervals(times))
def test_what_is_written_is_read(tree: dict[str, object], data: list[object], valid: Interval | None) -> None:
    event = Event({**tree, **({"data": data[0]} if data else {})}, valid=valid)
    assert same(cloudevents.decode(cloudevents.encode(event)), event)
    assert same(tuple(cloudevents.decode_batch(cloudevents.encode_batch([event, event]))), (event, event))


@given(events)
def test_other_events_are_wrapped(event: Event) -> None:
    wrapped = cloudevents.decode(cloudevents.encode(event, id="1", source="s", type="t"))
    assert same(wrapped.valid, event.valid)
    tree: dict[str, Any] = dict(wrapped.tree)
    assert tree.pop("specversion") == "1.0"
    assert tree.pop("datacontenttype") == "application/json"
    data = tree.pop("data")
    for name in ("id", "source", "type"):
        own = event.tree.get(name)
        assert tree[name] == (own if isinstance(own, str) and own else {"id": "1", "source": "s", "type": "t"}[name])
    moved = {name: value for name, value in tree.items() if name in event.tree and name not in data}
    assert same({**moved, **data}, event.tree)


def test_the_shape_of_a_decoded_event() -> None:
    event = cloudevents.decode(text(time="2026-11-15T13:00:00+01:00", data={"user": {"id": 7}}, subject=None))
    assert event["data.user.id"] == 7
    assert event.time == NOON
    assert "subject" not in event
    assert cloudevents.decode(text(data_base64="AQI="))["data"] == b"\x01\x02"
    assert cloudevents.decode(text(data=None))["data"] is None
    assert "data" not in cloudevents.decode(text())


def test_how_attributes_and_bytes_are_written() -> None:
    event = Event({**REQUIRED, "time": NOON, "at": NOON, "digest": b"AB", "data": b"AB"})
    assert stdlib.loads(cloudevents.encode(event)) == {
        **REQUIRED,
        "time": "2026-11-15T12:00:00Z",
        "at": "2026-11-15T12:00:00Z",
        "digest": "QUI=",
        "data_base64": "QUI=",
    }


def test_how_an_event_is_wrapped() -> None:
    event = Event({"id": 7, "type": "sale", "time": NOON, "price": Interval(1, 2)}, valid=Interval(NOON, None, "[)"))
    assert stdlib.loads(cloudevents.encode(event, id="1", source="/till", type="ignored")) == {
        **REQUIRED,
        "time": "2026-11-15T12:00:00Z",
        "validity": "[2026-11-15T12:00:00Z/..)",
        "datacontenttype": "application/json",
        "data": {"id": 7, "price": {"$interval": [1, 2]}},
    }


def test_a_foreign_validity_is_an_ordinary_attribute() -> None:
    for other in ("soon", "[a/b]", "[../..]", 3):
        event = cloudevents.decode(text(validity=other))
        assert (event["validity"], event.valid) == (other, None)


BAD = [
    ("[]", "the event must be a JSON object"),
    ('{"specversion":"1.0","id":"1","source":"/till","type":"sale","id":"2"}', "field 'id': named twice"),
    (text(specversion="0.3"), "field 'specversion': it must be '1.0', and is '0.3'"),
    (text(specversion=None), "field 'specversion': it must be '1.0', and is missing"),
    (text(id=None), "field 'id': a CloudEvent needs it"),
    ('{"specversion": "1.0", "id": "1", "type": "t"}', "field 'source': a CloudEvent needs it"),
    (text(id=""), "field 'id': it must be a string that is not empty"),
    (text(id=7), "field 'id': it must be a string that is not empty"),
    (text(subject=""), "field 'subject': it must be a string that is not empty"),
    (text(datacontenttype=1), "field 'datacontenttype': it must be a string that is not empty"),
    (text(Upper=1), "field 'Upper': the name of a CloudEvents attribute consists of a-z and 0-9"),
    (text(under_score=1), "field 'under_score': the name of a CloudEvents attribute"),
    (text(x=1.0), "field 'x': a CloudEvents attribute is a bool, an int32, a string, bytes or a timestamp"),
    (text(x=2**31), "field 'x': a CloudEvents attribute is"),
    (text(x={"$time": "2026-11-15T12:00:00Z"}), "field 'x': a CloudEvents attribute is"),
    (text(x=[1]), "field 'x': a CloudEvents attribute is"),
    (text(time="noon"), "field 'time': 'noon' is not an RFC 3339 timestamp"),
    (text(time=5), "field 'time': 5 is not a string"),
    (text(data=1, data_base64="AQI="), "field 'data_base64': a CloudEvent has data or data_base64, not both"),
    (text(data_base64="?"), "field 'data_base64': '?' is not base64"),
    (text(data_base64=5), "field 'data_base64': 5 is not a string"),
    (text(data={"a": {"$bytes": 5}}), "field 'data.a': $bytes: 5 is not a string"),
    (text(data={"a": 2**63}), "field 'data.a': the integer 9223372036854775808 does not fit in 64 bits"),
]


@pytest.mark.parametrize(("bad", "message"), BAD, ids=[message[:40] for _, message in BAD])
def test_bad_texts(bad: str, message: str) -> None:
    with pytest.raises(EventError) as caught:
        cloudevents.decode(bad)
    assert str(caught.value).startswith(message)
    with pytest.raises(EventError) as caught:
        cloudevents.decode_batch(f"[{text()}, {bad}]")
    assert str(caught.value).startswith(message)
    assert str(caught.value).endswith("(event 2)")


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ("{}", "not a JSON array: Expected `array`, got `object`"),
        ("[", "not JSON: Expecting value (line 1, column 2)"),
        ('[{"a": "\\ud800"}]', "field 'a': the string is not Unicode"),
        ('[{"a": NaN}]', "field 'a': NaN is not JSON"),
        ("[" * 100_000, "not a JSON array of events: nested too deep"),
        ("[1]", "the event must be a JSON object (event 1)"),
    ],
)
def test_bad_batches(bad: str, message: str) -> None:
    with pytest.raises(EventError) as caught:
        cloudevents.decode_batch(bad)
    assert str(caught.value).startswith(message)


@given(st.text('[]{}":,a\\u1', max_size=30))
def test_nothing_but_an_event_error_comes_out(bad: str) -> None:
    with contextlib.suppress(EventError):
        cloudevents.decode_batch(bad)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({}, "field 'id': a CloudEvent needs it, and neither the event nor the caller gives it"),
        ({"id": "1"}, "field 'source': a CloudEvent needs it, and neither"),
        ({"id": "1", "source": "/", "type": 5}, "field 'type': a CloudEvent needs it, and neither"),
        ({**REQUIRED, "specversion": 1}, "field 'specversion': it must be '1.0', and is 1"),
        ({**REQUIRED, "time": "noon"}, "field 'time': 'noon' is not an RFC 3339 timestamp"),
        ({**REQUIRED, "x": 1.5}, "field 'x': a CloudEvents attribute is"),
        ({**REQUIRED, "data_base64": "x"}, "field 'data_base64': the name of a CloudEvents attribute"),
    ],
)
def test_what_cannot_be_written(tree: dict[str, object], message: str) -> None:
    with pytest.raises(EventError) as caught:
        cloudevents.encode(Event(tree))
    assert str(caught.value).startswith(message)


def test_a_second_validity_cannot_be_written() -> None:
    with pytest.raises(EventError, match="field 'validity': the attribute is needed for the validity period"):
        cloudevents.encode(Event({**REQUIRED, "validity": "x"}, valid=Interval(NOON, None)))


def test_limits_are_those_of_each_event() -> None:
    limits = Limits(bytes=len(text()))
    assert len(cloudevents.decode_batch(f"[{text()}, {text()}]", limits=limits)) == 2
    with pytest.raises(EventError, match=r"more than the limit of .* \(event 1\)"):
        cloudevents.decode_batch(f"[{text(x=1)}]", limits=limits)
    cloudevents.decode(text(data={"a": 1}), limits=Limits(depth=2))
    with pytest.raises(EventError, match=r"field 'data\.a': nested deeper than the limit of 2"):
        cloudevents.decode(text(data={"a": []}), limits=Limits(depth=2))


SDK = JSONFormat()


@given(attributes, json_data)
def test_the_sdk_reads_what_fieldfare_writes(tree: dict[str, Any], data: object) -> None:
    written = cloudevents.encode(Event({**tree, "data": data}))
    read = SDK.read(CloudEvent, written)
    expected = dict(tree)
    found = dict(read.get_attributes())
    if "time" not in expected:
        found.pop("time")  # the SDK invents one
    assert found == expected
    assert read.get_data() == data
    assert SDK.read(CloudEvent, cloudevents.encode(Event({**tree, "data": b"\x00\xff"}))).get_data() == b"\x00\xff"


@given(attributes, json_data, st.binary(max_size=8))
def test_fieldfare_reads_what_the_sdk_writes(tree: dict[str, Any], data: Any, raw: bytes) -> None:
    written = SDK.write(CloudEvent({"time": NOON, **tree}, data))
    content = {} if data is None else {"data": data}  # for the SDK, None is no data
    assert same(cloudevents.decode(written), Event({"time": NOON, **tree, **content}))
    assert cloudevents.decode(SDK.write(CloudEvent({"time": NOON, **tree}, raw)))["data"] == raw


@given(st.lists(st.tuples(attributes, json_data), max_size=3))
def test_batches_are_arrays_of_what_the_sdk_reads_and_writes(parts: list[tuple[dict[str, Any], Any]]) -> None:
    """The SDK itself has no batches."""
    ours = [Event({"time": NOON, **tree, "data": data}) for tree, data in parts if data is not None]
    for event, part in zip(ours, stdlib.loads(cloudevents.encode_batch(ours)), strict=True):
        read = SDK.read(CloudEvent, stdlib.dumps(part))
        assert Event({**read.get_attributes(), "data": read.get_data()}) == event
    theirs = [SDK.write(CloudEvent({"time": NOON, **tree}, data)) for tree, data in parts if data is not None]
    assert same(tuple(cloudevents.decode_batch(b"[" + b",".join(theirs) + b"]")), tuple(ours))
