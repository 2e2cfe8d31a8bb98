"""Clients on WebSockets, frame by frame, with a node in the same process."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import msgspec
import pytest
import websockets
from tests.node.talking import settings, talking, until

from fieldfare.events.event import Event
from fieldfare.node.server import running
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import CODECS, JSON_CODEC, Codec


def run(test: Any) -> None:
    asyncio.run(test)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
def test_an_event_reaches_those_who_asked(codec: Codec[Any]) -> None:
    async def test() -> None:
        async with (
            running(settings()) as node,
            talking(node, codec=codec) as ana,
            talking(node, codec=codec) as bob,
            talking(node, codec=codec) as eve,
        ):
            await ana.subscribe("cheap", "price < 10")
            await ana.subscribe("all", [{"sql": "price > 0"}])
            await eve.subscribe("dear", "price > 100")
            assert await bob.publish(1, {"price": 5}, {"price": 50}) == f.Accepted(2)
            got = await ana.deliveries(2)
            assert [sorted(one.subscriptions) for one in got] == [["all", "cheap"], ["all"]]
            assert [codec.event(bytes(one.event)) for one in got] == [{"price": 5}, {"price": 50}]
            assert [(one.number, one.position, one.publisher) for one in got] == [
                (1, 1, bob.welcome.session),
                (2, 2, bob.welcome.session),
            ]
            assert await eve.silence()
            assert isinstance(await ana.ask(f.Unsubscribe, "all"), f.Done)
            await bob.publish(3, {"price": 50}, {"price": 6})
            assert await ana.events(1) == [{"price": 6}]

    run(test())


def test_a_session_goes_on_where_it_was() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node, "bob") as bob:
            async with talking(node, "ana") as ana:
                await ana.subscribe("s", "x > 0")
                await bob.publish(1, {"x": 1}, {"x": 2}, {"x": 3})
                assert len(await ana.deliveries(3)) == 3
                await ana.say(f.Acknowledge(1))
                await until(lambda: node.node.core.sessions["ana"].acknowledged == 1)
            await bob.publish(4, {"x": 4})
            async with talking(node, "ana") as ana:
                assert ana.welcome.acknowledged == 1
                assert [one.number for one in await ana.deliveries(3)] == [2, 3, 4]

    run(test())


def test_all_survives_the_node(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(folder=tmp_path)) as node, talking(node, "bob") as bob:
            async with talking(node, "ana") as ana:
                await ana.subscribe("s", "x > 0")
            await bob.publish(1, {"x": 1}, {"x": 0}, {"x": 2})
        async with running(settings(folder=tmp_path)) as node, talking(node, "bob") as bob:
            assert bob.welcome.accepted == 3
            assert await bob.publish(3, {"x": 2}, {"x": 3}) == f.Accepted(4)  # some of it again
            async with talking(node, "ana") as ana:
                assert await ana.events(3) == [{"x": 1}, {"x": 2}, {"x": 3}]

    run(test())


def test_all_survives_a_power_failure_too(tmp_path: Path) -> None:
    """As far as a test can tell: everything is written in another thread, and read again."""

    async def test() -> None:
        config = settings(folder=tmp_path, flags={"log.sync": "full"})
        async with running(config) as node, talking(node, "bob") as bob:
            for number in range(1, 21):
                assert await bob.publish(number, {"x": number}) == f.Accepted(number)
        async with running(config) as node, talking(node, "bob") as bob, talking(node) as ana:
            assert bob.welcome.accepted == 20
            await ana.subscribe("s", "x > 0", since=1)
            assert len(await ana.events(20)) == 20

    run(test())


def test_no_more_than_the_credit() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node, credit=2) as ana, talking(node) as bob:
            await ana.subscribe("s", "x > 0")
            await bob.publish(1, *({"x": i} for i in range(1, 6)))
            assert len(await ana.deliveries(2)) == 2
            assert await ana.silence()
            await ana.say(f.Credit(2))
            assert [one.number for one in await ana.deliveries(2)] == [3, 4]
            assert await ana.silence()

    run(test())


def test_old_events_come_first_and_none_is_left_out() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node, credit=5000) as ana, talking(node) as bob:
            await bob.publish(1, *({"x": i % 2, "n": i} for i in range(1200)))
            await bob.say(f.Publish(1201, [msgspec.Raw(bob.codec.raw(Event({"x": 1, "n": 1200})))]))
            answer = await ana.ask(f.Subscribe, "s", "x = 1", 11)
            assert isinstance(answer, f.Done)
            await bob.publish(1202, {"x": 1, "n": 1201})
            got = await ana.events(597)
            assert [event["n"] for event in got] == [*range(11, 1200, 2), 1200, 1201]

    run(test())


@pytest.mark.parametrize(("since", "problem"), [("soon", "is no time"), (-1, "begin with 1"), (10**9, "no position")])
def test_since_is_checked(since: object, problem: str) -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node, codec=JSON_CODEC) as ana:
            answer = await ana.ask(f.Subscribe, "s", "x = 1", since)
            assert isinstance(answer, f.Refused)
            assert problem in answer.reason

    run(test())


def test_what_is_wrong_is_refused_and_nothing_is_lost() -> None:
    async def test() -> None:
        async with running(settings(flags={"limits.batch": 3})) as node, talking(node) as ana:
            refused = await ana.ask(f.Subscribe, "s", "x <")
            assert isinstance(refused, f.Refused)
            assert "expected a field" in refused.reason
            refused = await ana.ask(f.Subscribe, "s", "x < 1 AND x > 2")
            assert isinstance(refused, f.Refused)
            await ana.subscribe("s", "x > 0")
            for frame, problem in [
                (f.Publish(1, [msgspec.Raw(b"\x80"), msgspec.Raw(b"\x07")]), "event 1"),
                (f.Publish(0, [msgspec.Raw(b"\x80")]), "begin with 1"),
                (f.Publish(1, [msgspec.Raw(b"\x80")] * 4), "limit of 3"),
                (f.Publish(1, [msgspec.Raw(b"\x80")], ttl=-1.0), "time to live"),
            ]:
                await ana.say(frame)
                answer = await ana.hear(f.Refused)
                assert problem in answer.reason
                assert answer.number == frame.number
            await ana.say(f.Acknowledge(7))
            assert "was not sent" in (await ana.hear(f.Refused)).reason
            assert await ana.publish(1, {"x": 1}) == f.Accepted(1)
            assert await ana.events(1) == [{"x": 1}]

    run(test())


def test_who_does_not_speak_the_protocol_is_told() -> None:
    async def test() -> None:
        async with running(settings()) as node:
            with pytest.raises(websockets.InvalidStatus):
                await websockets.connect(node.hood.url)
            for first, problem in [
                ('{"is":"Credit","more":1}', "the first frame must be Hello"),
                ('{"is":"Hello","version":9}', "the subprotocol has version 3, and Hello 9"),
                ("what?", "no frame"),
                ('{"is":"Hello","session":"~x"}', "does not begin with ~"),
            ]:
                async with websockets.connect(
                    node.hood.url, subprotocols=[websockets.Subprotocol(JSON_CODEC.name)]
                ) as socket:
                    await socket.send(first)
                    bye = JSON_CODEC.from_node(await socket.recv())
                    assert isinstance(bye, f.Bye)
                    assert problem in bye.reason
                    with pytest.raises(websockets.ConnectionClosed):
                        await socket.recv()
            async with talking(node, codec=JSON_CODEC) as ana:
                await ana.socket.send("what?")
                assert "no frame" in (await ana.hear(f.Bye)).reason

    run(test())


def test_a_session_is_in_one_place_at_a_time() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node, "ana") as first:
            await first.subscribe("s", "x > 0")
            async with talking(node, "ana") as second, talking(node) as bob:
                assert "another connection" in (await first.hear(f.Bye)).reason
                await bob.publish(1, {"x": 1})
                assert await second.events(1) == [{"x": 1}]
            await until(lambda: not node.node.core.sessions["ana"].connected)

    run(test())


def test_a_slow_client_makes_nobody_wait() -> None:
    async def test() -> None:
        config = settings(flags={"sessions.policy": "disconnect", "sessions.queue": 50})
        async with (
            running(config) as node,
            talking(node, credit=0) as slow,
            talking(node) as quick,
            talking(node) as bob,
        ):
            for one in (slow, quick):
                await one.subscribe("s", "x > 0")
            await bob.publish(1, *({"x": i} for i in range(1, 41)))
            assert len(await quick.deliveries(40)) == 40
            await quick.say(f.Acknowledge(40))
            await bob.publish(41, *({"x": i} for i in range(41, 61)))
            assert len(await quick.deliveries(20)) == 20
            assert "too slow" in (await slow.hear(f.Bye)).reason

    run(test())


def test_a_client_that_leaves_is_forgotten() -> None:
    async def test() -> None:
        async with running(settings()) as node:
            async with talking(node, "ana") as ana:
                await ana.subscribe("s", "x > 0")
                assert isinstance(await ana.ask(f.Leave), f.Done)
                await until(lambda: "ana" not in node.node.core.sessions)
            async with talking(node) as eve:
                name = eve.welcome.session
            await until(lambda: name not in node.node.core.sessions)

    run(test())


def test_publishers_may_ask_what_is_wanted() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node) as bob:
            assert isinstance(await bob.ask(f.WatchInterest), f.Done)
            assert (await bob.hear(f.Interest)).filters == []
            async with talking(node) as ana:
                await ana.subscribe("s", "x > 5")
                assert (await bob.hear(f.Interest)).filters == ["x > 5"]
                await ana.subscribe("t", "x > 2")
                assert (await bob.hear(f.Interest)).filters == ["x > 2"]
            assert (await bob.hear(f.Interest)).filters == []

    run(test())


def test_events_that_are_too_old_or_replaced_do_not_come() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node) as bob:
            async with talking(node, "ana") as ana:
                await ana.subscribe("s", "x > 0")
            await bob.publish(1, {"x": 1}, ttl=0.05)
            await bob.publish(2, {"x": 2}, replaces="last")
            await bob.publish(3, {"x": 3}, replaces="last")
            await asyncio.sleep(0.1)
            async with talking(node, "ana") as ana:
                assert await ana.events(1) == [{"x": 3}]

    run(test())


def test_a_session_has_no_more_filters_than_the_limit() -> None:
    async def test() -> None:
        async with running(settings(flags={"limits.subscriptions": 2})) as node, talking(node, "ana") as ana:
            for kind in (f.Subscribe, f.Advertise):
                assert [type(await ana.ask(kind, id, "x > 0")) for id in "aab"] == [f.Done] * 3
                refused = await ana.ask(kind, "c", "x > 0")
                assert isinstance(refused, f.Refused)
                assert "at most 2" in refused.reason
                assert isinstance(await ana.ask(kind, "b", "x > 1"), f.Done)

    asyncio.run(test())
