"""Nodes and clients of two versions: they speak the lower one, and say what it lacks."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path

import msgspec
import pytest
import websockets
from tests.client.nodes import node, run
from tests.node.talking import Talker, line, settings, talking, until
from tools.nodes import soak
from tools.nodes.ports import free_port
from tools.nodes.soak import Book, RoamingPublisher, RoamingSubscriber

from fieldfare.client import handshake
from fieldfare.client.client import connect
from fieldfare.client.errors import ConnectionRefused, Refused
from fieldfare.core.state import PeerTooOld
from fieldfare.filters import parse
from fieldfare.node.context import Context
from fieldfare.node.server import running
from fieldfare.protocol import frames as f
from fieldfare.protocol import versions
from fieldfare.protocol.codec import JSON_CODEC
from fieldfare.protocol.versions import NEWEST, OLDEST


def test_nodes_of_two_versions_are_linked() -> None:
    async def test() -> None:
        configs = [settings(name, flags={"speaks": speaks}) for name, speaks in zip("abcd", (3, 2, 3, 3), strict=True)]
        async with line(*configs) as (a, b, c, d), talking(d) as ana, talking(a) as bob:
            await ana.subscribe("s", "x > 1")
            await until(a.node.core.interest)
            await bob.publish(1, {"x": 1}, {"x": 2})
            assert await ana.events(1) == [{"x": 2}]
            known = [[3, 2, 2, 3], [2, 2, 2, 3], [2, 2, 3, 3], [2, 2, 3, 3]]
            nodes = a.node.core, b.node.core, c.node.core, d.node.core
            await until(lambda: [[core.versions.of(name) for name in "abcd"] for core in nodes] == known)

    asyncio.run(test())


def test_what_an_older_node_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "SINCE", {"TopicCheck": 3})

    async def test() -> None:
        async with line(settings("a"), settings("b", flags={"speaks": 2})) as (a, b):
            a.node.core.versions.require("TopicCheck")
            with pytest.raises(PeerTooOld, match=r"^b speaks version 2, which has no TopicCheck \(since version 3\)"):
                a.node.core.versions.require("TopicCheck", "a", "b")
            with pytest.raises(PeerTooOld, match="upgrade b"):
                b.node.core.versions.require("TopicCheck")

    asyncio.run(test())


def test_a_client_refuses_what_its_node_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "SINCE", {"Advertise": 3, "Publish.replaces": 3})

    async def test() -> None:
        async with node(settings={"speaks": 2}) as service, connect(service.hood.url) as client:
            with pytest.raises(Refused, match=r"a speaks version 2, which has no Advertise") as refused:
                async with client.advertise("x > 1"):
                    pass
            assert refused.value.code == "version"
            with pytest.raises(Refused, match=r"no Publish\.replaces"):
                await client.publish({"x": 1}, replaces="x")
            async with client.subscribe("x > 1") as events:
                await client.publish({"x": 2})
                assert await anext(events) == {"x": 2}
        async with node() as service, connect(service.hood.url) as client, client.advertise("x > 1"):
            await client.publish({"x": 2}, replaces="x")

    run(test())


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_a_node_sends_an_older_client_nothing_new(version: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "SINCE", {"Accepted": 3})

    async def test() -> None:
        async with node() as service:
            name = websockets.Subprotocol(f"fieldfare.v{version}.json")
            async with websockets.connect(service.hood.url, subprotocols=[name]) as socket:
                talker = Talker(socket, JSON_CODEC)
                await talker.say(f.Hello(version=version))
                assert (await talker.hear(f.Welcome)).version == version
                await talker.say(f.Publish(1, [msgspec.Raw(b"{}")]))
                for _ in range(3):  # the first answer comes behind `Accepted`
                    await talker.ask(f.Unsubscribe, "nobody")
                assert [type(one) for one in talker.kept] == ([f.Accepted] if version == NEWEST else [])

    run(test())


def test_peers_of_other_versions_are_told_the_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handshake, "subprotocols", lambda form: [f"fieldfare.v1.{form}", f"fieldfare.v9.{form}"])

    async def test() -> None:
        async with node() as service:
            spoken = r"a speaks fieldfare\.v3\.msgpack or fieldfare\.v2\.msgpack or .*, not fieldfare\.v1\.msgpack or"
            with pytest.raises(ConnectionRefused, match=spoken):
                await connect(service.hood.url).__aenter__()

    run(test())


def test_nodes_are_upgraded_one_after_the_other_and_back(tmp_path: Path) -> None:
    """As `tools.nodes.upgrade` with real processes; here the older code is this one, and speaks version 2 only."""
    ports = {name: free_port() for name in "abc"}
    books = [Book(f"s{number}", filter) for number, filter in enumerate(list(soak.FILTERS)[:3])]
    publisher = RoamingPublisher("p2", f"ws://127.0.0.1:{ports['a']}", random.Random(1))
    subscribers = [
        RoamingSubscriber(book.name, f"ws://127.0.0.1:{port}", book)
        for book, port in zip(books, ports.values(), strict=True)
    ]

    async def start(name: str, speaks: int, stack: contextlib.AsyncExitStack) -> Context:
        join = () if name == "a" else (f"ws://127.0.0.1:{ports['a']}",)
        flags = {"port": ports[name], "speaks": speaks, "join": join}
        return await stack.enter_async_context(running(settings(name, tmp_path / name, flags)))

    async def test() -> None:
        stacks = {name: contextlib.AsyncExitStack() for name in ports}
        nodes = {name: await start(name, OLDEST, stacks[name]) for name in ports}
        tasks = [asyncio.create_task(one.live()) for one in subscribers]
        wanted = [parse(book.filter) for book in books]
        for interest in [one.node.core.interest for one in nodes.values()]:
            await until(lambda: all(any(one.covers(each) for one in interest()) for each in wanted))  # noqa: B023
        tasks.append(asyncio.create_task(publisher.live()))
        for speaks in (NEWEST, OLDEST):
            for name, port in ports.items():
                before = publisher.accepted
                await stacks[name].aclose()
                nodes[name] = await start(name, speaks, stacks[name])
                await until(lambda: publisher.accepted > before + 5)  # noqa: B023
                await subscribers[0].move(f"ws://127.0.0.1:{port}")
            await until(lambda: nodes["b"].node.core.versions.of("c") == speaks)  # noqa: B023
        publisher.end = True
        await until(lambda: publisher.accepted == publisher.published)
        accepted = {"p2": publisher.accepted}
        await until(lambda: not any(book.verdict(accepted)["lost"] for book in books))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for stack in stacks.values():
            await stack.aclose()
        bad = [
            {what: count for what, count in book.verdict(accepted).items() if what != "deliveries"} for book in books
        ]
        assert not any(count for verdict in bad for count in verdict.values()), bad
        assert publisher.problems == []
        assert subscribers[0].moved == 2 * len(ports)

    asyncio.run(test())
