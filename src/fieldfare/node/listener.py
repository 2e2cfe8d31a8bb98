"""The listener of a node: counts all connections from the first moment, and closes slow connections.

No peer is authenticated at this point. So the resources of each connection are bounded before any byte is parsed:

- **How many**: every connection counts in `limits.connections` from the accept on, TLS handshakes included.
- **How long**: headers, a TLS handshake and the answer to a farewell must be there within `limits.hello_seconds`; the
  rest of a body or of a WebSocket's message within `limits.message_seconds`. In as much time the peer must read some of
  the node's bytes. (The first message, `Hello`, has a deadline in `ClientConnection`.)
- **How large**: headers have `limits.header_bytes`; a message `limits.frame_bytes`, in a bounded number of fragments,
  also from a neighbour before the introduction (`AcceptedSocket.widen`).

uvicorn does none of this, so both protocols of uvicorn are extended here. The protocol of WebSockets answers the
handshake; then the connection is an `AcceptedSocket`, with the same limits.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket as sockets
import ssl
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final, cast

import httptools
import msgspec
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol

from fieldfare.node.accepted_socket import AcceptedSocket
from fieldfare.node.config import Limits
from fieldfare.node.deadline import Deadline

BURST: Final = 32
"""Connections that are accepted in a row."""
PAUSE: Final = 0.5
"""Seconds before the next attempt to accept."""
MOST_PIPELINED: Final = 100
"""Requests that may wait for the answer to an earlier one."""
ACCEPT: Final = "fieldfare.accept"
"""Key in the scope of a WebSocket; its function returns the `AcceptedSocket` after the handshake."""

logger = logging.getLogger("fieldfare.node")


class Door:
    """The open connections of a node, and the limits."""

    def __init__(self, limits: Limits, most: int, tls: ssl.SSLContext | None = None) -> None:
        """Accept at most `most` connections at a time."""
        self.limits = limits
        self.most = most
        self.inside: set[Plain] = set()
        self.refused = 0
        self._tls = tls
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, listening: sockets.socket, make: Callable[[Door], Plain]) -> None:
        """Accept connections, for ever; the event loop alone would count connections too late."""
        loop = asyncio.get_running_loop()
        listening.setblocking(False)
        while True:
            for _ in range(BURST):
                try:
                    socket, _ = await loop.sock_accept(listening)
                except OSError as error:
                    logger.warning("cannot accept connections: %s; again in a moment", error)
                    await asyncio.sleep(PAUSE)
                    continue
                self.welcome(socket, make)
            await asyncio.sleep(0)  # there may always be one more, and others have work to do

    def welcome(self, socket: sockets.socket, make: Callable[[Door], Plain]) -> None:
        """Serve a connection, or close the connection at once, beyond the limit."""
        if len(self.inside) >= self.most:
            self._turn_away(socket)
            return
        plain = make(self)
        self.inside.add(plain)
        task = asyncio.create_task(self._connect(plain, socket))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _turn_away(self, socket: sockets.socket) -> None:
        self.refused += 1
        if self.refused & (self.refused - 1) == 0:  # the 1st, 2nd, 4th: not each of a flood
            logger.warning("%d connections refused so far: there are %d already", self.refused, self.most)
        with socket, contextlib.suppress(OSError):
            socket.setblocking(False)
            if self._tls is None:
                socket.send(_answer(503, "there are too many connections already: see limits.connections"))

    async def _connect(self, plain: Plain, socket: sockets.socket) -> None:
        seconds = self.limits.hello_seconds if self._tls is not None else None
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: plain, socket, ssl=self._tls, ssl_handshake_timeout=seconds, ssl_shutdown_timeout=seconds
            )
        except OSError as error:  # a handshake that fails, or takes too long
            logger.debug("no connection: %s", error)
            self.inside.discard(plain)
        except BaseException:
            self.inside.discard(plain)
            raise

    async def sweep(self) -> None:
        """Abort connections that are closing but do not read the last bytes, for which closing would wait."""
        before: set[Plain] = set()
        while True:
            await asyncio.sleep(self.limits.message_seconds)
            closing = {plain for plain in self.inside if plain.is_closing}
            for plain in closing & before:
                plain.transport.abort()
            before = closing

    async def close(self) -> None:
        """Close every connection at once, also before the first message."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for plain in self.inside:
            plain.transport.abort()


def _answer(status: int, detail: str) -> bytes:
    """Return a complete HTTP answer with a problem of RFC 9457."""
    title = HTTPStatus(status).phrase
    body = msgspec.json.encode({"type": "about:blank", "title": title, "status": status, "detail": detail})
    head = [
        f"HTTP/1.1 {status} {title}",
        "content-type: application/problem+json",
        f"content-length: {len(body)}",
        "connection: close",
        *(["retry-after: 10"] if status == 503 else []),
    ]
    return "\r\n".join([*head, "", ""]).encode() + body


