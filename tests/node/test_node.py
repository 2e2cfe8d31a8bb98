"""The task that brings a broker and its storage together."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from tests.node.talking import settings
from tools.waiting import PATIENCE

from fieldfare.core.state import Publication, RequestRefused
from fieldfare.core.step import Step
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node.node import BACKLOG, Node, NodeStopped
from fieldfare.protocol import messages as m


def test_groups_share_a_commit(tmp_path: Path) -> None:
    async def test() -> None:
        node = Node(settings(folder=tmp_path))
        await node.start()
        await node.submit(lambda core, now: core.presence.attach("bob", "b", now))
        steps: list[Step] = []
        node.watchers.add(steps.append)
        several = [node.publish(Publication("bob", 0, [Event({"x": i})])) for i in range(100)]
        other = node.submit(
            lambda core, now: core.presence.change_filters(m.Subscribe("s", parse("x > 50")), "bob", now)
        )
        later = [node.publish(Publication("bob", 0, [Event({"x": i})])) for i in range(100)]
        assert await asyncio.gather(*several, *later) == [*range(1, 201)]
        await other
        assert len(steps) == 1
        assert len(node.core.sessions["bob"].pending) == 49  # only of those that came after
        await node.stop()

    asyncio.run(test())


def test_a_job_that_fails_harms_nobody_else() -> None:
    async def test() -> None:
        node = Node(settings())
        await node.start()

        def wrong(*_: object) -> None:
            raise KeyError("a mistake of ours")

        first, second = node.submit(wrong), node.submit(lambda core, _: core.position)
        with pytest.raises(KeyError):
            await first
        assert await second == 0
        (refused,) = await asyncio.gather(node.publish(Publication("nobody", 1, [Event()])), return_exceptions=True)
        assert isinstance(refused, RequestRefused)
        await node.stop()

    asyncio.run(test())


def test_publishers_wait_for_room() -> None:
    async def test() -> None:
        node = Node(settings())
        await node.start()
        await node.submit(lambda core, now: core.presence.attach("bob", "b", now))
        futures = [node.publish(Publication("bob", 0, [Event()] * 1000)) for _ in range(BACKLOG // 1000 + 1)]
        waiting = asyncio.ensure_future(node.wait_for_capacity())
        await asyncio.sleep(0)
        assert not waiting.done()
        await asyncio.gather(*futures)
        await asyncio.wait_for(waiting, PATIENCE)
        await node.stop()

    asyncio.run(test())


def test_a_node_that_cannot_write_promises_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        node = Node(settings(folder=tmp_path))
        await node.start()
        await node.submit(lambda core, now: core.presence.attach("bob", "b", now))
        assert await node.publish(Publication("bob", 1, [Event({"x": 1})])) == 1

        def full(_: Step) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(node.storage, "write", full)
        with pytest.raises(NodeStopped, match="No space left"):
            await node.publish(Publication("bob", 2, [Event({"x": 2})]))
        with pytest.raises(NodeStopped):
            await node.publish(Publication("bob", 2, [Event({"x": 2})]))
        with pytest.raises(OSError, match="No space"):
            await node.failure
        assert not node.ready
        await node.stop()
        again = Node(settings(folder=tmp_path))
        await again.start()
        assert again.core.sessions["bob"].sequence == 1
        await again.stop()

    asyncio.run(test())


def test_the_log_is_kept_in_order(tmp_path: Path) -> None:
    """Closed segments become Parquet, and the oldest go, but not what somebody still waits for."""

    async def test() -> None:
        flags = {"log.segment_bytes": 4096, "log.max_bytes": 10_000}
        node = Node(settings(folder=tmp_path, flags=flags))
        await node.start()
        for name in ("ana", "bob"):
            await node.submit(lambda core, now, one=name: core.presence.attach(one, one, now))  # type: ignore[misc]
        await node.submit(
            lambda core, now: core.presence.change_filters(m.Subscribe("s", parse("x = 300")), "ana", now)
        )
        for start in range(0, 2000, 100):
            await node.publish(
                Publication("bob", 0, [Event({"x": x, "t": "x" * 20}) for x in range(start, start + 100)])
            )
        low = await node.submit(lambda core, _: core.low_water())
        assert low == 301
        node.storage.tidy(node.clock(), low)
        assert 1 < node.storage.log.first <= 301
        assert list((tmp_path / "log").glob("*.parquet"))
        ((_, pending),) = node.core.deliveries.next("ana", 9, node.clock())
        assert node.storage.entries([pending.position])[301].event
        await node.submit(lambda core, _: core.deliveries.acknowledge("ana", 1))
        node.storage.tidy(node.clock(), await node.submit(lambda core, _: core.low_water()))
        assert node.storage.log.first > 1000
        await node.stop()

    asyncio.run(test())
