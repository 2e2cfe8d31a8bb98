"""`fieldfare lab`: the experiments of the literature, run again."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from fieldfare.cli.errors import InputError, reported

if TYPE_CHECKING:
    from fieldfare_lab.results import Result, Settings

Only = Annotated[str, typer.Option(metavar="NAME,...", help="Names of experiments. [default: all]", show_default=False)]
Replications = Annotated[int, typer.Option(min=1, metavar="N", help="Number of runs with different random numbers.")]
Seed = Annotated[int, typer.Option(metavar="N", help="Seed of the first run.")]
Quick = Annotated[
    bool, typer.Option("--quick", help="A first impression: a fifth of the size, one run. Claims may fail.")
]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON.")]
Report = Annotated[Path | None, typer.Option(metavar="FILE", help="Write a page in Markdown.")]
Plot = Annotated[Path | None, typer.Option(metavar="DIR", help="Draw into a folder; needs matplotlib.")]


class _Output(NamedTuple):
    json: Path | None
    report: Path | None
    plot: Path | None


@reported()
def tables(
    *,
    only: Only = "",
    replications: Replications = 3,
    seed: Seed = 1,
    quick: Quick = False,
    scaling: Annotated[
        str,
        typer.Option(metavar="N,N,...", help="Measure also how structures grow, with N filters.", show_default=False),
    ] = "",
    budget: Annotated[
        float, typer.Option(metavar="SECONDS", help="Limit for filling a structure, with --scaling.")
    ] = 60,
    to_json: Json = None,
    report: Report = None,
    plot: Plot = None,
) -> None:
    """Run the experiments of the thesis on routing tables again, with IndexedTable beside the thesis' structures.

    E1 to E8: poset and forests; E13 to E17: temporal subspaces (DoubleForest) and preloading; E18 to E21: merging. Each
    experiment prints tables, and for every claim whether the claim holds. Comparisons of filters are the same on every
    machine; CPU times are not. --scaling 1000,10000,100000,1000000 measures structures beyond the thesis' 500 filters.

    Examples:
        fieldfare lab tables --quick
        fieldfare lab tables --quick --only E1,E8 --json out.json
        fieldfare lab tables --quick --only E8 --scaling 100,1000 --budget 5
    """
    from fieldfare_lab.tables.experiments import EXPERIMENTS
    from fieldfare_lab.tables.scale import scaling as scale

    sizes = _sizes(scaling)
    _run(
        EXPERIMENTS, only, _settings(replications, seed, quick=quick), _Output(to_json, report, plot),
        _command("tables", only, replications, quick=quick, scaling=scaling), more=10 * len(sizes),
        scale=(lambda settings, step: scale(settings, sizes, budget, step)) if sizes else None,
    )  # fmt: skip


@reported()
def routing(
    *,
    only: Only = "",
    replications: Replications = 3,
    seed: Seed = 1,
    quick: Quick = False,
    scaling: Annotated[
        str,
        typer.Option(metavar="N,N,...", help="Measure also how long networks of N brokers take.", show_default=False),
    ] = "",
    to_json: Json = None,
    report: Report = None,
    plot: Plot = None,
) -> None:
    """Compare the routing strategies in simulated networks: tables, filter updates, event messages, surplus events.

    R1, R2: while subscriptions come and go; R3, R4: with local and with selective interest; R5: how many events a
    network bears; R6: hierarchical and peer-to-peer; R7: with advertisements; R8: more brokers; R9: rendezvous.

    Time is virtual, so all counts are the same on every machine. --scaling 10,100,1000 shows how long simulations take.

    Examples:
        fieldfare lab routing --quick --only R6
        fieldfare lab routing --quick --only R4 --json out.json
        fieldfare lab routing --quick --only R4 --scaling 5,10
    """
    from fieldfare_lab.routing.experiments import EXPERIMENTS
    from fieldfare_lab.routing.scale import scaling as scale

    sizes = _sizes(scaling)
    _run(
        EXPERIMENTS, only, _settings(replications, seed, quick=quick), _Output(to_json, report, plot),
        _command("routing", only, replications, quick=quick, scaling=scaling), more=len(sizes),
        scale=(lambda settings, step: scale(settings, sizes, step)) if sizes else None,
    )  # fmt: skip


@reported()
def mobility(
    *,
    only: Only = "",
    replications: Replications = 3,
    seed: Seed = 1,
    quick: Quick = False,
    to_json: Json = None,
    report: Report = None,
    plot: Plot = None,
) -> None:
    """Let clients and publishers move through simulated networks, by the protocols of the literature and Fieldfare's.

    E9 to E12: the thesis' subscribers, who move between 100 brokers; P1 to P7: publishers who drive through a city of
    85 brokers, with four models of a broker's cost; L1, L2: filters that depend on a place.

    Examples:
        fieldfare lab mobility --quick --only E9
        fieldfare lab mobility --quick --only L1 --json out.json
    """
    from fieldfare_lab.mobility import ahead, locations, publishers, subscribers

    places = {**locations.EXPERIMENTS, **ahead.EXPERIMENTS}
    experiments = {**subscribers.EXPERIMENTS, **publishers.EXPERIMENTS, **places}
    _run(
        experiments, only, _settings(replications, seed, quick=quick), _Output(to_json, report, plot),
        _command("mobility", only, replications, quick=quick, scaling=""), more=0, scale=None,
    )  # fmt: skip


@reported()
def prefix(
    *,
    only: Only = "",
    replications: Replications = 1,
    seed: Seed = 1,
    quick: Quick = False,
    to_json: Json = None,
    report: Report = None,
    plot: Plot = None,
) -> None:
    """Forward events by the prefixes of a routing tree: sizes of trees and tags, CPU time spent, messages saved.

    X1: trees and tags of up to a million nodes; X2, X3: false positives in a network of 27 brokers; X4: a query log;
    X5: the order of attributes; X6: depth of tags and staleness of trees; X7: CPU time a hop.

    Examples:
        fieldfare lab prefix --quick --only X5
        fieldfare lab prefix --quick --only X4 --json out.json
        fieldfare lab prefix --only X1 --report sizes.md
    """
    from fieldfare_lab.prefix.experiments import EXPERIMENTS

    _run(
        EXPERIMENTS, only, _settings(replications, seed, quick=quick), _Output(to_json, report, plot),
        _command("prefix", only, replications, quick=quick, scaling=""), more=0, scale=None,
    )  # fmt: skip


@reported()
def patterns(
    *,
    only: Only = "",
    replications: Replications = 3,
    seed: Seed = 1,
    quick: Quick = False,
    to_json: Json = None,
    report: Report = None,
    plot: Plot = None,
) -> None:
    """Detect patterns of events in simulated networks: placement of detectors, shared parts, events out of order.

    R1.1: a central detector; R1.2: detectors near publishers and near subscribers; R1.3: parts that patterns share;
    R1.4: the five placement policies; R1.5: the detection policies under delays; R1.5s: a source that falls silent;
    R1.6: thresholds of probable stability.

    Examples:
        fieldfare lab patterns --quick --only R1.5,R1.6
        fieldfare lab patterns --quick --only R1.5s --json out.json
    """
    from fieldfare_lab.patterns.experiments import EXPERIMENTS

    _run(
        EXPERIMENTS, only, _settings(replications, seed, quick=quick), _Output(to_json, report, plot),
        _command("patterns", only, replications, quick=quick, scaling=""), more=0, scale=None,
    )  # fmt: skip


def _run(
    experiments: dict[str, Callable[[Settings], Result]],
    only: str,
    settings: Settings,
    output: _Output,
    command: str,
    *,
    more: int,
    scale: Callable[[Settings, Callable[[str], None]], Result] | None,
) -> None:
    """Run experiments and, if `scale` is given, measure scaling in `more` progress steps; print and write results."""
    from rich.console import Console

    from fieldfare.cli.progress import steps
    from fieldfare_lab import report as reports

    wanted = only.split(",") if only else list(experiments)
    for name in wanted:
        if name not in experiments:
            raise InputError("--only", f"there is no experiment {name!r}; there are {', '.join(experiments)}")
    if output.plot is not None and find_spec("matplotlib") is None:
        raise InputError("--plot", "matplotlib is not installed: pip install 'fieldfare-lab[plots]'")
    console, results = Console(), []
    with steps(len(wanted) + more) as step:
        for name in wanted:
            step(name)
            results.append(experiments[name](settings))
            console.print(reports.shown(results[-1], framed=console.is_terminal))
        if scale is not None:
            results.append(scale(settings, step))
            console.print(reports.shown(results[-1], framed=console.is_terminal))
    if output.json is not None:
        output.json.write_bytes(reports.as_json(results))
    if output.report is not None:
        output.report.write_text(reports.markdown(results, command))
    if output.plot is not None:
        for file in reports.plot(results, output.plot):
            typer.echo(f"drawn: {file}", err=True)


def _settings(replications: int, seed: int, *, quick: bool) -> Settings:
    from fieldfare_lab.results import Settings

    return Settings(1 if quick else replications, seed, 0.2 if quick else 1.0, time.process_time)


def _sizes(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(size) for size in text.replace("_", "").split(",") if size)
    except ValueError:
        raise InputError("--scaling", f"numbers with commas between them, not {text!r}") from None


def _command(lab: str, only: str, replications: int, *, quick: bool, scaling: str) -> str:
    options = [f"--only {only}"] * bool(only) + ["--quick"] * quick + [f"--scaling {scaling}"] * bool(scaling)
    return " ".join([f"fieldfare lab {lab}", *options, *([] if quick else [f"--replications {replications}"])])
