"""MessagePack: round trips, bad bytes, limits."""

from __future__ import annotations

import contextlib
import math
import pickle
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.msgpack import Ext
from tests.events.json_texts import damaged, objects
from tests.events.strategies import events, floats, same, texts, times

from fieldfare.events import DEFAULT_LIMITS, Event, EventError, Interval, Limits, encoded, json, msgpack
from fieldfare.events.encoded import EncodedEvent


@given(events)
def test_what_is_written_is_read(event: Event) -> None:
    data = msgpack.encode(event)
    again = msgpack.decode(data)
    assert same(again, event)
    assert msgpack.encode(again) == data


@given(events, st.integers(0, 200), st.integers(0, 255))
def test_nothing_but_an_event_error_comes_out(event: Event, at: int, byte: int) -> None:
    data = bytearray(msgpack.encode(event))
    data[at % len(data)] = byte
    with contextlib.suppress(EventError):
        msgpack.decode(bytes(data))
    with contextlib.suppress(EventError):
        msgpack.decode(bytes(data[:at]))


def outcome(data: bytes, limits: Limits, *, fully: bool) -> object:
    """The event, or the error; `fully` leaves out the short ways."""
    with pytest.MonkeyPatch.context() as patch:
        if fully:
            patch.setattr(msgpack, "_is_plain", lambda *_: False)
            patch.setattr(encoded, "of_msgpack", lambda _: None)
        try:
            return msgpack.decode(data, limits=limits)
        except EventError as error:
            return str(error)


small_limits = st.builds(
    Limits, bytes=st.just(1 << 20), fields=st.integers(0, 6), depth=st.integers(0, 3), string=st.integers(0, 40)
)
flat_events = st.dictionaries(
    st.text(max_size=4) | st.just("$valid"),
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text() | st.binary()
    | st.datetimes(timezones=st.just(UTC)),
    max_size=20,
).map(msgspec.msgpack.encode)  # fmt: skip


nested_events = st.dictionaries(
    st.sampled_from(["a", "b", "a.b", "", "time", "$valid"]),
    st.recursive(
        st.sampled_from([1, 2**63, -(2**63), 0.5, "x", b"x", None, True, datetime(2026, 11, 15, tzinfo=UTC)])
        | st.builds(
            Ext, st.sampled_from([-1, 5, 73]), st.sampled_from([b"", b"abcd", b"\0" * 8, b"\xff" * 8, b"\xff" * 12])
        ),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.sampled_from(["a", "b", "b.c", "$time", 1, b"k"]), inner, max_size=3)
        ),
        max_leaves=8,
    ),
    max_size=4,
).map(msgspec.msgpack.encode)


@given(
    events.map(msgpack.encode) | nested_events | flat_events,
    st.none() | st.tuples(st.integers(0, 200), st.integers(0, 255)),
    st.just(DEFAULT_LIMITS) | small_limits,
)
@example(b"\x82\xa1a\x01\xa1a\x02", None, DEFAULT_LIMITS)
@example(b"\xde\x00\x01\xa1a\x01", None, DEFAULT_LIMITS)
@example(b"\x81\xa1a\xcf\x80\x00\x00\x00\x00\x00\x00\x00", None, DEFAULT_LIMITS)
@example(b"\x81\x01\x01", None, DEFAULT_LIMITS)
@example(b"\x81\xd4\x05\x90\x01", None, DEFAULT_LIMITS)
@example(b"", None, DEFAULT_LIMITS)
@example(b"\x81\xa1a\x81\xa1b\xcf\x80\x00\x00\x00\x00\x00\x00\x00", None, DEFAULT_LIMITS)
@example(msgspec.msgpack.encode({"a": [[Ext(-1, b"\xff" * 12)]]}), None, DEFAULT_LIMITS)
@example(msgspec.msgpack.encode({"a": [[Ext(5, b"")]]}), None, DEFAULT_LIMITS)
@example(msgspec.msgpack.encode({"a": {"b": 1}, "a.b": 2}), None, DEFAULT_LIMITS)
@example(msgspec.msgpack.encode({"a": {f"n{n}": 1 for n in range(4095)}}), None, DEFAULT_LIMITS)
@example(msgspec.msgpack.encode({"a": {f"n{n}": 1 for n in range(4096)}}), None, DEFAULT_LIMITS)
@example(msgspec.msgpack.encode({"a": [{"b": [0] * 4096}]}), None, DEFAULT_LIMITS)
@example(msgspec.msgpack.encode({"a": [{"b": [0] * 4097}]}), None, DEFAULT_LIMITS)
@example(msgspec.msgpack.encode({"a": {"b": "x" * (1 << 18)}}), None, DEFAULT_LIMITS)
@example(msgspec.msgpack.encode({"a": {"b": "x" * (1 + (1 << 18))}}), None, DEFAULT_LIMITS)
@example(b"\x81\xa1a" + b"\x91" * 30 + b"\x01", None, DEFAULT_LIMITS)
@example(b"\x81\xa1a" + b"\x91" * 50 + b"\x01", None, DEFAULT_LIMITS)
@example(
    msgspec.msgpack.encode({"$valid": Ext(73, msgspec.msgpack.encode([[Ext(5, b"")], 1, "[]"]))}), None, DEFAULT_LIMITS
)
def test_the_short_way_reads_and_refuses_as_the_full_reader(
    data: bytes, change: tuple[int, int] | None, limits: Limits
) -> None:
    if change is not None and data:
        at, byte = change[0] % len(data), change[1]
        data = data[:at] + bytes([byte]) + data[at + 1 :]
    short, full = outcome(data, limits, fully=False), outcome(data, limits, fully=True)
    if isinstance(short, Event) and isinstance(full, Event):
        assert same(short, full)
        assert dict(short.fields).keys() == dict(full.fields).keys()
        assert msgpack.encode(short) == msgpack.encode(full) == data
    else:
        assert short == full


