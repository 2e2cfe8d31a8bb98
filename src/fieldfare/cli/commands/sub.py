"""`fieldfare sub`: subscribe at a node and print the events."""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from fieldfare.cli.errors import InputError, reported
from fieldfare.cli.http import DEFAULT_NODE, NodeOption, TokenOption, client_address, run

if TYPE_CHECKING:
    from fieldfare.client.client import Client
    from fieldfare.filters import Filter
    from fieldfare.filters.dynamic import DynamicFilter
    from fieldfare.patterns import Pattern

_STRING: Final = re.compile(r"'(?:[^']|'')*'")
_QUOTED: Final = re.compile(r"""(?:[=<>]|\b(?:WITH|CONTAINS|LIKE|MATCHES|IN\s*\())\s*"([^"]*)\"""", re.IGNORECASE)


@reported()
def command(
    filter: Annotated[str, typer.Argument(metavar="FILTER", help="Filter that the events match.")] = "TRUE",
    *,
    node: NodeOption = DEFAULT_NODE,
    token: TokenOption = "",
    session: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Name of a durable session, which keeps events while you are away.", show_default=False
        ),
    ] = "",
    at: Annotated[
        str,
        typer.Option(
            metavar="NODE",
            help="Name of the node with the session, if --node is another one: the session comes, or leads there.",
            show_default=False,
        ),
    ] = "",
    shared: Annotated[
        bool,
        typer.Option("--shared", help="Share the session: each event goes to one of the commands that have it open."),
    ] = False,
    member: Annotated[
        str, typer.Option(metavar="NAME", help="Name of this member of a shared session.", show_default=False)
    ] = "",
    key: Annotated[
        str,
        typer.Option(
            metavar="FIELD",
            help="Field of a shared session: events with one value of the field go to one member at a time.",
            show_default=False,
        ),
    ] = "",
    device: Annotated[
        str,
        typer.Option(
            metavar="NAME", help="Name of this device of a session: each device gets every event.", show_default=False
        ),
    ] = "",
    oldest: Annotated[
        bool,
        typer.Option("--oldest", help="Begin a new device with the oldest event that waits for another device."),
    ] = False,
    pattern: Annotated[
        str,
        typer.Option(
            "--pattern",
            metavar="PATTERN",
            help="Pattern of several events, or @FILE with one; its composite events are printed.",
            show_default=False,
        ),
    ] = "",
    since: Annotated[
        str,
        typer.Option(
            metavar="WHEN",
            help="Replay events from a position (12), a time (2026-01-31T12:00Z, -5m) or a channel's number (#12) on.",
            show_default=False,
        ),
    ] = "",
    place: Annotated[
        str,
        typer.Option(metavar="PLACE", help="Place of the session, for filters with `IN myloc`.", show_default=False),
    ] = "",
    given: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="Value of a parameter, as budget=10 for `price <= :budget`.",
            show_default=False,
        ),
    ] = None,
    count: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Number of events after which to end.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one event a line, as JSON.")] = False,
) -> None:
    """Subscribe to a filter, and print the events as they come. Ctrl-C ends the command.

    With --session, printed events are acknowledged: the same command, started again, goes on after the last of them.

    Examples:
        fieldfare sub "price < 120"
        fieldfare sub "symbol STARTS WITH 'I'" --json --count 10
        fieldfare sub "price > 0" --since -5m
        fieldfare sub "type = 'order'" --session orders --shared
        fieldfare sub "to = 'anna'" --session anna --device phone
        fieldfare sub --pattern "a: [x = 1] b: [x = 2] (a followed by b) within 1 hour for each card"
        fieldfare sub "temp > :limit AND location IN myloc" --place hall --set limit=30
    """
    from fieldfare.filters import FilterSyntaxError, FilterTooComplex, parse
    from fieldfare.filters.dynamic import DynamicFilter, is_dynamic

    wanted: Filter | DynamicFilter | Pattern
    try:
        if pattern:
            wanted = _pattern(pattern, filter)
        else:
            wanted = DynamicFilter(filter) if is_dynamic(filter) else parse(filter)
    except (FilterSyntaxError, FilterTooComplex) as error:
        raise InputError("FILTER", error) from None
    for name in _QUOTED.findall(_STRING.sub("''", filter)):
        hint = f"\"{name}\" is the name of a field here; if you mean the text, write '{name}'"
        typer.secho(hint, fg="yellow", err=True)
    if (device or oldest) and (shared or not (device and session)):
        raise InputError("--device", "a device has a name and a session: --session anna --device phone")
    if at and not session:
        raise InputError("--at", "a session with a name is at a node: --session orders --at oslo")
    if (shared or member or key) and not (shared and session):
        raise InputError("--shared", "members share a session with a name: --session orders --shared")
    run(
        _show(
            wanted,
            _values(place, given or [], wanted),
            client_address(node),
            token=token,
            session=session,
            sharing={"at": at, "shared": shared, "member": member, "key": key, "device": device, "oldest": oldest},
            since=_since(since),
            count=count,
            as_json=as_json,
        )
    )


