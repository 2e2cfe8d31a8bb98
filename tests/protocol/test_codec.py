"""Frames come back as they were, and anything else is refused."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.events.strategies import events, same

from fieldfare.events.event import Event
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import CODECS, JSON_CODEC, MSGPACK_CODEC, Codec, FrameError

names = st.text(max_size=10)
numbers = st.integers(0, 2**53)
since = st.none() | numbers | st.floats(0, 1e10, allow_nan=False) | st.just("2026-01-31T12:00:00Z")
said = st.one_of(
    st.builds(f.Hello, session=names, token=names, credit=numbers),
    st.builds(f.SubscribePattern, numbers, names, names, since),
    st.builds(f.Subscribe, numbers, names, names | st.just([{"exact": {"type": "a"}}]), since),
    st.builds(f.Unsubscribe, numbers, names),
    st.builds(f.Advertise, numbers, names, names),
    st.builds(f.Acknowledge, numbers),
    st.builds(f.Credit, numbers),
    st.builds(f.Leave, numbers),
)
answered = st.one_of(
    st.builds(f.Welcome, names, names, names, numbers, numbers),
    st.builds(f.Accepted, numbers),
    st.builds(f.Done, numbers),
    st.builds(f.Refused, names, numbers, numbers),
    st.builds(f.Interest, st.lists(names, max_size=3)),
    st.builds(f.Bye, names, st.booleans()),
)
codecs = st.sampled_from(sorted(CODECS.values(), key=lambda codec: codec.name))


@given(codecs, said, answered)
def test_frames_come_back(codec: Codec[bytes] | Codec[str], one: f.FromClient, other: f.FromNode) -> None:
    assert codec.from_client(codec.encode(one)) == one
    assert codec.from_node(codec.encode(other)) == other


@given(codecs, st.lists(events, max_size=3))
def test_events_come_back(codec: Codec[bytes] | Codec[str], several: list[Event]) -> None:
    frame = f.Publish(1, [msgspec.Raw(codec.raw(event)) for event in several], ttl=2.5)
    again = codec.from_client(codec.encode(frame))
    assert isinstance(again, f.Publish)
    assert same(tuple(codec.event(bytes(raw)) for raw in again.events), tuple(several))
    items = [f.Delivery(1, 2, 3.0, "ana", msgspec.Raw(codec.raw(event)), ("s",)) for event in several]
    back = codec.from_node(codec.encode(f.Deliveries(items)))
    assert isinstance(back, f.Deliveries)
    assert same(tuple(codec.event(bytes(item.event)) for item in back.items), tuple(several))


@given(codecs, st.binary(max_size=40) | st.text(max_size=40))
def test_anything_else_is_refused(codec: Codec[bytes] | Codec[str], data: bytes | str) -> None:
    for read in (codec.from_client, codec.from_node):
        try:
            read(data)
        except FrameError as error:
            assert str(error)  # noqa: PT017


@pytest.mark.parametrize(
    "data",
    [
        '{"is":"Publish"}',
        '{"is":"Hello","version":"1"}',
        "[]",
        "1",
        '{"is":"Subscribe","request":1,"id":2,"filter":"x"}',
    ],
)
def test_what_is_wrong_is_named(data: str) -> None:
    with pytest.raises(FrameError, match="no frame: "):
        JSON_CODEC.from_client(data)


def test_text_is_not_binary() -> None:
    with pytest.raises(FrameError, match="binary frames"):
        MSGPACK_CODEC.from_client("{}")
    with pytest.raises(FrameError, match="text frames"):
        JSON_CODEC.from_client(b"{}")


def test_a_deep_document_is_no_crash() -> None:
    deep = '{"is":"Subscribe","request":1,"id":"s","filter":' + "[" * 100_000 + "]" * 100_000 + "}"
    with pytest.raises(FrameError):
        JSON_CODEC.from_client(deep)
