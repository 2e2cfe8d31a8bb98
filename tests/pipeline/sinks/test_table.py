"""The kind `lake`."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.pipeline.sinks.suite import SinkSuite

from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.table import read_table
from fieldfare.pipeline.sinks import SinkSettings, make


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
