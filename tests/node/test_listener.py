"""What strangers may hold on to: connections, half requests, half messages. Tried with plain sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import websockets
from tests.certificates import self_signed
from tests.node.http.helpers import SECRET, Api, api, until

from fieldfare.node import listener as doors
from fieldfare.node import websocket_frames
from fieldfare.node.config import Limits
from fieldfare.node.listener import Door
from fieldfare.node.security import make_token
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import JSON_CODEC
from fieldfare.protocol.link_frames import SUBPROTOCOL, LinkHello, encode

HANDSHAKE = (
    "GET {path} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Protocol: {protocol}\r\n{more}\r\n"
)
JSON = websockets.Subprotocol("fieldfare.v2.json")
PATIENT = 30
"""seconds that a test waits for what must happen"""


class Peer:
    """A plain connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def say(self, data: bytes) -> None:
        self.writer.write(data)

    async def gone(self) -> bytes:
        """All that comes until the other side hangs up."""
        data = b""
        async with asyncio.timeout(PATIENT):
            with contextlib.suppress(ConnectionError):
                while more := await self.reader.read(65536):
                    data += more
        return data


@contextlib.asynccontextmanager
async def peer(found: Api) -> AsyncIterator[Peer]:
    port = int(found.url.rpartition(":")[2])
    one = Peer(*await asyncio.open_connection("127.0.0.1", port))
    try:
        yield one
    finally:
        one.writer.transport.abort()
        one.writer.close()


@contextlib.asynccontextmanager
async def upgraded(
    found: Api, path: str = "/", protocol: str = "fieldfare.v2.json", more: str = ""
) -> AsyncIterator[Peer]:
    async with peer(found) as one:
        one.say(HANDSHAKE.format(path=path, protocol=protocol, more=more).encode())
        assert b"101" in await one.reader.readuntil(b"\r\n\r\n")
        yield one


def frame(data: bytes, opcode: int = 1, *, fin: bool = True) -> bytes:
    """A masked frame; the mask is 0."""
    size = len(data)
    head = bytes([opcode | (0x80 if fin else 0)])
    if size < 126:
        head += bytes([0x80 | size])
    elif size < 1 << 16:
        head += bytes([0x80 | 126]) + size.to_bytes(2)
    else:
        head += bytes([0x80 | 127]) + size.to_bytes(8)
    return head + bytes(4) + data


def hello() -> bytes:
    return frame(str(JSON_CODEC.encode(f.Hello())).encode())


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"\r\n",
        b"GET / HT",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ",
        b"\x16\x03\x01",
    ],
)
def test_who_says_nothing_or_half_a_request_is_shown_out(said: bytes) -> None:
    async def main() -> None:
        async with api(limits__hello_seconds=0.2) as found, peer(found) as one:
            one.say(said)
            await one.gone()

    asyncio.run(main())


def test_who_drips_headers_is_shown_out() -> None:
    async def main() -> None:
        async with api(limits__hello_seconds=0.3) as found, peer(found) as one:
            one.say(b"GET / HTTP/1.1\r\nHost: localhost\r\n")
            ended = asyncio.ensure_future(one.gone())
            while not ended.done():
                with contextlib.suppress(ConnectionError):
                    one.say(b"x: y\r\n")
                await asyncio.sleep(0.05)
            await ended

    asyncio.run(main())