def _pattern(given: str, filter: str) -> Pattern:
    """Return the pattern of a text, or of a file behind @."""
    from fieldfare.cli.formats.pattern_explanation import read_pattern

    if filter != "TRUE":
        raise InputError("--pattern", "a pattern stands in place of FILTER: its filters are inside")
    return read_pattern(given)


def _values(place: str, given: list[str], wanted: Filter | DynamicFilter | Pattern) -> dict[str, object]:
    """Return the values of parameters, of the type that a text has: 10 is a number, hall a text, [1, 2] a list."""
    from fieldfare.events import json
    from fieldfare.events.limits import EventError
    from fieldfare.filters.dynamic import MYLOC, DynamicFilter

    values: dict[str, object] = {MYLOC: place} if place else {}
    for one in given:
        name, sign, text = one.partition("=")
        if not sign or not name:
            raise InputError("--set", f"write NAME=VALUE, as budget=10, not {one}")
        try:
            values[name] = json.decode(f'{{"value": {text}}}'.encode())["value"]
        except EventError:
            values[name] = text
    open_parameters = wanted.parameters - values.keys() if isinstance(wanted, DynamicFilter) else ()
    for name in sorted(open_parameters):
        hint = "--place" if name == MYLOC else f"--set {name}=…"
        typer.secho(f"nothing matches until {name} has a value: {hint}", fg="yellow", err=True)
    return values


def _since(text: str) -> int | str | float | None:
    """Return a position, a number in a channel as text, or a time as text or in seconds since 1970."""
    if text.startswith("#"):
        return text
    if not text:
        return None
    if text.isdecimal():
        return int(text)
    if text.startswith("-"):
        from fieldfare.node.config import ConfigError, duration

        try:
            return datetime.now(UTC).timestamp() - duration(text[1:])
        except (ConfigError, ValueError):
            raise InputError("--since", f"{text} is no time ago: write -30s, -5m, -2h or -1d") from None
    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise InputError(
            "--since", f"{text} is no position, time or number in a channel: 12, 2026-01-31T12:00Z, -5m, #12"
        ) from None
    return text


def _teller(session: str) -> Callable[[str, str], None]:
    """Return a function that reports a lost connection once, not at every attempt to connect again."""
    before = ""

    def state(now: str, _: str) -> None:
        nonlocal before
        if now == "reconnecting" != before:
            missed = "" if session else "; events are missed until then (with --session the node keeps them)"
            typer.secho(f"the node is away; waiting for it{missed}", fg="yellow", err=True)
        before = now

    return state


async def _show(
    wanted: Filter | DynamicFilter | Pattern,
    values: dict[str, object],
    url: str,
    *,
    token: str,
    session: str,
    sharing: dict[str, Any],
    since: float | str | None,
    count: int | None,
    as_json: bool,
) -> None:
    from fieldfare.client.client import connect
    from fieldfare.client.errors import Refused
    from fieldfare.events import json
    from fieldfare.filters.dynamic import DynamicFilter

    text = wanted.text if isinstance(wanted, DynamicFilter) else wanted
    try:
        async with (
            connect(url, token=token, insecure=True, session=session, on_state=_teller(session), **sharing) as client,
            _with_values(client, values),
            client.subscribe(text, since=since, id="sub", keep=bool(session)) as events,
        ):
            if not as_json:
                typer.secho(f"{getattr(text, 'text', text)} at {client.node}", fg="bright_black", err=True)
            shown = 0
            async for delivery in events.deliveries():
                if as_json:
                    typer.echo(json.encode(delivery.event).decode())
                else:
                    typer.echo(_line(delivery))
                sys.stdout.flush()
                await delivery.acknowledge()
                shown += 1
                if shown == count:
                    return
    except Refused as error:
        raise InputError("refused", error.reason) from None


@contextlib.asynccontextmanager
async def _with_values(client: Client, values: dict[str, object]) -> AsyncIterator[None]:
    """State the values of parameters before the subscription begins."""
    if values:
        await client.set(**values)
    yield


def _line(delivery: Any) -> str:
    """Return an event as a line: time, position in the log, number in its channel, fields."""
    from fieldfare.cli.formats.values import shown

    when = datetime.fromtimestamp(delivery.time, UTC).astimezone().strftime("%H:%M:%S.%f")[:-3]
    fields = "  ".join(f"{typer.style(name, fg='cyan')}={shown(value)}" for name, value in delivery.event.tree.items())
    channel = f" {delivery.channel_number} in its channel" if delivery.channel_number else ""
    return f"{typer.style(f'{when} #{delivery.position}{channel}', fg='bright_black')}  {fields}"
