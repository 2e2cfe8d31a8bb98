"""`/admin`: what a node holds, for dashboards and for people with curl. All of it needs `administer`."""

from __future__ import annotations

import asyncio
import resource as system
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from starlette.responses import Response

from fieldfare.events import json
from fieldfare.events.event import Event
from fieldfare.events.tags import tag
from fieldfare.filters.diagnosis import diagnose
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import unnamed
from fieldfare.matching.index import Index
from fieldfare.node.context import HTTP, Context
from fieldfare.node.http import pipelines
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.health import our_version
from fieldfare.node.http.resource import Call, Handler, answer, number, read
from fieldfare.node.http.webhooks import SESSION, Webhooks
from fieldfare.node.node import Node
from fieldfare.node.security.filter_admission import admitted, within
from fieldfare.node.state import INTERNAL, Session
from fieldfare.routing.prefix.routes import PrefixRoutes
from fieldfare.routing.routes import Routes
from fieldfare.routing.table_routes import TableRoutes
from fieldfare.tables.cover_graph import immediate_covers

PAGE: Final = 100
LONGEST_PAGE: Final = 1000
MOST_FILTERS: Final = 500
"""of a table that is shown with its edges"""
MOST_RELATED: Final = 100
"""filters named in an explanation, of each kind"""
CLIENTS: Final = "(clients)"
"""how the interface is called that all clients together are"""
WINDOW: Final = 10
"""seconds over which rates are taken"""


# What is shown


class LinkView(msgspec.Struct, frozen=True):
    """A neighbour."""

    name: str
    url: str
    up: bool
    role: str
    outbox: int
    """messages that it lacks yet"""
    traffic: dict[str, int]


class LogView(msgspec.Struct, frozen=True):
    """The log of events, by positions."""

    first: int
    last: int
    bytes: int


class Rates(msgspec.Struct, frozen=True):
    """A second, over the last ten of them."""

    events_in: float = 0.0
    deliveries: float = 0.0
    busy: float = 0.0
    """the part of the time in which the broker worked"""


class TreeView(msgspec.Struct, frozen=True):
    """A tree by which events are forwarded, as this node has it."""

    part: int
    optimizer: str
    """the node in charge, with a mark of this life of it"""
    round: int
    """how often somebody has taken charge"""
    number: int
    """of the version, since that"""
    nodes: int
    loose: int
    """alternatives of filters that wait for nodes of their own"""


class PrefixView(msgspec.Struct, frozen=True):
    """How the strategy `prefix` does."""

    by_tag: int
    by_content: int
    """events that had no tag, or one that this node could not read"""
    trees: list[TreeView]


class Overview(msgspec.Struct, frozen=True):
    """The node at a glance."""

    name: str
    url: str
    version: str
    uptime: float
    strategy: str
    traffic: dict[str, float]
    """since it started"""
    rates: Rates
    sessions: int
    here: int
    """sessions whose client is connected"""
    pending: int
    """events that wait for sessions"""
    subscriptions: int
    table: int
    """entries of the routing table"""
    log: LogView
    memory: int
    """bytes of the process"""
    links: list[LinkView]
    overlay: dict[str, str]
    """all nodes that are reached, with their addresses"""
    webhooks: int
    beside: dict[str, Any]
    """how bridges do, by name"""
    prefix: PrefixView | None = None
    """if that is the strategy"""


class SessionView(msgspec.Struct, frozen=True):
    """A session."""

    name: str
    owner: str
    durable: bool
    here: bool
    seen: float
    """when it came or went"""
    published: int
    delivered: int
    """numbers that were given to deliveries so far"""
    acknowledged: int
    pending: int
    dropped: int
    subscriptions: int
    advertisements: int


class SessionDetails(SessionView, frozen=True):
    """A session, with what it wants and promises."""

    wanted: dict[str, str]
    promised: dict[str, str]


class SubscriptionView(msgspec.Struct, frozen=True):
    """A subscription of a session."""

    session: str
    id: str
    filter: str


class Sessions(msgspec.Struct, frozen=True):
    """Some of the sessions."""

    total: int
    offset: int
    items: list[SessionView]


class Subscriptions(msgspec.Struct, frozen=True):
    """Some of the subscriptions."""

    total: int
    offset: int
    items: list[SubscriptionView]


class TableNode(msgspec.Struct, frozen=True):
    """A filter of the routing table, and from where it came."""

    filter: str
    interfaces: list[str]


class TableView(msgspec.Struct, frozen=True):
    """The filters of the routing table. An edge leads from the place of one to that of one that it covers directly."""

    total: int
    nodes: list[TableNode]
    edges: list[tuple[int, int]]
    truncated: bool
    """there are more, and edges only between those that are shown"""


