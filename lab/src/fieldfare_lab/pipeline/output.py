"""Bars 5 and 6: whole jobs that give their deliveries as lists, counts, ids or rows, against the bare engine.

A job begins with Parquet files and ends with a DataFrame that is read to its end, or with Parquet files. Its cost is
the CPU time of Java and of all workers together, in a session that has run each job before.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.pipeline import match_events, write_deliveries
from fieldfare.pipeline.spark import SETTINGS
from fieldfare_lab.pipeline import bare_engine
from fieldfare_lab.pipeline.bars import Line, at_most, figures
from fieldfare_lab.pipeline.clock import Spent, best, timed
from fieldfare_lab.pipeline.data import Data
from fieldfare_lab.pipeline.spark_sessions import started

MOST: Final[Mapping[str, float]] = {
    "lists": 1.5,
    "counts": 1.5,
    "ids to Parquet": 3,
    "rows with all columns to Parquet": 6,
}
WARM: Final = 3
"""rounds before the measurement: Java compiles what it has run often"""
ROWS: Final = int(SETTINGS["spark.sql.execution.arrow.maxRecordsPerBatch"])


def measure(data: Data, cores: int, rounds: int, step: Callable[[str], None]) -> list[Line]:
    """Measure each form against the bare engine."""
    step("output: preparing")
    with (
        bare_engine.engine(data.events, data.subscriptions, processes=cores, rows=ROWS) as bare,
        started(cores) as spark,
    ):
        expected, _ = bare()
        jobs = _jobs(spark, data)
        step("output: comparing the answers")
        found = {**{name: job() for name, job in jobs.items()}, **_totals(spark, data)}
        if wrong := {name: count for name, count in found.items() if count != expected}:
            return [Line("answers", f"the engine has {expected:,} matches, but {wrong}", met=False)]
        spent: dict[str, list[Spent]] = {name: [] for name in ("bare", *jobs)}
        for number in range(WARM + rounds):
            step(f"output: round {number + 1 - WARM} of {rounds}" if number >= WARM else "output: warming up")
            spent["bare"].append(bare()[1])
            for name, job in jobs.items():
                spent[name].append(timed(job)[1])
    least = {name: best(every[WARM:]) for name, every in spent.items()}
    base = least.pop("bare")
    size = f"{data.workload}, {data.count:,} events × {data.filters:,} filters, {expected:,} matches"
    return [
        at_most(
            f"{name}, whole job",
            f"{size}: {cost.cpu:.2f} s CPU, bare engine {base.cpu:.2f} s",
            cost.cpu / base.cpu,
            MOST[name],
            **figures(bare=base, job=cost),
        )
        for name, cost in least.items()
    ]


def _jobs(spark: SparkSession, data: Data) -> dict[str, Callable[[], int]]:
    """Return a job for each form; jobs that write return the number of rows."""
    events = spark.read.parquet(str(data.events))
    lists = match_events(events, data.subscriptions, form="lists", keep=["event"])
    counts = match_events(events, data.subscriptions, form="counts")
    return {
        "lists": partial(nowhere, lists),
        "counts": partial(nowhere, counts),
        "ids to Parquet": lambda: written(events, data, ["event"]),
        "rows with all columns to Parquet": lambda: written(events, data, None),
    }


def _totals(spark: SparkSession, data: Data) -> dict[str, int]:
    """Return the number of matches in lists and in counts."""
    events = spark.read.parquet(str(data.events))
    lists = match_events(events, data.subscriptions, form="lists", keep=["event"])
    counts = match_events(events, data.subscriptions, form="counts")
    totals = lists.agg(F.sum(F.size("subscriptions"))), counts.agg(F.sum("events"))
    return {name: int(frame.collect()[0][0]) for name, frame in zip(("lists", "counts"), totals, strict=True)}


def nowhere(frame: DataFrame) -> int:
    """Compute all rows, and forget them."""
    frame.write.format("noop").mode("overwrite").save()
    return 0


def written(events: DataFrame, data: Data, keep: list[str] | None) -> int:
    """Write the deliveries, with these columns of the events, to Parquet files; return the number of rows."""
    folder = Path(tempfile.mkdtemp(prefix="fieldfare-bench-"))
    try:
        return write_deliveries(events, data.subscriptions, folder / "out", keep=keep).rows
    finally:
        shutil.rmtree(folder)