def test_forms_that_are_not_the_shortest_are_read() -> None:
    assert same(msgpack.decode(b"\xde\x00\x01\xd9\x01a\xca\x3f\x80\x00\x00"), Event(a=1.0))
    assert same(msgpack.decode(b"\x82\xa1a\xd3\0\0\0\0\0\0\0\1\xa1b\xdc\0\1\xc5\0\1x"), Event(a=1, b=[b"x"]))


def field(value: object) -> bytes:
    return msgspec.msgpack.encode({"a": value})


def interval(*ends: object) -> Ext:
    return Ext(msgpack.INTERVAL, msgspec.msgpack.encode(ends))


@given(objects.map(lambda text: text.encode(errors="surrogatepass")) | damaged)
@example(b'{"a":1,"a" :2}')
@example(b'{"a":{"a":1,"a":2}}')
@example(b'{"a":"x:y","a" :2}')
@example(b'{"a":{"b":[{"c":12345678901234567890}]}}')
@example(b'{"a":[[{"b":1}]],"b":{"c":"\\ud800"}}')
@example(b'{"a":{"b":1e400}}')
@example(b'{"a":[1.0,-0,1E2,-0.0]}')
@example(b'{"time":"2026-11-15T09:30:00Z","a":{"time":"2026-11-15T09:30:00Z"}}')
@example(b'{"time":["2026-11-15T09:30:00Z"]}')
@example(b'{"a":{"$time":"2026-11-15T09:30:00Z"}}')
@example(b'{"a":["' + b"x" * (1 << 18) + b'"]}')
@example(b'{"a":[' + b"0.5," * 60_000 + b"0.5]}")
@example(b"{}")
def test_json_texts_become_messagepack_as_by_the_full_readers(text: bytes) -> None:
    def outcome(read: Callable[[bytes], Event]) -> Event | str:
        try:
            return read(text)
        except EventError as error:
            return str(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoded, "of_msgpack", lambda _: None)
        full = outcome(lambda text: msgpack.decode(msgpack.encode(json.decode(text))))
    short = outcome(msgpack.from_json)
    if isinstance(short, Event) and isinstance(full, Event):
        assert same(short, full)
        assert msgpack.encode(short) == msgpack.encode(full)
    else:
        assert short == full


@given(events)
def test_fields_of_an_encoded_event_are_made_when_asked_for(event: Event) -> None:
    data = msgpack.encode(Event({"nested": {**event.tree}}))
    again = msgpack.decode(data)
    assert msgpack.encode(again) is data
    for one in (again, pickle.loads(pickle.dumps(msgpack.decode(data)))):
        assert same(one, Event({"nested": {**event.tree}}))
        assert dict(one.fields) == dict(one)
        assert len(one) == len(one.fields)
        assert one.valid is None
    assert not hasattr(again, "nothing")


@given(
    st.dictionaries(st.sampled_from(["a", "b", "time"]), texts | times | floats | st.lists(floats | times), max_size=3),
    st.lists(floats | times | texts, max_size=3),
)
@example({"time": datetime(2026, 11, 15, tzinfo=UTC)}, [math.nan])
@example({"time": "2026-11-15T09:30:00Z"}, [])
@example({"a": math.inf}, [datetime(2026, 11, 15, tzinfo=UTC)])
def test_an_encoded_event_is_written_as_json_like_its_fields(tree: dict[str, object], items: list[object]) -> None:
    event = Event({**tree, "nested": {"items": items}})
    again = msgpack.decode(msgpack.encode(event))
    assert type(again) is EncodedEvent
    assert json.encode(again) == json.encode(event)


