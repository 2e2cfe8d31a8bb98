"""`fieldfare_log` in Spark, over the log of a running node."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from tests.pipeline.nodes import collected, node_elsewhere

import fieldfare as ff
from fieldfare.node.storage.log import Log, LogError
from fieldfare.pipeline.sources import register
from fieldfare.pipeline.sources.log import LogStreamReader
from fieldfare.protocol.journal import JournalEntry

EVENTS = [{"type": f"t{number % 3}", "number": number} for number in range(300)]


def test_a_log_in_batch_and_as_a_stream_while_the_node_runs(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    data = tmp_path / "node"
    stream = spark.readStream.format("fieldfare_log").option("max_rows", 150)
    with node_elsewhere(data, settings={"log.segment_bytes": 6_000}) as url:
        with ff.connect_sync(url, session="ana") as client:
            client.publish_batch(EVENTS[:200])
            assert spark.read.format("fieldfare_log").load(str(data)).count() == 200
            rows, batches = collected(spark, stream.load(str(data)), tmp_path / "out")
            assert (len(rows), batches) == (200, 2)
            client.publish_batch(EVENTS[200:])
        rows, batches = collected(spark, stream.load(str(data)), tmp_path / "out")
        assert batches == 1
    assert [row[0] for row in rows] == list(range(1, 301))
    assert [row[2:5] for row in rows] == [("ana", number, f"t{(number - 1) % 3}") for number in range(1, 301)]
    assert [json.loads(row[5]) for row in rows] == EVENTS
    log = Log(data / "log")  # the node has stopped; some of it may be sealed, and then all of it is
    log.roll()
    log.seal()
    found = spark.read.format("fieldfare_log").load(str(data / "log")).sort("position").collect()
    assert [tuple(row) for row in found] == rows
    assert found[0].time.year >= 2026


def positions(reader: LogStreamReader, start: dict[str, int], end: dict[str, int]) -> list[int]:
    parts = reader.partitions(start, end)
    return [position for part in parts for batch in reader.read(part) for position in batch["position"].to_pylist()]


def test_what_was_deleted_before_it_was_read_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    log = Log(tmp_path)
    for begin in range(1, 401, 100):
        log.append([JournalEntry(number, 1e9, "ana", number, b"\x80", b"") for number in range(begin, begin + 100)])
        log.roll()
    reader, skipping = LogStreamReader(tmp_path, 0, 130, "fail"), LogStreamReader(tmp_path, 10, 130, "skip")
    limit = reader.getDefaultReadLimit()
    assert reader.initialOffset() == {"position": 0}
    end = reader.latestOffset({"position": 0}, limit)
    assert positions(reader, {"position": 0}, end) == list(range(1, 131))
    log.retain(max_bytes=0, max_seconds=None, now=0.0, keep_from=250)
    with pytest.raises(LogError, match=r"has deleted positions 131 to 200 of .*: let it keep more"):
        reader.partitions(end, reader.latestOffset(end, limit))
    start = skipping.initialOffset()
    end = skipping.latestOffset(start, limit)
    assert positions(skipping, start, end) == list(range(201, 331))
    assert "deleted positions 10 to 200" in caplog.text
    with pytest.raises(LogError, match="ends at position 400, and up to 500 was read"):
        reader.latestOffset({"position": 500}, limit)
    reader.prepareForTriggerAvailableNow()
    log.append([JournalEntry(401, 1e9, "ana", 401, b"\x80", b"")])
    assert reader.latestOffset({"position": 300}, limit) == reader.latestOffset({"position": 400}, limit)
    assert reader.reportLatestOffset() == {"position": 401}


def test_mistakes_are_named(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    with pytest.raises(PySparkException, match="there is no folder"):
        spark.read.format("fieldfare_log").load(str(tmp_path / "nowhere")).count()
    with pytest.raises(PySparkException, match="there is no option `rows`; its options: path, since, max_rows, gaps"):
        spark.read.format("fieldfare_log").option("rows", 5).load(str(tmp_path)).count()
