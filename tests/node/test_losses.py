"""A client that lost events is told."""

from __future__ import annotations

import asyncio
from collections import deque
from pathlib import Path

import httpx
import pytest
from tests.client.nodes import node, run, until
from tests.core.test_regressions import make, release, stored
from tests.core.test_regressions import publish as publish_to
from tests.node.talking import line, settings, talking

import fieldfare as ff
from fieldfare.client.client import Client
from fieldfare.filters import parse
from fieldfare.node.context import Context
from fieldfare.node.node import Node
from fieldfare.node.storage.storage import MemoryLog
from fieldfare.protocol import frames as f
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import low_water

LIMIT = {"sessions.limit": 5}


async def publish(service: Context, count: int) -> None:
    for x in range(1, count + 1):
        await service.publish([ff.Event({"x": x})])


def cut_log(node: Node, keep: int) -> None:
    """Let the log of a node without a folder have only its last entries."""
    log = node.storage.log
    assert isinstance(log, MemoryLog)
    log._kept = deque(log._kept, maxlen=keep)
    node.storage._recent.clear()


def test_a_client_that_was_away_too_long_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Also by a node that was started again meanwhile; until it has acknowledged what came then, and not again."""

    async def main() -> None:
        told: list[tuple[int, str]] = []

        def ana(service: Context) -> Client:
            return ff.connect(service.hood.url, session="ana", on_dropped=lambda *what: told.append(what))

        async with node(tmp_path, settings=LIMIT) as service:
            async with ana(service) as client, client.subscribe("x > 0", keep=True):
                pass
            await publish(service, 12)
        async with node(tmp_path, settings=LIMIT) as service:
            async with ana(service) as client, client.subscribe("x > 0", keep=True) as events:
                assert (await events.next_delivery()).event == {"x": 8}  # which it does not acknowledge
            assert client.dropped == 7
            async with ana(service) as client, client.subscribe("x > 0", keep=True) as events:
                assert [(await events.next(10))["x"] for _ in range(5)] == [8, 9, 10, 11, 12]
                assert client.dropped == 7
            assert told == [(7, "7 events were dropped at a: more waited for this session than the node keeps")] * 2
            assert "7 events were dropped" in caplog.text
        async with (
            node(tmp_path, settings=LIMIT) as service,
            ana(service) as client,
            client.subscribe("x > 0", keep=True) as events,
        ):
            await client.publish({"x": 13})
            assert await events.next(10)
            assert client.dropped == 0

    run(main(), 60)


def test_what_was_dropped_is_counted_though_the_node_was_killed() -> None:
    """The log is read from further back than the session needs it: that counts for nothing."""
    broker = make(limit=5)
    broker.presence.attach("old", "old", 0.0)
    broker.presence.change_filters(m.Subscribe("s", parse("x = 1")), "old", 0.0)
    publish_to(broker, 1, 8)
    steps = [release(broker)]
    broker.checkpoint()
    steps.append(release(broker))
    publish_to(broker, 9, 2)
    steps.append(release(broker))
    assert broker.sessions["ana"].dropped == 5
    rows, entries = stored(*steps), [entry for step in steps for entry in step.entries]
    assert low_water(rows) == 1
    for _ in range(2):
        again = make(rows, entries, limit=5)
        assert again.sessions["ana"].dropped == 5
        assert list(again.sessions["ana"].pending) == [6, 7, 8, 9, 10]
        again.checkpoint()
        steps.append(release(again))
        rows = stored(*steps)


def test_a_client_that_is_too_slow_is_told() -> None:
    async def main() -> None:
        policy = {"sessions.queue": 5, "sessions.policy": "drop-oldest"}
        async with (
            node(settings=policy) as service,
            ff.connect(service.hood.url, credit=1) as client,
            client.subscribe("x > 0") as events,
        ):
            await publish(service, 20)
            got = [(await events.next(10))["x"]]
            while got[-1] != 20:
                got.append((await events.next(10))["x"])
            assert client.dropped >= 20 - len(got) > 0

    run(main())


def test_what_is_gone_from_the_log_is_counted() -> None:
    async def main() -> None:
        async with node() as service, talking(service, "ana", credit=0) as ana:
            await ana.subscribe("s", "x > 0")
            await publish(service, 10)
            cut_log(service.node, 4)
            await ana.say(f.Credit(100))
            frame = await ana.hear(f.Deliveries)
            assert (len(frame.items), frame.dropped) == (4, 6)
            assert service.node.core.sessions["ana"].dropped == 6

    run(main())


@pytest.mark.parametrize("since", [1, 0.0, "2020-01-01T00:00:00Z"])
def test_a_subscription_that_goes_further_back_than_the_log_is_told(since: int | float | str) -> None:
    async def main() -> None:
        told: list[tuple[int, str]] = []
        async with (
            node() as service,
            ff.connect(service.hood.url, on_dropped=lambda *what: told.append(what)) as client,
        ):
            async with client.subscribe("x > 0", since=since):
                assert not told
            await publish(service, 10)
            cut_log(service.node, 4)
            async with client.subscribe("x > 0", since=7):
                assert not told
            async with client.subscribe("x > 0", since=since) as events:
                assert await events.next(10) == {"x": 7}
            assert told == [(0, "the log of a begins at position 7: older events are gone")]
            assert client.dropped == 0

    run(main())


def test_a_client_is_told_where_its_session_went() -> None:
    async def test() -> None:
        async with line(settings("a", flags=LIMIT), settings("b", flags=LIMIT)) as (a, b):
            async with talking(a, "ana", credit=0) as ana:
                await ana.subscribe("s", "x > 0")
            await publish(a, 8)
            async with talking(b, "ana", at="a") as ana:
                assert ana.welcome.warned == 0
                assert (await ana.hear(f.Deliveries)).dropped == 3
                await ana.say(f.Acknowledge(8))
                await until(lambda: b.node.core.sessions["ana"].warned == 3)
            async with talking(a, "ana", at="b") as ana:
                assert ana.welcome.warned == 3

    asyncio.run(test())


def test_a_stream_is_told() -> None:
    async def main() -> None:
        async with node(settings=LIMIT) as service:
            await publish(service, 10)
            cut_log(service.node, 4)
            lines = await _lines(service, "/stream?since=1&session=ana", 6)
            assert lines[3:6] == [
                "event: fieldfare.dropped",
                'data: {"dropped":0,"reason":"the log of a begins at position 7: older events are deleted"}',
                "",
            ]
            await publish(service, 12)
            lines = await _lines(service, "/stream?session=ana", 6)
            assert lines[3] == "event: fieldfare.dropped"
            assert lines[4].startswith('data: {"dropped":')

    run(main())


async def _lines(service: Context, path: str, count: int) -> list[str]:
    base = "http" + service.hood.url.removeprefix("ws")
    async with (
        httpx.AsyncClient(base_url=base, trust_env=False, timeout=10) as http,
        http.stream("GET", path) as answer,
    ):
        lines = []
        async for line in answer.aiter_lines():
            lines.append(line)
            if len(lines) > count:
                break
        return lines
