"""`GET /stream`: events as server-sent events, for curl and for the `EventSource` of browsers.

    curl -N 'http://127.0.0.1:7400/stream?filter=price+<+10&since=1'

- `filter` (native language) may be given several times, and `filters` holds a JSON document of CloudEvents'
  subscriptions; an event that one of them matches is sent. With none, all events are.
- `since` is a position or a time (seconds, or RFC 3339): then events that happened already are sent, too.
- `session` names a session that survives; while the client is away, events wait for it.
- `format=plain` sends plain JSON instead of CloudEvents.

If events were lost, because more waited than the node keeps or `since` goes further back than the log, a message
`event: fieldfare.dropped` without an id says how many (`dropped`, 0 if nobody knows) and the `reason`.

Each message has the id `POSITION:NUMBER:LIFE`. A client that comes back with `Last-Event-ID`, as `EventSource` does by
itself, goes on behind it: with a session, all up to it is acknowledged; without one, the log is read from there. That
is the only way to acknowledge; so a stream with a session ends after `TURN` events, the client comes back, and nothing
piles up. The life of the log (see `lineage`) says whether the position and the number are still those of the same
event: if the node has gone back in time, nothing is acknowledged, or the log is read from where both still agree.

**Tokens** come in the header `Authorization` only. A token in a URL would end up in logs and histories, so
`access_token` is refused; and a cookie would be sent by pages that have no business here. `EventSource` cannot set
headers: where there is security, browsers use the WebSocket (the token is in its first frame), or `fetch` and read the
same stream from its body.
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

from fieldfare.filters import EVERYTHING, parse
from fieldfare.filters.filter import Filter
from fieldfare.filters.languages.subscriptions import documents as subscriptions
from fieldfare.node import losses, security
from fieldfare.node.http import binding
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.resource import Call, only
from fieldfare.node.internal_session import Delivered, InternalSession
from fieldfare.node.node import Node
from fieldfare.node.security import AccessDenied, Principal, names
from fieldfare.node.security.filter_admission import bounded, check_size, permitted, taken, within
from fieldfare.node.security.quotas import check_new_session
from fieldfare.node.state import RequestRefused
from fieldfare.protocol.lineage import still_valid

KEEP_ALIVE: Final = 15.0
"""seconds after which a comment is sent, if nothing else is"""
TURN: Final = 10_000
"""events after which a stream with a session ends"""
AGAIN: Final = 1000
"""milliseconds after which a client is to come back"""
LOST: Final = b"fieldfare.dropped"
"""what a message is called that tells of events that will not come"""
SUBSCRIPTION: Final = "stream"
"""the id of what a stream asks for"""
_ID: Final = re.compile(r"([0-9]{1,15}):([0-9]{1,15})(?::([0-9a-f.]{1,40}))?")
"""earlier versions left out the life"""
_BREAKS: Final = re.compile(r"[\r\n\0]")


class _Last(NamedTuple):
    """The last message that a client has seen."""

    position: int
    number: int
    life: str
    """in which they were given; empty if nobody knows"""


async def stream(call: Call) -> Response:
    """Begin a stream."""
    query = call.request.query_params
    if "access_token" in query:
        raise Problem(400, "a token does not belong in a URL, where logs keep it: use the header Authorization")
    only(call, "filter", "filters", "format", "since", "session")
    node = call.service.node
    style = query.get("format", "cloudevents")
    if style not in ("cloudevents", "plain"):
        raise Problem(400, f"format is cloudevents or plain, not {style[:40]!r}", parameter="format")
    filter, since, last = await _filter(call), _since(query.get("since")), _last(call)
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
        mine = node.broker.broker.clients.all.get(consumer.name)
        if mine is None or mine.subscriptions.get(SUBSCRIPTION) != filter:  # else it was asked for before, and goes on
            await consumer.subscribe(SUBSCRIPTION, filter, since)
    except BaseException as error:
        await consumer.__aexit__()
        if isinstance(error, RequestRefused):
            raise Problem(400, str(error)) from None
        raise
    forgotten = 0 if last is None or name else last.position - _same(last, node)
    return _Stream(call, consumer, plain=style == "plain", forgotten=forgotten)


def _same(last: _Last, node: Node) -> int:
    """The last position up to that of a message that is still the same event."""
    known = ((last.life.partition(".")[0], 1),) if last.life else ()
    return min(still_valid(last.position, known, node.lives), node.storage.log.last)


class _Stream(StreamingResponse):
    """An answer that goes on, and lets go of its session at the end."""

    def __init__(self, call: Call, consumer: InternalSession, *, plain: bool, forgotten: int) -> None:
        self._consumer = consumer
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        messages = _messages(call, consumer, plain=plain, forgotten=forgotten)
        super().__init__(messages, 200, headers, "text/event-stream")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send until either side goes."""
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
        yield _lost(0, f"the log of {node.name} begins at position {consumer.gone}: what is older is gone")
    if forgotten:
        reason = f"{node.name} went back in time: it has forgotten the last {forgotten} positions that you know"
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
                if consumer.name.startswith("~"):  # nobody will come back for it
                    await consumer.acknowledge(some[-1].number)
    finally:
        waiting = [leaving] if following is None else [leaving, following]
        for one in waiting:
            one.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)


def _lost(count: int, reason: str) -> bytes:
    """A message that is no event: some will not come. Without an id, so that it is not taken for one."""
    data = msgspec.json.encode({"dropped": count, "reason": reason})
    return b"event: " + LOST + b"\ndata: " + data + b"\n\n"


def message(delivered: Delivered, id: str, source: str, life: str, *, plain: bool) -> bytes:
    """An event as a server-sent event; it has an id of its own, or gets one."""
    event = delivered.event
    data = binding.plain(event) if plain else binding.structured(event, id, source)
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
            raise Problem(400, f"filters is no JSON: {error}", parameter="filters") from None
    for filter in wanted or [EVERYTHING]:
        security.subscribable(principal, filter)
    return reduce(or_, wanted) if wanted else EVERYTHING


def _document(text: str) -> object:
    document = msgspec.json.decode(text)
    return [document] if isinstance(document, str) else document  # a text would be one of the native language


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
        names.check_session(name)
    except ValueError as error:
        raise Problem(400, str(error), parameter="session") from None
    node = call.service.node
    session = node.broker.sessions.get(name)
    if session is not None and node.security is not None and session.owner != call.principal.name:
        raise AccessDenied(f"the session {name} belongs to somebody else")
    if session is None:
        try:
            check_new_session(node, node.broker, call.principal.name)
        except RequestRefused as error:
            raise Problem(409, str(error)) from None
    return name
