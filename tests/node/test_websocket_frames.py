"""The parser of frames agrees with that of `websockets`, wherever the bytes are cut, and whatever is wrong with them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from websockets.frames import Frame, Opcode
from websockets.protocol import OPEN, Protocol, Side

from fieldfare.node import websocket_frames
from fieldfare.node.websocket_frames import FrameReader, close_answer, framed, framed_close

MOST = 400

payloads = st.binary(max_size=200) | st.sampled_from([125, 126, MOST, MOST + 1]).map(bytes)
frames = st.builds(
    Frame, st.sampled_from(Opcode), payloads, fin=st.booleans(), rsv1=st.sampled_from([False] * 9 + [True])
).filter(lambda frame: frame.opcode < Opcode.CLOSE or len(frame.data) <= MOST)  # one of two mistakes is found first
cuts = st.lists(st.floats(0, 1), max_size=6)

Answer = tuple[list[tuple[int, bytes]], int | None]


def theirs(data: bytes) -> Answer:
    """Messages and control frames up to the first close frame or mistake, and the code of the mistake."""
    twin = Protocol(Side.SERVER, state=OPEN, max_size=MOST)
    twin.receive_data(data)
    found: list[tuple[int, bytes]] = []
    kind, parts = 0, b""
    for event in twin.events_received():
        assert isinstance(event, Frame)
        if event.opcode >= Opcode.CLOSE:
            found.append((event.opcode, bytes(event.data)))
            if event.opcode is Opcode.CLOSE:
                return found, None
            continue
        kind, parts = kind or event.opcode, parts + bytes(event.data)
        if event.fin:
            found.append((kind, parts))
            kind, parts = 0, b""
    return found, twin.close_sent.code if twin.close_sent and twin.parser_exc else None


def ours(data: bytes, places: Sequence[float] = ()) -> Answer:
    reader = FrameReader(MOST)
    ends = [0, *sorted(int(len(data) * place) for place in places), len(data)]
    found: list[tuple[int, bytes]] = []
    for start, end in pairwise(ends):
        if start < end:
            found += reader.feed(data[start:end])
    codes = [opcode for opcode, _ in found]
    if Opcode.CLOSE in codes:
        return found[: codes.index(Opcode.CLOSE) + 1], None
    return found, reader.fault.code if reader.fault else None


def same(one: Answer, other: Answer) -> bool:
    """Whether ours is theirs, but for two things.

    A close frame with a wrong payload is found by the answer here, and by the parser there. There, a control frame
    between fragments counts as one of them for the size of the message.
    """
    if one[0] and one[0][-1][0] == Opcode.CLOSE and other[1] in (1002, 1007):
        return one[0][:-1] == other[0] and close_answer(one[0][-1][1])[2:4] == other[1].to_bytes(2)
    if other[1] == 1009:
        return one[0][: len(other[0])] == other[0]
    return one == other


@settings(max_examples=150, deadline=None)
@given(st.lists(frames, max_size=5), cuts)
def test_frames_are_read_as_by_others(sent: list[Frame], places: list[float]) -> None:
    data = b"".join(_serialized(frame) for frame in sent)
    assert same(ours(data, places), theirs(data))


@settings(max_examples=100, deadline=None)
@given(st.lists(frames, min_size=1, max_size=3), cuts, st.integers(0, 12), st.integers(0, 255))
def test_wrong_bytes_are_refused_as_by_others(sent: list[Frame], places: list[float], at: int, byte: int) -> None:
    data = bytearray(b"".join(_serialized(frame) for frame in sent))
    data[at % len(data)] = byte
    mine, other = ours(bytes(data), places), theirs(bytes(data))
    if mine[1] is None or mine[1] == other[1] or other[1] == 1009:
        assert same(mine, other)
    else:  # a mistake in a header is found before the frame is complete
        assert mine[0] == other[0]
        assert other[1] in {None, 1002, 1007}


def _serialized(frame: Frame) -> bytes:
    """A frame of a client, also one that may not be."""
    first = frame.opcode | (0x80 if frame.fin else 0) | (0x40 if frame.rsv1 else 0)
    whole = Frame(Opcode.BINARY, frame.data).serialize(mask=True)
    return bytes([first]) + whole[1:]


@pytest.mark.parametrize("size", [0, 125, 126, 65_535, 65_536])
def test_what_is_written_is_what_others_write_and_read(size: int) -> None:
    data = bytes(size)
    assert framed(websocket_frames.Opcode.BINARY, data) == Frame(Opcode.BINARY, data).serialize(mask=False)
    assert FrameReader(size).feed(Frame(Opcode.BINARY, data).serialize(mask=True)) == [
        (websocket_frames.Opcode.BINARY, data)
    ]


def test_a_close_frame_is_never_too_long_and_always_text() -> None:
    data = framed_close(1008, "ä" * 100)
    assert len(data) == 2 + 2 + 122
    assert data[4:].decode() == "ä" * 61
    assert close_answer(b"") == b"\x88\x00"
    assert close_answer((1000).to_bytes(2) + b"\xff") == framed_close(1007, "")
    for wrong in (b"\x03", (1005).to_bytes(2)):
        assert close_answer(wrong) == framed_close(1002, "")


def test_a_large_frame_in_many_parts_is_joined_once() -> None:
    """Else a frame of some megabytes, a few bytes at a time, would keep the node busy: copies of copies."""
    reader = FrameReader(1 << 20)
    data = Frame(Opcode.BINARY, bytes(1 << 20)).serialize(mask=True)
    joined = 0
    for start in range(0, len(data) - 1, 64):
        assert reader.feed(data[start : min(start + 64, len(data) - 1)]) == []
        joined += len(reader._held) == 1
    assert joined < 5
    assert reader.feed(data[-1:]) == [(websocket_frames.Opcode.BINARY, bytes(1 << 20))]
    assert not reader.is_inside
