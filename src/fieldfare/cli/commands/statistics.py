"""`fieldfare statistics`: the distribution of the fields of events, in a file for nodes with merging."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from random import Random
from typing import Annotated

import typer

from fieldfare.cli.errors import Errors, InputError, reported
from fieldfare.cli.formats import inputs
from fieldfare.cli.formats.event_files import BadEvent, EventsFormat, format_of, read_events
from fieldfare.events import Event


@reported()
def command(
    events: Annotated[
        str | None,
        typer.Argument(help="File of events; - is standard input.", metavar="[EVENTS]", show_default=False),
    ] = None,
    *,
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File for the statistics.", show_default=False)
    ] = None,
    most: Annotated[
        int, typer.Option(min=1, metavar="N", help="Number of events to count; of more, a fair sample.")
    ] = 20_000,
    events_format: Annotated[
        EventsFormat | None, typer.Option(help="Format of the events. [default: by the file's name]")
    ] = None,
    errors: Annotated[Errors, typer.Option(help="At a bad event, stop, or skip and count it.")] = Errors.STOP,
) -> None:
    """Count the values in the fields of events, and write the distributions to a file for nodes.

    A node with the strategy imperfect and the setting routing.merging_statistics merges filters by these distributions:
    where few events are, a merged filter may be wide. Without a file for events, a sample of market data is used.
    The sample of many events is the same in every run.

    Examples:
        fieldfare statistics
        fieldfare statistics --to statistics.json
        echo '{"symbol": "ACME", "price": 12}' | fieldfare statistics - --to statistics.json
    """
    from fieldfare.filters.distributions import Distributions

    source = inputs.sample("events.jsonl") if events is None else inputs.source_of(events)
    sample: list[Event] = []
    dice, count, skipped = Random(1), 0, 0
    for one in read_events(source, format_of(source, events_format)):
        if isinstance(one, BadEvent):
            if errors is Errors.STOP:
                raise InputError(one.place, one.error)
            skipped += 1
            continue
        count += 1
        if len(sample) < most:
            sample.append(one)
        elif (place := dice.randrange(count)) < most:
            sample[place] = one
    known = Distributions.of(sample)
    if to is not None:
        to.write_bytes(known.text())
    for field, line in islice(known.fields.items(), 20):
        ends = f", {line.values[0]} to {line.values[-1]}" if line.values else ""
        present = known.events - line.missing
        typer.echo(f"{field}: {line.kind.value} in {present:,.0f} of {known.events:,} events{ends}")
    if skipped:
        typer.echo(f"{skipped:,} bad events skipped", err=True)
