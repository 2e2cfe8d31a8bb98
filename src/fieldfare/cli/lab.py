"""`fieldfare lab tables`: the experiments on routing tables, run again."""

from __future__ import annotations

import time
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from fieldfare.cli.errors import InputError, reported


@reported()
def tables(
    *,
    only: Annotated[
        str, typer.Option(metavar="E1,E4,...", help="Which experiments. [default: all]", show_default=False)
    ] = "",
    replications: Annotated[int, typer.Option(min=1, metavar="N", help="Runs with other random numbers.")] = 3,
    seed: Annotated[int, typer.Option(metavar="N", help="The first of them.")] = 1,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first impression: a fifth of the filters, one run. Claims may fail.")
    ] = False,
    scaling: Annotated[
        str,
        typer.Option(
            metavar="N,N,...", help="Also: how far do structures go, with so many filters?", show_default=False
        ),
    ] = "",
    budget: Annotated[float, typer.Option(metavar="SECONDS", help="For filling a structure, with --scaling.")] = 60,
    to_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write everything there.")] = None,
    report: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page in Markdown there.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw into that folder; needs matplotlib.")] = None,
) -> None:
    """Run the experiments of the thesis on routing tables again, with our IndexedTable beside its structures.

    E1 to E8: poset and forests; E13 to E17: temporal subspaces (DoubleForest) and preloading; E18 to E21: merging. Each
    prints its tables and says of every claim whether it holds. Comparisons of filters are counted, which depends on no
    machine; CPU times do. --scaling 1000,10000,100000,1000000 shows what structures cost beyond the thesis' 500.

    Examples:
        fieldfare lab tables --quick
        fieldfare lab tables --quick --only E1,E8 --json out.json
        fieldfare lab tables --quick --only E8 --scaling 100,1000 --budget 5
    """
    from rich.console import Console

    from fieldfare.cli.progress import steps
    from fieldfare.lab import report as reports
    from fieldfare.lab.tables.experiments import EXPERIMENTS
    from fieldfare.lab.results import Settings
    from fieldfare.lab.tables.scaling import scaling as scale

    wanted = only.split(",") if only else list(EXPERIMENTS)
    for name in wanted:
        if name not in EXPERIMENTS:
            raise InputError("--only", f"there is no experiment {name!r}; there are {', '.join(EXPERIMENTS)}")
    if plot is not None and find_spec("matplotlib") is None:
        raise InputError("--plot", "matplotlib is not installed: pip install 'fieldfare[lab]'")
    sizes = _sizes(scaling)
    settings = Settings(1 if quick else replications, seed, 0.2 if quick else 1.0, time.process_time)
    console, results = Console(), []
    with steps(len(wanted) + 10 * len(sizes)) as step:
        for name in wanted:
            step(name)
            results.append(EXPERIMENTS[name](settings))
            console.print(reports.shown(results[-1]))
        if sizes:
            results.append(scale(settings, sizes, budget, step))
            console.print(reports.shown(results[-1]))
    if to_json is not None:
        to_json.write_bytes(reports.as_json(results))
    if report is not None:
        report.write_text(reports.markdown(results, _command(only, replications, quick=quick, scaling=scaling)))
    if plot is not None:
        for file in reports.plot(results, plot):
            typer.echo(f"drawn: {file}", err=True)


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in text.replace("_", "").split(",") if size)
    except ValueError:
        raise InputError("--scaling", f"numbers with commas between them, not {text!r}") from None


def _command(only: str, replications: int, *, quick: bool, scaling: str) -> str:
    options = [f"--only {only}"] * bool(only) + ["--quick"] * quick + [f"--scaling {scaling}"] * bool(scaling)
    return " ".join(["fieldfare lab tables", *options, *([] if quick else [f"--replications {replications}"])])
