"""`POST /events`: publish, in any mode of CloudEvents or as plain JSON.

    curl -d '{"symbol": "IBM", "price": 119}' -H 'Content-Type: application/json' http://127.0.0.1:7400/events

The node accepts all events of a request, or none; before the answer the events are stored. `ttl` (seconds) and
`replaces` are parameters of the query, or the headers `TTL` and `Replaces`, and hold for all events of the request.
"""

from __future__ import annotations

import math
from typing import Final

import msgspec
from starlette.responses import Response

from fieldfare.core.state import RequestRefused
from fieldfare.events import binary_mode
from fieldfare.events.event import Event
from fieldfare.node import security
from fieldfare.node.http import binding
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.resource import Call, answer, body, media_type, only
from fieldfare.node.security import AccessDenied

LONGEST: Final = 1e10
"""seconds; the largest `ttl`"""


class Accepted(msgspec.Struct, frozen=True):
    """The answer to published events, after the node has stored them."""

    accepted: int
    """number of events"""
    position: int
    """last position of the log; the events are at this position or before"""


async def publish(call: Call) -> Response:
    """Publish the events of a request, in the mode that its headers tell."""
    node, headers = call.service.node, call.request.headers.raw
    kind = media_type(call.request)
    only(call, "ttl", "replaces")
    ttl, replaces = _ttl(call), _option(call, "replaces")
    data = await body(call)
    if binding.is_binary(headers) and kind not in (binary_mode.STRUCTURED, binding.BATCH):
        events = [binding.read_binary(headers, call.request.headers.get("content-type", ""), data)]
    else:
        events = binding.read_events(kind, data)
    _check(call, events)
    if events:
        try:
            # All publishers over HTTP share a session: the name keeps them from replacing the events of each other.
            name = f"{call.principal.name}/{replaces}" if replaces else ""
            await call.service.publish(events, ttl, name)
        except RequestRefused as error:
            problem = f"{error}. HTTP has no advertisements: with {node.config.strategy}, use the WebSocket"
            raise Problem(409, problem) from None
    return answer(Accepted(len(events), node.storage.log.last), 202)


def _check(call: Call, events: list[Event]) -> None:
    limit = call.service.node.config.limits.batch
    if len(events) > limit:
        raise Problem(413, f"{len(events)} events, more than the limit of {limit} at once (limits.batch)")
    if call.service.node.security is not None:
        for number, event in enumerate(events, 1):
            try:
                security.may_publish(call.principal, event)
            except AccessDenied as error:
                raise Problem(403, f"event {number}: {error}", event=number) from None


def _option(call: Call, name: str) -> str:
    text: str = call.request.query_params.get(name) or call.request.headers.get(name, "")
    if len(text) > 200 or not text.isprintable():
        raise Problem(400, f"{name} has at most 200 printable characters", parameter=name)
    return text


def _ttl(call: Call) -> float | None:
    text = _option(call, "ttl")
    if not text:
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds <= LONGEST:
        raise Problem(400, f"ttl is a number of seconds above 0, not {text[:40]!r}", parameter="ttl")
    return seconds
