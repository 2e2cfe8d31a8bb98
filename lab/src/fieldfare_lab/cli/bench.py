"""`fieldfare bench match`: the speed of the index, beside classic algorithms, databases and rule libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldfare.cli.errors import InputError, reported

if TYPE_CHECKING:
    from fieldfare_lab.bench.engines import Contender
    from fieldfare_lab.bench.measurement import Row


@reported()
def command(
    context: typer.Context,
    *,
    workload: Annotated[
        list[str] | None,
        typer.Option("--workload", "-w", metavar="NAME", help="A workload; may be repeated. [default: stock]"),
    ] = None,
    filters: Annotated[
        str, typer.Option(metavar="N,N,...", help="Numbers of filters to measure with.")
    ] = "1000,10000,100000",
    events: Annotated[int, typer.Option(min=1, metavar="N", help="Number of events in a round.")] = 20_000,
    engines: Annotated[
        str, typer.Option(metavar="NAME,...", help="Names of contenders. [default: all]", show_default=False)
    ] = "",
    baseline: Annotated[str, typer.Option(metavar="NAME", help="Contender whose time counts as 1.")] = "batch",
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Number of rounds; the best counts.")] = 5,
    quick: Annotated[
        bool, typer.Option("--quick", help="A first impression: 1000 filters, 2000 events, 2 rounds, no costs.")
    ] = False,
    costs: Annotated[bool, typer.Option(help="Measure also loading, changes, memory and start.")] = True,
    to_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw into a folder; needs matplotlib.")] = None,
    show: Annotated[bool, typer.Option("--list", help="List workloads and contenders, and end.")] = False,
) -> None:
    """Measure how many events a second are matched with how many filters.

    Contenders are Fieldfare's index, fed in several ways, the classic algorithms, and all installed peers. Peers are no
    part of Fieldfare: pip install duckdb polars pyspark zen-engine rule-engine cel-python common-expression-language.
    The answers are compared first: a contender with another number of matches is WRONG and is not timed. Then the
    contenders take turns in rounds of CPU time, and the best round counts. Slow contenders get fewer events. On a
    machine that does other work, differences under a third mean nothing.

    Examples:
        fieldfare bench match --quick
        fieldfare bench match --list
        fieldfare bench match --quick -w ads --engines batch,single,counting
        fieldfare bench match --quick --engines batch,single --json out.json
    """
    from rich.console import Console

    from fieldfare.cli.progress import steps
    from fieldfare_lab.bench import measurement, report
    from fieldfare_lab.bench.costs import costs as measure_costs
    from fieldfare_lab.bench.plots import plot as draw
    from fieldfare_lab.bench.workloads import generate

    console = Console()
    if show:
        _list(console.print)
        return
    if quick:
        filters = filters if _given(context, "filters") else "1000"
        events = events if _given(context, "events") else 2000
        rounds = rounds if _given(context, "rounds") else 2
        costs = costs and _given(context, "costs")
    sizes, chosen = _sizes(filters), _chosen(engines, baseline, quick=quick)
    if plot is not None and find_spec("matplotlib") is None:
        raise InputError("--plot", "matplotlib is not installed: pip install 'fieldfare-lab[plots]'")
    names = workload or ["stock"]
    rows: list[Row] = []
    with steps(len(names) * len(sizes) * (len(chosen) + rounds + 1) + 5 * costs) as step:
        for name in names:
            for size in sizes:
                try:
                    made = generate(name, size, events)
                except ValueError as error:
                    raise InputError("--workload", error) from None
                rows += measurement.measure(made, chosen, rounds, step, effort=0.2 if quick else 1)
        found = list(measure_costs(names[0], max(sizes), step)) if costs else []
    console.print(report.report(rows, found, baseline))
    if to_json is not None:
        to_json.write_bytes(report.as_json(rows, found))
    if plot is not None:
        for file in draw(rows, plot):
            typer.echo(f"drawn: {file}", err=True)
    if any(row.status == "WRONG" for row in rows):
        raise typer.Exit(1)


def _given(context: typer.Context, option: str) -> bool:
    source = context.get_parameter_source(option)
    return source is not None and source.name != "DEFAULT"


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(size) for size in text.replace("_", "").split(",")]
    except ValueError:
        raise InputError("--filters", f"numbers with commas between them, not {text!r}") from None
    if min(sizes) < 1:
        raise InputError("--filters", "at least one filter")
    return sizes


def _chosen(names: str, baseline: str, *, quick: bool) -> list[Contender]:
    from fieldfare_lab.bench.engines import contenders

    every = contenders()
    wanted = names.split(",") if names else [name for name, one in every.items() if not (quick and one.patient)]
    for name in (*wanted, baseline):
        if name not in every:
            raise InputError("--engines", f"there is no contender {name!r}; there are {', '.join(every)}")
    return [every[name] for name in wanted]


def _list(echo: Callable[..., None]) -> None:
    from fieldfare_lab.bench.engines import contenders, missing
    from fieldfare_lab.bench.workloads import ABOUT

    _show(echo, "workload", ABOUT.items())
    _show(echo, "contender", ((one.name, f"{one.about}{_in_brackets(missing(one))}") for one in contenders().values()))


def _in_brackets(reason: str | None) -> str:
    return "" if reason is None else f" ({reason})"


def _show(echo: Callable[..., None], title: str, rows: Iterable[tuple[str, str]]) -> None:
    from rich.table import Table

    made = Table(title, "description")
    for row in rows:
        made.add_row(*row)
    echo(made)
