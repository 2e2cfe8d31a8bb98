"""`fieldfare_mqtt`, with Mosquitto on the other side."""

from __future__ import annotations

import json
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import cast

import paho.mqtt.client as paho
import pytest
from paho.mqtt.enums import CallbackAPIVersion
from pyspark.sql import SparkSession
from tests.node.bridges.test_mqtt import Mosquitto, needs_mosquitto, said
from tests.pipeline.nodes import collected
from tools.waiting import PATIENCE

from fieldfare.events import msgpack
from fieldfare.node.storage.log import Log
from fieldfare.pipeline.sources import receiver, register
from fieldfare.pipeline.sources.mqtt import MqttOptions
from fieldfare.pipeline.sources.receiver import Receiver, ReceiverError, event_of

pytestmark = needs_mosquitto


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    (tmp_path / "mosquitto").mkdir()
    mosquitto = Mosquitto(tmp_path / "mosquitto")
    mosquitto.start()
    yield mosquitto
    mosquitto.kill()


def publish(broker: Mosquitto, numbers: range, topic: str = "rooms/{}") -> None:
    client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5)
    client.connect("127.0.0.1", broker.port)
    client.loop_start()
    for number in numbers:
        client.publish(topic.format(number % 3), json.dumps({"number": number}), qos=1).wait_for_publish(5)
    client.disconnect()
    client.loop_stop()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_stream_misses_nothing_while_no_query_runs(spark: SparkSession, tmp_path: Path, broker: Mosquitto) -> None:
    register(spark)
    asked = {"url": broker.url, "topics": "rooms/#, halls/+", "folder": str(tmp_path / "kept"), "max_rows": "40"}
    stream = spark.readStream.format("fieldfare_mqtt").options(**asked).load()
    first = Receiver(MqttOptions(**{**asked, "max_rows": 40}))  # type: ignore[arg-type]
    first.drain()  # else it may hang up before it has subscribed
    first.stop()
    publish(broker, range(60))
    rows, batches = collected(spark, stream, tmp_path / "out")
    assert batches == 2
    publish(broker, range(60, 70), "halls/{}")
    publish(broker, range(70, 75), "elsewhere/{}")
    rows, _ = collected(spark, stream, tmp_path / "out")
    assert [json.loads(row[4])["number"] for row in rows] == list(range(70))
    assert [row[2] for row in rows] == [f"{'rooms' if n < 60 else 'halls'}/{n % 3}" for n in range(70)]
    assert [row[0] for row in rows] == list(range(1, 71))


def test_what_the_broker_has_accepted_is_received_though_connections_break(
    tmp_path: Path, broker: Mosquitto, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(receiver, "SEGMENT", 2000)
    given = MqttOptions(url=broker.url, topics="rooms/#", folder=str(tmp_path / "kept"))
    first = Receiver(given)
    first.drain()
    publish(broker, range(200))
    until(lambda: first._log.last >= 200)
    cast("socket.socket", first._client.socket()).shutdown(socket.SHUT_RDWR)  # and it comes back by itself
    publish(broker, range(200, 300))
    until(lambda: first._log.last >= 300)
    monkeypatch.setattr(receiver, "PATIENCE", 0.2)
    with pytest.raises(ReceiverError, match="is used by another query"):
        Receiver(given)
    monkeypatch.setattr(receiver, "PATIENCE", 10.0)
    first.forget(150)
    assert 1 < first._log.first <= 151
    first.stop()
    publish(broker, range(300, 320))
    second = Receiver(given)
    until(lambda: second._log.last >= 320)
    second.stop()
    log = Log(tmp_path / "kept")
    numbers = [msgpack.decode(entry.event)["number"] for entry in log.read(log.first)]
    assert set(numbers) >= set(range(150, 320))
    assert len(numbers) == log.last - log.first + 1


def test_what_cannot_be_read_is_kept() -> None:
    event = event_of("rooms/1", b"{", said(ContentType="application/json"))
    assert (event["type"], event["data"]) == ("fieldfare.unreadable", b"{")
    assert len(event_of("rooms/1", b"x" * 2_000_000)["data"]) == 2_000_000  # type: ignore[arg-type]


def test_a_broker_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ReceiverError, match=r"no broker answers at mqtt://127\.0\.0\.1:9"):
        Receiver(MqttOptions(url="mqtt://127.0.0.1:9", topics="a", folder=str(tmp_path)))
