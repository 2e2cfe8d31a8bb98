"""A WebSocket client that costs next to nothing, so that the server and not its clients limits the rate.

The client knows as much of RFC 6455 as a node needs: binary messages in single frames, pings, no compression. Frames
are masked with zeros, which leaves the payload unchanged.
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable
from typing import Final

from fieldfare.protocol.codec import MSGPACK_CODEC
from fieldfare.protocol.frames import Frame, FromNode

_BINARY, _CLOSE, _PING, _PONG = 2, 8, 9, 10
_MASK: Final = bytes(4)


class WebSocket(asyncio.Protocol):
    """A connection to a node, in MessagePack; calls `receive` with each frame of the node."""

    def __init__(self, receive: Callable[[FromNode], None]) -> None:
        """Create the protocol object; `opened` becomes done when the node has accepted the WebSocket."""
        self.receive = receive
        self.opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._rest = b""
        self._transport: asyncio.Transport | None = None

    def send(self, *frames: Frame) -> None:
        """Send frames in a single write."""
        assert self._transport is not None
        self._transport.write(b"".join([packed(_BINARY, MSGPACK_CODEC.encode(frame)) for frame in frames]))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the HTTP request that upgrades the connection to a WebSocket."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        key = base64.b64encode(os.urandom(16)).decode()
        transport.write(
            "GET / HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
            f"Sec-WebSocket-Protocol: {MSGPACK_CODEC.name}\r\n\r\n".encode()
        )

    def connection_lost(self, exc: Exception | None) -> None:
        """Let a pending `opened` fail with the reason of the loss."""
        if not self.opened.done():
            self.opened.set_exception(exc or ConnectionError("the node hung up"))

    def data_received(self, data: bytes) -> None:
        """Pass on all complete frames; the bytes of an incomplete frame wait for the next call."""
        data = self._rest + data if self._rest else data
        at = 0
        if not self.opened.done():
            at = data.find(b"\r\n\r\n") + 4
            if at == 3:
                self._rest = data
                return
            if not data.startswith(b"HTTP/1.1 101 "):
                self.opened.set_exception(ConnectionError(data[:200].decode(errors="replace")))
                return
            self.opened.set_result(None)
        while (found := unpacked(data, at)) is not None:
            kind, payload, at = found
            if kind == _BINARY:
                self.receive(MSGPACK_CODEC.from_node(payload))
            elif kind == _PING and self._transport is not None:
                self._transport.write(packed(_PONG, payload))
            elif kind == _CLOSE and self._transport is not None:
                self._transport.close()
        self._rest = data[at:]

    def close(self) -> None:
        """Close the TCP connection without a closing handshake."""
        if self._transport is not None:
            self._transport.close()


def packed(kind: int, payload: bytes) -> bytes:
    """Return a client's frame of a kind (opcode) with its payload.

    >>> packed(2, b"hi").hex(" ")
    '82 82 00 00 00 00 68 69'
    """
    length = len(payload)
    if length < 126:
        return bytes((0x80 | kind, 0x80 | length)) + _MASK + payload
    if length < 1 << 16:
        return bytes((0x80 | kind, 0xFE)) + length.to_bytes(2) + _MASK + payload
    return bytes((0x80 | kind, 0xFF)) + length.to_bytes(8) + _MASK + payload


def unpacked(data: bytes, at: int) -> tuple[int, bytes, int] | None:
    """Return opcode, payload and end of the server's frame that begins at a place; None if the frame is incomplete.

    >>> unpacked(bytes.fromhex("82 02 68 69 82 02 68"), 0)
    (2, b'hi', 4)
    >>> unpacked(bytes.fromhex("82 02 68 69 82 02 68"), 4)
    """
    if len(data) < at + 2:
        return None
    length, start = data[at + 1] & 0x7F, at + 2
    if length > 125:
        size = 2 if length == 126 else 8
        if len(data) < start + size:
            return None
        length, start = int.from_bytes(data[start : start + size]), start + size
    end = start + length
    return (data[at] & 0x0F, data[start:end], end) if len(data) >= end else None


async def opened(port: int, receive: Callable[[FromNode], None]) -> WebSocket:
    """Connect to the node on a port of loopback, and wait until the WebSocket is open."""
    _, socket = await asyncio.get_running_loop().create_connection(lambda: WebSocket(receive), "127.0.0.1", port)
    await socket.opened
    return socket
