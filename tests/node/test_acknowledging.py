"""What a client acknowledges counts, on whichever connection it came; and each connection gets what is not."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import pytest
from tests.client.nodes import cut
from tests.node.talking import line, settings, talking, until

import fieldfare as ff
from fieldfare.core.state import Publication
from fieldfare.core.step import Step
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node.internal_session import InternalSession
from fieldfare.node.node import Node
from fieldfare.node.server import running
from fieldfare.protocol import frames as f


def test_what_an_earlier_connection_delivered_can_be_acknowledged() -> None:
    async def test() -> None:
        async with running(settings()) as service, talking(service, "bob") as bob:
            async with talking(service, "ana") as ana:
                await ana.subscribe("s", "x > 0")
                await bob.publish(1, *({"x": x} for x in (1, 2, 3)))
                assert len(await ana.deliveries(3)) == 3
            await bob.publish(4, {"x": 4})
            async with talking(service, "ana", credit=0) as ana:
                session = service.node.core.sessions["ana"]
                await ana.say(f.Acknowledge(4))
                assert "delivery 4 was not sent" in (await ana.hear(f.Refused)).reason
                await ana.say(f.Acknowledge(3))
                await until(lambda: session.acknowledged == 3)
                await ana.say(f.Credit(10))
                assert [one.number for one in await ana.deliveries(1)] == [4]
                assert not ana.kept

    asyncio.run(test())


def test_what_an_earlier_life_of_the_node_delivered_can_be_acknowledged(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(folder=tmp_path)) as service, talking(service, "ana") as ana:
            await ana.subscribe("s", "x > 0")
            await ana.publish(1, {"x": 1}, {"x": 2})
            await ana.deliveries(2)
        async with running(settings(folder=tmp_path)) as service, talking(service, "ana", credit=0) as ana:
            await ana.say(f.Acknowledge(3))
            assert "delivery 3 was not sent" in (await ana.hear(f.Refused)).reason
            await ana.say(f.Acknowledge(2))
            await until(lambda: service.node.core.sessions["ana"].acknowledged == 2)

    asyncio.run(test())


def test_what_another_node_delivered_can_be_acknowledged() -> None:
    async def test() -> None:
        async with line(settings("a"), settings("b")) as (a, b):
            async with talking(a, "ana") as ana:
                await ana.subscribe("s", "x > 0")
                await ana.publish(1, {"x": 1}, {"x": 2})
                await ana.deliveries(2)
            async with talking(b, "ana", at="a", credit=0) as ana:
                await ana.say(f.Acknowledge(2))
                await until(lambda: b.node.core.sessions["ana"].acknowledged == 2)
                assert not any(isinstance(frame, f.Refused) for frame in ana.kept)

    asyncio.run(test())


def test_a_program_that_is_done_after_a_break_says_so(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with running(settings()) as service:
            async with ff.connect(service.hood.url, session="ana") as ana, ana.subscribe("x > 0", keep=True) as events:
                await ana.publish({"x": 1})
                delivery = await events.next_delivery()
                cut(ana)
                await until(lambda: not ana.connected)
                await delivery.acknowledge()
                await until(lambda: ana.connected)
            assert service.node.core.sessions["ana"].acknowledged == 1
        assert not caplog.records

    asyncio.run(test())


def test_a_new_connection_gets_what_the_earlier_one_took_meanwhile(tmp_path: Path) -> None:
    """While the session was being attached for it, that is: it may take a while until this is written."""

    async def test() -> None:
        node = Node(settings(folder=tmp_path))
        node.storage.sync = True
        await node.start()
        await node.submit(lambda core, now: core.presence.attach("bob", "b", now))
        write, go_on = node.storage.write, threading.Event()

        def slow(step: Step) -> None:
            go_on.wait(10)
            write(step)

        async with InternalSession(node, "ana") as former:
            await former.subscribe("s", parse("TRUE"))
            await node.publish(Publication("bob", 1, [Event({"x": 1})]))
            node.storage.write = slow  # type: ignore[method-assign]
            later = InternalSession(node, "ana")
            coming = asyncio.create_task(later.__aenter__())
            await asyncio.sleep(0.05)
            assert len(await anext(former.deliveries())) == 1
            go_on.set()
            await coming
            async with asyncio.timeout(10):
                assert len(await anext(later.deliveries())) == 1
            await later.__aexit__()
        await node.stop()

    asyncio.run(test())
