"""A replay brings what would wait for a session that had subscribed in time."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest
from tests.core.test_regressions import release, stored
from tests.node.talking import line, settings, talking, until

from fieldfare.core.core import Core
from fieldfare.core.state import Pending, Publication
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node import replay
from fieldfare.node.server import running
from fieldfare.protocol import frames as f
from fieldfare.protocol import messages as m
from fieldfare.routing.broker import Broker

LATER = 100.0


@pytest.mark.parametrize("few", [replay.FEW, 0], ids=["at once", "searched beside"])
def test_a_replay_honours_time_to_live_and_replaces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(replay, "FEW", few)

    async def test() -> None:
        async with running(settings(folder=tmp_path)) as service, talking(service, "bob") as bob:
            node, shift = service.node, 0.0
            node.clock = lambda: time.time() + shift
            await bob.publish(1, {"x": 1})
            await bob.publish(2, {"x": 2}, ttl=50.0)
            await bob.publish(3, {"x": 3}, replaces="state")
            await bob.publish(4, {"x": 4}, replaces="state", ttl=500.0)
            await bob.publish(5, {"x": 5}, replaces="other")
            await bob.publish(6, {"x": 6}, replaces="other", ttl=50.0)
            shift = LATER
            await bob.publish(7, {"x": 7})
            async with talking(service) as ana:
                await ana.subscribe("s", "x > 0", since=1)
                assert [one["x"] for one in await ana.events(3)] == [1, 4, 7]
            async with talking(service) as ana:
                await ana.ask(f.Subscribe, "s", "x > 0", 1, complete=True)
                assert [one["x"] for one in await ana.events(7)] == [*range(1, 8)]
            shift = 10 * LATER  # what is replayed and waits has its time to live, too
            async with talking(service, "eve", credit=0) as eve:
                await eve.subscribe("s", "x > 0", since=1)
                pending = node.core.sessions["eve"].pending
                assert [one.position for one in pending.values()] == [1, 7]

    asyncio.run(test())


def test_what_is_replayed_is_replaced_by_what_comes() -> None:
    """Over a restart as well, whether the rows of that step were written or not."""
    broker = Core(Broker("b"))
    for name in ("ana", "bob"):
        broker.presence.attach(name, name, 0.0)

    def publish(number: int, replaces: str = "state") -> None:
        broker.publish([Publication("bob", number, [Event({"x": number})], replaces=replaces)], 0.0)

    publish(1)
    steps = [release(broker)]
    broker.presence.change_filters(m.Subscribe("s", parse("TRUE")), "ana", 0.0)
    broker.deliveries.replay("ana", [Pending(1, ("s",), 1e9, replaces=("bob", "state"))])
    steps.append(release(broker))
    publish(2)
    assert [one.position for one in broker.sessions["ana"].pending.values()] == [2]
    assert broker.sessions["ana"].rows == 0
    last = release(broker)
    entries = [entry for step in (*steps, last) for entry in step.entries]
    for rows in (stored(*steps), stored(*steps, last)):
        again = Core(Broker("b"), rows, entries)
        assert [one.position for one in again.sessions["ana"].pending.values()] == [2]
        assert not stored(*steps, last, again.drain())["replayed"]


def test_a_replay_takes_nothing_from_another_subscription() -> None:
    broker = Core(Broker("b"))
    for name in ("ana", "bob"):
        broker.presence.attach(name, name, 0.0)
    broker.presence.change_filters(m.Subscribe("a", parse("TRUE")), "ana", 0.0)
    broker.publish([Publication("bob", 1, [Event({"x": 1})], replaces="state")], 0.0)
    broker.deliveries.replay("ana", [Pending(1, ("b",), 1e9, replaces=("bob", "state"))])
    steps = [release(broker)]
    waiting = [(1, ("a",)), (2, ("b",))]
    assert [(n, one.subscriptions) for n, one in broker.sessions["ana"].pending.items()] == waiting
    again = Core(Broker("b"), stored(*steps), steps[0].entries)
    assert [(n, one.subscriptions) for n, one in again.sessions["ana"].pending.items()] == waiting
    for one in (broker, again):
        one.publish([Publication("bob", 2, [Event({"x": 2})], replaces="state")], 0.0)
        assert [pending.position for pending in one.sessions["ana"].pending.values()] == [2]


def test_what_moves_with_a_session_is_replaced_where_it_goes() -> None:
    async def test() -> None:
        async with line(settings("a"), settings("b")) as (a, b), talking(a, "bob") as bob:
            async with talking(a, "ana", credit=0) as ana:
                await ana.subscribe("s", "x > 0")
            await bob.publish(1, {"x": 1}, replaces="state")
            async with talking(b, "ana", at="a", credit=0) as ana:
                await bob.publish(2, {"x": 2}, replaces="state")
                session = b.node.core.sessions["ana"]
                await until(lambda: session.count == 2)
                assert list(session.pending) == [2]
                assert session.rows == 0

    asyncio.run(test())
