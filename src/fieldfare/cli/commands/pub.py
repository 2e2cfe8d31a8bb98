"""`fieldfare pub`: publish events at a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fieldfare.cli.errors import Errors, InputError, reported
from fieldfare.cli.http import DEFAULT_NODE, NodeOption, TokenOption, client_address, run

if TYPE_CHECKING:
    from fieldfare.events import Event


@reported()
def command(
    events: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="EVENT...", help="Event as JSON, file of events, or - for JSON lines from standard input."
        ),
    ] = None,
    *,
    node: NodeOption = DEFAULT_NODE,
    token: TokenOption = "",
    session: Annotated[
        str, typer.Option(metavar="NAME", help="Name of a durable session to publish in.", show_default=False)
    ] = "",
    ttl: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Time after which an event is not delivered any more.", show_default=False
        ),
    ] = None,
    replaces: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Name under which a newer event replaces older ones that wait.", show_default=False
        ),
    ] = "",
    rate: Annotated[
        float | None,
        typer.Option(
            metavar="N", min=0.001, help="Events a second. [default: as fast as possible]", show_default=False
        ),
    ] = None,
    errors: Annotated[Errors, typer.Option(help="At a bad event, stop, or skip and count it.")] = Errors.STOP,
) -> None:
    """Publish events at a node, and wait until the node has accepted them.

    An event is a JSON object, or a CloudEvent as JSON. A file may be JSON lines, CSV or Parquet.

    Examples:
        fieldfare pub '{"symbol": "IBM", "price": 119}'
        fieldfare pub trades.jsonl --rate 100
        tail -f log.jsonl | fieldfare pub -
    """
    if not events:
        raise InputError("EVENT", """give an event, such as '{"symbol": "IBM", "price": 119}', a file, or -""")
    work = _publish(
        _read(events, errors), client_address(node), token=token, session=session, ttl=ttl, replaces=replaces, rate=rate
    )
    run(work)


def _read(given: Iterable[str], errors: Errors) -> Iterator[Event]:
    from fieldfare.cli.formats.event_files import BadEvent, format_of, read_events
    from fieldfare.cli.formats.inputs import source_of
    from fieldfare.events import EventError
    from fieldfare.events.cloudevents import decode_any

    for one in given:
        if one.lstrip().startswith("{"):
            try:
                yield decode_any(one)
            except EventError as error:
                raise InputError(one, error) from None
            continue
        if one != "-" and not Path(one).exists():
            raise InputError(one, "there is no such file, and it is no JSON object either")
        source = source_of(one)
        for event in read_events(source, format_of(source)):
            if isinstance(event, BadEvent):
                if errors is Errors.STOP:
                    raise InputError(event.place, event.error)
                typer.echo(f"skipped: {event}", err=True)
            else:
                yield event


async def _publish(
    events: Iterator[Event],
    url: str,
    *,
    token: str,
    session: str,
    ttl: float | None,
    replaces: str,
    rate: float | None,
) -> None:
    import asyncio
    import time

    from fieldfare.cli.formats.outcome import counted
    from fieldfare.cli.progress import tracked
    from fieldfare.client.client import connect
    from fieldfare.client.errors import Refused

    count = 0
    try:
        async with connect(url, token=token, insecure=True, session=session) as client:
            began = time.monotonic()
            try:
                for event in tracked(events, lambda: None):
                    if rate is not None:
                        await asyncio.sleep(max(0.0, began + count / rate - time.monotonic()))
                    await client.wait_for_capacity()
                    client.publish_soon(event, ttl=ttl, replaces=replaces)
                    count += 1
            finally:  # the good events before a bad one are published
                await client.drain()
                typer.echo(f"{counted(count, 'event')} published", err=True)
    except Refused as error:
        raise InputError("refused", error.reason) from None
