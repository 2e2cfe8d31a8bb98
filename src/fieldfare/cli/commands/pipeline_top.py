"""`fieldfare pipeline top`: batches, rates and backlogs of pipelines in the terminal, updated every second."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldfare.cli.commands.pipeline import need_spark, read_pipeline
from fieldfare.cli.errors import reported

if TYPE_CHECKING:
    from rich.table import Table

    from fieldfare.pipeline.job.config import Pipeline
    from fieldfare.pipeline.job.progress import Progress


@reported("spark")
def command(
    files: Annotated[list[Path], typer.Argument(metavar="FILE...", help="Files of pipelines, in TOML.")],
    *,
    every: Annotated[float, typer.Option(metavar="SECONDS", min=0.1, help="Seconds between two updates.")] = 1.0,
    count: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of updates after which to end.", show_default=False)
    ] = None,
) -> None:
    """Watch pipelines: state, batch, rates, time of the last batch, backlog of a topic. Ctrl-C ends the command.

    The figures come from the folders of the pipelines; Spark is not started.

    Examples:
        fieldfare pipeline top market.toml
        fieldfare pipeline top *.toml --count 1
    """
    from rich.console import Console
    from rich.live import Live

    need_spark()
    pipelines = [read_pipeline(file) for file in files]
    console = Console()
    looked = 0
    try:
        with Live(console=console, screen=console.is_terminal and count is None, auto_refresh=False) as live:
            while True:
                live.update(_view(pipelines), refresh=True)
                looked += 1
                if looked == count:
                    return
                time.sleep(every)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _view(pipelines: list[Pipeline]) -> Table:
    from rich.table import Table

    from fieldfare.pipeline.job import progress, report

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("pipeline")
    table.add_column("state")
    for name in ("batch", "rows in", "in/s", "done/s", "deliveries", "quarantined", "ms", "behind"):
        table.add_column(name, justify="right")
    for one in pipelines:
        state = Path(one.state)
        said, now = report.last(state), progress.last(state)
        if said is None or now is None:
            table.add_row(one.name, "new" if said is None else said.state, *("-" for _ in range(8)))
            continue
        seen = now.observed_metrics.get(progress.NAME, {})
        table.add_row(
            one.name,
            said.state,
            str(now.batch_id),
            f"{now.num_input_rows:,}",
            f"{now.input_rows_per_second:,.0f}",
            f"{now.processed_rows_per_second:,.0f}",
            f"{seen.get('deliveries') or 0:,}",
            f"{seen.get('quarantined') or 0:,}",
            f"{now.duration_ms.get('triggerExecution', 0):,}",
            _behind(now),
        )
    return table


def _behind(now: Progress) -> str:
    """Return the largest number of records that a partition of a topic has and the pipeline has not."""
    told = [(one.metrics or {}).get("maxOffsetsBehindLatest") for one in now.sources]
    known = [one for one in told if one is not None]
    return f"{max(map(float, known)):,.0f}" if known else "-"
