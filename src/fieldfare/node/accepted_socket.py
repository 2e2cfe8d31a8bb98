"""`AcceptedSocket`: a WebSocket of a client or neighbour after the handshake, directly on its transport.

The handshake is HTTP, and goes the way of all requests: `listener`, uvicorn, the checks of origins. Messages go another
way: all messages of a read reach the `Listener` together, within the call of the event loop that has read the bytes,
without a task or a future.

The resources of a stranger are bounded (see `listener`): the rest of a message must come in time, sent bytes must be
read in time, pings must be answered, and a socket is not read while the listener is busy.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fieldfare.node.config import Limits
from fieldfare.node.deadline import Deadline
from fieldfare.node.sockets import Listener
from fieldfare.node.websocket_frames import FrameReader, Opcode, close_answer, framed, framed_close

PING_EVERY: Final = 20.0
"""Seconds between two pings; in as much time a ping must be answered."""
MOST_UNREAD: Final = 128 << 10
"""Unsent bytes beyond which pings are not answered any more."""


class AcceptedSocket(asyncio.Protocol):
    """An open WebSocket; messages go to a `Listener`, or wait for `receive`."""

    def __init__(self, transport: asyncio.Transport, limits: Limits, lost: Callable[[Exception | None], None]) -> None:
        """Take over a transport; `lost` is called when the connection has ended."""
        self._transport = transport
        self._limits = limits
        self._lost = lost
        self._loop = asyncio.get_running_loop()
        self._frames = FrameReader(limits.frame_bytes)
        self._messages: deque[bytes | str] = deque()
        """Messages that nobody has taken; while there are any, nothing is read."""
        self._listener: Listener | None = None
        self._work: asyncio.Task[None] | None = None
        """Work of the listener on a message, for which later messages wait."""
        self._news = asyncio.Event()
        """Set with a message for `receive`, and at the end."""
        self._writable = asyncio.Event()
        self._writable.set()
        self._reads = True
        self._is_closing = False
        """Whether this side has sent a close frame, or the connection has ended: later messages do not count."""
        self._closed: asyncio.Future[None] = self._loop.create_future()
        self._unfinished = Deadline()
        self._unread = Deadline()
        self._last_word: asyncio.TimerHandle | None = None
        """Closes the transport if the other side does not answer a close frame."""
        self._ping = b""
        """Payload of the ping that waits for an answer."""
        self._pings = 0
        self._timer = self._loop.call_later(PING_EVERY, self._send_ping)

    # Owners

    def widen(self, size: int) -> None:
        """Raise the limit of message sizes."""
        self._frames.most = max(size, self._limits.frame_bytes)

    def listen(self, listener: Listener) -> None:
        """Give all messages to a listener from now on, those that have waited first."""
        self._listener = listener
        self._hand_over()

    async def receive(self) -> bytes | str | None:
        """Return the next message; None when the socket is closed."""
        while not self._messages:
            if self._is_closing:
                return None
            self._news.clear()
            await self._news.wait()
        message = self._messages.popleft()
        if not self._is_closing:
            self._read_or_pause()
        return message

    @property
    def is_closing(self) -> bool:
        """Tell whether nothing can be written any more."""
        return self._is_closing

    @property
    def is_full(self) -> bool:
        """Tell whether the other side must read before more is written."""
        return not self._writable.is_set()

    def write(self, messages: list[bytes] | list[str]) -> None:
        """Write messages at once, as frames of their own; a closed socket drops them."""
        if not self._is_closing:
            self._transport.write(b"".join(map(_framed, messages)))

    async def send(self, data: bytes | str) -> None:
        """Send a message; wait while the other side reads slowly."""
        await self._writable.wait()
        if self._is_closing:
            raise ConnectionError("the socket is closed")
        self._transport.write(_framed(data))

    async def close(self, code: int, reason: str) -> None:
        """Send a close frame; the connection ends when the other side answers, or does not in time."""
        self.hang_up(code, reason)

    def hang_up(self, code: int, reason: str) -> None:
        """Close as `close` does, at once."""
        if self._is_closing:
            return
        self._transport.write(framed_close(code, reason))
        self._transport_reads(on=True)
        self._last_word = self._loop.call_later(self._limits.hello_seconds, self._transport.close)
        self._end(heard=False)

    def shut_down(self) -> None:
        """Close the socket because the node stops, without waiting for an answer."""
        if not self._is_closing:
            self._transport.write(framed_close(1012, ""))
            self._end(heard=False)
        self._transport.close()

    async def closed(self) -> None:
        """Wait until the connection has ended."""
        await asyncio.shield(self._closed)

    # The event loop

    def data_received(self, data: bytes) -> None:
        """Hand over complete messages, and answer control frames."""
        reader, messages = self._frames, self._messages
        for opcode, payload in reader.feed(data):
            if self._is_closing and opcode < Opcode.CLOSE:
                continue
            if opcode is Opcode.BINARY:
                messages.append(payload)
            elif opcode is Opcode.TEXT:
                self._add_text(payload)
            else:
                self._control(opcode, payload)
        if messages:
            self._tell()
        if reader.fault is not None:
            self._fail(*reader.fault)
        elif not self._is_closing and (self._messages or self._work or reader.is_inside or self._unfinished.runs):
            self._read_or_pause()

    def pause_writing(self) -> None:
        """Start the deadline for a peer that does not read."""
        self._writable.clear()
        self._unread.start(self._transport, self._limits.message_seconds)

    def resume_writing(self) -> None:
        """Stop the deadline: the peer has read enough."""
        self._unread.stop()
        self._writable.set()
        if self._listener is not None:
            self._listener.resume()

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everybody that the connection has ended."""
        self._unread.stop()
        if self._last_word is not None:
            self._last_word.cancel()
        self._end()
        self._writable.set()  # else senders would wait for ever
        if self._listener is not None:
            self._listener.resume()
        if not self._closed.done():
            self._closed.set_result(None)
        self._lost(exc)

    # Messages

    def _add_text(self, payload: bytes) -> None:
        try:
            self._messages.append(payload.decode())
        except UnicodeDecodeError:
            self._tell()
            self._fail(1007, "a text is UTF-8")

    def _tell(self) -> None:
        """Give messages to the listener, unless there is none yet or earlier messages are still in work."""
        if self._listener is None:
            self._news.set()
        elif self._work is None and not self._is_closing:
            self._hand_over()

    def _begin(self, work: Coroutine[Any, Any, None] | None) -> None:
        if work is not None:
            self._work = self._loop.create_task(work)
            self._work.add_done_callback(self._finish)

    def _finish(self, work: asyncio.Task[None]) -> None:
        self._work = None
        if not work.cancelled():
            work.exception()  # the listener has seen to it
        self._hand_over()

    def _hand_over(self) -> None:
        """Give waiting messages to the listener, until it has work to do; the end comes last."""
        assert self._listener is not None
        while self._messages and self._work is None:
            self._begin(self._listener.receive(self._messages))
        if not self._is_closing:
            self._read_or_pause()
        elif self._work is None:
            self._listener.lost()

    def _read_or_pause(self) -> None:
        """Read only while no message waits; a message that was begun then has a deadline."""
        self._transport_reads(on=not self._messages and self._work is None)
        if not self._reads or not self._frames.is_inside:
            self._unfinished.stop()
        elif not self._unfinished.runs:
            self._unfinished.start(self._transport, self._limits.message_seconds)

    def _transport_reads(self, *, on: bool) -> None:
        if on != self._reads and not self._transport.is_closing():
            self._reads = on
            (self._transport.resume_reading if on else self._transport.pause_reading)()

    # Control frames and the end

    def _control(self, opcode: Opcode, payload: bytes) -> None:
        if opcode is Opcode.PING:
            if not self._is_closing and self._transport.get_write_buffer_size() <= MOST_UNREAD:
                self._transport.write(framed(Opcode.PONG, payload))
        elif opcode is Opcode.PONG:
            if payload == self._ping:
                self._ping = b""
        else:
            if not self._is_closing:
                self._transport.write(close_answer(payload))
                self._end()
            self._transport.close()

    def _send_ping(self) -> None:
        """Send a ping, unless the last one is not answered: then the other side is gone."""
        if self._ping and self._reads:
            self._fail(1011, "keepalive ping timeout")
            return
        self._pings += 1
        self._ping = self._pings.to_bytes(4)
        self._transport.write(framed(Opcode.PING, self._ping))
        self._timer = self._loop.call_later(PING_EVERY, self._send_ping)

    def _fail(self, code: int, reason: str) -> None:
        """Close the connection for a mistake of the other side, which is not heard any more."""
        if not self._is_closing:
            self._transport.write(framed_close(code, reason))
            self._end(heard=False)
        self._transport.close()

    def _end(self, *, heard: bool = True) -> None:
        """Receive no more messages; those that were received before the other side went are `heard`."""
        if self._is_closing:
            return
        self._is_closing = True
        self._timer.cancel()
        self._unfinished.stop()
        if not heard:
            self._messages.clear()
        self._news.set()
        if self._listener is not None and self._work is None:
            self._hand_over()


def _framed(message: bytes | str) -> bytes:
    if isinstance(message, bytes):
        return framed(Opcode.BINARY, message)
    return framed(Opcode.TEXT, message.encode())
