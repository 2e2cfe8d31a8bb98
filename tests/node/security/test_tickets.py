"""A client that follows its session to a node that only other nodes have named shows a ticket there, not its token."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
import websockets
from tests.node.talking import linked, talking, until

from fieldfare.client.client import Client, connect
from fieldfare.core.passes import LIFE
from fieldfare.node.config import Secret, load
from fieldfare.node.context import Context
from fieldfare.node.security import make_token, tickets
from fieldfare.node.server import running
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import MSGPACK_CODEC

SECRET = "a secret that has more than thirty-two bytes"
SETTINGS = f"""
name = "a"
port = 0
[security]
secret = "{SECRET}"
[security.roles.client]
publish = true
subscribe = true
interest = true
[security.roles.node]
join = true
"""


def token(name: str, seconds: float = 600.0) -> str:
    return make_token(Secret(SECRET), name, ["client"], seconds, time.time())


@contextlib.asynccontextmanager
async def two(folder: Path, **other: object) -> AsyncIterator[tuple[Context, Context]]:
    file = folder / "a.toml"
    file.write_text(SETTINGS)
    async with running(load(file, {}, {})) as a:
        config = msgspec.structs.replace(a.node.config, name="b", join=(a.hood.url,), **other)
        async with running(config) as b:
            await linked(a, b)
            yield a, b


async def offer(source: Context, target: Context, session: str) -> None:
    """As an administrator does, or as a neighbour could that calls for a session."""
    ticket = source.node.fresh_name()
    await source.node.submit(lambda core, _: core.handovers.offer(session, target.node.name, ticket))


def test_a_client_follows_with_a_ticket_and_comes_back_with_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hellos: list[f.Hello] = []
    decode = MSGPACK_CODEC.from_client

    async def test() -> None:
        async with two(tmp_path) as (a, b):
            states: list[str] = []
            async with (
                connect(
                    a.hood.url,
                    session="s",
                    token=token("ana"),
                    on_state=lambda state, why: states.append(f"{state} {why}"),
                ) as ana,
                connect(a.hood.url, token=token("bob")) as bob,
                ana.subscribe("x > 0") as events,
            ):
                await offer(a, b, "s")
                await until(lambda: ana.node == "b")
                await bob.publish({"x": 1})
                assert await events.next(10) == {"x": 1}
                await ana.publish({"x": 2})
                assert await events.next(10) == {"x": 2}
                first = b.node.core.handovers.passes["s"][0].digests
                b.node.closers["s"]("once more", again=True)  # a break
                await until(lambda: b.node.core.handovers.passes["s"][0].digests != first)
                await until(lambda: ana.connected)
                assert ana.node == "b"
                assert len(b.node.core.handovers.passes["s"][0].digests) == 2
                assert first[0] not in b.node.core.handovers.passes["s"][0].digests
                await bob.publish({"x": 3})
                assert await events.next(10) == {"x": 3}
                await offer(b, a, "s")  # and home again, where the token is good
                await until(lambda: ana.node == "a")
                assert "s" not in b.node.core.handovers.passes
                await bob.publish({"x": 4})
                assert await events.next(10) == {"x": 4}

    def noted(data: bytes | str) -> f.FromClient:
        frame = decode(data)
        if isinstance(frame, f.Hello) and frame.session == "s":
            hellos.append(frame)
        return frame

    monkeypatch.setattr(type(MSGPACK_CODEC), "from_client", lambda self, data: noted(data))
    asyncio.run(test())
    assert [bool(hello.token) for hello in hellos] == [True, False, False, True]
    assert [bool(hello.ticket) for hello in hellos] == [False, True, True, False]


def test_a_node_that_calls_a_session_does_not_get_the_token(tmp_path: Path) -> None:
    """It could else do all that the client may, everywhere."""
    heard: list[f.Hello] = []

    async def trap(socket: websockets.ServerConnection) -> None:
        frame = MSGPACK_CODEC.from_client(await socket.recv(decode=False))
        assert isinstance(frame, f.Hello)
        heard.append(frame)

    async def test() -> None:
        name = websockets.Subprotocol(MSGPACK_CODEC.name)
        async with websockets.serve(trap, "127.0.0.1", 0, subprotocols=[name]) as server:
            port = next(iter(server.sockets)).getsockname()[1]
            async with (
                two(tmp_path, public_url=f"ws://127.0.0.1:{port}") as (a, b),
                connect(a.hood.url, session="s", token=token("ana")) as ana,
                ana.subscribe("x > 0") as events,
            ):
                await offer(a, b, "s")
                await until(lambda: heard)
                await ana.publish({"x": 1})  # it has gone home, where the session is again
                assert await events.next(20) == {"x": 1}
                assert ana.node == "a"
        assert [hello.token for hello in heard] == [""] * len(heard)
        assert all(hello.ticket for hello in heard)

    asyncio.run(test())


def test_a_ticket_is_for_one_session_and_ends_with_its_token(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldfare.node.security.tokens.LEEWAY", 0.0)

    async def refused(url: str, session: str, ticket: str) -> str:
        async with websockets.connect(url, subprotocols=[websockets.Subprotocol(MSGPACK_CODEC.name)]) as socket:
            await socket.send(MSGPACK_CODEC.encode(f.Hello(session=session, ticket=ticket)))
            frame = MSGPACK_CODEC.from_node(await socket.recv(decode=False))
        assert isinstance(frame, f.Bye), frame
        return frame.reason

    async def test() -> None:
        async with two(tmp_path) as (a, b):
            async with talking(b, "other", token=token("ana")):
                pass
            end = int(time.time()) + 600.0
            async with talking(a, "s", token=make_token(Secret(SECRET), "ana", ["client"], 600.0, end - 600.0)) as ana:
                await ana.subscribe("s", "x > 0")
                await offer(a, b, "s")
                bye = await ana.hear(f.Bye)
            assert bye.to == b.hood.url
            assert bye.ticket
            assert "ticket" in await refused(b.hood.url, "other", bye.ticket)
            assert "ticket" in await refused(b.hood.url, "", bye.ticket)
            assert "ticket" in await refused(b.hood.url, "s", "nonsense")
            assert "ticket" in await refused(a.hood.url, "s", bye.ticket)
            async with talking(b, "s", ticket=bye.ticket) as ana:
                assert isinstance(await ana.ask(f.Subscribe, "t", "y > 0"), f.Done)
                asked = await ana.ask(f.WatchInterest)  # no more than is needed is taken from another node's word
                assert isinstance(asked, f.Refused)
                second = ana.welcome.ticket
                assert second not in ("", bye.ticket)
            b.node.clock = lambda: end - 0.1
            async with talking(b, "s", ticket=second) as ana:
                third = ana.welcome.ticket
                assert "ticket" in await refused(b.hood.url, "s", bye.ticket)  # it was used, and so was the next
                assert "expired" in (await ana.hear(f.Bye)).reason
            b.node.clock = lambda: end
            assert "ticket" in await refused(b.hood.url, "s", third)

    asyncio.run(test())


@pytest.mark.parametrize("mode", ["worker", "device"])
def test_all_members_of_a_session_follow_without_their_tokens(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    hellos: list[f.Hello] = []
    decode = MSGPACK_CODEC.from_client

    def noted(data: bytes | str) -> f.FromClient:
        frame = decode(data)
        if isinstance(frame, f.Hello) and frame.session == "s":
            hellos.append(frame)
        return frame

    def member(url: str, number: int) -> Client:
        name = f"m{number}"
        if mode == "device":
            return connect(url, session="s", token=token("ana"), device=name)
        return connect(url, session="s", token=token("ana"), shared=True, member=name)

    async def test() -> None:
        async with two(tmp_path) as (a, b), contextlib.AsyncExitStack() as stack:
            members = [await stack.enter_async_context(member(a.hood.url, number)) for number in range(3)]
            await offer(a, b, "s")
            await until(lambda: all(one.node == "b" and one.connected for one in members))
            assert len(b.node.core.handovers.passes["s"]) == 3

    monkeypatch.setattr(type(MSGPACK_CODEC), "from_client", lambda self, data: noted(data))
    asyncio.run(test())
    assert [bool(hello.token) for hello in hellos] == [True] * 3 + [False] * (len(hellos) - 3)
    assert len(hellos) >= 6
    assert all(hello.ticket for hello in hellos[3:])


def test_a_ticket_that_nobody_uses_ends_soon(tmp_path: Path) -> None:
    async def test() -> None:
        async with two(tmp_path) as (a, b):
            async with talking(a, "s", token=token("ana")) as ana:
                await offer(a, b, "s")
                bye = await ana.hear(f.Bye)
            await until(lambda: "s" in b.node.core.handovers.passes)
            passes, now = b.node.core.handovers.passes["s"], b.node.clock()
            assert tickets.opened(passes, bye.ticket, now) == passes[0]
            assert tickets.opened(passes, bye.ticket, now + LIFE + 1) is None

    asyncio.run(test())