def test_an_event_is_encoded_still_if_there_is_nothing_to_doubt() -> None:
    tree = {"a": {"b": [1, [2.5, None]], "t": datetime(2026, 11, 15, tzinfo=UTC)}, "c": [{"d": "x"}, {"d": True}]}
    assert type(msgpack.decode(msgspec.msgpack.encode(tree))) is EncodedEvent
    assert type(msgpack.from_json(b'{"a": {"b": [1, [2.5, null]]}, "c": [{"d": "x:"}, {"d":true}]}')) is EncodedEvent
    assert type(msgpack.decode(msgspec.msgpack.encode({"a": 1}))) is Event


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x82\xa1a\x01\xa1a\x02", "field 'a': named twice"),
        (b"\x81\xa1a\x91\x82\xa1b\x01\xa1b\x01", "field 'a.b': named twice"),
        (b"\x81\xa1a\x82\xa1b\xca\x3f\x80\x00\x00\xd9\x01b\x01", "field 'a.b': named twice"),
        (b"\x81\x01\x01", "the field name 1 is not a string"),
        (b"\x81\xa1a\x81\xc4\x01b\x01", "field 'a': the field name b'b' is not a string"),
        (b"\x81\x80\x01", "the field name {} is not a string"),
        (b"\x81\xd4\x05\x90\x01", "the field name <msgspec.msgpack.Ext> is not a string"),
        (field(2**63), "field 'a': the integer 9223372036854775808 does not fit in 64 bits"),
        (b"\x81\xa1a\xa1\xff", "field 'a': not MessagePack: 'utf-8' codec can't decode byte 0xff"),
        (field(Ext(5, b"x")), "field 'a': the MessagePack extension type 5 is unknown"),
        (field([Ext(73, b"x")]), "field 'a': not an interval: "),
        (field(interval(2, 1, "[]")), "field 'a': not an interval: the interval Interval('[2, 1]') is empty"),
        (field(interval(2**63, None, "[]")), "field 'a': the integer 9223372036854775808 does not fit in 64 bits"),
        (b"\x81\xa1a\xd4\xff\x00", "field 'a': not MessagePack: Invalid MessagePack timestamp"),
        (b"\x81\xa1a\xc1", "field 'a': not MessagePack: "),
        (b"\x81\xa1a", "not MessagePack: it ends too early"),
        (b"\x81\xa1a\xa5x", "field 'a': not MessagePack: "),
        (b"\xdf\xff\xff\xff\xff\xa1a\x01", "not MessagePack: it ends too early"),
        (b"", "not MessagePack: it ends too early"),
        (b"\x80\x80", "not MessagePack: MessagePack data is malformed: trailing characters"),
        (b"\x91\x01", "the event must be a MessagePack map"),
        (b"\x81\xa1a" + b"\x91" * 100_000, "nested deeper than the limit of 32"),
        (b"\x81\xa1a" + b"\x91" * 50 + b"\x01", "field 'a': nested deeper than the limit of 32"),
        (b"\x81\xa6$valid\xc0", "field '$valid': the validity period must be an interval of timestamps"),
        (
            msgspec.msgpack.encode({"$valid": interval(1, 2, "[]")}),
            "field '$valid': the validity period must be an interval of timestamps",
        ),
    ],
)
def test_bad_bytes(data: bytes, message: str) -> None:
    with pytest.raises(EventError) as caught:
        msgpack.decode(data)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("limits", "at", "over", "message"),
    [
        (Limits(bytes=4), field(1), field(200), "5 bytes, more than the limit of 4"),
        (Limits(fields=2), field([1, 2]), field([1, 2, 3]), "field 'a': a list of 3 elements"),
        (Limits(fields=2), field({"b": 1}), field({"b": 1, "c": 1}), "the event has 3 fields"),
        (Limits(depth=2), field([1]), field([[]]), "field 'a': nested deeper than the limit of 2"),
        (Limits(string=2), field("ab"), field("abc"), "field 'a': 3 characters, more than the limit of 2"),
        (Limits(string=2), field(b"ab"), field(b"abc"), "field 'a': 3 bytes, more than the limit of 2"),
    ],
)
def test_limits(limits: Limits, at: bytes, over: bytes, message: str) -> None:
    msgpack.decode(at, limits=limits)
    with pytest.raises(EventError) as caught:
        msgpack.decode(over, limits=limits)
    assert str(caught.value).startswith(message)


def test_the_form_is_that_of_others() -> None:
    assert msgspec.msgpack.decode(msgpack.encode(Event({"a": b"x", "b": [1.5, None]}))) == {"a": b"x", "b": [1.5, None]}
    assert msgpack.encode(Event(a=Interval(1, 2))) == b"\x81\xa1a\xc7\x06I\x93\x01\x02\xa2[]"


def test_reserved_name() -> None:
    with pytest.raises(EventError, match=r"field '\$valid': the name is reserved"):
        msgpack.encode(Event({"$valid": 1}))


def test_a_decoded_event_is_encoded_as_the_bytes_that_came() -> None:
    data = b"\x81\xa1a\xd1\x00\x01"  # the number 1 in three bytes instead of one
    event = msgpack.decode(data)
    assert msgpack.encode(event) is data
    assert msgpack.encode(Event(event)) == b"\x81\xa1a\x01"
