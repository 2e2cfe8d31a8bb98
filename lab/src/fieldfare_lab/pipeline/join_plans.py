"""Bar 2: `match_events` and Spark SQL's hash join with very many filters.

The plan comes from `fieldfare_lab.bench.joins`: filters with a symbol are joined by symbol, the others by sector, and
all other predicates are conditions on the pairs. The tables of filters are broadcast, so that events are not shuffled.
Both contenders read the same events from Spark's own cache; there are enough events to outweigh the start of a job.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import msgspec
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.pipeline import match_events
from fieldfare_lab.bench.joins import EVENTS
from fieldfare_lab.pipeline.bars import Line, figures
from fieldfare_lab.pipeline.clock import timed
from fieldfare_lab.pipeline.data import Data
from fieldfare_lab.pipeline.spark_sessions import started


def very_many(data: Data, cores: int, patience: float, step: Callable[[str], None]) -> list[Line]:
    """Measure `match_events` with very many filters, where the join does not finish in `patience` times the time."""
    step(f"{data.filters:,} filters: matching")
    with started(cores) as spark:
        events = _held(spark, data, data.count, cores)
        ours = _matched(events, data)
        _, match_ = timed(lambda: _run(ours))
        limit = patience * match_.wall
        step(f"{data.filters:,} filters: joining, for {limit:.0f} s at most")
        theirs = _joined(spark, events, data)
        ended, join = timed(lambda: _run_for(spark, theirs, limit))
    said = f"the join took {join.wall:,.0f} s" if ended else f"the join was ended, unfinished, after {join.wall:,.0f} s"
    return [
        Line(
            f"{data.filters:,} filters",
            f"{data.count:,} events matched in {match_.wall:.1f} s on {cores} cores; {said}",
            round(join.wall / match_.wall, 3),
            f"the join does not finish in {patience:g} ×",
            not ended,
            figures(match=match_, join=join),
        )
    ]


def _held(spark: SparkSession, data: Data, count: int, cores: int) -> DataFrame:
    """The first `count` events, in Spark's cache, in four partitions for each core."""
    events = spark.read.parquet(str(data.events)).where(F.col("event") < count)
    held = events.repartition(4 * cores).cache()
    held.count()
    return held


def _matched(events: DataFrame, data: Data) -> DataFrame:
    return match_events(events, data.subscriptions).select("event", "subscription")


def _joined(spark: SparkSession, events: DataFrame, data: Data) -> DataFrame:
    """The matches by a join, with the numbers of filters instead of the ids of subscriptions."""
    for file in data.joins.glob("*.parquet"):
        spark.read.parquet(str(file)).createOrReplaceTempView(file.stem)
    events.createOrReplaceTempView(EVENTS)
    queries = msgspec.json.decode((data.joins / "queries.json").read_bytes(), type=list[str])
    hinted = (query.replace("SELECT", "SELECT /*+ BROADCAST(f) */", 1) for query in queries)
    return spark.sql(" UNION ALL ".join(f"({query})" for query in hinted))


def _run(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _run_for(spark: SparkSession, frame: DataFrame, seconds: float) -> bool:
    """Run a query for so many seconds at most; tell whether the query finished."""
    alarm = threading.Timer(seconds, spark.sparkContext.cancelAllJobs)
    alarm.start()
    try:
        _run(frame)
    except (PySparkException, Py4JJavaError):
        if alarm.is_alive():  # the query failed before the alarm
            raise
        return False
    finally:
        alarm.cancel()
    return True
