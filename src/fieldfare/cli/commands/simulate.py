"""`fieldfare simulate`: run a network of brokers in virtual time, from a scenario file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldfare.cli.errors import InputError, reported

if TYPE_CHECKING:
    from fieldfare.simulation.scenario import Result, Scenario

_SHOWN = 5
"""violations that are printed at most"""


@reported()
def command(
    scenario: Annotated[
        Path | None,
        typer.Argument(
            metavar="SCENARIO", help="File of the scenario, in TOML; - is standard input.", show_default=False
        ),
    ] = None,
    *,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Folder for trace.parquet, summary.json and network.html.", show_default=False
        ),
    ] = None,
    strategy: Annotated[
        str, typer.Option(metavar="NAME", help="Routing strategy, instead of the scenario's.", show_default=False)
    ] = "",
    seed: Annotated[
        int | None,
        typer.Option(metavar="N", help="Seed of the random numbers, instead of the scenario's.", show_default=False),
    ] = None,
    check: Annotated[bool, typer.Option(help="Check the trace against the specification.")] = True,
    no_page: Annotated[bool, typer.Option("--no-page", help="Write no network.html.")] = False,
    save: Annotated[
        Path | None,
        typer.Option(
            "--save-workload",
            metavar="FILE",
            help="File for the actions of the clients, as Parquet.",
            show_default=False,
        ),
    ] = None,
    example: Annotated[bool, typer.Option("--example", help="Print an example of a scenario, and exit.")] = False,
) -> None:
    """Simulate a network of brokers: topology, links, strategy, clients and faults.

    Time is virtual: a run takes as long as its messages take to compute, and the same seed gives the same run. The
    trace is checked against the specification; the exit code is 1 if a rule is violated. With --out, network.html
    shows the run in a browser: messages move along links, and a click on a broker shows its filters.

    Examples:
        fieldfare simulate --example
        fieldfare simulate --example | fieldfare simulate - --out run
        fieldfare simulate --example | fieldfare simulate - --strategy flooding
    """
    if example:
        typer.echo(_example(), nl=False)
        return
    if scenario is None:
        raise InputError("SCENARIO", "give a file, or --example to see one")
    from fieldfare.cli.progress import steps
    from fieldfare.simulation import workloads
    from fieldfare.simulation.scenario import STEPS, actions_of, run

    title = "simulation" if str(scenario) == "-" else scenario.stem
    with _at(str(scenario)):
        wanted = _changed(_read(scenario), strategy, seed)
        if save is not None:
            workloads.write(actions_of(wanted), str(save))
        with steps(STEPS + 1) as step:
            result = run(wanted, step, checked=check)
    _print(result)
    if out is not None:
        _write(result, out, title, with_page=not no_page)
        typer.echo(f"written: {out}", err=True)
    if result.violations:
        raise typer.Exit(1)


def _example() -> str:
    from importlib import resources

    return (resources.files("fieldfare") / "data" / "network" / "example.toml").read_text("utf-8")


@contextmanager
def _at(place: str) -> Iterator[None]:
    from fieldfare.simulation.scenario import ScenarioError

    try:
        yield
    except (ScenarioError, UnicodeDecodeError) as error:
        raise InputError(place, error) from None


def _read(path: Path) -> Scenario:
    import sys

    from fieldfare.simulation.scenario import load, parse

    return parse(sys.stdin.read()) if str(path) == "-" else load(path)


def _changed(scenario: Scenario, strategy: str, seed: int | None) -> Scenario:
    from msgspec.structs import replace

    named = replace(scenario, strategy=strategy) if strategy else scenario
    return named if seed is None else replace(named, seed=seed)


def _print(result: Result) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from fieldfare.cli.formats.values import printable
    from fieldfare.cli.pages.network import headline, shown_figures, warning

    console = Console(highlight=False)
    console.print(Text(printable(headline(result)), style="bold"))
    table = Table.grid(padding=(0, 2))
    table.add_column()
    table.add_column(justify="right")
    for name, value in shown_figures(result):
        table.add_row(name, value)
    console.print(table)
    if doubt := warning(result):
        console.print(Text(doubt, style="bold red"))
    for one in (result.violations or [])[:_SHOWN]:
        line = f"{result.trace[one.order].time:.3f} s: {one.rule}: {one.problem}"
        console.print(Text(printable(line), style="red"))
    more = len(result.violations or []) - _SHOWN
    if more > 0:
        console.print(Text(f"… and {more:,} more, all of them in summary.json if you give --out", style="red"))


def _write(result: Result, out: Path, title: str, *, with_page: bool) -> None:
    import msgspec

    from fieldfare.cli.pages.network import page, warning
    from fieldfare.simulation import trace_files

    out.mkdir(parents=True, exist_ok=True)
    trace_files.write(result.trace, str(out / "trace.parquet"))
    summary = {
        "scenario": result.scenario,
        "seconds": result.seconds,
        "figures": result.figures,
        "warning": warning(result) or None,
        "brokers": {
            name: {"table": result.tables.get(name), **msgspec.to_builtins(work)} for name, work in result.work.items()
        },
        "links": [{"from": a, "to": b, **msgspec.to_builtins(sent)} for (a, b), sent in result.traffic.items()],
        "violations": [{"time": result.trace[one.order].time, **one._asdict()} for one in result.violations or []],
    }
    (out / "summary.json").write_bytes(msgspec.json.format(msgspec.json.encode(summary), indent=2) + b"\n")
    if with_page:
        (out / "network.html").write_text(page(result, title), "utf-8")
