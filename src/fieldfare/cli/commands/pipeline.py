"""`fieldfare pipeline run|check|status|explain pipeline.toml`: process events in bulk, on Spark."""

from __future__ import annotations

import importlib.util
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fieldfare.cli.errors import InputError, reported

if TYPE_CHECKING:
    from fieldfare.node.pipeline_reports import PipelineReport
    from fieldfare.pipeline.job.config import Pipeline
    from fieldfare.pipeline.job.run import Plan

File = Annotated[Path, typer.Argument(metavar="FILE", help="File of the pipeline, in TOML.")]
Master = Annotated[
    str | None,
    typer.Option(metavar="URL", help="Address of Spark, such as local[2] or spark://HOST:7077.", show_default=False),
]


@reported("spark")
def run(
    file: File,
    *,
    once: Annotated[bool, typer.Option("--once", help="End when all present events are processed.")] = False,
    master: Master = None,
) -> None:
    """Run a pipeline until Ctrl-C, or with --once until all present events are processed.

    A pipeline reads events from a node's log, a running node, files, MQTT or Kafka, matches the events with
    subscriptions, and writes them to tables, nodes and webhooks. After any end, even a crash, the next run goes on
    from there, and every table has every event once. Records that cannot be decoded go to the quarantine, with the
    reason.

    Examples:
        fieldfare pipeline run pipeline.toml --once
        fieldfare pipeline run pipeline.toml --master spark://head:7077
    """
    from fieldfare.pipeline.job.run import run as run_plan

    ended: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda given, _: ended.append(given))
    with _ready(file, master) as plan, _shown() as told:
        run_plan(plan, once=once, told=told, end=lambda: bool(ended))


@reported("spark")
def check(file: File, *, master: Master = None) -> None:
    """Check a pipeline without running it: its file, its sinks, the columns of the source, every filter.

    Examples:
        fieldfare pipeline check pipeline.toml
    """
    with _ready(file, master) as plan:
        for line in _facts(plan):
            typer.echo(line)
        for line in _doubts(plan):
            typer.secho(f"note: {line}", fg="yellow")
    typer.echo("The pipeline can run.")


@reported("spark")
def explain(
    file: File,
    *,
    master: Master = None,
    spark: Annotated[bool, typer.Option("--spark", help="Show Spark's plan, too.")] = False,
) -> None:
    """Show the steps of a pipeline, how each sink gets its rows and why, and with --spark the plan of Spark.

    Examples:
        fieldfare pipeline explain pipeline.toml
    """
    from fieldfare.pipeline.job.run import ways

    with _ready(file, master) as plan:
        for line in _facts(plan):
            typer.echo(line)
        for line in ways(plan):
            typer.echo(f"then        {line}")
        if spark:
            plan.records.explain()


@reported("spark")
def status(file: File) -> None:
    """Show the last report of a pipeline, which may run or not. Spark is not started.

    Examples:
        fieldfare pipeline status pipeline.toml
    """
    need_spark()
    from fieldfare.pipeline.job.report import last

    pipeline = read_pipeline(file)
    report = last(Path(pipeline.state))
    if report is None:
        typer.echo(f"{pipeline.name} has not processed a batch yet. Start it: fieldfare pipeline run {file}")
        return
    for line in _status(report):
        typer.echo(line)


