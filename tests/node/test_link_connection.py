"""Nodes that are linked: events cross them, and links break and come back."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
import websockets
from tests.node.talking import line, linked, settings, talking, until

from fieldfare.filters import parse
from fieldfare.node.context import Context
from fieldfare.node.link_connection import LinkConnection, keep_linked
from fieldfare.node.server import running
from fieldfare.protocol import frames as f
from fieldfare.protocol import link_frames


def wants(service: Context, text: str) -> bool:
    """Whether a node knows that somebody wants this."""
    return any(one.covers(parse(text)) for one in service.node.core.interest())


@pytest.mark.parametrize("strategy", ["covering", "merging", "flooding", "simple", "covering+ads"])
def test_events_cross_nodes(strategy: str) -> None:
    async def test() -> None:
        configs = [settings(name, flags={"strategy": strategy}) for name in "abc"]
        async with line(*configs) as (a, b, c), talking(a) as ana, talking(c) as bob, talking(b) as eve:
            assert isinstance(await bob.ask(f.Advertise, "all", "x >= 0"), f.Done)
            await ana.subscribe("s", "x > 1")
            await eve.subscribe("s", "x = 0")
            if strategy != "flooding":
                await until(lambda: wants(c, "x > 1") and wants(c, "x = 0"))
            for number in range(1, 41):
                await bob.publish(number, {"x": number % 4})
            assert [event["x"] for event in await ana.events(20)] == [2, 3] * 10
            assert [event["x"] for event in await eve.events(10)] == [0] * 10
            assert await ana.silence(0.05)

    asyncio.run(test())


def test_a_node_that_was_away_misses_nothing(tmp_path: Path) -> None:
    async def test() -> None:
        first = settings("a", tmp_path / "a")
        async with running(first) as a, talking(a, "bob") as bob:
            other = settings("b", tmp_path / "b", {"join": (a.hood.url,)})
            async with running(other) as b:
                await linked(a, b)
                async with talking(b, "ana") as ana:
                    await ana.subscribe("s", "x > 0")
                    await until(a.node.core.interest)
                    await bob.publish(1, {"x": 1})
                    assert await ana.events(1) == [{"x": 1}]
            await bob.publish(2, {"x": 2}, {"x": 0}, {"x": 3})
            async with running(other) as b:
                async with talking(b, "ana") as ana:
                    got = await ana.events(3)
                    assert got == [{"x": 1}, {"x": 2}, {"x": 3}]
                await linked(a, b)
                await until(lambda: not a.node.core.links["b"].outbox)

    asyncio.run(test())


def test_a_node_that_has_forgotten_begins_anew(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings("a", tmp_path / "a")) as a, talking(a) as bob:
            for folder in ("b", "b2"):
                async with running(settings("b", tmp_path / folder, {"join": (a.hood.url,)})) as b:
                    await linked(a, b)
                    async with talking(b) as ana:
                        await ana.subscribe("s", f"x = '{folder}'")
                        await until(lambda: [str(one) for one in a.node.core.interest()] == [f"x = '{folder}'"])  # noqa: B023
                        await bob.publish(1 if folder == "b" else 2, {"x": folder})
                        assert await ana.events(1) == [{"x": folder}]

    asyncio.run(test())


def test_a_link_that_would_close_a_cycle_is_refused() -> None:
    async def test() -> None:
        async with line(settings("a"), settings("b"), settings("c")) as (a, b, c):
            await until(lambda: set(a.hood.reachable()) == {"a", "b", "c"})
            join = (a.hood.url, c.hood.url)
            async with running(settings("d", flags={"join": join})) as d:
                await until(lambda: len(d.hood.up) == 1)
                await asyncio.sleep(0.5)
                assert len(d.hood.up) == 1
                await until(lambda: set(d.hood.reachable()) == set(b.hood.reachable()) == {"a", "b", "c", "d"})

    asyncio.run(test())


@pytest.mark.parametrize("flags", [{"strategy": "flooding"}, {"name": "a"}])
def test_nodes_that_do_not_fit_are_refused(flags: dict[str, object]) -> None:
    async def test() -> None:
        async with running(settings("a")) as a:
            other = settings("b", flags={**flags, "join": (a.hood.url,)})
            async with running(other) as b:
                await asyncio.sleep(0.4)
                assert not a.hood.up
                assert not b.hood.up

    asyncio.run(test())


def test_nodes_part_for_good() -> None:
    async def test() -> None:
        async with line(settings("a"), settings("b")) as (a, b), talking(b) as ana:
            await ana.subscribe("s", "x > 0")
            await until(a.node.core.interest)
            await a.hood.remove("b")
            assert not a.node.core.interest()
            assert "b" not in a.node.core.links

    asyncio.run(test())


def test_both_may_dial() -> None:
    async def test() -> None:
        async with line(settings("a"), settings("b")) as (a, b):
            dialling = asyncio.create_task(_dial(a, b.hood.url))
            await asyncio.sleep(0.5)
            await until(lambda: list(a.hood.up) == ["b"] and list(b.hood.up) == ["a"])
            async with talking(a) as ana, talking(b) as bob:
                await ana.subscribe("s", "x > 0")
                await until(b.node.core.interest)
                await bob.publish(1, {"x": 1})
                assert await ana.events(1) == [{"x": 1}]
            dialling.cancel()

    async def _dial(a: object, url: str) -> None:
        from fieldfare.node.context import Context  # noqa: PLC0415
        from fieldfare.node.server import _open  # noqa: PLC0415

        assert isinstance(a, Context)
        config = msgspec.structs.replace(a.node.config, join=(url,))
        await keep_linked(a.hood, url, lambda to: _open(to, config, None))

    asyncio.run(test())


def test_hierarchical_nodes() -> None:
    """A parent is told nothing but gets everything, so that children need not be told what others want."""

    async def test() -> None:
        async with running(settings("top")) as top:
            flags = {"join": (top.hood.url,), "role": "parent"}
            async with running(settings("left", flags=flags)) as left, running(settings("right", flags=flags)) as right:
                await linked(top, left)
                await linked(top, right)
                async with talking(left) as ana, talking(right) as bob:
                    await ana.subscribe("s", "x > 0")
                    await until(top.node.core.interest)
                    assert right.node.core.broker.entries == 0
                    await bob.publish(1, {"x": 1})
                    assert await ana.events(1) == [{"x": 1}]

    asyncio.run(test())


def test_who_is_stopped_while_nodes_meet_hangs_up() -> None:
    """Else the neighbour takes the node for linked, and refuses it when it comes back."""

    class Silent:
        closed = False

        async def receive(self) -> bytes | str | None:
            await asyncio.Event().wait()
            return None

        async def send(self, data: bytes | str) -> None: ...

        async def close(self, code: int, reason: str) -> None:
            self.closed = True

    async def test() -> None:
        async with running(settings("a")) as a:
            socket = Silent()
            meeting = asyncio.create_task(LinkConnection(a.hood, socket, dialled=True).serve())
            await asyncio.sleep(0)
            meeting.cancel()
            await asyncio.wait({meeting})
            assert socket.closed

    asyncio.run(test())


def test_the_first_that_a_neighbour_says_may_be_large() -> None:
    """All that it wants may be more than a client may say; and it is said as soon as both have greeted."""

    async def test() -> None:
        protocols = [websockets.Subprotocol(link_frames.SUBPROTOCOL)]
        large = b"\xc1" * (2 << 20)  # nothing that can be read, but that is another matter
        async with (
            running(settings()) as node,
            websockets.connect(f"{node.hood.url}/link", subprotocols=protocols) as b,
        ):
            meet = link_frames.LinkHello("b", "", node.node.config.strategy, life="1")
            for frame in (
                meet,
                link_frames.LinkResume("x", "", 0, lives=(("1", 1),)),
                link_frames.Messages(1, [large]),
            ):
                await b.send(msgspec.msgpack.encode(frame))
                if not isinstance(frame, link_frames.Messages):
                    await b.recv()
            await until(lambda: "b" in node.node.core.links and node.node.core.links["b"].written == 1)

    asyncio.run(test())


def test_a_session_that_nobody_has_any_more_begins_anew() -> None:
    """Its node may have lost it: then it is asked for once, and not for ever."""

    async def test() -> None:
        known: dict[str, Any] = {"at": "a", "identity": "gone", "moves": 3, "seen": 7}
        two = line(settings("a"), settings("b"))
        async with asyncio.timeout(60), two as (a, b), talking(a) as bob, talking(b, "ana", **known) as ana:
            assert ana.welcome.identity not in ("", "gone")
            await ana.subscribe("s", "x > 0")
            await until(a.node.core.interest)
            await bob.publish(1, {"x": 1})
            assert await ana.events(1) == [{"x": 1}]

    asyncio.run(test())


@pytest.mark.parametrize("incomplete", [False, True])
def test_a_node_asks_for_filters_that_its_disk_may_have_lost(incomplete: bool) -> None:
    async def test() -> None:
        protocols = [websockets.Subprotocol(link_frames.SUBPROTOCOL)]
        async with running(settings()) as node:
            heard: list[dict[str, Any]] = []
            for life in "12":
                async with websockets.connect(f"{node.hood.url}/link", subprotocols=protocols) as b:
                    name = heard[-1]["local_name"] if heard else ""
                    meet = link_frames.LinkHello("b", "", node.node.config.strategy, life=life)
                    for frame in (meet, link_frames.LinkResume("x", name, 0, lives=(("1", 1),))):
                        await b.send(msgspec.msgpack.encode(frame))
                        heard.append(msgspec.msgpack.decode(await b.recv(decode=False)))
                    await until(lambda: "b" in node.hood.up)
                await until(lambda: "b" not in node.hood.up)
                node.node.core.links["b"].incomplete = incomplete
            assert heard[-1]["is"] == "LinkResume"
            assert heard[-1].get("incomplete", False) is incomplete

    asyncio.run(test())
