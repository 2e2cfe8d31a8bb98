"""`fieldfare bench node`: event rate and latency of a node, beside RabbitMQ, and the cost of idle sessions."""

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
            metavar="NAME,...", help="Shapes of the load: filters, one (one match of many topics), fanout (all match)."
        ),
    ] = "filters",
    subscribers: Annotated[int, typer.Option(min=1, metavar="N", help="Connections that share the filters.")] = 100,
    peer: Annotated[bool, typer.Option(help="Measure also RabbitMQ; needs RabbitMQ and its client pika.")] = True,
    only: Annotated[
        str,
        typer.Option(
            metavar="TEXT", help="Measure only TEXT, or all contenders with TEXT in their names.", show_default=False
        ),
    ] = "",
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
    shapes, an event matches the topic of one subscriber, or of all. Contenders with a missing or surplus delivery are
    WRONG. Rates are taken at full speed, CPU seconds are those of the server; contenders take turns in rounds. Latency
    is measured twice: at 70 % of the contender's own rate, and at 70 % of the slowest contender's rate.

    Examples:
        fieldfare bench node --quick --no-peer
        fieldfare bench node --filters 10000
        fieldfare bench node --shape one,fanout,filters --filters 10000 --only durable --no-peer
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
        _chosen(only, peer=peer, quick=quick),
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


def _chosen(only: str, *, peer: bool, quick: bool) -> list[Contender]:
    from fieldfare_lab.node import fieldfare_node, rabbitmq

    contenders = [fieldfare_node.contender(variant) for variant in fieldfare_node.VARIANTS]
    if peer:
        if reason := rabbitmq.missing():
            raise InputError("--peer", f"{reason}; or say --no-peer")
        contenders += [rabbitmq.contender(variant) for variant in rabbitmq.VARIANTS[: 1 if quick else None]]
    chosen = [one for one in contenders if only == one.name] or [one for one in contenders if only in one.name]
    if not chosen:
        raise InputError(
            "--only", f"there is no contender {only!r}; there are {'; '.join(one.name for one in contenders)}"
        )
    return chosen


def _contests(loads: Sequence[Load], contenders: Sequence[Contender], effort: tuple[float, int]) -> list[Result]:
    from fieldfare.cli.progress import steps
    from fieldfare_lab.node import contest

    seconds, rounds = effort
    with steps(len(loads) * contest.steps(len(contenders), rounds)) as step:
        return [
            result
            for load in loads
            for result in contest.contend(load, contenders, contest.Effort(seconds=seconds, rounds=rounds), step)
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
