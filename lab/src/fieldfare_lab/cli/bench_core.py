"""`fieldfare bench core`: CPU time of an event in each stage of a node, without sockets."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldfare.cli.errors import InputError, reported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from fieldfare_lab.node.core_costs import CoreCosts


@reported()
def command(
    *,
    batches: Annotated[str, typer.Option(metavar="N,N,...", help="Numbers of events in a group.")] = "1,10,100",
    shape: Annotated[
        str, typer.Option(metavar="TEXT", help="Only the shapes of load with TEXT in their names.", show_default=False)
    ] = "",
    events: Annotated[int, typer.Option(min=1, metavar="N", help="Number of events in a round.")] = 3000,
    rounds: Annotated[int, typer.Option(min=1, metavar="N", help="Number of rounds; the best counts.")] = 5,
    memory: Annotated[bool, typer.Option("--memory", help="Without a folder, and with sessions that end.")] = False,
    linked: Annotated[bool, typer.Option("--linked", help="With a neighbour that wants nothing.")] = False,
    to_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all figures as JSON.")] = None,
) -> None:
    """Measure the way of an event through a node between the sockets: microseconds of CPU in each stage.

    An event reaches one of 100 subscribers, all of 100, or ten of 100 with 10,000 filters. A group of events is one
    step, as under load; subscribers acknowledge after every 100 events.

    Examples:
        fieldfare bench core --shape "one of"
        fieldfare bench core --shape "one of" --batches 100 --linked
        fieldfare bench core --shape "all of" --batches 10 --memory
    """
    import msgspec
    from rich.console import Console

    from fieldfare.cli.progress import steps
    from fieldfare_lab.node.core_costs import SHAPES, core_costs

    shapes = [one for one in SHAPES if shape in one]
    if not shapes:
        raise InputError("--shape", f"there is no shape {shape!r}; there are {', '.join(SHAPES)}")
    try:
        sizes = [int(size) for size in batches.split(",")]
    except ValueError:
        raise InputError("--batches", f"numbers with commas between them, not {batches!r}") from None
    if min(sizes) < 1:
        raise InputError("--batches", "at least one event")
    found = []
    with steps(len(shapes) * len(sizes)) as step:
        for one in shapes:
            for size in sizes:
                step(f"{one}, {size} in a group")
                costs = core_costs(one, size, events=events, rounds=rounds, durable=not memory, linked=linked)
                found.append(costs)
    Console().print(_table(found))
    if to_json is not None:
        to_json.write_bytes(msgspec.json.format(msgspec.json.encode(found)))


def _table(found: Sequence[CoreCosts]) -> Table:
    from rich.table import Table

    from fieldfare_lab.node.core_costs import STAGES

    made = Table("receivers", "group", *STAGES, "all, µs", "events per CPU s")
    for one in found:
        stages = (f"{one.stages[stage]:.1f}" for stage in STAGES)
        made.add_row(one.shape, str(one.batch), *stages, f"{one.all:.1f}", f"{1e6 / one.all:,.0f}")
    return made
