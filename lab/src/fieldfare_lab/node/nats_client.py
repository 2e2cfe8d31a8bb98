"""A NATS client that costs next to nothing, so that the server and not its clients limits the rate.

The client knows as much of the text protocol as the benchmark needs: no headers, no reconnect, no TLS.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple

_CONNECT: Final = b'CONNECT {"verbose":false,"pedantic":false,"headers":false,"lang":"bench","version":"0"}\r\n'


class Message(NamedTuple):
    """A message with the number of its subscription, and the subject for an answer, which is empty if there is none."""

    subscription: bytes
    reply: bytes
    payload: bytes


class NatsConnection(asyncio.Protocol):
    """A connection to a NATS server; calls `receive` with each message."""

    def __init__(self, receive: Callable[[Message], None]) -> None:
        """Create the protocol object; `opened` becomes done when the server has greeted."""
        loop = asyncio.get_running_loop()
        self.receive = receive
        self.opened: asyncio.Future[None] = loop.create_future()
        self._rest = b""
        self._transport: asyncio.Transport | None = None
        self._pings: list[asyncio.Future[None]] = []
        self._mistake = ""

    def write(self, *commands: bytes) -> None:
        """Send commands in a single write; an error of the server since the last write is raised."""
        if self._mistake:
            raise RuntimeError(f"the NATS server says {self._mistake}")
        assert self._transport is not None
        self._transport.write(b"".join(commands))

    def ping(self) -> asyncio.Future[None]:
        """Return a future that is done when the server has taken all that was sent before."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pings.append(future)
        self.write(b"PING\r\n")
        return future

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the options of the connection: without answers to single commands, without headers."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        transport.write(_CONNECT)

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail all waiting futures with the reason."""
        self._mistake = self._mistake or "nothing more: the connection is lost"
        for future in (self.opened, *self._pings):
            if not future.done():
                future.set_exception(exc or ConnectionError(self._mistake))

    def data_received(self, data: bytes) -> None:
        """Pass on all complete messages; the bytes of an incomplete message wait for the next call."""
        data = self._rest + data if self._rest else data
        at = 0
        while (end := data.find(b"\r\n", at)) >= 0:
            line = data[at:end]
            at, begin = end + 2, at
            if line.startswith(b"MSG "):
                words = line.split()
                stop = at + int(words[-1])
                if len(data) < stop + 2:
                    at = begin
                    break
                self.receive(Message(words[2], words[3] if len(words) == 5 else b"", data[at:stop]))
                at = stop + 2
            else:
                self._control(line)
        self._rest = data[at:]

    def _control(self, line: bytes) -> None:
        if line == b"PONG":
            self._pings.pop(0).set_result(None)
        elif line == b"PING":
            self.write(b"PONG\r\n")
        elif line.startswith(b"-ERR"):
            self._mistake = line.decode()
        elif line.startswith(b"INFO") and not self.opened.done():
            self.opened.set_result(None)


def subscribe(subject: str, number: int) -> bytes:
    r"""Return the command for a subscription.

    >>> subscribe("bench.*", 7)
    b'SUB bench.* 7\r\n'
    """
    return f"SUB {subject} {number}\r\n".encode()


def publish(subject: bytes, payload: bytes, reply: bytes = b"") -> bytes:
    r"""Return the command for a message.

    >>> publish(b"bench.t1", b"hi"), publish(b"bench.t1", b"hi", b"inbox")
    (b'PUB bench.t1 2\r\nhi\r\n', b'PUB bench.t1 inbox 2\r\nhi\r\n')
    """
    if reply:
        return b"PUB %b %b %d\r\n%b\r\n" % (subject, reply, len(payload), payload)
    return b"PUB %b %d\r\n%b\r\n" % (subject, len(payload), payload)


async def opened(port: int, receive: Callable[[Message], None]) -> NatsConnection:
    """Connect to the server on a port of loopback."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: NatsConnection(receive), "127.0.0.1", port)
    await connection.opened
    return connection
