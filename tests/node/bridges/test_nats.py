"""The NATS bridge, with nats-server on the other side."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import msgspec
import nats
import pytest
from nats.js import JetStreamContext
from nats.js.api import RetentionPolicy, StreamConfig
from tests.node.bridges.bridged import bridged
from tests.node.talking import talking, until
from tools.servers.nats import NatsServer

from fieldfare.node.bridges import runner
from fieldfare.retry import Backoff

pytestmark = pytest.mark.needs("nats-server")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[NatsServer]:
    made = NatsServer(tmp_path / "nats")
    made.start()
    yield made
    made.kill()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "BACKOFF", Backoff(0.05, 0.2))


@contextlib.asynccontextmanager
async def streams(server: NatsServer, *subjects: str, **more: Any) -> AsyncIterator[JetStreamContext]:
    """JetStream with a stream of these subjects, made if it is not there."""
    client = await nats.connect(server.url)
    try:
        found: JetStreamContext = client.jetstream(timeout=60)
        if subjects:
            await found.add_stream(StreamConfig(name="all", subjects=list(subjects), **more))
        yield found
    finally:
        await client.close()


async def say(server: NatsServer, subject: str, *values: object) -> None:
    async with streams(server) as found:
        for value in values:
            await found.publish(subject, msgspec.json.encode(value))


async def stored(server: NatsServer, subject: str) -> list[Any]:
    """All messages of a subject in the stream."""
    async with streams(server) as found:
        last = (await found.stream_info("all")).state.last_seq
        messages = [await found.get_msg("all", number) for number in range(1, last + 1)]
        return [one for one in messages if (one.subject or "").startswith(subject)]


def kind(server: NatsServer, **more: Any) -> dict[str, Any]:
    return {"kind": "nats", "url": server.url, **more}


def run(test: Any) -> None:
    asyncio.run(test)


def test_messages_come_in_by_the_first_rule(server: NatsServer) -> None:
    async def test() -> None:
        rules = [
            {"subject": "sensors.*.temperature", "fields": {"room": 1}, "type": "temperature"},
            {"subject": "sensors.>", "fields": {"where": "subject"}},
        ]
        async with (
            streams(server, "sensors.>") as found,
            bridged(kind(server, **{"in": rules})) as (node, status),
            talking(node) as ana,
        ):
            await ana.subscribe("s", "TRUE")
            await found.publish("sensors.hall.temperature", b"21.5", headers={"unit": "C"})
            await found.publish("sensors.hall.smoke", b"{no", headers={"content-type": "application/json"})
            event = {"ce-specversion": "1.0", "ce-id": "7", "ce-source": "/s", "ce-type": "a%20b"}
            await found.publish("sensors.hall.smoke", b'"yes"', headers=event)
            got = sorted(await ana.events(2), key=lambda one: str(one["type"]))
            assert got[1] == {"unit": "C", "value": 21.5, "room": "hall", "type": "temperature"}
            assert (got[0]["type"], got[0]["data"], got[0]["where"]) == ("a b", "yes", "sensors.hall.smoke")
            await until(lambda: status().bad == 1)
            assert "the message 2 to sensors.hall.smoke" in status().problem

    run(test())


def test_events_go_out(server: NatsServer) -> None:
    async def test() -> None:
        rules = [
            {"filter": "x > 0", "subject": "out.{room}"},
            {"filter": "x > 1", "subject": "out.all", "mode": "structured"},
        ]
        async with streams(server, "out.>"):
            async with bridged(kind(server, out=rules)) as (node, status), talking(node) as bob:
                await bob.publish(1, {"x": 1, "room": "hall"}, {"x": 2, "room": "attic"}, {"x": 3, "room": "a b"})
                await until(lambda: status().outgoing == 2)
                assert status().bad == 1
            got = await stored(server, "out")
            assert [one.subject for one in got] == ["out.hall", "out.attic", "out.all", "out.all"]
            assert msgspec.json.decode(got[2].data)["data"] == {"x": 2, "room": "attic"}

    run(test())


def test_two_nodes_share_a_subject_and_no_loop(server: NatsServer) -> None:
    async def test() -> None:
        table = kind(server, **{"in": [{"subject": "s.>"}], "out": [{"filter": "TRUE", "subject": "s.{x}"}]})
        async with (
            streams(server, "s.>"),
            bridged(table, name="a") as (a, at_a),
            bridged(table, name="b") as (b, at_b),
            talking(a) as ana,
            talking(b) as bob,
        ):
            await ana.subscribe("s", "TRUE")
            await bob.subscribe("s", "TRUE")
            await ana.publish(1, {"x": 1})
            await bob.publish(1, {"x": 2})
            for talker in (ana, bob):
                assert sorted(str(event["x"]) for event in await talker.events(2)) == ["1", "2"]
                assert await talker.silence()
            assert (at_a().incoming, at_a().outgoing, at_b().incoming, at_b().outgoing) == (1, 1, 1, 1)

    run(test())


def test_both_sides_go_on_where_they_were(server: NatsServer, tmp_path: Path) -> None:
    async def test() -> None:
        table = kind(server, **{"in": [{"subject": "in"}], "out": [{"filter": "y > 0", "subject": "out"}]})
        async with streams(server, "in", "out"):
            pass
        folder = tmp_path / "a"
        async with bridged(table, folder) as (node, status), talking(node, "ana") as ana:
            await ana.subscribe("s", "x >= 0")
            await say(server, "in", *({"x": number} for number in range(50)))
            for number in range(1, 51):
                await ana.publish(number, {"y": number})
            await until(lambda: status().outgoing > 0)
            server.kill()
            await until(lambda: not status().up)
            for number in range(51, 101):
                await ana.publish(number, {"y": number})
            server.start()
            assert [event["x"] for event in await ana.events(50)] == list(range(50))
            await until(lambda: status().waiting == 0)
            assert await ana.silence()
        await say(server, "in", *({"x": number} for number in range(50, 60)))
        async with bridged(table, folder) as (node, status), talking(node, "bob") as bob:
            await bob.subscribe("s", "x >= 0", since=1)
            assert [event["x"] for event in await bob.events(60)] == list(range(60))
            assert (status().incoming, status().duplicates) == (10, 0)
        heard = [msgspec.json.decode(one.data)["y"] for one in await stored(server, "out")]
        assert heard == list(range(1, 101))  # what was sent again, JetStream has recognised

    run(test())


def test_a_stream_that_is_made_again_is_read_anew(server: NatsServer, tmp_path: Path) -> None:
    async def test() -> None:
        table = kind(server, **{"in": [{"subject": "in"}]})
        async with streams(server, "in") as found:
            await say(server, "in", *range(5))
            async with bridged(table, tmp_path / "a") as (_, status):
                await until(lambda: status().incoming == 5)
            await found.delete_stream("all")
        async with streams(server, "in"):
            await say(server, "in", *range(7))
            async with bridged(table, tmp_path / "a") as (_, status):
                await until(lambda: status().incoming == 7)

    run(test())


def test_streams_that_cannot_be_read_safely_are_refused(server: NatsServer) -> None:
    async def test() -> None:
        table = kind(server, **{"in": [{"subject": "in"}]})
        async with bridged(table, up=False) as (_, status):
            await until(lambda: "there is none" in status().error)
            async with streams(server, "in", retention=RetentionPolicy.INTEREST):
                await until(lambda: "the retention `limits`" in status().error)

    run(test())


def test_what_no_stream_takes_waits(server: NatsServer) -> None:
    async def test() -> None:
        table = kind(server, out=[{"filter": "TRUE", "subject": "out"}])
        async with bridged(table) as (node, status), talking(node) as bob:
            await bob.publish(1, {"x": 1})
            await until(lambda: "no stream takes it" in status().error)
            async with streams(server, "out"):
                await until(lambda: status().outgoing == 1)

    run(test())