class ToExplain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter to explain."""

    filter: Any
    """a text, or a document of CloudEvents' subscriptions"""


class ToMove(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A session that is to go to another node."""

    session: str
    to: str
    """the name of the node"""


class Explanation(msgspec.Struct, frozen=True):
    """What a filter says, and how it stands to those that are wanted here."""

    normal: str
    covers: list[str]
    covered_by: list[str]
    overlaps: list[str]
    """neither of the two"""
    wanted: int
    """filters that were compared"""


class ToMatch(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A filter to hold against an event."""

    filter: Any
    event: msgspec.Raw


class Finding(msgspec.Struct, frozen=True):
    """A condition that an event was held against."""

    field: str
    wanted: str
    actual: Any
    ok: bool


class Branch(msgspec.Struct, frozen=True):
    """One way to match a filter."""

    filter: str
    ok: bool
    findings: list[Finding]


class MatchAnswer(msgspec.Struct, frozen=True):
    """Whether an event matches, and why or why not."""

    matches: bool
    branches: list[Branch]


# How fast it goes


class _Sample(NamedTuple):
    time: float
    events_in: int
    deliveries: int
    busy: float


class _Sampler:
    """The counters of the last seconds."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._samples: deque[_Sample] = deque([self._now()], maxlen=WINDOW)

    def _now(self) -> _Sample:
        traffic = self._node.counters
        return _Sample(asyncio.get_running_loop().time(), traffic.events_in, traffic.deliveries, traffic.busy)

    async def run(self) -> None:
        while True:
            await asyncio.sleep(1)
            self._samples.append(self._now())

    def rates(self) -> Rates:
        before, now = self._samples[0], self._now()
        seconds = max(now.time - before.time, 1e-3)
        return Rates(*(round((b - a) / seconds, 3) for a, b in zip(before[1:], now[1:], strict=True)))


# Handlers


def handlers(service: Context, hooks: Webhooks) -> dict[str, dict[str, Handler]]:
    """What answers, by path and method."""
    sampler = _Sampler(service.node)
    service.node.spawn(sampler.run())
    relations = _Relations(service.node)

    async def overview(call: Call) -> Response:
        return answer(_overview(call.service, sampler.rates(), len(hooks.all)))

    def told() -> bytes:
        """What other nodes may know: how much there is of what, and not whom this node talks to besides."""
        mine = _overview(service, sampler.rates(), len(hooks.all))
        return msgspec.json.encode(msgspec.structs.replace(mine, beside={}))

    service.hood.overviews.describe = told

    async def explain(call: Call) -> Response:
        asked = await read(call, ToExplain)
        filter = await admitted(asked.filter, call.service.node.config.limits)
        return answer(await relations.explain(filter))

    return {
        "/admin/overview": {"get": overview},
        "/admin/nodes/{name:path}": {"get": other},
        "/admin/sessions": {"get": sessions},
        "/admin/sessions/{name:path}": {"get": session, "delete": end_session},
        "/admin/moves": {"post": move},
        "/admin/subscriptions": {"get": subscriptions},
        "/admin/table": {"get": table},
        "/admin/links": {"get": links},
        "/admin/links/{name:path}": {"delete": part},
        "/admin/explain": {"post": explain},
        "/admin/match": {"post": match},
        **pipelines.handlers(),
    }


def _overview(service: Context, rates: Rates, webhooks: int) -> Overview:
    node, hood = service.node, service.hood
    traffic: dict[str, float] = asdict(node.counters)
    started = traffic.pop("started")
    traffic.pop("links")
    all_sessions = node.broker.sessions.values()
    log = node.storage.log
    return Overview(
        name=node.name,
        url=hood.url,
        version=our_version(),
        uptime=round(max(0.0, node.steady() - started), 3),
        strategy=node.config.strategy,
        traffic=traffic,
        rates=rates,
        sessions=len(all_sessions),
        here=sum(one.connected for one in all_sessions),
        pending=sum(len(one.pending) for one in all_sessions),
        subscriptions=sum(len(client.subscriptions) for client in node.broker.broker.clients.all.values()),
        table=node.broker.broker.entries,
        log=LogView(log.first, log.last, log.bytes),
        memory=_memory(),
        links=_links(service),
        overlay=hood.reachable(),
        webhooks=webhooks,
        beside={name: report() for name, report in node.reports.items()},
        prefix=_prefix(node.broker.broker.routes),
    )


async def other(call: Call) -> Response:
    """Another node at a glance, asked over the links: the token of who asks stays here."""
    name, hood = call.request.path_params["name"], call.service.hood
    if name == call.service.node.name or name not in hood.reachable():
        raise Problem(404, f"there is no other node {name[:200]} in this overlay")
    try:
        found = msgspec.json.decode(await hood.overviews.ask(name), type=Overview)
    except TimeoutError:
        raise Problem(504, f"{name[:200]} does not answer: it is away, or of an earlier version") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Problem(502, f"{name[:200]} answers with something that is no overview") from None
    return answer(msgspec.structs.replace(found, name=name))


def _prefix(routes: Routes) -> PrefixView | None:
    if not isinstance(routes, PrefixRoutes):
        return None
    trees = [
        TreeView(one.part, one.optimizer, one.version.term.round, one.version.number, one.nodes, one.loose)
        for one in routes.status
    ]
    return PrefixView(routes.by_tag, routes.by_content, trees)


def _memory() -> int:
    """Bytes of the process in memory now; where nobody says, the most there ever were."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
    except (OSError, ValueError, IndexError):
        most = system.getrusage(system.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else most * 1024
    return pages * system.getpagesize()


def _links(service: Context) -> list[LinkView]:
    node, hood = service.node, service.hood
    reached = hood.reachable()
    views = []
    for name, link in node.broker.links.items():
        up = hood.up.get(name)
        counted = node.counters.links.get(name)
        traffic = asdict(counted) if counted is not None else {}
        url = up.url if up is not None else reached.get(name, "")
        views.append(LinkView(name, url, up is not None, link.role.value, len(link.outbox), traffic))
    return views


async def links(call: Call) -> Response:
    """All neighbours."""
    return answer(_links(call.service))


async def part(call: Call) -> Response:
    """Be no neighbour of a node any more."""
    name = call.request.path_params["name"]
    if name not in call.service.node.broker.links:
        raise Problem(404, f"there is no neighbour {name[:200]}")
    await call.service.hood.remove(name)
    return Response(None, 204)


def _view(node: Node, name: str, one: Session) -> dict[str, Any]:
    client = node.broker.broker.clients.all.get(name)
    return {
        "name": name,
        "owner": one.owner,
        "durable": one.durable,
        "here": one.connected,
        "seen": one.last_seen + node.broker.ahead,
        "published": one.sequence,
        "delivered": one.count,
        "acknowledged": one.acknowledged,
        "pending": len(one.pending),
        "dropped": one.dropped,
        "subscriptions": len(client.subscriptions) if client is not None else 0,
        "advertisements": len(client.advertisements) if client is not None else 0,
    }


async def sessions(call: Call) -> Response:
    """Sessions by name; `search` is a part of it."""
    node = call.service.node
    search = call.request.query_params.get("search", "")
    names = sorted(name for name in node.broker.sessions if search in name)
    offset, limit = _page(call)
    some = names[offset : offset + limit]
    views = [SessionView(**_view(node, name, node.broker.sessions[name])) for name in some]
    return answer(Sessions(len(names), offset, views))


def _page(call: Call) -> tuple[int, int]:
    return number(call, "offset", 0, 0, 10**9), number(call, "limit", PAGE, 1, LONGEST_PAGE)


def _session(call: Call) -> tuple[str, Session]:
    name = call.request.path_params["name"]
    found = call.service.node.broker.sessions.get(name)
    if found is None:
        raise Problem(404, f"there is no session {name[:200]}")
    return name, found


async def session(call: Call) -> Response:
    """A session with all that it wants and promises."""
    name, found = _session(call)
    node = call.service.node
    client = node.broker.broker.clients.all.get(name)
    wanted = {id: str(filter) for id, filter in client.subscriptions.items()} if client is not None else {}
    promised = {id: str(filter) for id, filter in client.advertisements.items()} if client is not None else {}
    return answer(SessionDetails(**_view(node, name, found), wanted=wanted, promised=promised))


async def end_session(call: Call) -> Response:
    """End a session, with all that waits for it; its client is disconnected."""
    name, _ = _session(call)
    node = call.service.node
    if name.startswith(SESSION) and (name.removeprefix(SESSION),) in node.rows("webhook"):
        raise Problem(409, f"this session brings events to a sink: DELETE /subscriptions/{name.removeprefix(SESSION)}")
    if name == HTTP:
        raise Problem(409, "this is the session of all who publish over HTTP, and stays")
    closer = node.closers.get(name)
    if closer is not None:
        closer("the session was ended by an administrator")
    await node.submit(lambda broker, now: broker.sessions.leave(name, now) if name in broker.sessions else None)
    return Response(None, 204)


async def move(call: Call) -> Response:
    """Let a session go to another node; its client follows, if it is here."""
    asked = await read(call, ToMove)
    node = call.service.node
    session = node.broker.sessions.get(asked.session)
    if session is None or not session.durable or asked.session.startswith(INTERNAL):
        raise Problem(404, f"there is no session {asked.session[:200]} that survives and has a client")
    if asked.to == node.name or asked.to not in call.service.hood.reachable():
        raise Problem(404, f"there is no other node {asked.to[:200]} in this overlay")
    ticket = node.fresh_name()
    await node.submit(lambda broker, _: broker.handovers.offer(asked.session, asked.to, ticket))
    return Response(None, 202)


async def subscriptions(call: Call) -> Response:
    """Subscriptions of all sessions; `search` is a part of the filter's text, or of the session's name."""
    search = call.request.query_params.get("search", "")
    all_clients = call.service.node.broker.broker.clients.all
    found = [
        SubscriptionView(name, id, text)
        for name, client in all_clients.items()
        for id, filter in client.subscriptions.items()
        if search in (text := str(filter)) or search in name
    ]
    offset, limit = _page(call)
    return answer(Subscriptions(len(found), offset, found[offset : offset + limit]))


# Filters


async def _wanted(node: Node) -> dict[Filter, set[str]]:
    """All filters of the node, with the interfaces that they came from."""
    clients = node.broker.broker.clients.all.values()
    found = [(filter, CLIENTS) for client in clients for filter in client.subscriptions.values()]
    routes, told = node.broker.broker.routes, []
    if isinstance(routes, TableRoutes):
        told = [
            (unnamed(filter), neighbour) for neighbour in node.broker.links for filter in routes.filters_of(neighbour)
        ]
    return await asyncio.to_thread(_together, [*found, *told])


def _together(found: Iterable[tuple[Filter, str]]) -> dict[Filter, set[str]]:
    together: dict[Filter, set[str]] = {}
    for filter, interface in found:
        together.setdefault(filter, set()).add(interface)
    return together


async def table(call: Call) -> Response:
    """The routing table as a graph: filters, and which covers which."""
    found, most = await _wanted(call.service.node), number(call, "limit", MOST_FILTERS, 1, MOST_FILTERS)
    return answer(await asyncio.to_thread(_table, found, most))


def _table(found: dict[Filter, set[str]], most: int) -> TableView:
    shown = sorted(((str(filter), filter) for filter in found), key=lambda one: one[0])[:most]
    nodes = [TableNode(text, sorted(found[filter])) for text, filter in shown]
    return TableView(len(found), nodes, _edges([filter for _, filter in shown]), len(found) > len(shown))


def _edges(filters: Sequence[Filter]) -> list[tuple[int, int]]:
    return sorted(immediate_covers(filters))


class _Relations:
    """An index of all that is wanted, made anew only when that has changed."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._version = -1
        self._index: Index[Filter] = Index()

    async def explain(self, filter: Filter) -> Explanation:
        """How a filter stands to all others."""
        if self._version != self._node.broker.changes:
            version, wanted = self._node.broker.changes, list(await _wanted(self._node))
            self._index = await asyncio.to_thread(lambda: Index((one, one) for one in wanted))
            self._version = version
        return await within(lambda: _explained(filter, self._index), self._node.config.limits)


def _explained(filter: Filter, index: Index[Filter]) -> Explanation:
    covers, above = set(index.covered(filter)), set(index.covering(filter))
    rest = set(index.overlapping(filter)) - covers - above
    return Explanation(str(filter), _texts(covers), _texts(above), _texts(rest), len(index))


def _texts(filters: Iterable[Filter]) -> list[str]:
    return sorted(map(str, filters))[:MOST_RELATED]


async def match(call: Call) -> Response:
    """Hold a filter against an event: does it match, and why or why not?"""
    asked = await read(call, ToMatch)
    event, limits = json.decode(bytes(asked.event)), call.service.node.config.limits
    filter = await admitted(asked.filter, limits)
    return answer(await within(lambda: _held(filter, event), limits))


def _held(filter: Filter, event: Event) -> MatchAnswer:
    branches = [
        Branch(
            report.branch,
            report.ok,
            [Finding(one.dimension, one.wanted, _shown(one.actual), one.ok) for one in report.findings],
        )
        for report in diagnose(filter, event)
    ]
    return MatchAnswer(filter.matches(event), branches)


def _shown(value: Any) -> object:
    """A value of an event as JSON can say it; what is missing or uncertain as null."""
    try:
        return tag(value)
    except AssertionError:
        return None
