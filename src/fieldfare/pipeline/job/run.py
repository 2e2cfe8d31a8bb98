"""The run of a pipeline: a stream whose micro-batches are written to the sinks, in their order.

A micro-batch is computed once and held while the sinks write their tables. Each sink knows the batch by its name, and
the checkpoint moves on only after all sinks: killed at any moment, the pipeline goes on from there, and every sink has
every row once. After each batch a report is written to `state/report.json` and sent to its receivers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from fieldfare.node.pipeline_reports import PipelineReport
from fieldfare.pipeline import sinks
from fieldfare.pipeline.batch import Batch, query_id
from fieldfare.pipeline.hadoop import HadoopError, hadoop_path
from fieldfare.pipeline.job.config import Pipeline, PipelineError, sink_name
from fieldfare.pipeline.job.plan import (
    Names,
    Tables,
    checkpoint,
    detected,
    fields_of,
    patterns_checkpoint,
    planned,
    raw,
)
from fieldfare.pipeline.job.progress import describe, listening, observed
from fieldfare.pipeline.job.report import Reporter
from fieldfare.pipeline.job.subscriptions import followed
from fieldfare.pipeline.sinks import Sink
from fieldfare.pipeline.sinks.interface import MatchSink, Table
from fieldfare.pipeline.spark import is_remote, spark_session

LOG: Final = "spark.log"
"""the file of Spark's messages, in the folder of the state"""
_PATIENCE: Final = 60
"""seconds for the last batch, when the pipeline is stopped"""


@dataclass(frozen=True)
class Plan:
    """A pipeline that is ready to run: its stream, its sinks, and the catalogue of its subscriptions."""

    pipeline: Pipeline
    records: DataFrame
    checkpoint: str
    """the place of the checkpoint as Spark takes places"""
    subscriptions: str | Path | None
    sinks: Sequence[Sink]
    names: Names | None = None
    """the meaning of the numbers of subscriptions in the records"""
    composites: DataFrame | None = None
    """the composite events, if there are patterns: a stream beside that of the records, with a state"""

    @property
    def patterns_checkpoint(self) -> str:
        """The checkpoint of the composite events, with the state of all patterns."""
        return patterns_checkpoint(self.checkpoint)

    @property
    def state(self) -> Path:
        """The folder with the subscriptions and the reports."""
        return Path(self.pipeline.state)


@contextmanager
def ready(
    pipeline: Pipeline, master: str | None = None, told: Callable[[str], None] = lambda _: None
) -> Iterator[Plan]:
    """Make the sinks, start Spark, and yield a plan; `told` gets warnings. PipelineError names a mistake."""
    settings = {key: value for key, value in pipeline.spark.items() if key != "master"}
    state = Path(pipeline.state)
    state.mkdir(parents=True, exist_ok=True)
    ours = SparkSession.getActiveSession() is None
    with ExitStack() as stack:
        made = _sinks(pipeline, stack)  # before Spark, which takes seconds to start: a mistake is told at once
        spark = spark_session(master or pipeline.spark.get("master"), settings, log=state / LOG)
        if ours:
            stack.callback(spark.stop)
        if is_remote(spark):
            raise PipelineError(
                "a pipeline does not run through Spark Connect, as its sinks run beside Spark's driver: run it there,"
                " or with an address such as spark://HOST:7077; the functions of fieldfare.pipeline do work"
            )
        subscriptions = None
        if pipeline.match is not None:
            subscriptions = stack.enter_context(followed(spark, pipeline.match, state, told))
        fields = fields_of(spark, pipeline, state)
        records, names = planned(raw(spark, pipeline), pipeline, fields, subscriptions)
        composites = detected(raw(spark, pipeline), pipeline, fields) if pipeline.patterns else None
        stack.enter_context(listening(spark, pipeline.name, state))
        place = _checkpoint(spark, pipeline)
        yield Plan(pipeline, observed(records), place, subscriptions, made, names, composites)


def _checkpoint(spark: SparkSession, pipeline: Pipeline) -> str:
    """Return the place of the checkpoint; PipelineError if Spark cannot reach it."""
    try:
        return hadoop_path(spark, checkpoint(pipeline))
    except HadoopError as error:
        raise PipelineError(f"checkpoint: {error}") from None


def _sinks(pipeline: Pipeline, stack: ExitStack) -> list[Sink]:
    """Make the sinks of a pipeline, which the stack closes."""
    made: list[Sink] = []
    for number, settings in enumerate(pipeline.sink):
        try:
            sink = sinks.make(settings)
        except ValueError as error:  # of a sink's own, too
            raise PipelineError(f"sink[{number}]: {error}") from None
        stack.callback(sink.close)
        made.append(sink)
    return made


