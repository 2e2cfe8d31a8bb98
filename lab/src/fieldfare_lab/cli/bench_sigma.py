"""`fieldfare bench sigma`: thousands of rules that people wrote on log events, in several ways."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from fieldfare.cli.errors import InputError, reported


@reported("spark")
def command(
    rules: Annotated[Path, typer.Argument(help="Folder with rules of Sigma, such as a clone of SigmaHQ.")],
    *,
    glob: Annotated[str, typer.Option(metavar="PATTERN", help="Files of rules in the folder.")] = "**/*.yml",
    logs: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder with real events as JSON. [default: the folder of the rules]",
            show_default=False,
        ),
    ] = None,
    events: Annotated[int, typer.Option(min=1, metavar="N", help="Number of events, mixed of the real ones.")] = 20_000,
    only: Annotated[
        str, typer.Option(metavar="WAY,...", help="Ways: single, lines, spark, node, sqlite.", show_default=False)
    ] = "",
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Number of rounds; the best counts.")] = 3,
    to_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON.")] = None,
) -> None:
    """Measure how many log events a CPU second are matched with rules of Sigma, in several ways.

    Rules look at events of their source, by channel and number of Windows. Events are real ones with some fields of
    other events of the same kind. Ways take turns in rounds, and the best round counts. The ways of Fieldfare must have
    the same matches. SQLite with the queries of pySigma is the peer; its number stands beside, as queries have another
    idea of missing fields and of regular expressions, and some rules have none.

    Examples:
        fieldfare bench sigma ~/sigma --glob 'rules*/**/*.yml' --logs ~/sigma/regression_data
        fieldfare bench sigma rules --logs logs --events 1000 --only single,lines --rounds 1
    """
    import sys

    from msgspec import json
    from rich.console import Console
    from rich.table import Table

    from fieldfare.cli.progress import steps
    from fieldfare_lab.sigma import corpus, ways
    from fieldfare_lab.sigma.measurement import measure

    wanted = only.split(",") if only else [name for name in ways.WAYS if ways.missing(name) is None]
    for name in wanted:
        if name not in ways.WAYS:
            raise InputError("--only", f"there is no way {name!r}; there are {', '.join(ways.WAYS)}")
        if reason := ways.missing(name):
            raise InputError("--only", reason)
    loaded, refused = corpus.load_rules(rules, glob, corpus.windows())
    real = corpus.read_events(logs or rules)
    if not loaded or not real:
        raise InputError(str(rules if not loaded else logs or rules), f"no {'events' if loaded else 'rules'} there")
    made = ways.Corpus(loaded, corpus.mixed(real, events), rules)
    with steps(len(wanted) * (rounds + 1)) as step:
        found = measure(made, wanted, rounds, step)
    shown = Table("way", "matches", "CPU s", "events a CPU s", "wall s")
    for one in found:
        rate = f"{one.events / one.cpu:,.0f}" if one.cpu else ""
        shown.add_row(
            one.way, f"{one.matches:,}{'' if one.correct else ' WRONG'}", f"{one.cpu:.2f}", rate, f"{one.wall:.1f}"
        )
    console = Console(width=None if sys.stdout.isatty() else 120)
    console.print(
        f"{len(loaded):,} rules ({refused.total()} others do not load), {events:,} events of {len(real):,} real ones"
    )
    console.print(shown)
    if to_json is not None:
        to_json.write_bytes(json.format(json.encode(found)))
    if not all(one.correct for one in found):
        raise typer.Exit(1)
