"""The clock on the wall may jump: durations do not."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest
from tests.node.talking import settings, talking, until

from fieldfare.core.core import Core
from fieldfare.core.state import Publication
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node.http.admin.sessions import view
from fieldfare.node.node import Node
from fieldfare.node.server import running
from fieldfare.protocol import messages as m

DAY = 86_400.0


class Clocks:
    def __init__(self) -> None:
        self.wall, self.ticks = 1.8e9, 5.0

    def make(self, folder: Path) -> Node:
        return Node(settings(folder=folder), lambda: self.wall, lambda: self.ticks)


def _attach(name: str, core: Core, now: float) -> None:
    core.presence.attach(name, name, now)


async def _lives(node: Node) -> bool:
    def job(core: Core, now: float) -> bool:
        core.expire(now, node.config.sessions.life_seconds)
        core.checkpoint()
        return "ana" in core.sessions

    return await node.submit(job)


@pytest.mark.parametrize("jump", [100 * DAY, -100 * DAY], ids=["ahead", "back"])
def test_a_jump_of_the_clock_ends_no_session(tmp_path: Path, jump: float) -> None:
    async def test() -> None:
        clocks = Clocks()
        node = clocks.make(tmp_path)
        await node.start()
        for name in ("ana", "bob"):
            await node.submit(partial(_attach, name))
        await node.submit(lambda core, now: core.presence.change_filters(m.Subscribe("s", parse("TRUE")), "ana", now))
        await node.submit(lambda core, now: core.presence.detach("ana", now))
        clocks.wall += jump
        assert await _lives(node)
        await node.publish(Publication("bob", 1, [Event({"x": 1})], expires=clocks.wall + 60))
        (entry,) = node.storage.entries([1]).values()
        assert entry.time == pytest.approx(clocks.wall)  # the log has the time of the clock
        clocks.ticks += 6 * DAY
        assert await _lives(node)  # a time to live, too, ends by the clock
        assert len(node.core.sessions["ana"].pending) == 1
        clocks.wall += 61
        assert await _lives(node)
        assert not node.core.sessions["ana"].pending
        await node.stop()
        clocks.wall += 100 * DAY  # while the node is down nobody can come back
        node = clocks.make(tmp_path)
        await node.start()
        assert await _lives(node)
        clocks.ticks += 8 * DAY
        assert not await _lives(node)
        await node.stop()

    asyncio.run(test())


def test_where_a_session_went_is_remembered_over_a_jump(tmp_path: Path) -> None:
    async def test() -> None:
        clocks = Clocks()
        node = clocks.make(tmp_path)
        await node.start()

        def went(_: object, now: float) -> None:
            node.core.handovers.departed.note("ana", "b", now)

        await node.submit(went)
        clocks.wall += 1000 * DAY
        await _lives(node)
        await node.stop()
        clocks.wall += 1000 * DAY
        node = clocks.make(tmp_path)
        await node.start()
        await _lives(node)
        assert node.core.handovers.departed.node_of("ana") == "b"
        await node.stop()

    asyncio.run(test())


def test_the_broker_is_woken_though_the_clock_was_set_back() -> None:
    async def test() -> None:
        clocks = Clocks()
        node = Node(settings(), lambda: clocks.wall)
        await node.start()
        clocks.wall -= DAY
        ticks: list[float] = []
        node.core.tick = ticks.append  # type: ignore[method-assign, assignment]
        node.core.broker._sweeps = node.steady() + 0.01
        await until(lambda: bool(ticks))
        await node.stop()

    asyncio.run(test())


def test_the_view_of_a_session_shows_the_time_of_the_clock() -> None:
    async def test() -> None:
        async with running(settings()) as service, talking(service, "ana"):
            node = service.node
            real = node.clock
            node.clock = lambda: real() + DAY
            await node.submit(lambda _, __: None)
            assert view(node, "ana", node.core.sessions["ana"])["seen"] == pytest.approx(node.clock(), abs=600)

    asyncio.run(test())
