"""`fieldfare_node` as a sink: each row once, in Spark and by its parts."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.pipeline.nodes import logged, node_elsewhere, run
from tools.nodes.ports import free_port
from tools.waiting import PATIENCE

import fieldfare as ff
from fieldfare.client.errors import Refused
from fieldfare.events import EventError, msgpack
from fieldfare.events.event import Event
from fieldfare.node.storage.log import Log
from fieldfare.pipeline.sinks.formats.node import BATCH, NodeSinkOptions, NodeStreamWriter, Rows, collected
from fieldfare.pipeline.sinks.formats.node_publisher import publish
from fieldfare.pipeline.sources import register

EVENTS = [{"number": number, "text": "x" * (number % 300)} for number in range(5000)]


def test_whatever_was_published_before_a_crash_is_not_published_again(tmp_path: Path) -> None:
    chance = random.Random(5)
    packed = [msgpack.encode(Event(event)) for event in EVENTS]
    with node_elsewhere(tmp_path) as url:
        writer = NodeStreamWriter(NodeSinkOptions(url=url, order="number"))
        for batch, begin in enumerate(range(0, len(EVENTS), 1000)):
            rows = [(((True, number),), packed[number]) for number in range(begin, begin + 1000)]
            # The driver was killed when so many were published:
            publish(url, "", "spark:q", batch * BATCH + 1, packed[begin : begin + chance.randrange(1001)])
            for _ in range(2):  # and the batch is done again, even twice, by other tasks
                chance.shuffle(rows)
                cut = chance.randrange(1001)
                writer.commit([Rows("q", sorted(rows[:cut])), None, Rows("q", sorted(rows[cut:]))], batch)
    assert logged(tmp_path) == EVENTS
    sequences = [entry.sequence for entry in Log(tmp_path / "log").read(1)]
    assert sequences == [batch * BATCH + number for batch in range(5) for number in range(1, 1001)]


def test_what_a_node_refuses_is_not_left_out(tmp_path: Path) -> None:
    with node_elsewhere(tmp_path, settings={"limits.batch": 10}) as url:
        assert publish(url, "", "s", 1, [msgpack.encode(Event({"n": n})) for n in range(25)]) == 25
        bad = [*(msgpack.encode(Event({"n": n})) for n in range(25, 36)), b"\x05", msgpack.encode(Event({"n": 36}))]
        for _ in range(2):
            with pytest.raises(Refused, match="event 1"):
                publish(url, "", "s", 26, bad)
        with pytest.raises(Refused, match="an event of 2000000 bytes"):
            publish(url, "", "s", 36, [b"x" * 2_000_000])
        assert publish(url, "", "s", 26, [*bad[:11], *bad[12:]]) == 2
    assert [event["n"] for event in logged(tmp_path)] == list(range(37))


def test_a_node_that_is_away_for_a_moment_is_waited_for(tmp_path: Path) -> None:
    port, event = free_port(), msgpack.encode(Event({"n": 1}))
    writer = NodeStreamWriter(NodeSinkOptions(url=f"ws://127.0.0.1:{port}"))
    thread = threading.Thread(target=lambda: writer.commit([Rows("q", [((), event)])], 0))
    thread.start()
    time.sleep(0.3)
    with node_elsewhere(tmp_path, port):
        thread.join(PATIENCE)
    assert logged(tmp_path) == [{"n": 1}]


def test_a_row_that_is_no_event_is_named() -> None:
    batch = pa.record_batch({"event": ['{"a": 1}', "[]"], "position": [7, 8]})
    with pytest.raises(EventError, match=r"row 2 of a task where position is \[8\]"):
        collected([batch], ["position"])


def test_a_table_is_published_and_mistakes_are_named(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    with node_elsewhere(tmp_path) as url:
        table = spark.createDataFrame([(number, f"n{number}") for number in range(300)], "number long, name string")
        write = table.repartition(3).write.format("fieldfare_node").mode("append").option("url", url)
        for _ in range(2):
            write.option("session", "job 1").option("order", "number").save()
        with pytest.raises(PySparkException, match="there is no column nummer to order by"):
            write.option("order", "nummer").save()
    assert logged(tmp_path) == [{"number": number, "name": f"n{number}"} for number in range(300)]


DRIVER = """
import sys
from fieldfare.pipeline.spark import spark_session
from fieldfare.pipeline.sources import register

source, url, checkpoint = sys.argv[1:]
spark = spark_session("local[2]", {"spark.driver.memory": "1g"})
register(spark)
stream = spark.readStream.format("fieldfare_log").option("max_rows", 100).load(source).repartition(2)
write = stream.writeStream.format("fieldfare_node").option("url", url).option("order", "position")
write.option("checkpointLocation", checkpoint).start().awaitTermination()
"""


@pytest.mark.long
def test_from_log_to_node_exactly_once_though_the_driver_is_killed(spark: SparkSession, tmp_path: Path) -> None:
    """The driver is killed in the middle of a stream of many small batches; another one goes on with its checkpoint."""
    register(spark)
    source, sink, checkpoint = tmp_path / "a", tmp_path / "b", tmp_path / "checkpoint"
    with node_elsewhere(source) as url, ff.connect_sync(url) as client:
        client.publish_batch(EVENTS)
    port = free_port()
    with node_elsewhere(sink, port) as url, ff.connect_sync(url) as client:
        driver = subprocess.Popen(
            [sys.executable, "-c", DRIVER, source, url, checkpoint], start_new_session=True, stderr=subprocess.DEVNULL
        )
        try:
            with client.subscribe("number >= 300") as events:
                events.next(timeout=PATIENCE)
            time.sleep(random.uniform(0, 0.3))
        finally:
            os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
    before = len(logged(sink))
    assert 300 < before < len(EVENTS)
    with node_elsewhere(sink, port) as url:
        stream = spark.readStream.format("fieldfare_log").option("max_rows", 3000).load(str(source))
        run(stream, "fieldfare_node", checkpoint, {"url": url, "order": "position"})
    assert logged(sink) == EVENTS