class Plain(HttpToolsProtocol):
    """HTTP. A deadline runs while a request is incomplete; between requests uvicorn has a deadline of its own."""

    def __init__(self, door: Door, **given: Any) -> None:
        """Begin with the headers of the first request."""
        self._door = door
        self._unfinished = Deadline()
        self._unread = Deadline()
        HttpToolsProtocol.__init__(self, **given)
        self._head = True
        """Whether headers are being read, or awaited."""
        self._extra = 0
        """Bytes of the request so far that are no body."""
        self._body = 0

    @property
    def is_closing(self) -> bool:
        """Tell whether the connection is closed but for unread bytes; during a TLS handshake there is no transport."""
        transport = cast("asyncio.Transport | None", self.transport)
        return transport is not None and transport.is_closing()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Start the deadline of the first request."""
        HttpToolsProtocol.connection_made(self, transport)
        self._unfinished.start(transport, self._door.limits.hello_seconds)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the count."""
        self.leave()
        HttpToolsProtocol.connection_lost(self, exc)

    def leave(self) -> None:
        """End the deadlines, and make room for another connection."""
        self._unfinished.stop()
        self._unread.stop()
        self._door.inside.discard(self)

    def data_received(self, data: bytes) -> None:
        """Parse a part of requests, within the limits of sizes."""
        if self.transport.is_closing():
            return
        if self._head and not self._unfinished.runs:
            self._unfinished.start(self.transport, self._door.limits.hello_seconds)
        self._extra += len(data)
        HttpToolsProtocol.data_received(self, data)
        # A chunk of the body may be one byte, and has some more around it.
        if self._extra > self._door.limits.header_bytes + 16 * self._body and not self.transport.is_closing():
            self.transport.write(_answer(431, "the headers are too large: see limits.header_bytes"))
            self.transport.close()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Handle a header; trailers behind a body are left out."""
        if self._head:
            HttpToolsProtocol.on_header(self, name, value)

    def on_headers_complete(self) -> None:
        """Handle the end of the headers."""
        if len(self.pipeline) >= MOST_PIPELINED:
            raise httptools.HttpParserError("too many requests at once")
        self._head = False
        self._unfinished.start(self.transport, self._door.limits.message_seconds)
        HttpToolsProtocol.on_headers_complete(self)

    def on_body(self, body: bytes) -> None:
        """Handle a part of the body."""
        self._extra -= len(body)
        self._body += len(body)
        HttpToolsProtocol.on_body(self, body)

    def on_message_complete(self) -> None:
        """Handle the end of a request: the deadline stops."""
        self._unfinished.stop()
        self._head, self._extra, self._body = True, 0, 0
        HttpToolsProtocol.on_message_complete(self)

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to the WebSocket protocol."""
        self._unfinished.stop()
        self._unread.stop()
        self.ws_protocol_class = cast("Any", partial(Handshake, self._door, self))
        HttpToolsProtocol.handle_websocket_upgrade(self)

    def pause_writing(self) -> None:
        """Start the deadline for a peer that does not read."""
        self._unread.start(self.transport, self._door.limits.message_seconds)
        HttpToolsProtocol.pause_writing(self)

    def resume_writing(self) -> None:
        """Stop the deadline: the peer has read enough."""
        self._unread.stop()
        HttpToolsProtocol.resume_writing(self)


class Handshake(WebSocketsSansIOProtocol):
    """The opening handshake of a WebSocket, answered by the application; then an `AcceptedSocket` has the transport."""

    def __init__(self, door: Door, before: Plain, **given: Any) -> None:
        """Continue an HTTP connection, which stays counted as such; its upgrade request is next."""
        self._door = door
        self._before = before
        self._accepted: AcceptedSocket | None = None
        self._asked = False
        self._early = b""
        """Frames that came before the answer."""
        WebSocketsSansIOProtocol.__init__(self, **given)

    def accept(self) -> AcceptedSocket:
        """Return the socket, once the handshake was answered."""
        socket = self._accepted = AcceptedSocket(self.transport, self._door.limits, self.connection_lost)
        self.transport.set_protocol(socket)
        if self._early:
            self.transport.resume_reading()
            socket.data_received(self._early)
        return socket

    def handle_connect(self, event: Any) -> None:
        """Pass the request on; handlers find `accept` in the scope."""
        self.app_state = {**self.app_state, ACCEPT: self.accept}
        WebSocketsSansIOProtocol.handle_connect(self, event)

    def data_received(self, data: bytes) -> None:
        """Read the request; all other bytes are frames, and wait."""
        if self._asked:
            self._early += data
            self.transport.pause_reading()
        else:
            self._asked = True
            WebSocketsSansIOProtocol.data_received(self, data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection from the count."""
        self._before.leave()
        WebSocketsSansIOProtocol.connection_lost(self, exc)

    def shutdown(self) -> None:
        """Close the connection, since the node stops."""
        if self._accepted is not None:
            self._accepted.shut_down()
        else:
            WebSocketsSansIOProtocol.shutdown(self)

    async def send(self, message: Any) -> None:
        """Answer the handshake; an HTTP answer instead ends the connection."""
        await WebSocketsSansIOProtocol.send(self, message)
        if message["type"] == "websocket.http.response.body" and not message.get("more_body", False):
            self.handshake_complete = True  # else uvicorn logs an error for each page that is refused
