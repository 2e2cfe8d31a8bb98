"""The kind `lake`."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.examples import few
from tests.pipeline.sinks.suite import WRITER, SinkSuite

from fieldfare.pipeline import normalise
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.history import field_columns
from fieldfare.pipeline.lake.table import partition_name, read_table
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare.pipeline.match.forms import Found
from fieldfare.pipeline.match.operator import Matched, numbered
from fieldfare.pipeline.match.pairs import Pairs
from fieldfare.pipeline.match.ways import matched_before
from fieldfare.pipeline.sinks import SinkSettings, make
from fieldfare.pipeline.sinks.formats import table_deliveries
from fieldfare.pipeline.sinks.table import TableSink


class TestTable(SinkSuite):
    kind = "lake"

    def contents(self, place: Path) -> list[str]:
        spark = SparkSession.active()
        return sorted(row.id for row in read_table(spark, place / "out").collect())


def test_the_quarantine_is_sorted_by_the_day_of_arrival(spark: SparkSession, tmp_path: Path) -> None:
    bad = spark.sql("SELECT 'x' record, 'dear' reason, 'price' field, TIMESTAMP'2026-01-02 03:04:05' at")
    make(SinkSettings("lake", "quarantine", {"path": str(tmp_path)})).write(bad, Batch("w", 0))
    (file,) = tmp_path.glob("kind=*/day=*/*.parquet")
    assert file.parent.relative_to(tmp_path) == Path("kind=quarantine", "day=2026-01-02")


DAYS = ["2026-11-15T12:00:00Z", "2026-11-16T00:00:00Z", "1969-12-31T23:59:59.999999Z"]


def matched(spark: SparkSession, place: Path, numbers: range) -> Matched:
    """Return deliveries of events of several types and days to two of three subscriptions."""
    if not catalogue.is_catalogue(place / "wanted"):
        wanted = [Subscription("all", "n >= 0", "ana"), Subscription("odd", "n % 2 = 1"), Subscription("none", "n < 0")]
        catalogue.write_version(place / "wanted", wanted)
    texts = [
        (
            json.dumps(
                {
                    "id": str(n),
                    "source": "/test",
                    "type": ["trade", "a/b"][n % 2],
                    "time": DAYS[n % 3],
                    "n": n,
                    "text": "x" * n,
                }
            ),
        )
        for n in numbers
    ]
    raw = spark.createDataFrame(texts, "event string").repartition(2)
    events = normalise(raw, "n long, text string").events
    found, plan, id = numbered(events, place / "wanted", columns=field_columns(events), rest="rest")
    return Matched(matched_before(found, plan), plan, id)


def test_deliveries_that_workers_write_are_those_that_spark_writes(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink, other = TableSink(str(tmp_path / "out"), False), TableSink(str(tmp_path / "rows"), False)
    assert sink.rows_because(matched(spark, tmp_path, range(12))) is None
    with monkeypatch.context() as patched:
        patched.setattr(table_deliveries, "committed", _dies)
        with pytest.raises(KeyboardInterrupt):
            sink.write_matched(matched(spark, tmp_path, range(12)), Batch(WRITER, 0))
    assert not (tmp_path / "out" / "_delta_log").exists()  # there are files, which belong to nothing
    for _ in range(2):  # the second time changes nothing
        sink.write_matched(matched(spark, tmp_path, range(12)), Batch(WRITER, 0))
    other.write(matched(spark, tmp_path, range(12)).rows(), Batch(WRITER, 0))
    mine, theirs = (DeltaTable(tmp_path / name).to_pyarrow_table() for name in ("out", "rows"))
    assert mine.schema.equals(theirs.schema)
    assert sorted(map(repr, mine.to_pylist())) == sorted(map(repr, theirs.to_pylist()))
    assert mine.num_rows == 18
    assert read_table(spark, tmp_path / "out", types=["a/b"], since=datetime(2026, 11, 1, tzinfo=UTC)).count() == 8


def _dies(*_: Any) -> None:
    raise KeyboardInterrupt


@few(30)
@given(st.lists(st.tuples(st.sampled_from(["a", "a/b", None]), st.sampled_from([*DAYS, None]), st.integers(0, 3))))
def test_events_are_cut_where_type_or_day_changes(rows: list[tuple[str | None, str | None, int]]) -> None:
    times = [None if time is None else datetime.fromisoformat(time) for _, time, _ in rows]
    kept = pa.record_batch(
        {
            "type": pa.array([kind for kind, _, _ in rows], pa.string()),
            "time": pa.array(times, pa.timestamp("us", "UTC")),
        }
    )
    counts = np.array([count for _, _, count in rows], np.int64)
    numbers = np.arange(counts.sum())
    opened: Any = None
    pieces = [*table_deliveries.split(Found(opened, kept, Pairs(counts, numbers)))]
    assert [value for _, one in pieces for value in one.kept.to_pylist()] == kept.to_pylist()
    assert [number for _, one in pieces for number in one.pairs.numbers.tolist()] == numbers.tolist()
    for (kind, day), one in pieces:
        for row in one.kept.to_pylist():
            assert kind == partition_name(row["type"])
            assert day == ("none" if row["time"] is None else row["time"].date().isoformat())
