"""MessagePack: round trips, bad bytes, limits."""

from __future__ import annotations

import contextlib
from datetime import UTC

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.msgpack import Ext
from tests.events.strategies import events, same

from fieldfare.events import Event, EventError, Interval, Limits, msgpack


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
    """The event, or the error; `fully` leaves out the short way of events without nesting."""
    with pytest.MonkeyPatch.context() as patch:
        if fully:
            patch.setattr(msgpack, "_is_plain", lambda *_: False)
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


@given(
    events.map(msgpack.encode) | flat_events,
    st.none() | st.tuples(st.integers(0, 200), st.integers(0, 255)),
    st.just(Limits()) | small_limits,
)
@example(b"\x82\xa1a\x01\xa1a\x02", None, Limits())
@example(b"\xde\x00\x01\xa1a\x01", None, Limits())
@example(b"\x81\xa1a\xcf\x80\x00\x00\x00\x00\x00\x00\x00", None, Limits())
@example(b"\x81\x01\x01", None, Limits())
@example(b"", None, Limits())
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


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"\x82\xa1a\x01\xa1a\x02", "field 'a': named twice"),
        (b"\x81\xa1a\x91\x82\xa1b\x01\xa1b\x01", "field 'a.b': named twice"),
        (b"\x81\xa1a\x82\xa1b\xca\x3f\x80\x00\x00\xd9\x01b\x01", "field 'a.b': named twice"),
        (b"\x81\x01\x01", "the field name 1 is not a string"),
        (b"\x81\xa1a\x81\xc4\x01b\x01", "field 'a': the field name b'b' is not a string"),
        (b"\x81\x80\x01", "the field name {} is not a string"),
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
