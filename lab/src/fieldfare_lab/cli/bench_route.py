"""`fieldfare bench route`: the cost of an event and of a subscription at a broker, with and without a neighbour."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldfare.cli.errors import InputError, reported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from fieldfare_lab.routing.broker_costs import BrokerCosts


@reported()
def command(
    *,
    filters: Annotated[str, typer.Option(metavar="N,N,...", help="Numbers of filters to measure with.")] = "10000",
    workload: Annotated[str, typer.Option("--workload", "-w", metavar="NAME", help="Workload.")] = "stock",
    strategy: Annotated[str, typer.Option(metavar="NAME", help="Routing strategy of the broker.")] = "covering",
    events: Annotated[int, typer.Option(min=1, metavar="N", help="Number of events in a round.")] = 5000,
    batch: Annotated[int, typer.Option(min=1, metavar="N", help="Number of events in a batch.")] = 100,
    changes: Annotated[int, typer.Option(min=1, metavar="N", help="Number of timed subscriptions.")] = 2500,
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Number of rounds; the best counts.")] = 5,
    to_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON.")] = None,
) -> None:
    """Measure a broker without sockets and files: CPU time of an event and of a subscription, and memory.

    Two brokers have the same clients and filters; one of them is linked to a neighbour that subscribes to nothing. The
    deliveries of both are compared first; then the brokers take turns in rounds of CPU time. Subscriptions come and go
    one at a time. The file has the figures for the largest number of filters, and the figures of all as `sizes`.

    Examples:
        fieldfare bench route --filters 1000
        fieldfare bench route --filters 1000 --strategy simple
        fieldfare bench route --filters 1000,2000 --json out.json
    """
    import msgspec
    from rich.console import Console

    from fieldfare.cli.progress import steps
    from fieldfare.routing.strategies import by_name
    from fieldfare_lab.routing.broker_costs import broker_costs

    sizes = _sizes(filters)
    try:
        chosen = by_name(strategy)
    except ValueError as error:
        raise InputError("--strategy", error) from None
    with steps(len(sizes) * (rounds + 2)) as step:
        try:
            found = [
                broker_costs(
                    size,
                    workload=workload,
                    events=events,
                    batch=batch,
                    changes=changes,
                    rounds=rounds,
                    strategy=chosen,
                    step=step,
                )
                for size in sizes
            ]
        except ValueError as error:
            raise InputError("--workload", error) from None
    Console().print(_table(found))
    if to_json is not None:
        largest = max(found, key=lambda costs: costs.filters)
        figures = {**asdict(largest), "sizes": [asdict(costs) for costs in found]}
        to_json.write_bytes(msgspec.json.format(msgspec.json.encode(figures)))


def _sizes(text: str) -> list[int]:
    try:
        sizes = [int(size) for size in text.replace("_", "").split(",")]
    except ValueError:
        raise InputError("--filters", f"numbers with commas between them, not {text!r}") from None
    if min(sizes) < 1:
        raise InputError("--filters", "at least one filter")
    return sizes


def _table(found: Sequence[BrokerCosts]) -> Table:
    from rich.table import Table

    made = Table("cost", *(f"{costs.filters:,} filters" for costs in found), "unit")
    lines = {
        "deliveries_an_event": ("deliveries", "an event"),
        "unlinked_us": ("event in a batch, without a neighbour", "µs"),
        "linked_us": ("event in a batch, with a neighbour", "µs"),
        "linked_over_unlinked": ("linked_over_unlinked", "times"),
        "single_us": ("event alone, with a neighbour", "µs"),
        "subscribe_us": ("subscribe_us: a subscription more", "µs"),
        "unsubscribe_us": ("a subscription less", "µs"),
        "load_us": ("a subscription, from none to all", "µs"),
        "connect_ms": ("a new neighbour", "ms"),
        "memory_bytes": ("memory beside the filter, with a neighbour", "bytes a filter"),
        "unlinked_memory_bytes": ("memory beside the filter, without", "bytes a filter"),
    }
    for name, (title, unit) in lines.items():
        made.add_row(title, *(f"{getattr(costs, name):,.2f}" for costs in found), unit)
    return made