def test_half_a_body_and_half_a_second_request_are_shown_out() -> None:
    async def main() -> None:
        async with api(limits__hello_seconds=0.3, limits__message_seconds=0.3) as found:
            post = b"POST /events HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            async with peer(found) as one:
                one.say(post + b"Content-Length: 100\r\n\r\n{")
                await one.gone()
            async with peer(found) as one:
                one.say(post + b"Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n")
                await one.gone()
            async with peer(found) as one:
                one.say(b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert b"200 OK" in await one.reader.readuntil(b"\r\n\r\n")
                one.say(b"\r\n")
                await one.gone()

    asyncio.run(main())


@pytest.mark.parametrize("endless", [b"x", b"x: y\r\n", b"GET /"])
def test_headers_are_bounded(endless: bytes) -> None:
    async def main() -> None:
        async with api(limits__header_bytes=10_000) as found, peer(found) as one:
            one.say(b"GET / HTTP/1.1\r\nHost: localhost\r\n" if endless != b"GET /" else b"")
            one.say(endless + b"a" * 20_000 if endless == b"GET /" else endless * 20_000)
            answer = await one.gone()
            assert answer == b"" or answer.startswith((b"HTTP/1.1 431 ", b"HTTP/1.1 400 "))

    asyncio.run(main())


def test_what_stands_around_a_body_is_bounded() -> None:
    async def main() -> None:
        async with api(limits__header_bytes=10_000) as found:
            post = b"POST /events HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
            for endless in (b"1;" + b"x" * 400_000, b"0\r\nx: " + b"y" * 400_000, b"0\r\n" + b"x: y\r\n" * 100_000):
                async with peer(found) as one:
                    one.say(post + endless)
                    assert (await one.gone()).startswith((b"HTTP/1.1 4", b""))
            ordinary = b"".join(b"1\r\n%c\r\n" % char for char in b'{"a":"' + b"x" * 20_000 + b'"}') + b"0\r\n\r\n"
            async with peer(found) as one:
                one.say(post.replace(b"\r\n\r\n", b"\r\nContent-Type: application/json\r\n\r\n") + ordinary)
                assert b"202" in await one.reader.readuntil(b"\r\n\r\n")

    asyncio.run(main())


def test_who_does_not_say_hello_is_shown_out() -> None:
    async def main() -> None:
        async with api(limits__hello_seconds=0.2, limits__message_seconds=0.2) as found:
            for said in (b"", frame(b"{}")[:-1], frame(b"", fin=False), frame(b"x", 9)):
                async with upgraded(found) as one:
                    one.say(said)
                    await one.gone()

    asyncio.run(main())


@pytest.mark.parametrize("half", [frame(b"x" * 1000)[:-500], frame(b"x", fin=False), frame(b"", fin=False)])
def test_half_a_message_after_hello_is_shown_out_and_silence_is_not(half: bytes) -> None:
    async def main() -> None:
        async with api(limits__message_seconds=0.2) as found:
            node = found.service.node
            async with upgraded(found) as quiet, upgraded(found) as one:
                for each in (quiet, one):
                    each.say(hello())
                    await each.reader.readuntil(b'"Welcome"')
                assert len(node.closers) == 2
                one.say(half)
                await one.gone()
                await until(lambda: len(node.closers) == 1, PATIENT)
                quiet.say(frame(b'{"is":"WatchInterest","request":7}'))
                async with asyncio.timeout(PATIENT):
                    await quiet.reader.readuntil(b'"request":7')

    asyncio.run(main())


def test_a_message_in_endless_fragments_is_refused() -> None:
    async def main() -> None:
        async with api() as found, upgraded(found) as one:
            one.say(frame(b"", fin=False) + frame(b"", 0, fin=False) * (websocket_frames.MOST_FRAGMENTS + 5))
            assert b"too many fragments" in await one.gone()

    asyncio.run(main())


def test_pings_are_not_answered_for_ever_to_who_does_not_read() -> None:
    async def main() -> None:
        async with api(limits__message_seconds=0.5) as found, upgraded(found) as one:
            one.say(hello())
            await until(lambda: found.service.node.closers, PATIENT)
            one.writer.transport.pause_reading()  # type: ignore[attr-defined]
            with contextlib.suppress(ConnectionError):
                async with asyncio.timeout(PATIENT):
                    while True:  # it ends when the node hangs up
                        one.say(frame(b"x" * 100, 9) * 1000)
                        await one.writer.drain()
                        await asyncio.sleep(0)

    asyncio.run(main())


def test_who_is_told_to_go_and_does_not_read_the_last_of_it_is_shown_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little enough was unsent that nobody had paused writing; so closing waited for ever, and took up a place."""
    made: list[Door] = []
    monkeypatch.setattr(doors.Door, "__init__", _noting(doors.Door.__init__, made))

    async def main() -> None:
        async with api(limits__message_seconds=0.2, limits__hello_seconds=60) as found, peer(found) as one:
            one.writer.transport.pause_reading()  # type: ignore[attr-defined]
            await until(lambda: made[0].inside, PATIENT)
            (plain,) = made[0].inside
            await until(lambda: plain.transport is not None, PATIENT)
            plain.transport.set_write_buffer_limits(high=1 << 30)
            while not plain.transport.get_write_buffer_size():
                plain.transport.write(b"x" * 10_000)
            plain.transport.close()
            await until(lambda: not made[0].inside, PATIENT)

    asyncio.run(main())


def _noting(init: Any, made: list[Door]) -> Any:
    def noted(self: Door, *given: Any) -> None:
        made.append(self)
        init(self, *given)

    return noted


@pytest.mark.parametrize("token", [False, True])
def test_a_node_may_not_send_large_frames_before_it_has_said_who_it_is(token: bool) -> None:
    async def main() -> None:
        flags = {"security__secret": SECRET} if token else {}
        async with api(**flags, limits__frame_bytes=100_000) as found:
            clock = found.service.node.clock()
            more = f"Authorization: Bearer {make_token(SECRET, 'b', ['node'], 60, clock)}\r\n" if token else ""
            meet = LinkHello("b", "", "covering", reaches={"c": {f"node{n}": "x" * 1000 for n in range(200)}})
            async with upgraded(found, "/link", SUBPROTOCOL, more) as one:
                one.say(frame(encode(meet), 2))
                assert b"exceeds limit of 100000 bytes" in await one.gone()
            assert found.service.hood.up == {}

    asyncio.run(main())


def test_all_connections_count_and_those_that_end_make_room() -> None:
    async def main() -> None:
        async with api(limits__connections=3, limits__hello_seconds=60) as found:
            async with contextlib.AsyncExitStack() as stack:
                for _ in range(2):
                    await stack.enter_async_context(peer(found))
                await stack.enter_async_context(upgraded(found))
                async with peer(found) as one:
                    answer = await one.gone()
                    assert answer.startswith(b"HTTP/1.1 503 ")
                    assert b"limits.connections" in answer

            async def answers() -> bool:
                try:
                    return (await found.client.get("/health")).status_code == 200
                except httpx.TransportError:
                    return False

            async with asyncio.timeout(PATIENT):
                while not await answers():
                    await asyncio.sleep(0.01)

    asyncio.run(main())


def test_requests_that_wait_in_line_are_bounded() -> None:
    async def main() -> None:
        async with api() as found, peer(found) as one:
            one.say(b"GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n" * (doors.MOST_PIPELINED + 50))
            await one.gone()

    asyncio.run(main())


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    certificate, key = tmp_path / "node.pem", tmp_path / "node.key"
    self_signed(certificate, key)
    return certificate, key


def test_who_begins_tls_and_says_no_more_counts_and_is_shown_out(certificate: tuple[Path, Path]) -> None:
    async def main() -> None:
        where = {"tls__certificate": str(certificate[0]), "tls__key": str(certificate[1])}
        async with api(**where, limits__connections=2, limits__hello_seconds=0.5) as found:
            async with peer(found) as silent, peer(found) as half, peer(found) as refused:
                half.say(b"\x16\x03\x01\x02\x00\x01")
                assert await refused.gone() == b""
                await asyncio.gather(silent.gone(), half.gone())
            context = ssl.create_default_context(cafile=str(certificate[0]))
            async with httpx.AsyncClient(base_url=found.url, verify=context, trust_env=False) as client:
                async with asyncio.timeout(PATIENT):
                    while True:
                        with contextlib.suppress(httpx.TransportError):
                            assert (await client.get("/health")).status_code == 200
                            break
                url = found.service.hood.url
                async with websockets.connect(url, ssl=context, subprotocols=[JSON], proxy=None) as ws:
                    await ws.send(JSON_CODEC.encode(f.Hello()))
                    assert "Welcome" in str(await ws.recv())

    asyncio.run(main())


FLOODED = """
import asyncio, resource, sys
resource.setrlimit(resource.RLIMIT_NOFILE, (300, 512))
from fieldfare.node.config import load
from fieldfare.node.http import routes
from fieldfare.node.server import running
from fieldfare.events.event import Event

async def main():
    flags = {"port": 0, "name": "a", "data": sys.argv[1], "log.segment_bytes": 20_000}
    async with running(load(None, {}, flags), routes) as service:
        port = int(service.hood.url.rpartition(":")[2])
        for number in range(20):
            await service.publish([Event({"n": n, "x": "y" * 500}) for n in range(50)])
        print("ready", port, flush=True)
        await asyncio.to_thread(sys.stdin.readline)
        before = len(list(__import__("pathlib").Path(sys.argv[1]).rglob("*")))
        for number in range(40):
            await service.publish([Event({"n": n, "x": "y" * 500}) for n in range(50)])
        assert not service.node.failure.done(), service.node.failure
        print("done", len(list(__import__("pathlib").Path(sys.argv[1]).rglob("*"))) > before, flush=True)

if sys.argv[2] == "uvloop":
    import uvloop
    uvloop.run(main())
else:
    asyncio.run(main())
"""


@pytest.mark.parametrize("loop", [pytest.param("asyncio", marks=pytest.mark.long), "uvloop"])
def test_connections_never_take_the_last_descriptors_from_the_log(loop: str, tmp_path: Path) -> None:
    script = tmp_path / "flooded.py"
    script.write_text(FLOODED)
    process = subprocess.Popen(
        [sys.executable, str(script), str(tmp_path / "data"), loop],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdin is not None

    try:
        word, port = process.stdout.readline().split()
        assert word == "ready"
        with contextlib.ExitStack() as stack:
            for _ in range(600):
                stack.enter_context(socket.create_connection(("127.0.0.1", int(port)), PATIENT))
            process.stdin.write("go\n")
            process.stdin.flush()
            assert process.stdout.readline() == "done True\n"
        assert process.wait(600) == 0
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stdin.close()


def test_the_door_says_seldom_that_it_is_full(caplog: pytest.LogCaptureFixture) -> None:
    def make(_: Door) -> Any:
        raise AssertionError("there is no room")

    door = Door(Limits(), 0)
    for _ in range(100):
        ours, theirs = socket.socketpair()
        with theirs:
            door.welcome(ours, make)
            assert theirs.recv(20).startswith(b"HTTP/1.1 503")
    assert door.refused == 100
    assert len(caplog.records) == 7


def test_a_node_without_settings_for_tls_joins_one_that_has(
    certificate: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))  # whom the machine trusts

    async def main() -> None:
        where = {"tls__certificate": str(certificate[0]), "tls__key": str(certificate[1])}
        async with api(**where) as first, api(name="b", join=(first.service.hood.url,)) as second:
            await until(lambda: second.service.hood.up and first.service.hood.up, PATIENT)

    asyncio.run(main())
