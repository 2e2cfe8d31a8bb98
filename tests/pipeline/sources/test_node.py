"""`fieldfare_node` as a source in Spark."""

from __future__ import annotations

import json
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors.exceptions.captured import StreamingQueryException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tests.pipeline.nodes import collected, node_elsewhere

import fieldfare as ff
from fieldfare.node.storage.log import Log
from fieldfare.pipeline.sources import node as source
from fieldfare.pipeline.sources import register
from fieldfare.pipeline.sources.node import GapError, NodeOptions, NodeStreamReader

EVENTS = [{"type": "count", "number": number} for number in range(1, 601)]
WANTED = [event for event in EVENTS if event["number"] % 3]  # type: ignore[operator]


def test_a_stream_goes_on_where_it_ended(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    data = tmp_path / "node"
    with node_elsewhere(data) as url:
        asked = {"url": url, "filter": "number % 3 <> 0", "max_rows": "150"}
        stream = spark.readStream.format("fieldfare_node").options(**asked).load()
        with ff.connect_sync(url, session="ana") as client:
            client.publish_batch(EVENTS[:300])
            rows, batches = collected(spark, stream, tmp_path / "out")
            assert [json.loads(row[5]) for row in rows] == WANTED[:200]
            assert batches == 2
            client.publish_batch(EVENTS[300:])
        rows, batches = collected(spark, stream, tmp_path / "out")
    assert [json.loads(row[5]) for row in rows] == WANTED
    assert {row[2:5] for row in rows} == {("ana", None, "count")}
    kept = [entry for entry in Log(data / "log").read(1) if entry.position % 3]
    assert [(row[0], row[1].replace(tzinfo=UTC).timestamp()) for row in rows] == [
        (one.position, one.time) for one in kept
    ]
    with node_elsewhere() as url:  # another node, at the same address as far as the checkpoint is concerned
        again = spark.readStream.format("fieldfare_node").options(**{**asked, "url": url}).load()
        with pytest.raises(StreamingQueryException, match="position 599 is another event by now"):
            collected(spark, again, tmp_path / "out")


def read(reader: NodeStreamReader, start: Any, end: Any) -> list[int]:
    parts = reader.partitions(start, end)
    return [position for part in parts for batch in reader.read(part) for position in batch["position"].to_pylist()]


def test_the_same_offsets_give_the_same_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "AT_ONCE", 70)
    monkeypatch.setattr(source, "PIECE", 40)
    monkeypatch.setattr(source, "IDLE", 0.1)
    with node_elsewhere() as url, ff.connect_sync(url) as client:
        given = NodeOptions(url=url, filter="number % 3 <> 0")
        client.publish_batch(EVENTS)
        reader = NodeStreamReader(given)
        offset, found, spans = reader.initialOffset(), [], []
        for limit in (ReadMaxRows(100), ReadMaxRows(1), ReadAllAvailable()):
            end = reader.latestOffset(offset, limit)
            spans.append((offset, end))
            found.append(read(reader, offset, end))
            offset = end
        assert [position for some in found for position in some] == [event["number"] for event in WANTED]
        assert [len(some) for some in found[:2]] == [100, 1]
        assert reader.latestOffset(offset, ReadMaxRows(5)) == offset
        fresh = NodeStreamReader(given)  # as after a restart: the batch is planned again, and nothing is at hand
        assert [read(fresh, *span) for span in reversed(spans)] == found[::-1]
        with pytest.raises(GapError, match="no longer has position 599, the last that was read"):
            NodeStreamReader(NodeOptions(url=url, filter="number % 3 = 0")).latestOffset(offset, ReadMaxRows(5))
        with pytest.raises(GapError, match="is the node a, and positions of b were read"):
            reader.latestOffset({**offset, "node": "b"}, ReadMaxRows(5))
