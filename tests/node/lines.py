"""A connection to a node without a network: the other end is the test, which may stop reading."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from fieldfare.node.accepted_socket import AcceptedSocket
from fieldfare.node.config import Limits
from fieldfare.node.connection import ClientConnection
from fieldfare.node.context import Context
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import MSGPACK_CODEC
from fieldfare_lab.node.websocket import packed, unpacked


class Line(asyncio.Transport):
    """A transport, and the `AcceptedSocket` on it."""

    def __init__(self, *frames: f.Frame, limits: Limits | None = None) -> None:
        super().__init__()
        self.coming: deque[bytes] = deque()
        """what the node has not read"""
        self.written: list[tuple[int, bytes]] = []
        """opcode and payload of all that the node has written"""
        self.writes = 0
        self.buffered = 0
        """what the transport pretends to have unsent"""
        self.is_aborted = False
        self._rest = b""
        self._reads, self._closing = True, False
        self._loop = asyncio.get_running_loop()
        self.socket = AcceptedSocket(self, limits or Limits(), lambda _: None)
        self.say(*frames)

    # The other end

    def say(self, *frames: f.Frame) -> None:
        for frame in frames:
            data = MSGPACK_CODEC.encode(frame)
            assert isinstance(data, bytes)
            self.push(packed(2, data))

    def push(self, data: bytes) -> None:
        """Send bytes, which arrive in one piece."""
        self.coming.append(data)
        self._loop.call_soon(self._arrive)

    def stop_reading(self) -> None:
        self.socket.pause_writing()

    def read_again(self) -> None:
        self.socket.resume_writing()

    @property
    def sent(self) -> list[f.FromNode]:
        return [MSGPACK_CODEC.from_node(payload) for opcode, payload in self.written if opcode == 2]

    @property
    def closed_with(self) -> tuple[int, str] | None:
        """Code and reason of the node's close frame."""
        found = [payload for opcode, payload in self.written if opcode == 8]
        return (int.from_bytes(found[0][:2]), found[0][2:].decode()) if found else None

    def _arrive(self) -> None:
        if self.coming and self._reads and not self._closing:
            self.socket.data_received(self.coming.popleft())
            self._loop.call_soon(self._arrive)

    # The transport

    def write(self, data: Any) -> None:
        assert not self._closing, "a closed transport loses what is written"
        self.writes += 1
        self._rest += bytes(data)
        at = 0
        while (one := unpacked(self._rest, at)) is not None:
            opcode, payload, at = one
            self.written.append((opcode, payload))
        self._rest = self._rest[at:]

    def get_write_buffer_size(self) -> int:
        return self.buffered

    def pause_reading(self) -> None:
        self._reads = False

    def resume_reading(self) -> None:
        self._reads = True
        self._loop.call_soon(self._arrive)

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        if not self._closing:
            self._closing = True
            self._loop.call_soon(self.socket.connection_lost, None)

    def abort(self) -> None:
        self.is_aborted = True
        self.close()


@contextlib.asynccontextmanager
async def served(service: Context, line: Line) -> AsyncIterator[asyncio.Task[None]]:
    """A client at the other end of a line."""
    connection = ClientConnection(service.node, service.interests, line.socket, MSGPACK_CODEC, None)
    task = asyncio.create_task(connection.serve())
    del connection
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        line.close()
