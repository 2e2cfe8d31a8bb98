"""`/admin/sessions`, `/admin/moves` and `/admin/subscriptions`: the sessions of a node, shown, ended and moved."""

from __future__ import annotations

from typing import Any, Final

from starlette.responses import Response

from fieldfare.core.device_places import Device
from fieldfare.core.inputs import Leave, OfferSession
from fieldfare.core.member_inputs import RemoveDevice
from fieldfare.core.state import INTERNAL, Session
from fieldfare.events.tags import tag
from fieldfare.filters.dynamic import MYLOC
from fieldfare.node.context import HTTP
from fieldfare.node.http.admin.views import (
    DeviceView,
    MemberView,
    SessionDetails,
    Sessions,
    SessionView,
    Subscriptions,
    SubscriptionView,
    ToMove,
)
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.resource import Call, Handler, answer, number, read
from fieldfare.node.http.webhooks import SESSION
from fieldfare.node.node import Node

PAGE: Final = 100
"""sessions or subscriptions of an answer, unless the request has a limit"""
LONGEST_PAGE: Final = 1000


def handlers() -> dict[str, dict[str, Handler]]:
    """Return the handlers by path and method."""
    return {
        "/admin/sessions": {"get": _sessions},
        "/admin/sessions/{name:path}": {"get": _details, "delete": _end},
        "/admin/moves": {"post": _move},
        "/admin/subscriptions": {"get": _subscriptions},
    }


def view(node: Node, name: str, one: Session) -> dict[str, Any]:
    """Return the members that a session has in a list and alone."""
    client, sharing = node.core.broker.clients.all.get(name), node.core.members.of(name)
    stated = node.core.dynamic.values.get(name, {})
    return {
        "name": name,
        "owner": one.owner,
        "durable": one.durable,
        "here": one.connected,
        "seen": one.last_seen + node.core.journal.ahead,
        "published": one.sequence,
        "delivered": one.count,
        "acknowledged": one.acknowledged,
        "pending": len(one.pending),
        "dropped": one.dropped,
        "subscriptions": len(client.subscriptions) if client is not None else 0,
        "advertisements": len(client.advertisements) if client is not None else 0,
        "members": len(sharing.members) if sharing is not None else 0,
        "devices": len(node.core.devices.of(name)),
        "place": stated.get(MYLOC, ""),
        "parameters": {parameter: tag(value) for parameter, value in stated.items() if parameter != MYLOC},
    }


async def _sessions(call: Call) -> Response:
    """Answer with a page of sessions; `search` is a part of the name."""
    node = call.service.node
    search = call.request.query_params.get("search", "")
    names = sorted(name for name in node.core.sessions if search in name)
    offset, limit = _page(call)
    some = names[offset : offset + limit]
    views = [SessionView(**view(node, name, node.core.sessions[name])) for name in some]
    return answer(Sessions(len(names), offset, views))


def _page(call: Call) -> tuple[int, int]:
    return number(call, "offset", 0, 0, 10**9), number(call, "limit", PAGE, 1, LONGEST_PAGE)


def _session(call: Call) -> tuple[str, Session]:
    name = call.request.path_params["name"]
    found = call.service.node.core.sessions.get(name)
    if found is None:
        raise Problem(404, f"there is no session {name[:200]}")
    return name, found


async def _details(call: Call) -> Response:
    name, found = _session(call)
    node = call.service.node
    client = node.core.broker.clients.all.get(name)
    wanted = {id: str(filter) for id, filter in client.subscriptions.items()} if client is not None else {}
    promised = {id: str(filter) for id, filter in client.advertisements.items()} if client is not None else {}
    sharing = node.core.members.of(name)
    members = sharing.members.values() if sharing is not None else ()
    return answer(
        SessionDetails(
            **view(node, name, found),
            wanted=wanted,
            promised=promised,
            dynamic=node.core.dynamic.texts_of(name),
            sharing=[MemberView(one.label, one.holds, one.credit) for one in members],
            key=sharing.key if sharing is not None else "",
            copies=[_device(node, found, label, one) for label, one in node.core.devices.of(name).items()],
        )
    )


def _device(node: Node, session: Session, label: str, one: Device) -> DeviceView:
    waiting = sum(number > one.acknowledged for number in session.pending)
    seen = one.last_seen + node.core.journal.ahead
    return DeviceView(label, bool(one.member), seen, one.acknowledged, waiting, one.dropped)


async def _end(call: Call) -> Response:
    """End a session and drop its waiting events; the client is disconnected. Or remove one of its devices."""
    name, _ = _session(call)
    node = call.service.node
    device = call.request.query_params.get("device", "")
    if device:
        if device not in node.core.devices.of(name):
            raise Problem(404, f"the session {name} has no device {device[:200]}")
        node.shared.close(name, device, "the device was removed by an administrator")
        await node.submit(RemoveDevice(name, device))
        return Response(None, 204)
    if name.startswith(SESSION) and (name.removeprefix(SESSION),) in node.core.other_rows["webhook"]:
        raise Problem(409, f"this session delivers to a sink: DELETE /subscriptions/{name.removeprefix(SESSION)}")
    if name == HTTP:
        raise Problem(409, "this is the session of all publishers over HTTP, and cannot be ended")
    closer = node.closers.get(name)
    if closer is not None:
        closer("the session was ended by an administrator")
    await node.submit(Leave(name))
    return Response(None, 204)


async def _move(call: Call) -> Response:
    """Hand a session over to another node; a connected client follows."""
    asked = await read(call, ToMove)
    node = call.service.node
    session = node.core.sessions.get(asked.session)
    if session is None or not session.durable or asked.session.startswith(INTERNAL):
        raise Problem(404, f"there is no durable session {asked.session[:200]} of a client")
    if asked.to == node.name or asked.to not in call.service.hood.nodes():
        raise Problem(404, f"there is no other node {asked.to[:200]} in this overlay")
    ticket = node.fresh_name()
    await node.submit(OfferSession(asked.session, asked.to, ticket))
    return Response(None, 202)


async def _subscriptions(call: Call) -> Response:
    """Answer with a page of subscriptions; `search` is a part of the filter's text, or of the session's name."""
    search = call.request.query_params.get("search", "")
    all_clients = call.service.node.core.broker.clients.all
    found = [
        SubscriptionView(name, id, text)
        for name, client in all_clients.items()
        for id, filter in client.subscriptions.items()
        if search in (text := str(filter)) or search in name
    ]
    offset, limit = _page(call)
    return answer(Subscriptions(len(found), offset, found[offset : offset + limit]))
