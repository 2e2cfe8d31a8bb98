"""A WebSocket below ASGI: what the other side may do to it, on a transport of the test."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

import pytest
from tests.node.lines import Line, served
from tests.node.talking import settings, talking, until

from fieldfare.node import accepted_socket
from fieldfare.node.config import Limits
from fieldfare.node.server import running
from fieldfare.node.websocket_frames import MOST_FRAGMENTS
from fieldfare.protocol import frames as f
from fieldfare_lab.node.websocket import packed

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Listening:
    """A listener that notes messages, and works on some for as long as the test wants."""

    def __init__(self) -> None:
        self.got: list[bytes | str] = []
        self.resumed = 0
        self.lost_at: int | None = None
        """how many messages there were before the end"""
        self.done = asyncio.Event()

    def receive(self, messages: deque[bytes | str]) -> Coroutine[Any, Any, None] | None:
        while messages:
            self.got.append(messages.popleft())
            if self.got[-1] == b"work":
                return self._work()
        return None

    async def _work(self) -> None:
        await self.done.wait()

    def resume(self) -> None:
        self.resumed += 1

    def lost(self) -> None:
        assert self.lost_at is None
        self.lost_at = len(self.got)


def on_a_line(test: Callable[[Line, Listening], Awaitable[None]], **limits: Any) -> None:
    async def main() -> None:
        line, listening = Line(limits=Limits(**limits)), Listening()
        line.socket.listen(listening)
        async with asyncio.timeout(60):
            await test(line, listening)
        line.close()

    asyncio.run(main())


def fragment(opcode: int, data: bytes, *, last: bool = False) -> bytes:
    whole = packed(opcode, data)
    return whole if last else bytes([opcode]) + whole[1:]


def test_messages_come_whole_whatever_is_between_their_parts() -> None:
    async def test(line: Line, listening: Listening) -> None:
        parts = fragment(TEXT, b"f\xc3") + packed(PING, b"?") + fragment(0, b"\xbc", last=True)
        for data in (parts, packed(BINARY, b"2") + packed(TEXT, b"3")):
            for byte in data:
                line.push(bytes([byte]))
        await until(lambda: len(listening.got) == 3)
        assert listening.got == ["fü", b"2", "3"]
        assert line.written == [(PONG, b"?")]

    on_a_line(test)


@pytest.mark.parametrize(
    ("data", "code"),
    [
        (b"\x82\x02hi\x82\x02", 1002),  # no mask
        (packed(TEXT, b"\xff"), 1007),
        (fragment(BINARY, b""), None),
        (fragment(BINARY, b"") + fragment(0, b"") * MOST_FRAGMENTS, 1009),
        (packed(0, b""), 1002),
        (fragment(BINARY, b"") + packed(BINARY, b""), 1002),
        (packed(3, b""), 1002),
        (packed(PING, b"x" * 126), 1002),
        (b"\xc2" + packed(BINARY, b"")[1:], 1002),
        (packed(BINARY, b"x" * 1001), 1009),
        (fragment(BINARY, b"x" * 600) + packed(0, b"x" * 600), 1009),
        (b"\x82\xff" + b"\xff" * 12, 1009),
        (packed(CLOSE, (4000).to_bytes(2)), 4000),
        (packed(CLOSE, b"x"), 1002),
    ],
)
def test_a_mistake_closes_the_connection_with_its_code(data: bytes, code: int | None) -> None:
    async def test(line: Line, listening: Listening) -> None:
        line.push(packed(BINARY, b"before"))
        line.push(data)
        line.push(packed(BINARY, b"behind") if code is not None else fragment(0, b"!", last=True))
        await until(lambda: not line.coming or line.is_closing())
        assert listening.got == [b"before", *([b"!"] if code is None else [])]
        assert (line.closed_with[0] if line.closed_with else None) == code
        assert line.is_closing() == (code is not None)

    on_a_line(test, frame_bytes=1000)


def test_nothing_is_read_while_the_listener_works() -> None:
    async def test(line: Line, listening: Listening) -> None:
        line.push(packed(BINARY, b"work") + packed(BINARY, b"2") + packed(BINARY, b"3")[:-1])
        for _ in range(3):
            line.push(packed(BINARY, b"x"))
        await until(lambda: len(line.coming) == 3)
        for _ in range(20):
            await asyncio.sleep(0)
        assert (listening.got, len(line.coming)) == ([b"work"], 3)
        line.coming[0] = b"3" + line.coming[0]
        listening.done.set()
        await until(lambda: len(listening.got) == 6)
        assert listening.got[1:] == [b"2", b"3", b"x", b"x", b"x"]

    on_a_line(test)


@pytest.mark.parametrize("end", [packed(CLOSE, b""), b""], ids=["close", "cut off"])
def test_messages_before_the_end_are_heard_and_the_end_comes_last(end: bytes) -> None:
    async def test(line: Line, listening: Listening) -> None:
        line.push(packed(BINARY, b"work") + packed(BINARY, b"2") + end)
        await until(lambda: listening.got)
        if not end:
            line.close()
        await until(line.is_closing)
        for _ in range(10):
            await asyncio.sleep(0)
        assert listening.lost_at is None
        listening.done.set()
        await until(lambda: listening.lost_at is not None)
        assert listening.lost_at == 2

    on_a_line(test)


def test_half_a_message_has_a_deadline_unless_the_node_does_not_read() -> None:
    async def test(line: Line, listening: Listening) -> None:
        line.push(packed(BINARY, b"work") + packed(BINARY, b"2")[:-1])
        await until(lambda: listening.got)
        await asyncio.sleep(0.1)
        assert not line.is_aborted
        listening.done.set()
        await until(lambda: line.is_aborted)

    on_a_line(test, message_seconds=0.05)


def test_who_does_not_read_has_a_deadline_and_gets_no_more_pongs() -> None:
    async def test(line: Line, listening: Listening) -> None:
        line.buffered = accepted_socket.MOST_UNREAD + 1
        line.push(packed(PING, b"x") * 1000)
        await until(lambda: not line.coming)
        assert line.written == []
        line.stop_reading()
        assert line.socket.is_full
        line.read_again()
        assert listening.resumed == 1
        line.stop_reading()
        await until(lambda: line.is_aborted)

    on_a_line(test, message_seconds=0.05)


def test_pings_must_be_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accepted_socket, "PING_EVERY", 0.01)

    async def test(line: Line, listening: Listening) -> None:
        for number in range(1, 6):
            await until(lambda number=number: len(line.written) >= number)
            assert line.closed_with is None
            line.push(packed(PONG, line.written[-1][1]))
        line.push(packed(PONG, b"never asked for"))
        await until(line.is_closing)
        assert line.closed_with == (1011, "keepalive ping timeout")

    on_a_line(test)


def test_a_close_frame_without_an_answer_is_enough() -> None:
    async def test(line: Line, listening: Listening) -> None:
        await line.socket.close(1008, "go")
        await line.socket.close(1000, "twice")
        line.push(packed(BINARY, b"too late"))
        line.socket.write([b"too late"])
        with pytest.raises(ConnectionError):
            await line.socket.send(b"too late")
        await until(line.is_closing)
        await line.socket.closed()
        assert line.closed_with == (1008, "go")
        assert (listening.got, listening.lost_at, len(line.written)) == ([], 0, 1)

    on_a_line(test, hello_seconds=0.05)


# With a node


def test_a_client_that_vanishes_at_any_byte_leaves_nothing_behind() -> None:
    """Cut off within the handshake of frames, or within an event; whole events before it count."""
    talk = (f.Hello(session="ana", credit=10), f.Subscribe(1, "s", "TRUE"), f.WatchInterest(2))

    async def main() -> None:
        async with running(settings()) as node:
            line = Line(*talk)
            data = b"".join(line.coming)
            line.close()
            for end in range(0, len(data) + 1, 7):
                line = Line()
                line.push(data[:end])
                async with served(node, line) as serving:
                    await until(lambda line=line: not line.coming)
                    line.close()
                    await asyncio.wait_for(serving, 60)
            assert node.node.closers == {}
            assert node.node.wakers == {}
            await until(lambda: not node.node.core.sessions["ana"].connected)
            async with talking(node) as bob:
                await bob.publish(1, {"x": 1})

    asyncio.run(main())


def test_all_that_is_due_in_a_turn_is_one_write() -> None:
    async def main() -> None:
        async with running(settings()) as node, talking(node) as bob:
            line = Line(f.Hello(credit=1000), f.Subscribe(1, "s", "TRUE"))
            async with served(node, line):
                await until(lambda: len(line.sent) == 2)
                writes = line.writes
                line.say(f.Unsubscribe(2, "no"), f.Unsubscribe(3, "no"))
                line.coming.append(line.coming.popleft() + line.coming.popleft())
                await until(lambda: len(line.sent) == 4)
                assert line.writes == writes + 1
                await bob.publish(1, *({"x": x} for x in range(100)))
                await until(lambda: isinstance(line.sent[-1], f.Deliveries))
                assert line.writes == writes + 2
                deliveries = line.sent[-1]
                assert isinstance(deliveries, f.Deliveries)
                assert len(deliveries.items) == 100

    asyncio.run(main())


def test_a_client_that_does_not_read_gets_nothing_more_until_it_does() -> None:
    async def main() -> None:
        async with running(settings()) as node, talking(node) as bob:
            line = Line(f.Hello(credit=1000), f.Subscribe(1, "s", "TRUE"))
            async with served(node, line):
                await until(lambda: len(line.sent) == 2)
                line.stop_reading()
                for number in range(1, 6):
                    await bob.publish(number, {"x": number})
                assert len(line.sent) == 2
                line.read_again()
                await until(lambda: len(line.sent) > 2)
                assert [one.number for frame in line.sent[2:] for one in getattr(frame, "items", ())] == [1, 2, 3, 4, 5]
                assert len(line.sent) == 3

    asyncio.run(main())
