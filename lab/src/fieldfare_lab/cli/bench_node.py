"""`fieldfare bench node`: event rate and latency of a node beside other servers, and the cost of idle sessions."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast, get_args

import typer

from fieldfare.cli.errors import InputError, reported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from fieldfare_lab.node.client_processes import Contender
    from fieldfare_lab.node.load import Load, Result, Shape
    from fieldfare_lab.node.sessions import Sessions


@reported("node")
def command(
    *,
    filters: Annotated[
        str, typer.Option(metavar="N,N,...", help="Numbers of filters; multiples of 10.", show_default=False)
    ] = "",
    shape: Annotated[
        str,
        typer.Option(
            metavar="NAME,...",
            help="Shapes of the load: filters, one (one match of many topics), fanout (all match), nested (as one).",
        ),
    ] = "filters",
    subscribers: Annotated[int, typer.Option(min=1, metavar="N", help="Connections that share the filters.")] = 100,
    peer: Annotated[bool, typer.Option(help="Measure also NATS, Mosquitto and RabbitMQ, if installed.")] = True,
    only: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="Measure only TEXT, or all contenders with TEXT in their names; repeatable.",
            show_default=False,
        ),
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, metavar="N", help="Approximate length of a round.")] = 10.0,
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Number of rounds; the best counts.")] = 3,
    quick: Annotated[bool, typer.Option("--quick", help="A first impression: 1000 filters, one short round.")] = False,
    sessions: Annotated[
        int,
        typer.Option(
            min=0, metavar="N", help="Open N idle sessions instead, and measure their cost.", show_default=False
        ),
    ] = 0,
    durable: Annotated[bool, typer.Option("--durable", help="With --sessions: open durable sessions.")] = False,
    to_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON.")] = None,
) -> None:
    """Measure how many events a second a node accepts, and how soon subscribers receive the events.

    The node and its clients run in processes of their own, on loopback. Each event matches ten filters of different
    subscribers; filters are conjunctions of equalities, because RabbitMQ's headers exchange knows no others. In other
    shapes, an event matches the topic of one subscriber, or of all. For NATS and Mosquitto, a filter is a topic with
    wildcards. Contenders with a missing or surplus delivery are WRONG. Rates are taken at full speed, CPU seconds are
    those of the server; contenders take turns in rounds. Latency is measured twice: at 70 % of the contender's own
    rate, and at 70 % of the slowest contender's rate.

    Examples:
        fieldfare bench node --quick --no-peer
        fieldfare bench node --shape one,fanout,filters --filters 10000 --only durable --only NATS --only Mosquitto
        fieldfare bench node --filters 10000 --only "Fieldfare, durable" --no-peer
        fieldfare bench node --sessions 10000
    """
    from rich.console import Console

    console = Console(width=None if sys.stdout.isatty() else 200)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # or the servers would outlive the benchmark
    if sessions:
        found = _sessions(sessions, durable=durable, quick=quick)
        console.print(_about(found))
        _write(to_json, [found])
        if found.reached != found.tried:
            raise typer.Exit(1)
        return
    results = _contests(
        _loads(shape, _sizes(filters or ("1000" if quick else "10000,1000,100")), subscribers),
        _chosen(only or [""], peer=peer, quick=quick),
        (min(seconds, 2.0), 1) if quick else (seconds, rounds),
    )
    from fieldfare_lab.node.contest import ratios, table

    console.print(table(results))
    for line in ratios(results):
        console.print(line, highlight=False)
    _write(to_json, results)
    if not all(result.correct for result in results):
        raise typer.Exit(1)


def _sizes(text: str) -> list[int]:
    try:
        return [int(size) for size in text.replace("_", "").split(",")]
    except ValueError:
        raise InputError("--filters", f"numbers with commas between them, not {text!r}") from None


def _loads(shapes: str, sizes: Sequence[int], subscribers: int) -> list[Load]:
    from fieldfare_lab.node.load import Shape, make, topics

    found: list[Load] = []
    for name in shapes.split(","):
        if name not in get_args(Shape):
            raise InputError("--shape", f"there is no shape {name!r}; there are {', '.join(get_args(Shape))}")
        if name != "filters":
            found.append(topics(1, cast("Shape", name), subscribers))
            continue
        try:
            found += [make(1, filters=size, subscribers=subscribers) for size in sizes]
        except ValueError as error:
            raise InputError("--filters", error) from None
    return found


def _chosen(only: Sequence[str], *, peer: bool, quick: bool) -> list[Contender]:
    from fieldfare_lab.node import fieldfare_node
    from fieldfare_lab.node.peers import Peers, peers

    others = peers(quick=quick) if peer else Peers([], [])
    contenders = [*(fieldfare_node.contender(variant) for variant in fieldfare_node.VARIANTS), *others.contenders]
    names = [one.name for one in contenders]
    chosen = set[str]()
    for text in only:
        meant = [text] if text in names else [name for name in names if text in name]
        if not meant:
            raise InputError("--only", f"there is no contender {text!r}; there are {'; '.join(names)}")
        chosen.update(meant)
    for sentence in others.missing if "" in only else ():
        typer.echo(f"not measured: {sentence}", err=True)
    return [one for one in contenders if one.name in chosen]


def _contests(loads: Sequence[Load], contenders: Sequence[Contender], effort: tuple[float, int]) -> list[Result]:
    from fieldfare.cli.progress import steps
    from fieldfare_lab.node import contest

    seconds, rounds = effort
    contests = [(load, [one for one in contenders if load.shape in one.shapes]) for load in loads]
    with steps(sum(contest.steps(len(able), rounds) for _, able in contests)) as step:
        return [
            result
            for load, able in contests
            if able
            for result in contest.contend(load, able, contest.Effort(seconds=seconds, rounds=rounds), step)
        ]


def _sessions(count: int, *, durable: bool, quick: bool) -> Sessions:
    from fieldfare.cli.progress import steps
    from fieldfare_lab.node import sessions

    with steps(sessions.steps(count)) as step:
        try:
            return sessions.measure(count, durable=durable, quiet=2.0 if quick else 25.0, step=step)
        except ValueError as error:
            raise InputError("--sessions", error) from None


def _about(found: Sessions) -> str:
    return "\n".join(
        (
            f"idle node       {found.idle_mb:,.0f} MB",
            f"with one        {found.first_mb:,.0f} MB: with the first subscription it loads what matching needs",
            f"with sessions   {found.full_mb:,.0f} MB: {found.sessions:,}{' durable' if found.durable else ''} sessions"
            f" with a subscription each, {found.kb_each:,.0f} kB each but the first",
            f"to open them    {found.open_seconds:,.1f} s, {found.open_cpu_seconds:,.1f} s of the node's CPU",
            f"doing nothing   {found.idle_cores:.1%} of a core",
            f"events for some {found.reached} of {found.tried} arrived, in {found.reached_ms:,.1f} ms",
        )
    )


def _write(path: Path | None, found: Sequence[object]) -> None:
    from msgspec import json

    if path is not None:
        path.write_bytes(json.format(json.encode(found)))
