"""Patterns over a history: `detect` against a bare `Detector`, and one pattern against Spark SQL's window functions.

The history is that of payment cards: a month, 200 events a card, of which one in fifty is declined and one in a hundred
is large. A pattern is `a followed by b` within a day, for each card, past the last event; of many patterns each looks
at one of 100 merchants, with an amount of its own. Answers are compared first: with a detector on some events, with
Spark on all, and for one pattern with SQL.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import to_arrow_schema

from fieldfare.events import arrow
from fieldfare.patterns import Detector, Occurrence, parse_pattern
from fieldfare.pipeline import detect
from fieldfare.pipeline.detection import touching
from fieldfare.pipeline.detection.operator import Question, history, question
from fieldfare_lab.pipeline.bars import Line, at_least, figures
from fieldfare_lab.pipeline.clock import Spent, best, timed
from fieldfare_lab.pipeline.output import nowhere
from fieldfare_lab.pipeline.spark_sessions import started

PATTERNS: Final = (1, 100, 1000)
_A_CARD: Final = 200
_MONTH: Final = 30 * 86_400 * 1_000_000
_START: Final = 1_767_225_600_000_000
_SAMPLE: Final = 20_000
"""events for a bare detector, which takes one after the other"""
_MERCHANTS: Final = 100
Answers = set[tuple[str, str, int, int]]


def measure(events: int, cores: int, rounds: int, step: Callable[[str], None]) -> list[Line]:
    """Measure events a CPU second for 1, 100 and 1,000 patterns, and one pattern beside Spark SQL."""
    step("patterns: preparing")
    lines = []
    with tempfile.TemporaryDirectory(prefix="fieldfare-bench-") as scratch, started(cores) as spark:
        table = _cards(events)
        path = Path(scratch) / "events"
        path.mkdir()
        for part, start in enumerate(range(0, events, max(1, -(-events // (2 * cores))))):
            pq.write_table(table.slice(start, max(1, -(-events // (2 * cores)))), path / f"{part}.parquet")
        frame = spark.read.parquet(str(path))
        for count in PATTERNS:
            lines += _many(frame, table, count, rounds, step)
        lines += _beside_sql(spark, frame, rounds, step)
    return lines


def _cards(events: int) -> pa.Table:
    dice = np.random.default_rng(1)
    cards = max(1, events // _A_CARD)
    kinds = np.where(dice.random(events) < 1 / 50, "decline", "pay")
    amounts = np.where(dice.random(events) < 1 / 100, 1000.0, 20.0) + dice.random(events)
    return pa.table(
        {
            "id": pa.array(np.arange(events)),
            "time": pa.array(_START + np.sort(dice.choice(_MONTH, events, replace=False)), pa.timestamp("us", "UTC")),
            "card": pa.array(dice.integers(0, cards, events)).cast(pa.string()),
            "kind": pa.array(kinds),
            "amount": pa.array(amounts),
            "merchant": pa.array(dice.integers(0, _MERCHANTS, events)),
            "note": pa.array(dice.integers(0, 1 << 40, events)).cast(pa.string()),
        }
    )


def _texts(count: int) -> dict[str, str]:
    found = {}
    for number in range(count):
        of = f" AND merchant = {number % _MERCHANTS}" if count > 1 else ""
        found[f"p{number}"] = (
            f"a: [kind = 'decline'{of}] b: [kind = 'pay' AND amount > {900 + number // _MERCHANTS}{of}]"
            " (a followed by b) within 1 day for each card after match past last event"
        )
    return found


def _many(frame: DataFrame, table: pa.Table, count: int, rounds: int, step: Callable[[str], None]) -> list[Line]:
    texts = _texts(count)
    asked = question(frame, texts, order="time", keep=["id"])
    some = table.slice(0, _SAMPLE)
    events = [
        Occurrence(at, at, event, "", number)
        for number, (at, event) in enumerate(
            zip(
                some["time"].cast(pa.int64()).to_pylist(),
                arrow.from_batch(some.combine_chunks().to_batches()[0]),
                strict=True,
            )
        )
    ]
    patterns = {name: parse_pattern(text) for name, text in texts.items()}
    sent, sample = _sent(asked, table), _sent(asked, some)
    due = {(one.pattern, one.values[0], *one.match.stamp) for one in Detector(patterns).step(events)}
    if (found := _answers(asked, _in_process(asked, sample))) != due:
        return [
            Line("answers", f"{count} patterns: {len(found ^ due)} of {len(due)} differ from a detector", met=False)
        ]
    whole = _answers(asked, _in_process(asked, sent))
    job = detect(frame, texts, order="time", keep=["id"])
    if (found := _collected(job)) != whole:
        return [Line("answers", f"{count} patterns: {len(found ^ whole)} of {len(whole)} differ on Spark", met=False)]
    spent: dict[str, list[Spent]] = {"detector": [], "process": [], "spark": []}
    for number in range(rounds):
        step(f"patterns: {count:,}, round {number + 1} of {rounds}")
        spent["detector"].append(timed(lambda: Detector(patterns).step(events))[1])
        spent["process"].append(timed(lambda: _in_process(asked, sent))[1])
        spent["spark"].append(timed(lambda: nowhere(job))[1])
    cost = {name: best(all_rounds) for name, all_rounds in spent.items()}
    rates = {
        "detector": len(events) / cost["detector"].cpu,
        "process": len(table) / cost["process"].cpu,
        "spark": len(table) / cost["spark"].cpu,
    }
    told = f"{len(whole):,} detections in {len(table):,} events; events a CPU second: Detector {rates['detector']:,.0f}"
    return [
        Line(
            f"patterns: {count:,}, in a process",
            f"{told}, history {rates['process']:,.0f}",
            round(rates["process"] / rates["detector"], 2),
            figures={**figures(**cost), **{f"{name}_rate": round(rate) for name, rate in rates.items()}},
        ),
        Line(
            f"patterns: {count:,}, whole job on Spark",
            f"{told}, detect {rates['spark']:,.0f}",
            round(rates["spark"] / rates["detector"], 2),
        ),
    ]


def _sent(asked: Question, table: pa.Table) -> list[Any]:
    """Return the batches that Spark would send to workers."""
    wanted = to_arrow_schema(asked.frame.schema, timezone="UTC")
    batches = []
    for batch in table.to_batches(max_chunksize=16_384):
        given = batch.select([part.name for part in wanted.field(0).type])
        struct = pa.StructArray.from_arrays(given.columns, fields=list(given.schema))
        time = batch.column("time").cast(pa.int64())
        kept = pa.StructArray.from_arrays([batch.column("id")], names=["id"])
        batches.append(pa.RecordBatch.from_arrays([struct, time, time, kept], names=wanted.names))
    return batches


def _in_process(asked: Question, batches: list[Any]) -> Any:
    """Return the composite events of all batches, as tasks of a job make them."""
    prepared = asked.plan.prepared()
    touched = [touching.touching(prepared, asked.layout, asked.columns, batch) for batch in batches]
    return history(prepared, asked.layout, pa.Table.from_batches(touched, asked.columns), None)


def _answers(asked: Question, found: Any) -> Answers:
    names = [one.name for one in asked.plan.prepared().sought]
    ends = [found.column(name).cast(pa.int64()).to_pylist() for name in ("ts_lo", "ts_hi")]
    cards = found.column("key").field("card").to_pylist()
    return {
        (names[number], card, low, high)
        for number, card, low, high in zip(found.column(0).to_pylist(), cards, *ends, strict=True)
    }


def _collected(found: DataFrame) -> Answers:
    ends = (F.unix_micros(name) for name in ("ts_lo", "ts_hi"))
    return {tuple(row) for row in found.select("pattern", "key.card", *ends).collect()}


SQL: Final[dict[str, str]] = {
    "range": """
        SELECT card, low, high FROM (
            SELECT card, NOT a AS last, high, min(CASE WHEN a THEN high END) OVER (
                PARTITION BY card, run ORDER BY high RANGE BETWEEN 86400000000 PRECEDING AND 1 PRECEDING) AS low
            FROM runs) WHERE last AND low IS NOT NULL""",
    "arrays": """
        SELECT card, array_min(filter(lows, low -> low >= high - 86400000000 AND low < high)) AS low, high FROM (
            SELECT card, run, max(CASE WHEN NOT a THEN high END) AS high,
                collect_list(CASE WHEN a THEN high END) AS lows
            FROM runs GROUP BY card, run)
        WHERE exists(lows, low -> low >= high - 86400000000 AND low < high)""",
}
"""one pattern as window functions: a run ends with a large payment, and the first decline of its last day begins"""
_RUNS: Final = """
    SELECT card, a, high, coalesce(sum(CASE WHEN a THEN 0 ELSE 1 END) OVER (
        PARTITION BY card ORDER BY high ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) AS run
    FROM (SELECT card, kind = 'decline' AS a, unix_micros(time) AS high FROM cards
          WHERE kind = 'decline' OR (kind = 'pay' AND amount > 900))"""


def _beside_sql(spark: SparkSession, frame: DataFrame, rounds: int, step: Callable[[str], None]) -> list[Line]:
    frame.createOrReplaceTempView("cards")
    spark.sql(_RUNS).createOrReplaceTempView("runs")
    plans = {name: spark.sql(query) for name, query in SQL.items()}
    ours = detect(frame, _texts(1), order="time", keep=["id"]).select(
        "key.card", F.unix_micros("ts_lo").alias("low"), F.unix_micros("ts_hi").alias("high")
    )
    due = sorted(map(tuple, ours.collect()))
    for name, plan in plans.items():
        if sorted(map(tuple, plan.select("card", "low", "high").collect())) != due:
            return [Line("answers", f"one pattern: detect and Spark SQL ({name}) differ", met=False)]
    spent: dict[str, list[Spent]] = {name: [] for name in ("detect", *plans)}
    for number in range(rounds):
        step(f"patterns beside Spark SQL, round {number + 1} of {rounds}")
        for name, plan in {"detect": ours, **plans}.items():
            spent[name].append(timed(lambda plan=plan: nowhere(plan))[1])  # type: ignore[misc]
    cost = {name: best(all_rounds) for name, all_rounds in spent.items()}
    cheapest = min(plans, key=lambda name: cost[name].cpu)
    told = f"{len(due):,} detections: {cost['detect'].cpu:.2f} s CPU, Spark SQL "
    told += ", ".join(f"{name} {cost[name].cpu:.2f}" for name in plans)
    ratio = cost[cheapest].cpu / cost["detect"].cpu
    return [at_least("patterns: one, against window functions", told, ratio, 1.0, **figures(**cost))]
