"""`fieldfare bench pipeline`: the cost of matching on Spark, compared with fixed bars."""

from __future__ import annotations

import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldfare.cli.errors import InputError, reported

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from fieldfare_lab.pipeline.bars import Line

    Step = Callable[[str], None]

BARS = ("output", "sql", "mixed", "operator", "many", "cores", "opening", "memory", "stream", "detect")


@reported()
def command(
    *,
    filters: Annotated[
        int, typer.Option(min=10, metavar="N", help="Number of filters; also a tenth for `sql`, tenfold for `many`.")
    ] = 100_000,
    events: Annotated[
        int, typer.Option(min=100, metavar="N", help="Events; a fifth for `many`, `output` and `sql`.")
    ] = 1_000_000,
    cores: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of cores to use. [default: all]", show_default=False)
    ] = os.cpu_count() or 1,
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Number of rounds; the best counts.")] = 3,
    patience: Annotated[
        float, typer.Option(min=1, metavar="N", help="End the join of `many` after N times the operator's time.")
    ] = 10.0,
    only: Annotated[
        str, typer.Option(metavar="BAR,...", help=f"Names of bars: {', '.join(BARS)}.", show_default=False)
    ] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="A first impression: a hundredth of the filters and events, one round.")
    ] = False,
    to_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON.")] = None,
) -> None:
    """Measure the cost of matching on Spark, and compare the cost with the bars.

    Bars are ratios within one run: whole jobs (lists, counts, deliveries as files) against the bare engine on the same
    batches, against the best plan in Spark SQL, also with mixed filters; the operator alone; very many filters; two
    cores against one core; the time in which a worker opens a snapshot, the memory of a snapshot that workers share,
    the rate of a stream beside a node's, and patterns over a history. Answers are compared first: if answers
    differ, nothing is timed. Contenders take turns in rounds; CPU time is the time of all processes. Data is made once,
    in the temporary directory.

    Examples:
        fieldfare bench pipeline --quick
        fieldfare bench pipeline --only output,sql
        fieldfare bench pipeline --filters 10000 --json bars.json
    """
    if find_spec("pyspark") is None:
        raise InputError("", "this needs Spark: pip install 'fieldfare[spark]'")
    from msgspec import json
    from rich.console import Console

    from fieldfare.cli.progress import steps
    from fieldfare_lab.pipeline.bars import table

    if quick:
        filters, events, rounds = max(10, filters // 100), max(100, events // 100), 1
    chosen = _chosen(only)
    lines: list[Line] = []
    with steps(len(chosen) * (rounds + 3)) as step:
        measures = _measures(filters, events, cores, rounds, patience=patience, step=_told(step))
        for name in chosen:
            lines += measures[name]()
    Console(width=None if sys.stdout.isatty() else 200).print(table(lines))
    if to_json is not None:
        to_json.write_bytes(json.format(json.encode(lines)))
    if any(line.bar == "answers" for line in lines):
        raise typer.Exit(1)


def _told(step: Step) -> Step:
    """Return the function that begins a step, which prints the step where there is no bar."""
    if sys.stderr.isatty():
        return step
    begun = time.monotonic()

    def told(what: str) -> None:
        print(f"{time.monotonic() - begun:7.1f} s  {what}", file=sys.stderr, flush=True)
        step(what)

    return told


def _chosen(only: str) -> list[str]:
    names = only.split(",") if only else [*BARS]
    for name in names:
        if name not in BARS:
            raise InputError("--only", f"there is no bar {name!r}; there are {', '.join(BARS)}")
    return names


def _measures(
    filters: int, events: int, cores: int, rounds: int, *, patience: float, step: Step
) -> Mapping[str, Callable[[], list[Line]]]:
    from fieldfare_lab.pipeline import detection, join_plans, operator, output, scale, sql_plans, stream
    from fieldfare_lab.pipeline.data import data

    fifth = max(1, events // 5)
    usual, fewer, many = data(filters, events), data(filters, fifth), data(filters * 10, fifth)
    mixed = data(filters, fifth // 8, workload="mixed")

    def sql() -> list[Line]:
        """Compare with Spark SQL: twice as cheap with a tenth of the filters, three times with all.

        A join of `begen` makes pairs of most events and filters, so there are fewer events.
        """
        found = []
        for size, least in ((filters // 10, 2.0), (filters, 3.0)):
            for workload in ("stock", "eq", "begen"):
                count = fifth // 4 if workload == "begen" else fifth
                found += sql_plans.measure(data(size, count, workload=workload), least, cores, rounds, step)
        return found

    return {
        "output": lambda: output.measure(fewer, cores, rounds, step),
        "sql": sql,
        "mixed": lambda: sql_plans.measure(mixed, sql_plans.MIXED, cores, rounds, step),
        "operator": lambda: operator.measure(usual, cores, rounds, step),
        "many": lambda: join_plans.very_many(many, cores, patience, step),
        "cores": lambda: scale.cores(usual, rounds, step),
        "opening": lambda: scale.opening(many, rounds, step),
        "memory": lambda: scale.memory(many, step),
        "stream": lambda: stream.measure(max(10, filters // 100) * 10, max(1000, events // 10), cores, step),
        "detect": lambda: detection.measure(events, cores, rounds, step),
    }
