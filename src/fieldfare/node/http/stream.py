"""`GET /stream`: events as server-sent events, for curl and for the `EventSource` of browsers.

    curl -N 'http://127.0.0.1:7400/stream?filter=price+<+10&since=1'

- `filter` (native language) may occur several times, and `filters` has a JSON document of CloudEvents Subscriptions;
  the stream has the events that match any of these. Without a filter, the stream has all events.
- `pattern` is a pattern of several events, in place of filters: the stream has its composite events. A stream without a
  session that comes back begins the pattern anew.
- `since` is a position or a time (seconds, or RFC 3339): the stream begins with a replay of earlier events.
- `session` names a durable session, in which events wait while the client is away.
- `format=plain` gives plain JSON instead of CloudEvents.

After a loss, because too many events waited or `since` lies before the log, a message `event: fieldfare.dropped`
without an id has the number of lost events (`dropped`, 0 if unknown) and the `reason`.

Each message has the id `POSITION:NUMBER:LIFE`. A client that comes back with `Last-Event-ID`, as `EventSource` does by
itself, continues after that message: with a session, all events up to the message are acknowledged; without a session,
the log is read from there. There is no other acknowledgement; so a stream with a session ends after `TURN` events, the
client comes back, and acknowledged events do not pile up. The life of the log (see `lineage`) tells whether position
and number still mean the same event: if the node has gone back in time, no event is acknowledged, or the log is read
from the last position in which both agree.

**Tokens** come in the header `Authorization` only. A token in a URL would end up in logs and histories, so
`access_token` is refused; and browsers would send a cookie for any page. `EventSource` cannot set headers: where there
is security, browsers use the WebSocket (the token is in its first frame), or `fetch` and the body of the answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from functools import reduce
from operator import or_
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from fieldfare.core import losses
from fieldfare.core.session_names import check_session
from fieldfare.core.state import RequestRefused
from fieldfare.events import binary_mode
from fieldfare.filters import EVERYTHING, parse
from fieldfare.filters.filter import Filter
from fieldfare.filters.languages.subscriptions import documents as subscriptions
from fieldfare.node import patterns, security
from fieldfare.node.http import binding
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.resource import Call, only
from fieldfare.node.internal_session import Delivered, InternalSession
from fieldfare.node.node import Node
from fieldfare.node.security import AccessDenied, Principal
from fieldfare.node.security.filter_admission import bounded, check_size, permitted, taken, within
from fieldfare.node.security.quotas import check_new_session
from fieldfare.protocol.lineage import still_valid

KEEP_ALIVE: Final = 15.0
"""seconds of silence after which a comment is sent"""
TURN: Final = 10_000
"""events after which a stream with a session ends"""
AGAIN: Final = 1000
"""milliseconds after which a client should come back"""
LOST: Final = b"fieldfare.dropped"
"""name of the messages about lost events"""
SUBSCRIPTION: Final = "stream"
"""id of the subscription of a stream"""
_ID: Final = re.compile(r"([0-9]{1,15}):([0-9]{1,15})(?::([0-9a-f.]{1,40}))?")
"""the id of a message; earlier versions left out the life"""
_BREAKS: Final = re.compile(r"[\r\n\0]")


class _Last(NamedTuple):
    """The id of the last message that a client has seen."""

    position: int
    number: int
    life: str
    """life of the log in which both were given; empty: unknown"""


async def stream(call: Call) -> Response:
    """Answer with a stream; mistakes in the query are found before the stream begins."""
    query = call.request.query_params
    if "access_token" in query:
        raise Problem(400, "a token does not belong in a URL, where logs keep it: use the header Authorization")
    only(call, "filter", "filters", "pattern", "format", "since", "session")
    node = call.service.node
    style = query.get("format", "cloudevents")
    if style not in ("cloudevents", "plain"):
        raise Problem(400, f"format is cloudevents or plain, not {style[:40]!r}", parameter="format")
    filter, since, last = await _filter(call), _since(query.get("since")), _last(call)
    pattern = query.get("pattern", "")
    if pattern and ("filter" in query or "filters" in query):
        raise Problem(400, "a pattern stands in place of filters, which are inside of it", parameter="pattern")
    name = _session(call)
    if len(node.closers) >= node.config.limits.connections:
        raise Problem(503, "too many connections", {"Retry-After": "10"})
    consumer = InternalSession(node, name, principal=call.principal)
    await consumer.__aenter__()
    try:
        if last is not None and name:
            await consumer.resume(last.number, last.position, last.life)
        elif last is not None:
            since = _same(last, node) + 1
        mine = node.core.broker.clients.all.get(consumer.name)
        if pattern:
            await patterns.subscribe(node, consumer.name, SUBSCRIPTION, pattern, call.principal, since=since)
        elif mine is None or mine.subscriptions.get(SUBSCRIPTION) != filter:  # else the subscription goes on
            await consumer.subscribe(SUBSCRIPTION, filter, since)
    except BaseException as error:
        await consumer.__aexit__()
        if isinstance(error, AccessDenied):
            raise
        if isinstance(error, RequestRefused) or (pattern and isinstance(error, ValueError)):
            raise Problem(400, str(error)) from None
        raise
    forgotten = 0 if last is None or name else last.position - _same(last, node)
    return _Stream(call, consumer, plain=style == "plain", forgotten=forgotten)


def _same(last: _Last, node: Node) -> int:
    """Return the last position, up to that of a message, which still means the same event."""
    known = ((last.life.partition(".")[0], 1),) if last.life else ()
    return min(still_valid(last.position, known, node.lives), node.storage.log.last)


class _Stream(StreamingResponse):
    """A response without an end, which leaves its session when the client goes."""

    def __init__(self, call: Call, consumer: InternalSession, *, plain: bool, forgotten: int) -> None:
        self._consumer = consumer
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        messages = _messages(call, consumer, plain=plain, forgotten=forgotten)
        super().__init__(messages, 200, headers, "text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until the client or the node ends the stream."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            await self._consumer.__aexit__()


async def _messages(call: Call, consumer: InternalSession, *, plain: bool, forgotten: int) -> AsyncIterator[bytes]:
    node = call.service.node
    source = f"/fieldfare/{quote(node.name, safe='')}"
    yield f": {quote(node.name)}\nretry: {AGAIN}\n\n".encode()
    if call.request.method == "HEAD":
        return
    if consumer.gone:
        yield _lost(0, f"the log of {node.name} begins at position {consumer.gone}: older events are deleted")
    if forgotten:
        reason = f"{node.name} went back in time: the last {forgotten} positions that you know are lost"
        yield _lost(0, reason)
    sent = 0
    until = call.principal.until or float("inf")
    deliveries = consumer.deliveries()
    following: asyncio.Future[Any] | None = None
    leaving: asyncio.Future[Any] = asyncio.ensure_future(node.leaving.wait())
    try:
        while sent < TURN or consumer.name.startswith("~"):
            patience = min(KEEP_ALIVE, until - node.clock())
            if patience <= 0:
                yield b": the token has expired\n\n"
                return
            following = following or asyncio.ensure_future(anext(deliveries))
            done, _ = await asyncio.wait({following, leaving}, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                yield b":\n\n"
                continue
            if following not in done:
                yield b": the node stops\n\n"
                return
            try:
                some: list[Delivered] = following.result()
            except RequestRefused as error:
                yield f": {_BREAKS.sub(' ', str(error))}\n\n".encode()
                return
            following = None
            if consumer.lost:
                yield _lost(consumer.lost, losses.reason(consumer.lost, node.name))
                consumer.lost = 0
            sent += len(some)
            if some:
                life = consumer.life
                ids = [node.event_id(delivered.position) for delivered in some]
                written = zip(some, ids, strict=True)
                yield b"".join(message(delivered, id, source, life, plain=plain) for delivered, id in written)
                if consumer.name.startswith("~"):  # no client can come back to this session
                    await consumer.acknowledge(some[-1].number)
    finally:
        waiting = [leaving] if following is None else [leaving, following]
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def _lost(count: int, reason: str) -> bytes:
    """Return a message about lost events; without an id, because the message is not an event."""
    data = msgspec.json.encode({"dropped": count, "reason": reason})
    return b"event: " + LOST + b"\ndata: " + data + b"\n\n"


def message(delivered: Delivered, id: str, source: str, life: str, *, plain: bool) -> bytes:
    """Return an event as a server-sent event; `id` and `source` are for events that are not CloudEvents."""
    event = delivered.event
    data = binding.plain(event) if plain else binary_mode.structured(event, id, source)
    lines = [f"id: {delivered.position}:{delivered.number}:{life}".encode()]
    if event.type and not _BREAKS.search(event.type):
        lines.append(b"event: " + event.type.encode())
    return b"\n".join([*lines, b"data: " + data, b"", b""])


# What is asked for


async def _filter(call: Call) -> Filter:
    query, limits = call.request.query_params, call.service.node.config.limits
    permitted(call.principal, "subscribe")
    texts, documents = query.getlist("filter"), query.getlist("filters")
    check_size(sum(map(len, [*texts, *documents])), limits)
    return await within(lambda: taken(bounded(lambda: _read(texts, documents, call.principal)), limits), limits)


def _read(texts: list[str], documents: list[str], principal: Principal) -> Filter:
    wanted = [parse(text) for text in texts]
    for document in documents:
        try:
            wanted.append(subscriptions.parse(_document(document)))
        except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
            raise Problem(400, f"filters is not JSON: {error}", parameter="filters") from None
    for filter in wanted or [EVERYTHING]:
        security.subscribable(principal, filter)
    return reduce(or_, wanted) if wanted else EVERYTHING


def _document(text: str) -> object:
    document = msgspec.json.decode(text)
    return (
        [document] if isinstance(document, str) else document
    )  # a plain string would be parsed as the native language


def _since(text: str | None) -> float | str | None:
    if text is None or not text:
        return None
    if text.isascii() and text.isdigit() and len(text) <= 15:
        return int(text)
    try:
        return float(text)
    except ValueError:
        return text


def _last(call: Call) -> _Last | None:
    text = call.request.headers.get("last-event-id", "")
    if not text:
        return None
    found = _ID.fullmatch(text)
    if found is None:
        raise Problem(400, f"Last-Event-ID is POSITION:NUMBER:LIFE, as messages have it, not {text[:40]!r}")
    return _Last(int(found[1]), int(found[2]), found[3] or "")


def _session(call: Call) -> str:
    name = call.request.query_params.get("session", "")
    if not name:
        return ""
    try:
        check_session(name)
    except ValueError as error:
        raise Problem(400, str(error), parameter="session") from None
    node = call.service.node
    session = node.core.sessions.get(name)
    if session is not None and node.security is not None and session.owner != call.principal.name:
        raise AccessDenied(f"the session {name} belongs to another owner")
    if session is None:
        try:
            check_new_session(node, node.core, call.principal.name)
        except RequestRefused as error:
            raise Problem(409, str(error)) from None
    return name
