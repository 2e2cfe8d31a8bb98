"""Bar 1: `match_events` inside Spark against the bare engine on the same batches and cores.

The cost of the operator is the time of its workers between a received batch and the finished lists of matches: a timer
stands around the function that `match_events` runs in a worker. Reading Parquet and passing batches is work of the JVM
and excluded; whole jobs, with everything, stand beside the bar.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.functions import arrow_udf

from fieldfare.pipeline import match_events
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.operator import matches
from fieldfare.pipeline.spark import SETTINGS
from fieldfare_lab.pipeline import bare_engine
from fieldfare_lab.pipeline.bars import Line, at_most, figures
from fieldfare_lab.pipeline.clock import Spent, best, timed
from fieldfare_lab.pipeline.data import Data
from fieldfare_lab.pipeline.spark_sessions import started

MOST: Final = 1.3
ROWS: Final = int(SETTINGS["spark.sql.execution.arrow.maxRecordsPerBatch"])
SHARE: Final = 10
"""every tenth event is written from Parquet to Parquet: all events would make a hundred million wide rows"""
_LISTS: Final = "struct<snapshot: bigint, matches: array<int>, wall: double, cpu: double>"
_NAMES: Final = ["snapshot", "matches", "wall", "cpu"]
_udf: Final[Any] = arrow_udf  # its stubs know only the form without type hints

Job = Callable[[], int | None]
"""runs a query; returns the number of matches, or None if the query does not count"""


def measure(data: Data, cores: int, rounds: int, step: Callable[[str], None]) -> list[Line]:
    """Measure the operator against the bare engine, and whole jobs beside the bar."""
    step("the operator: preparing")
    events, subscriptions = data.events, data.subscriptions
    with bare_engine.engine(events, subscriptions, processes=cores, rows=ROWS) as engine, started(cores) as spark:
        worker, jobs = _worker(spark, data), _whole(spark, data)
        expected, _ = engine()
        spent: dict[str, list[Spent]] = {name: [] for name in ("bare", "inside", *jobs)}
        for number in range(rounds):
            step(f"the operator: round {number + 1} of {rounds}")
            spent["bare"].append(engine()[1])
            count, inside = worker()
            spent["inside"].append(inside)
            found: dict[str, int | None] = {"in workers": count}
            for name, job in jobs.items():
                found[name], cost = timed(job)
                spent[name].append(cost)
            wrong = {name: count for name, count in found.items() if count not in {None, expected}}
            if wrong:
                return [Line("answers", f"the engine has {expected:,} matches, but {wrong}", met=False)]
        step("the operator: Parquet to Parquet")
        share, written = timed(lambda: _to_parquet(spark, data))
    least = {name: best(every) for name, every in spent.items()}
    base = least["bare"]
    size = f"{data.count:,} events × {data.filters:,} filters, {expected:,} matches, {cores} cores"
    lines = [
        at_most(
            "match inside Spark",
            f"{size}: workers {least['inside'].cpu:.2f} s CPU, bare engine {base.cpu:.2f} s",
            least["inside"].cpu / base.cpu,
            MOST,
            **figures(bare=base, inside=least["inside"]),
        )
    ]
    lines += [
        Line(f"  the whole job, {name}", _costs(least[name], base), round(least[name].cpu / base.cpu, 3),
             figures=figures(bare=base, job=least[name]))
        for name in jobs
    ]  # fmt: skip
    part = Spent(base.wall * share, base.cpu * share)
    name = f"  Parquet to Parquet, {share:.0%} of the events"
    ratio = round(written.cpu / part.cpu, 3)
    lines.append(Line(name, _costs(written, part), ratio, figures=figures(bare=part, job=written)))
    return lines


def _costs(job: Spent, base: Spent) -> str:
    return (
        f"{job.cpu:.1f} s CPU, {job.wall:.1f} s on the wall ({job.wall / base.wall:.1f} ×);"
        f" bare engine {base.cpu:.2f} and {base.wall:.2f} s"
    )


def _worker(spark: SparkSession, data: Data) -> Callable[[], tuple[int, Spent]]:
    """A job whose workers measure their own time; returns the number of matches and the cost."""
    path = str(data.subscriptions)
    about = catalogue.opened(path, catalogue.current(path)).about
    lists = _udf(_timing(path, about.version), _LISTS)(F.struct(*(about.fields or [])))
    timed = spark.read.parquet(str(data.events)).select(lists.alias("found"))
    counted = timed.select(F.sum(F.size("found.matches")), F.sum("found.wall"), F.sum("found.cpu"))

    def job() -> tuple[int, Spent]:
        count, wall, cpu = counted.collect()[0]
        return int(count), Spent(wall, cpu)

    return job


def _timing(path: str, version: int) -> Callable[..., Any]:
    """The function that workers of `match_events` run, with a timer; the first row of an array holds the cost."""

    def run(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
        opened = catalogue.opened(path, version)
        for fields in batches:
            made = matches(opened, fields, returned="numbers")
            while True:
                wall, cpu = time.perf_counter(), time.process_time()
                lists = next(made, None)
                if lists is None:
                    break
                cost = time.perf_counter() - wall, time.process_time() - cpu
                beside = [pa.array([seconds] + [0.0] * (len(lists) - 1)) for seconds in cost]
                yield pa.StructArray.from_arrays([*lists.flatten(), *beside], names=_NAMES)

    return run


def _whole(spark: SparkSession, data: Data) -> dict[str, Job]:
    matched = match_events(spark.read.parquet(str(data.events)), data.subscriptions)
    return {
        "a row for each match, to nowhere": lambda: _nowhere(matched),
        "matches counted by subscription": lambda: int(
            matched.groupBy("subscription").count().agg(F.sum("count")).collect()[0][0]
        ),
    }


def _nowhere(frame: DataFrame) -> None:
    frame.write.format("noop").mode("overwrite").save()


def _to_parquet(spark: SparkSession, data: Data) -> float:
    """Write all columns of all matches of every tenth event to Parquet; return the share of the events."""
    folder = Path(tempfile.mkdtemp(prefix="fieldfare-bench-"))
    try:
        events = spark.read.parquet(str(data.events)).where(f"event % {SHARE} = 0")
        match_events(events, data.subscriptions).write.parquet(str(folder / "deliveries"))
    finally:
        shutil.rmtree(folder)
    return 1 / SHARE
