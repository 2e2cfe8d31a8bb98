"""The kind `parquet`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pipeline.sinks.suite import FIRST, SECOND, WRITER, SinkSuite

from fieldfare.pipeline import normalise
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.history import field_columns
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare.pipeline.match.operator import Matched, numbered
from fieldfare.pipeline.match.ways import matched_before
from fieldfare.pipeline.sinks import SinkSettings, parquet


class TestParquet(SinkSuite):
    kind = "parquet"
    table = "events"

    def contents(self, place: Path) -> list[str]:
        spark = SparkSession.active()
        return sorted(row.id for row in spark.read.parquet(str(place / "out")).collect())


def matched(spark: SparkSession, place: Path, ids: list[str]) -> Matched:
    """Return deliveries of events with these ids to two subscriptions, before there are rows of them."""
    if not catalogue.is_catalogue(place / "wanted"):
        catalogue.write_version(place / "wanted", [Subscription("all", "n >= 0", "ana"), Subscription("none", "n < 0")])
    texts = [(json.dumps({"id": id, "source": "/test", "n": number}),) for number, id in enumerate(ids)]
    events: DataFrame = normalise(spark.createDataFrame(texts, "event string"), "n long").events
    found, plan, id = numbered(events, place / "wanted", columns=field_columns(events), rest="rest")
    return Matched(matched_before(found, plan), plan, id)


def test_deliveries_that_workers_write_are_there_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = parquet.make(SinkSettings("parquet", "deliveries", {"path": str(tmp_path / "out")}))
    sink.write_matched(matched(spark, tmp_path, FIRST), Batch(WRITER, 0))
    with monkeypatch.context() as patched:
        patched.setattr(parquet, "committed", _dies)
        with pytest.raises(KeyboardInterrupt):
            sink.write_matched(matched(spark, tmp_path, SECOND), Batch(WRITER, 1))
    assert _ids(spark, tmp_path) == FIRST
    for ids, number in ((SECOND, 1), (SECOND, 1), (FIRST, 0), ([], 2)):  # the last two were there, or have no row
        sink.write_matched(matched(spark, tmp_path, ids), Batch(WRITER, number))
    assert _ids(spark, tmp_path) == [*FIRST, *SECOND]
    rows = spark.read.parquet(str(tmp_path / "out")).drop("batch")
    assert {(row.subscription, row.owner, row.snapshot) for row in rows.collect()} == {("all", "ana", 1)}
    assert rows.columns == matched(spark, tmp_path, FIRST).rows().columns
    assert not (tmp_path / "out" / "_staging").exists()


def _dies(*_: Any) -> None:
    raise KeyboardInterrupt


def _ids(spark: SparkSession, place: Path) -> list[str]:
    return sorted(row.id for row in spark.read.parquet(str(place / "out")).collect())
