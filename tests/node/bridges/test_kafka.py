"""The Kafka bridge, with Apache Kafka on the other side: `make test-servers`."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tests.node.bridges.bridged import bridged
from tests.node.talking import talking, until
from tools.servers.kafka import Kafka

from fieldfare.node.bridges import runner
from fieldfare.retry import Backoff

pytestmark = [pytest.mark.long, pytest.mark.needs("Kafka")]
names = (f"topic-{number}" for number in itertools.count())


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    kafka = Kafka(tmp_path_factory.mktemp("kafka"))
    kafka.start()
    yield kafka
    kafka.kill()


@pytest.fixture
def topic(shared: Kafka) -> str:
    return shared.create(next(names))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "BACKOFF", Backoff(0.05, 0.2))


def kind(kafka: Kafka, **more: Any) -> dict[str, Any]:
    return {"kind": "kafka", "servers": kafka.servers, **more}


def values(*numbers: int) -> list[dict[str, Any]]:
    return [{"value": msgspec.json.encode({"x": number})} for number in numbers]


def run(test: Any) -> None:
    asyncio.run(test)


def test_records_come_in(shared: Kafka, topic: str) -> None:
    async def test() -> None:
        rule = {"topic": topic, "fields": {"symbol": "key", "at": "offset"}, "type": "quote"}
        async with bridged(kind(shared, **{"in": [rule]})) as (node, status), talking(node) as ana:
            await ana.subscribe("s", "TRUE")
            shared.produce(
                topic,
                [
                    {"value": b'{"price": 5}', "key": b"IBM", "headers": {"unit": "EUR"}},
                    {"value": b"{no", "headers": {"content-type": "application/json"}},
                    {
                        "value": b'{"a": 1}',
                        "headers": {"ce_specversion": "1.0", "ce_id": "7", "ce_source": "/s", "ce_type": "t"},
                    },
                ],
            )
            first, second = await ana.events(2)
            assert first == {"unit": "EUR", "price": 5, "symbol": "IBM", "at": 0, "type": "quote"}
            assert second["data"] == {"a": 1}
            await until(lambda: status().bad == 1)
            assert f"the record {topic}/0/1: " in status().problem

    run(test())


def test_events_go_out_with_keys(shared: Kafka, topic: str) -> None:
    async def test() -> None:
        rules = [
            {"filter": "x > 0", "topic": topic, "key": "{room}"},
            {"filter": "x > 1", "topic": topic, "mode": "binary"},
        ]
        async with bridged(kind(shared, out=rules)) as (node, status), talking(node) as bob:
            await bob.publish(1, {"x": 1, "room": "hall"}, {"x": 2, "room": "attic"}, {"x": 3}, {"x": 0})
            await until(lambda: status().outgoing + status().bad == 3)
            assert status().bad == 1  # the third has no room for a key
        got = shared.all(topic)
        assert [one.key() for one in got] == [b"hall", b"attic", None, None]
        assert [dict(one.headers() or ()).get("ce_type") for one in got] == [
            None,
            None,
            b"fieldfare.event",
            b"fieldfare.event",
        ]
        assert msgspec.json.decode(got[0].value() or b"") == {"x": 1, "room": "hall"}

    run(test())


def test_two_nodes_share_a_topic_and_no_loop(shared: Kafka, topic: str) -> None:
    async def test() -> None:
        table = kind(shared, **{"in": [{"topic": topic}], "out": [{"filter": "TRUE", "topic": topic}]})
        async with (
            bridged(table, name="a") as (a, at_a),
            bridged(table, name="b") as (b, at_b),
            talking(a) as ana,
            talking(b) as bob,
        ):
            await ana.subscribe("s", "TRUE")
            await bob.subscribe("s", "TRUE")
            await ana.publish(1, {"x": 1, "data": b"\x01"})
            await bob.publish(1, {"x": 2})
            for talker in (ana, bob):
                assert sorted(str(event) for event in await talker.events(2)) == sorted(
                    map(str, ({"x": 1, "data": b"\x01"}, {"x": 2}))
                )
                assert await talker.silence()
            assert (at_a().incoming, at_a().outgoing, at_b().incoming, at_b().outgoing) == (1, 1, 1, 1)

    run(test())


def test_a_node_that_comes_back_goes_on_where_it_was(shared: Kafka, topic: str, tmp_path: Path) -> None:
    async def test() -> None:
        table = kind(shared, **{"in": [{"topic": topic}]})
        folder = tmp_path / "a"
        shared.produce(topic, values(*range(10)))
        async with bridged(table, folder) as (node, status), talking(node, "ana") as ana:
            await ana.subscribe("s", "TRUE", since=1)
            assert [event["x"] for event in await ana.events(10)] == list(range(10))
        shared.produce(topic, values(*range(10, 20)))
        async with bridged(table, folder) as (node, status), talking(node, "bob") as bob:
            await until(lambda: status().incoming == 10)
            assert status().duplicates == 0
            await bob.subscribe("s", "TRUE", since=1)
            assert [event["x"] for event in await bob.events(20)] == list(range(20))

    run(test())


def test_a_topic_that_is_made_again_is_read_anew(shared: Kafka, topic: str, tmp_path: Path) -> None:
    async def test() -> None:
        table = kind(shared, **{"in": [{"topic": topic}]})
        shared.produce(topic, values(*range(5)))
        async with bridged(table, tmp_path / "a") as (_, status):
            await until(lambda: status().incoming == 5)
        shared.delete(topic)
        shared.create(topic)
        shared.produce(topic, values(*range(100, 107)))
        async with bridged(table, tmp_path / "a") as (_, status):
            await until(lambda: status().incoming == 7)

    run(test())


def test_the_latest_means_what_comes_after_the_first_connection(shared: Kafka, topic: str, tmp_path: Path) -> None:
    async def test() -> None:
        table = kind(shared, **{"in": [{"topic": topic, "start": "latest"}]})
        shared.produce(topic, values(1))
        async with bridged(table, tmp_path / "a") as (node, status):
            await until(lambda: f"bridge:plant/{topic}" in " ".join(node.node.closers))
            await until(lambda: _committed(shared, topic) == 1)
        shared.produce(topic, values(2))
        async with bridged(table, tmp_path / "a") as (_, status):
            await until(lambda: status().incoming == 1)

    run(test())


def _committed(kafka: Kafka, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": kafka.servers, "group.id": "fieldfare-a-plant", "log_level": 0})
    try:
        (found,) = consumer.committed([TopicPartition(topic, 0)], 30)
        return found.offset
    finally:
        consumer.close()


def test_a_topic_that_is_not_there_is_said(shared: Kafka) -> None:
    async def test() -> None:
        table = kind(shared, **{"in": [{"topic": "nowhere"}]})
        async with bridged(table, up=False) as (_, status):
            await until(lambda: "nknown topic" in status().error)
            shared.create("nowhere")
            await until(lambda: status().up)

    run(test())


def test_a_network_with_advertisements_takes_records(shared: Kafka, topic: str) -> None:
    async def test() -> None:
        table = kind(shared, **{"in": [{"topic": topic, "type": "quote"}]})
        shared.produce(topic, values(1))
        async with bridged(table, strategy="covering+ads") as (_, status):
            await until(lambda: status().incoming == 1)

    run(test())


def test_all_compressions_are_read(shared: Kafka, topic: str) -> None:
    async def test() -> None:
        for compression in ("gzip", "snappy", "lz4", "zstd"):
            producer = Producer({"bootstrap.servers": shared.servers, "compression.type": compression, "log_level": 0})
            producer.produce(topic, b'{"text": "' + b"a" * 1000 + b'"}')
            producer.flush()
        async with bridged(kind(shared, **{"in": [{"topic": topic}]})) as (_, status):
            await until(lambda: status().incoming == 4)

    run(test())


def test_nothing_is_lost_when_kafka_is_killed(tmp_path: Path) -> None:
    async def test() -> None:
        table = kind(kafka, **{"in": [{"topic": "in"}], "out": [{"filter": "y > 0", "topic": "out"}]})
        async with bridged(table, tmp_path / "a") as (node, status), talking(node, "ana") as ana:
            await ana.subscribe("s", "x >= 0")
            kafka.produce("in", values(*range(100)))
            for number in range(1, 101):
                await ana.publish(number, {"y": number})
            await until(lambda: status().outgoing > 0)
            await asyncio.to_thread(kafka.kill)
            await until(lambda: not status().up)
            for number in range(101, 151):
                await ana.publish(number, {"y": number})
            await asyncio.to_thread(kafka.start)
            await asyncio.to_thread(kafka.produce, "in", values(*range(100, 150)))
            assert [event["x"] for event in await ana.events(150)] == list(range(150))
            await until(lambda: status().waiting == 0)
            assert await ana.silence()
        got = [msgspec.json.decode(one.value() or b"")["y"] for one in kafka.all("out")]
        assert list(dict.fromkeys(got)) == list(range(1, 151))

    kafka = Kafka(tmp_path / "kafka")
    kafka.start()
    try:
        kafka.create("in")
        kafka.create("out")
        run(test())
    finally:
        kafka.kill()
