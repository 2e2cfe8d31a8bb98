"""`fieldfare admin`: look into a node, end and hand over sessions, remove neighbours, make tokens."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from fieldfare.cli.errors import InputError, reported
from fieldfare.cli.formats.columns import columns, pairs
from fieldfare.cli.formats.outcome import counted
from fieldfare.cli.http import DEFAULT_NODE, NodeOption, TokenOption, fetch, quoted

JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON.")]
MOST: Final = 1000
"""rows of a list that are fetched at most"""


@reported()
def overview(*, node: NodeOption = DEFAULT_NODE, token: TokenOption = "", as_json: JsonOption = False) -> None:
    """Show a node at a glance: sessions, filters, rates, log, memory.

    Examples:
        fieldfare admin overview
        fieldfare admin overview --node ws://127.0.0.1:7401 --json
    """
    found = fetch(node, "/admin/overview", token)
    if as_json:
        return typer.echo(json.dumps(found, indent=2))
    log, prefix = found["log"], found["prefix"]
    trees = [
        f"{one['nodes']:,} nodes, version {one['round']}.{one['number']} by {one['optimizer'] or 'nobody yet'}"
        for one in (prefix["trees"] if prefix else ())
    ]
    return typer.echo(
        pairs(
            {
                "node": f"{found['name']}, {found['strategy']}, version {found['version']}",
                "address": found["url"],
                "up": f"{found['uptime']:,.0f} s",
                "sessions": f"{found['sessions']:,}, {found['here']:,} of them here; {found['pending']:,} events wait",
                "filters": f"{counted(found['subscriptions'], 'subscription')}, {found['table']:,} in the table",
                "events": f"{found['rates']['events_in']:,.0f}/s in, {found['rates']['deliveries']:,.0f}/s delivered",
                "log": f"{log['first']:,} to {log['last']:,}, {log['bytes'] / 1e6:,.1f} MB",
                "memory": f"{found['memory'] / 1e6:,.0f} MB",
                "overlay": ", ".join(sorted(found["overlay"])),
                **({"tree": "; ".join(trees)} if trees else {}),
            }
        )
    )


@reported()
def sessions(
    search: Annotated[
        str, typer.Argument(metavar="[PART]", help="Text in the name of the session.", show_default=False)
    ] = "",
    *,
    node: NodeOption = DEFAULT_NODE,
    token: TokenOption = "",
    as_json: JsonOption = False,
) -> None:
    """List the sessions of a node, with the number of events that wait for each.

    Examples:
        fieldfare admin sessions
    """
    found = fetch(node, f"/admin/sessions?limit={MOST}&search={quoted(search)}", token)
    if as_json:
        return typer.echo(json.dumps(found["items"], indent=2))
    titles = ("session", "is", "since", "waiting", "acknowledged", "dropped", "subscriptions")
    rows = [
        (
            one["name"],
            _where(one),
            _moment(one["seen"]),
            f"{one['pending']:,}",
            f"{one['acknowledged']:,}",
            f"{one['dropped']:,}",
            f"{one['subscriptions']:,}",
        )
        for one in found["items"]
    ]
    return _print(titles, rows, found["total"], "session")


@reported()
def session(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the session.")],
    *,
    node: NodeOption = DEFAULT_NODE,
    token: TokenOption = "",
    end: Annotated[bool, typer.Option("--end", help="End the session; events that wait for it are dropped.")] = False,
    move_to: Annotated[
        str, typer.Option(metavar="NODE", help="Name of a node to hand the session over to.", show_default=False)
    ] = "",
    remove_device: Annotated[
        str, typer.Option(metavar="DEVICE", help="Name of a device to remove from the session.", show_default=False)
    ] = "",
    as_json: JsonOption = False,
) -> None:
    """Show a session with its subscriptions, end the session, or hand it over to another node.

    Examples:
        fieldfare admin session ana
        fieldfare admin session ana --end
        fieldfare admin session ana --move-to rome
        fieldfare admin session anna --remove-device phone
    """
    path = f"/admin/sessions/{quoted(name)}"
    if end:
        fetch(node, path, token, method="DELETE")
        return typer.echo(f"{name} is ended")
    if remove_device:
        fetch(node, f"{path}?device={quoted(remove_device)}", token, method="DELETE")
        return typer.echo(f"the device {remove_device} is removed from {name}")
    if move_to:
        fetch(node, "/admin/moves", token, method="POST", body={"session": name, "to": move_to})
        return typer.echo(f"{name} is handed over to {move_to}, and its client follows")
    found = fetch(node, path, token)
    if as_json:
        return typer.echo(json.dumps(found, indent=2))
    facts = {
        "session": f"{name}, {'here' if found['here'] else 'away'} since {_moment(found['seen'])}",
        "kept": "yes" if found["durable"] else "no: the node forgets the session when the client leaves",
        "waiting": f"{found['pending']:,} of {found['delivered']:,}; {found['dropped']:,} dropped",
        "published": f"{found['published']:,}",
        **({"place": found["place"]} if found["place"] else {}),
        **{f":{parameter}": json.dumps(value, ensure_ascii=False) for parameter, value in found["parameters"].items()},
    }
    wanted = [(id, filter) for id, filter in found["wanted"].items()]
    dynamic = [(id, text) for id, text in found["dynamic"].items()]
    promised = [(id, filter) for id, filter in found["promised"].items()]
    sharing = [(one["name"] or "-", str(one["holds"]), str(one["credit"])) for one in found.get("sharing", ())]
    if found.get("key"):
        facts["shared by"] = f"the field {found['key']}"
    typer.echo(pairs(facts))
    tables = {"subscription": wanted, "with parameters": dynamic, "advertisement": promised}
    for title, rows in tables.items():
        if rows:
            typer.echo(columns((title, "filter"), rows))
    if sharing:
        typer.echo(columns(("member", "holds", "can take"), sharing))
    copies = [
        (one["name"], "here" if one["here"] else "away", _moment(one["seen"]), str(one["pending"]), str(one["dropped"]))
        for one in found.get("copies", ())
    ]
    if copies:
        typer.echo(columns(("device", "is", "since", "waiting", "dropped"), copies))
    return None


def _where(one: dict[str, Any]) -> str:
    """Return where the clients of a session in a list are."""
    if one.get("devices"):
        return f"{one['devices']} device{'s' * (one['devices'] > 1)}, {'here' if one['here'] else 'away'}"
    return (f"shared by {one['members']}" if one.get("members") else "here") if one["here"] else "away"


@reported()
def subscriptions(
    search: Annotated[str, typer.Argument(metavar="[PART]", help="Text in the filter.", show_default=False)] = "",
    *,
    node: NodeOption = DEFAULT_NODE,
    token: TokenOption = "",
    as_json: JsonOption = False,
) -> None:
    """List the subscriptions of the clients of a node.

    Examples:
        fieldfare admin subscriptions
        fieldfare admin subscriptions price
    """
    found = fetch(node, f"/admin/subscriptions?limit={MOST}&search={quoted(search)}", token)
    if as_json:
        return typer.echo(json.dumps(found["items"], indent=2))
    rows = [(one["session"], one["id"], one["filter"]) for one in found["items"]]
    return _print(("session", "id", "filter"), rows, found["total"], "subscription")


@reported()
def table(*, node: NodeOption = DEFAULT_NODE, token: TokenOption = "", as_json: JsonOption = False) -> None:
    """List the filters in the routing table, with their interfaces; a root has no filter above that covers it.

    Examples:
        fieldfare admin table
    """
    found = fetch(node, "/admin/table", token)
    if as_json:
        return typer.echo(json.dumps(found, indent=2))
    below = {lower for _, lower in found["edges"]}
    rows = [
        ("" if place in below else "*", one["filter"], ", ".join(one["interfaces"]))
        for place, one in enumerate(found["nodes"])
    ]
    _print(("root", "filter", "from"), rows, found["total"], "filter")
    return None


@reported()
def links(
    remove: Annotated[
        str,
        typer.Option("--remove", metavar="NAME", help="Name of a neighbour to remove for good.", show_default=False),
    ] = "",
    *,
    node: NodeOption = DEFAULT_NODE,
    token: TokenOption = "",
    as_json: JsonOption = False,
) -> None:
    """List the neighbours of a node, or remove a neighbour for good.

    Events for a neighbour that is away wait in the log of the node. A neighbour that will not come back should be
    removed, so that the node can delete these events.

    Examples:
        fieldfare admin links
    """
    if remove:
        fetch(node, f"/admin/links/{quoted(remove)}", token, method="DELETE")
        return typer.echo(f"{remove} is no neighbour any more, unless one of the two joins the other again")
    found = fetch(node, "/admin/links", token)
    if as_json:
        return typer.echo(json.dumps(found, indent=2))
    titles = ("neighbour", "is", "role", "waiting", "events out", "in", "unwanted", "control out", "in", "address")
    rows = [
        (
            one["name"],
            "up" if one["up"] else "away",
            one["role"],
            f"{one['outbox']:,}",
            *(f"{one['traffic'].get(key, 0):,}" for key in ("events_out", "events_in")),
            f"{one.get('unwanted', 0):,}",
            *(f"{one['traffic'].get(key, 0):,}" for key in ("tells_out", "tells_in")),
            one["url"],
        )
        for one in found
    ]
    return _print(titles, rows, len(rows), "neighbour")


@reported()
def channels(
    move: Annotated[
        str,
        typer.Option("--move", metavar="TYPE=NODE", help="Channel and node that becomes its home.", show_default=False),
    ] = "",
    *,
    node: NodeOption = DEFAULT_NODE,
    token: TokenOption = "",
    as_json: JsonOption = False,
) -> None:
    """List the types of events with one order everywhere, or give one another home.

    The home numbers the events. A channel moves while programs publish and subscribe. Any node takes the request.

    Examples:
        fieldfare admin channels
        fieldfare admin channels --move quote=rome
    """
    if move:
        type, _, target = move.rpartition("=")
        if not type or not target:
            raise InputError("--move", f"{move!r} is not TYPE=NODE, as quote=rome")
        fetch(node, "/admin/channels", token, method="POST", body={"type": type, "to": target})
        return typer.echo(f"the channel of {type} goes to {target}; write {move} into the settings of all nodes, too")
    found = fetch(node, "/admin/channels", token)
    if as_json:
        return typer.echo(json.dumps(found, indent=2))
    rows = [
        (
            one["type"],
            one["home"],
            _channel_is(one),
            "" if one["count"] is None else f"{one['count']:,}",
        )
        for one in found
    ]
    return _print(("type", "home", "is", "last number"), rows, len(rows), "channel")


def _channel_is(one: dict[str, Any]) -> str:
    """Return the state of a channel in a list."""
    if one.get("target") and one["target"] != one["home"]:
        return f"on the way to {one['target']}"
    if one.get("held"):
        return f"arriving, {counted(one['held'], 'event')} held"
    return "open" if one["open"] else "waits for its home"


@reported()
def make_token(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the client that uses the token.")],
    *,
    role: Annotated[list[str], typer.Option(metavar="ROLE", help="Role of the client; may be repeated.")],
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", metavar="FILE", help="File of the node's settings.", show_default=False),
    ] = None,
    days: Annotated[float, typer.Option(min=0.001, help="Days for which the token is valid.")] = 30.0,
    id: Annotated[
        str, typer.Option(metavar="ID", help="Id of the token (jti), by which it can be revoked.", show_default=False)
    ] = "",
) -> None:
    """Make a token for a client, signed with the secret in the settings or in FIELDFARE_TOKEN_SECRET.

    Examples:
        FIELDFARE_TOKEN_SECRET=a-secret-of-at-least-thirty-two-bytes fieldfare admin token ana --role client
    """
    from fieldfare.node.config import ConfigError, load
    from fieldfare.node.security import make_token, security_of

    try:
        settings = load(config, os.environ, {})
        if settings.security is None or settings.security.secret.is_empty:
            raise InputError("", "there is no secret: set FIELDFARE_TOKEN_SECRET, or security.secret in --config FILE")
        security = security_of(settings)
        roles = security.roles if security is not None else {}
        unknown = [one for one in role if one not in roles]
        if unknown:
            raise InputError("--role", f"{unknown[0]} is none of {', '.join(roles)}")
        wanted = settings.security
        typer.echo(
            make_token(
                wanted.secret,
                name,
                role,
                days * 86400,
                time.time(),
                issuer=wanted.issuer,
                audience=wanted.audience,
                algorithm=(wanted.algorithms or ("HS256",))[0],
                id=id,
            )
        )
    except ConfigError as error:
        raise InputError("", error) from None


def _print(titles: Sequence[str], rows: list[Any], total: int, what: str) -> None:
    if rows:
        typer.echo(columns(titles, rows))
    more = f", {len(rows):,} of them shown" if total > len(rows) else ""
    typer.echo(f"{counted(total, what)}{more}", err=True)


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).astimezone().strftime("%Y-%m-%d %H:%M:%S")
