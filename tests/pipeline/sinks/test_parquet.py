"""The kind `parquet`."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession
from tests.pipeline.sinks.suite import SinkSuite


class TestParquet(SinkSuite):
    kind = "parquet"
    table = "events"

    def contents(self, place: Path) -> list[str]:
        spark = SparkSession.active()
        return sorted(row.id for row in spark.read.parquet(str(place / "out")).collect())