def _status(report: PipelineReport) -> Iterator[str]:
    from datetime import UTC, datetime

    when = datetime.fromtimestamp(report.time, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    yield f"{report.name:<14}{report.state}, batch {report.batch}, {when}"
    yield f"events        {report.events:,}  ({report.rate:,.0f}/s in the last batch, which took {report.took:.2f} s)"
    yield f"deliveries    {report.deliveries:,}"
    yield f"quarantined   {report.quarantined:,}"
    yield f"late          {report.late:,}"
    if report.snapshot is not None:
        yield f"subscriptions {report.subscriptions:,}, version {report.snapshot}"
    for busy in report.busiest[:5]:
        yield f"  {busy.count:>12,}  {busy.subscription}" + (f"  of {busy.owner}" if busy.owner else "")
    if report.error:
        yield f"error         {report.error}"


def _facts(plan: Plan) -> Iterator[str]:
    from pyspark.sql.types import StructType

    from fieldfare.pipeline.match import catalogue

    pipeline = plan.pipeline
    options = ", ".join(f"{key}={value}" for key, value in pipeline.source.options.items())
    fields: Any = plan.records.schema["fields"].dataType
    assert isinstance(fields, StructType)
    yield f"{'pipeline':<12}{pipeline.name}, its state in {pipeline.state}"
    yield f"{'source':<12}{pipeline.source.kind}: {options}"
    yield f"{'fields':<12}{', '.join(f'{field.name} {field.dataType.simpleString()}' for field in fields)}"
    if plan.subscriptions is not None:
        opened = catalogue.opened(str(plan.subscriptions), catalogue.current(plan.subscriptions))
        looked = "any field" if opened.about.fields is None else ", ".join(opened.about.fields) or "nothing"
        version = f"version {opened.about.version}"
        yield f"{'match':<12}{opened.about.count:,} subscriptions ({version}), which look at {looked}"


def _doubts(plan: Plan) -> Iterator[str]:
    """Yield remarks on filters that look at undeclared fields, which is allowed but may be a mistake."""
    from difflib import get_close_matches

    from fieldfare.pipeline.match import catalogue

    if plan.subscriptions is None:
        return
    declared = plan.records.schema["fields"].dataType.names  # type: ignore[attr-defined]  # it is a struct
    opened = catalogue.opened(str(plan.subscriptions), catalogue.current(plan.subscriptions))
    for path in opened.about.fields or ():
        if path.partition(".")[0] not in declared:
            near = get_close_matches(path, declared, 1)
            yield (
                f"filters look at {path}, which is no declared field"
                + (f"; did you mean {near[0]}?" if near else "")
                + " Events that have it are matched one by one."
            )


@contextmanager
def _ready(file: Path, master: str | None) -> Iterator[Plan]:
    need_spark()
    from pyspark.errors import PySparkException

    from fieldfare.pipeline.job.config import PipelineError
    from fieldfare.pipeline.job.run import ready
    from fieldfare.pipeline.match.catalogue import SubscriptionError
    from fieldfare.pipeline.options import OptionError
    from fieldfare.pipeline.spark import SparkNotStarted
    from fieldfare.pipeline.spark_java import NoJava
    from fieldfare.pipeline.workers import WorkersError

    pipeline = read_pipeline(file)
    try:
        with ready(pipeline, master, _note) as plan:
            yield plan
    except (PipelineError, SubscriptionError, OptionError, NoJava, SparkNotStarted, WorkersError) as error:
        raise InputError(str(file), error) from None
    except PySparkException as error:
        raise InputError(str(file), error.getMessage() or error) from None


def _note(problem: str) -> None:
    typer.secho(f"note: {problem}", fg="yellow", err=True)


def read_pipeline(file: Path) -> Pipeline:
    """Read the file of a pipeline; a mistake in it ends the command."""
    from fieldfare.pipeline.job.config import PipelineError, read

    try:
        return read(file)
    except PipelineError as error:
        raise InputError("", error) from None


def need_spark() -> None:
    """End with advice if Spark is not installed."""
    if importlib.util.find_spec("pyspark") is None:
        raise InputError("", "pipelines need Spark: pip install 'fieldfare[spark]'")


@contextmanager
def _shown() -> Iterator[Any]:
    """Yield a function that shows a report: in a terminal a line that changes, else a line for each batch."""
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (SpinnerColumn(), TimeElapsedColumn(), TextColumn("{task.description}", markup=False))
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("waiting for events")

        def told(report: PipelineReport) -> None:
            line = (
                f"batch {report.batch}: {report.events:,} events, {report.deliveries:,} deliveries, "
                f"{report.quarantined:,} quarantined, {report.rate:,.0f} events/s"
            )
            progress.update(task, description=line if report.state == "running" else f"{line}, {report.state}")
            if not console.is_terminal and report.state == "running":
                typer.echo(line)

        yield told