def run(
    plan: Plan,
    *,
    once: bool = False,
    told: Callable[[PipelineReport], None] = lambda _: None,
    end: Callable[[], bool] = bool,
) -> None:
    """Run until all present events are processed (`once`), or until `end` returns True; `told` gets reports."""
    reporter = Reporter(plan.pipeline, plan.state, plan.subscriptions, told)
    working = threading.Lock()  # held while a batch is on its way to the sinks
    ending = threading.Event()

    def written(write: Callable[[DataFrame, int], None]) -> Callable[[DataFrame, int], None]:
        def batch(rows: DataFrame, number: int) -> None:
            with working:
                if ending.is_set():  # without an error, Spark would take the batch for written
                    name = plan.pipeline.name
                    raise RuntimeError(f"{name} was stopped before batch {number}: the next run writes it")
                write(rows, number)

        return batch

    def started(stream: DataFrame, write: Callable[[DataFrame, int], None], place: str, name: str) -> None:
        writer = stream.writeStream.foreachBatch(written(write))
        writer = writer.option("checkpointLocation", place).queryName(name)
        if once:
            writer = writer.trigger(availableNow=True)
        elif plan.pipeline.every:
            writer = writer.trigger(processingTime=plan.pipeline.every)
        queries.append(writer.start())

    queries: list[StreamingQuery] = []
    try:
        started(plan.records, partial(_batch, plan, reporter), plan.checkpoint, plan.pipeline.name)
        if plan.composites is not None:
            name = f"{plan.pipeline.name}-patterns"
            started(plan.composites, partial(_composites, plan), plan.patterns_checkpoint, name)
        while any(query.isActive for query in queries) and not end():
            next(query for query in queries if query.isActive or query is queries[-1]).awaitTermination(1)
            if failed := [wrong for query in queries if (wrong := query.exception()) is not None]:
                raise failed[0]
            if not working.locked():
                reporter.waiting()
        if failed := [wrong for query in queries if (wrong := query.exception()) is not None]:
            raise failed[0]
        reporter.ended()
    except StreamingQueryException as error:
        problem = _said(error)
        reporter.failed(problem)
        raise PipelineError(f"{plan.pipeline.name} stopped; run it again to go on from there. {problem}") from error
    finally:
        done = working.acquire(timeout=_PATIENCE)  # that it need not be done again
        ending.set()
        if done:
            working.release()  # for a batch that has just begun: Spark waits for its end
        for query in queries:
            query.stop()


def _batch(plan: Plan, reporter: Reporter, rows: DataFrame, number: int) -> None:
    started = time.monotonic()
    describe(rows.sparkSession, f"{plan.pipeline.name}, batch {number}: decode and match")
    rows.persist()
    try:
        rows.count()  # also if the sinks have it already: Spark wants every batch to be computed
        tables = Tables(rows, plan.names)
        _to_sinks(plan, rows, number, plan.checkpoint, lambda sink, table, batch: _write(sink, table, tables, batch))
        describe(rows.sparkSession, f"{plan.pipeline.name}, batch {number}: report")
        reporter.batch(number, tables, time.monotonic() - started)
    finally:
        describe(rows.sparkSession, None)
        rows.unpersist()


def _composites(plan: Plan, rows: DataFrame, number: int) -> None:
    rows.persist()
    try:
        rows.count()
        _to_sinks(plan, rows, number, plan.patterns_checkpoint, lambda sink, _, batch: sink.write(rows, batch))
    finally:
        describe(rows.sparkSession, None)
        rows.unpersist()


def _to_sinks(
    plan: Plan, rows: DataFrame, number: int, place: str, write: Callable[[Sink, Table, Batch], None]
) -> None:
    """Write a batch to the sinks of a query: those of composite events, or all others."""
    query = query_id(place)
    for settings, sink in zip(plan.pipeline.sink, plan.sinks, strict=True):
        if (settings.table == "composites") != (place == plan.patterns_checkpoint):
            continue
        describe(rows.sparkSession, f"{plan.pipeline.name}, batch {number}: {sink_name(settings)}")
        try:
            write(sink, settings.table, Batch(f"{query}:{settings.table}", number))
        except Exception as error:
            error.add_note(f"in {sink_name(settings)}, batch {number}")
            raise


def _write(sink: Sink, table: Table, tables: Tables, batch: Batch) -> None:
    if table == "deliveries" and isinstance(sink, MatchSink):
        sink.write_matched(tables.matched, batch)
    else:
        sink.write(tables.named(table), batch)


def ways(plan: Plan) -> Iterator[str]:
    """Yield how events get to the matching, and for each sink how its rows get there, and why; without a run."""
    if plan.names is not None:
        yield "match: columns cross to the workers as Arrow, because Spark decodes the records, and they are a stream"
    for settings, sink in zip(plan.pipeline.sink, plan.sinks, strict=True):
        if settings.table != "deliveries":
            way = f"rows: Spark writes the table {settings.table}, because it needs no matching"
            if settings.table == "composites":
                way = "rows: workers make composite events in a query of its own, with the state of all patterns"
        elif not isinstance(sink, MatchSink):
            way = "rows: workers make them of lists of matches and hand them to Spark, because the sink takes rows"
        elif reason := sink.rows_because(Tables(plan.records, plan.names).matched):
            way = f"rows: workers hand them to Spark, because {reason}"
        else:
            way = "files: the workers write them and the driver commits; no delivery passes through Spark"
        yield f"{sink_name(settings)}: {way}"


def _said(error: StreamingQueryException) -> str:
    """Return the last line with an error in a message of Spark or a worker, which tells the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if "Error: " in line or "Exception: " in line]
    return (told[-1] if told else lines[0] if lines else "unknown")[:2000]
