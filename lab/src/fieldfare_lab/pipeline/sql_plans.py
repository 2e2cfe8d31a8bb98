"""Bars 7 and 8: deliveries by `match_events` against the best formulation in Spark SQL, for equal output.

Several plans compete for Spark SQL, and the cheapest counts. All tables of filters are broadcast.

hash      filters with an equality are joined by it, and everything else is a condition on the pairs
bucketed  ranges are cut into buckets of the values, and a bucket is part of the key
arrays    for sparse events: an event is an array of its 400 dimensions, and a filter has a column for each predicate

Mixed filters have no equality that must hold, so no hash join exists: filters of the same form are a table, and Spark
compares each event with each row of the table.
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

from fieldfare.pipeline import match_events
from fieldfare_lab.pipeline.bars import Line, at_least, figures
from fieldfare_lab.pipeline.clock import Spent, best, timed
from fieldfare_lab.pipeline.data import Data
from fieldfare_lab.pipeline.output import nowhere, written
from fieldfare_lab.pipeline.spark_sessions import started
from fieldfare_lab.pipeline.sql_tables import views

WARM: Final = 1
MIXED: Final = 50.0
Job = Callable[[], object]


def measure(data: Data, least: float, cores: int, rounds: int, step: Callable[[str], None]) -> list[Line]:
    """Measure how many times cheaper pairs of event and subscription are with `match_events` than with Spark SQL."""
    name = f"{data.workload}, {data.filters:,} filters"
    step(f"Spark SQL: {name}")
    with started(cores) as spark:
        ours = _pairs(spark, data)
        plans = {plan: spark.sql(query) for plan, query in views(spark, data).items()}
        found = {plan: _checksum(frame) for plan, frame in plans.items()}
        due = _checksum(ours)
        if wrong := {plan: total for plan, total in found.items() if total != due}:
            return [Line("answers", f"{name}: match_events and Spark SQL differ: {due}, {wrong}", met=False)]
        to_nowhere: dict[str, Job] = {"match": partial(nowhere, ours)}
        to_nowhere |= {plan: partial(nowhere, frame) for plan, frame in plans.items()}
        wake = partial(nowhere, ours.limit(1))
        spent = _rounds(to_nowhere, rounds, step, f"{name}, pairs", wake)
        cheapest = min(plans, key=lambda plan: spent[plan].cpu)
        events = spark.read.parquet(str(data.events))
        to_files: dict[str, Job] = {
            "match": lambda: written(events, data, ["event"]),
            cheapest: lambda: _to_parquet(plans[cheapest]),
        }
        files = _rounds(to_files, rounds, step, f"{name}, Parquet", wake) if data.workload != "mixed" else {}
    matches = found[cheapest][0]
    lines = [_line(f"{name}, ids", matches, spent, cheapest, least)]
    return lines + ([_line(f"{name}, ids to Parquet", matches, files, cheapest, least)] if files else [])


def _line(name: str, matches: int, spent: Mapping[str, Spent], cheapest: str, least: float) -> Line:
    ours, theirs = spent["match"], spent[cheapest]
    others = ", ".join(f"{plan} {cost.cpu:.2f}" for plan, cost in spent.items() if plan != "match")
    return at_least(
        f"Spark SQL: {name}",
        f"{matches:,} matches: {ours.cpu:.2f} s CPU, Spark SQL {others} s",
        theirs.cpu / ours.cpu,
        least,
        **figures(match=ours, sql=theirs),
    )


def _pairs(spark: SparkSession, data: Data) -> DataFrame:
    events = spark.read.parquet(str(data.events))
    return match_events(events, data.subscriptions, keep=["event"]).select("event", "subscription")


def _checksum(pairs: DataFrame) -> tuple[int, int]:
    """Return the number of pairs, and a sum over all of them that does not depend on their order."""
    event, id = (F.col(name) for name in pairs.columns)
    found = pairs.agg(F.count("*"), F.bit_xor(F.xxhash64(event.cast("long"), id.cast("long")))).collect()[0]
    return int(found[0]), int(found[1] or 0)


def _rounds(
    jobs: Mapping[str, Job], rounds: int, step: Callable[[str], None], name: str, wake: Job
) -> dict[str, Spent]:
    """Time the jobs by turns. Spark ends workers that were idle for a minute; `wake` starts others, untimed."""
    spent: dict[str, list[Spent]] = {job: [] for job in jobs}
    for number in range(WARM + rounds):
        for job, work in jobs.items():
            step(f"Spark SQL: {name}, round {number + 1} of {WARM + rounds}, {job}")
            wake()
            spent[job].append(timed(work)[1])
    return {job: best(every[WARM:]) for job, every in spent.items()}


def _to_parquet(frame: DataFrame) -> None:
    folder = Path(tempfile.mkdtemp(prefix="fieldfare-bench-"))
    try:
        frame.write.parquet(str(folder / "out"))
    finally:
        shutil.rmtree(folder)
