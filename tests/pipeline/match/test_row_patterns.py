"""`match_recognize` on Spark against the same clause on a table in one process."""

from __future__ import annotations

import datetime
import random
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.patterns import row_patterns
from fieldfare.pipeline import match_recognize

CLAUSE = """
    PARTITION BY symbol, venue ORDER BY at
    MEASURES start.price AS high, LAST(down.price) AS low, count(up.*) AS days, FIRST(at) AS since, LAST(at) - FIRST(at) AS long,
             max(at) - min(at) > INTERVAL 1 HOUR AS slow, avg(price) AS average, LAST(CLASSIFIER()) AS last
    {rows}
    PATTERN (start down+ up+)
    DEFINE down AS price < PREV(price), up AS price > PREV(price) AND price <= start.price
"""
BEGIN = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def table() -> pa.Table:
    chance = random.Random(7)
    rows = [
        {
            "symbol": chance.choice(["A", "B", None, *(f"S{n}" for n in range(60))]),
            "venue": chance.randrange(2),
            "at": BEGIN + datetime.timedelta(minutes=13 * n),
            "price": chance.choice([None, *range(9)]),
            "note": f"N{n}",
        }
        for n in range(3000)
    ]
    chance.shuffle(rows)
    return pa.Table.from_pylist(rows).cast(
        pa.schema([("symbol", pa.string()), ("venue", pa.int64()), ("at", pa.timestamp("us", "UTC")),
                   ("price", pa.int64()), ("note", pa.string())])
    )  # fmt: skip


def as_rows(found: pa.Table) -> list[dict[str, Any]]:
    return sorted(found.to_pylist(), key=repr)


def test_spark_gives_what_one_process_gives(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(table().slice(0, 1000), tmp_path / "0.parquet")
    pq.write_table(table().slice(1000), tmp_path / "1.parquet")
    files = spark.read.parquet(str(tmp_path))  # the workers read these themselves
    computed = files.withColumn("note", F.upper("note"))
    for frame, buckets, rows in (
        (files, 5, "ONE ROW PER MATCH"),
        (computed, None, "ALL ROWS PER MATCH WITH UNMATCHED ROWS"),
    ):
        clause = CLAUSE.format(rows=rows)
        wanted = row_patterns.match_recognize(table(), clause)
        found = match_recognize(frame, clause, buckets=buckets).toArrow()
        assert found.column_names == wanted.column_names
        assert as_rows(found) == as_rows(wanted.cast(found.schema))
        assert wanted.num_rows > 100


def test_without_partitions_and_with_few_columns(spark: SparkSession) -> None:
    frame = spark.range(1000).withColumn("x", F.col("id") % 7)
    found = match_recognize(frame, "ORDER BY id MEASURES count(*) AS many PATTERN (A B+) DEFINE B AS x > PREV(x)")
    assert [row.many for row in found.collect()] == [7] * 142 + [6]


def test_a_mistake_is_named_before_anything_runs(spark: SparkSession) -> None:
    with pytest.raises(FilterSyntaxError, match="line 1, column 10: there is no column y; there are id"):
        match_recognize(spark.range(3), "ORDER BY y PATTERN (A)")
    with pytest.raises(ValueError, match="takes no stream"):
        match_recognize(spark.readStream.format("rate").load(), "ORDER BY timestamp PATTERN (A)")
