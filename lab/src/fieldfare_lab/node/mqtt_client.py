"""An MQTT 3.1.1 client with QoS 1 that costs next to nothing, so that the server and not its clients limits the rate.

The client knows as much of the protocol as the benchmark needs: no last will, no reconnect, no keep-alive.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from typing import Final

_CONNECT, _CONNACK, _PUBLISH, _PUBACK, _SUBSCRIBE, _SUBACK = 0x10, 2, 3, 4, 0x82, 9
_QOS_1: Final = 0x32
"""first byte of a PUBLISH with QoS 1"""
_SHORT: Final = struct.Struct(">H")
_CLEAN: Final = 2
"""flag of a session that ends with its connection"""
IDS: Final = 65_535
"""packets have ids from 1 to this"""


class MqttConnection(asyncio.Protocol):
    """A connection to an MQTT server; calls `receive` with each payload, and acknowledges it."""

    def __init__(self, name: str, receive: Callable[[bytes], None], *, clean: bool) -> None:
        """Create the protocol object; `opened` becomes done when the server has accepted the session `name`."""
        loop = asyncio.get_running_loop()
        self.receive = receive
        self.opened: asyncio.Future[None] = loop.create_future()
        self.subscribed: asyncio.Future[None] = loop.create_future()
        self.confirmed = 0
        """Number of confirmed events."""
        self.moved = asyncio.Event()
        """Set when more events are confirmed, or the connection is lost."""
        self._hello = _packet(
            _CONNECT, _text("MQTT") + bytes((4, _CLEAN if clean else 0)) + _SHORT.pack(0) + _text(name)
        )
        self._rest = b""
        self._transport: asyncio.Transport | None = None
        self._lost = False

    def write(self, *packets: bytes) -> None:
        """Send packets in a single write."""
        if self._lost:
            raise ConnectionError("the MQTT server has closed the connection")
        assert self._transport is not None
        self._transport.write(b"".join(packets))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask the server for the session of this name, clean or not."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(self._hello)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all waiting futures with the reason."""
        self._lost = True
        for future in (self.opened, self.subscribed):
            if not future.done():
                future.set_exception(exc or ConnectionError("the MQTT server hung up"))
        self.moved.set()

    def data_received(self, data: bytes) -> None:
        """Take all complete packets, and acknowledge their messages in a single write."""
        data = self._rest + data if self._rest else data
        at, answers = 0, []
        while (found := unpacked(data, at)) is not None:
            kind, start, at = found
            if kind >> 4 == _PUBLISH:
                topic_end = start + 2 + int.from_bytes(data[start : start + 2])
                self.receive(data[topic_end + 2 : at])
                answers.append(b"\x40\x02" + data[topic_end : topic_end + 2])
            else:
                self._control(kind >> 4, data[start:at])
        self._rest = data[at:]
        if answers:
            self.write(*answers)

    def _control(self, kind: int, body: bytes) -> None:
        if kind == _PUBACK:
            self.confirmed += 1
            self.moved.set()
        elif kind == _CONNACK and not body[1]:
            self.opened.set_result(None)
        elif kind == _SUBACK and not any(code > 1 for code in body[2:]):
            self.subscribed.set_result(None)
        else:
            raise RuntimeError(f"the MQTT server refuses: packet {kind} with {body!r}")


def unpacked(data: bytes, at: int) -> tuple[int, int, int] | None:
    """Return the first byte, the start of the body and the end of the packet at a place; None if it is incomplete.

    >>> unpacked(bytes.fromhex("40 02 00 07 30"), 0)
    (64, 2, 4)
    >>> unpacked(bytes.fromhex("40 02 00 07 30"), 4)
    """
    length, shift, start = 0, 0, at + 1
    while True:
        if start >= len(data):
            return None
        byte = data[start]
        length |= (byte & 0x7F) << shift
        shift, start = shift + 7, start + 1
        if byte < 0x80:
            break
    end = start + length
    return (data[at], start, end) if len(data) >= end else None


def subscribe(topics: Sequence[str]) -> bytes:
    """Return the packet that subscribes to topics with QoS 1."""
    return _packet(_SUBSCRIBE, _SHORT.pack(1) + b"".join(_text(topic) + b"\x01" for topic in topics))


def publish(topic: bytes, id: int, payload: bytes) -> bytes:
    """Return the packet of a message with QoS 1.

    >>> publish(b"t", 7, b"hi").hex(" ")
    '32 07 00 01 74 00 07 68 69'
    """
    return _packet(_QOS_1, b"%b%b%b%b" % (_SHORT.pack(len(topic)), topic, _SHORT.pack(id), payload))


def _packet(kind: int, body: bytes) -> bytes:
    length = len(body)
    if length < 128:
        return bytes((kind, length)) + body
    sizes = bytearray()
    while length >= 128:
        sizes.append(length & 0x7F | 0x80)
        length >>= 7
    return bytes((kind, *sizes, length)) + body


def _text(text: str) -> bytes:
    data = text.encode()
    return _SHORT.pack(len(data)) + data


async def opened(port: int, name: str, receive: Callable[[bytes], None], *, clean: bool = False) -> MqttConnection:
    """Connect to the server on a port of loopback; a session that is not `clean` survives its connection."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: MqttConnection(name, receive, clean=clean), "127.0.0.1", port)
    await connection.opened
    return connection
