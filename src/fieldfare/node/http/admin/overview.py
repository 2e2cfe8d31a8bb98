"""`/admin/overview`, `/admin/nodes`, `/admin/links` and `/admin/channels`: nodes at a glance, neighbours, channels."""

from __future__ import annotations

import asyncio
import resource as system
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from starlette.responses import Response

from fieldfare.core.channel_inputs import MoveChannel
from fieldfare.core.domains import domain_of, is_foreign
from fieldfare.node.context import Context
from fieldfare.node.http.admin.views import (
    ChannelToMove,
    ChannelView,
    LinkView,
    LogView,
    Overview,
    PrefixView,
    Rates,
    TreeView,
)
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.health import our_version
from fieldfare.node.http.resource import Call, Handler, answer, read
from fieldfare.node.node import Node
from fieldfare.routing.broker import ForwardCounts
from fieldfare.routing.prefix.routes import PrefixRoutes
from fieldfare.routing.routes import Routes

WINDOW: Final = 10
"""seconds over which rates are taken"""


def handlers(service: Context, webhooks: Callable[[], int]) -> dict[str, dict[str, Handler]]:
    """Return the handlers by path and method; `webhooks` counts the subscriptions with a sink."""
    sampler = _Sampler(service.node)
    service.node.spawn(sampler.run())

    async def overview(call: Call) -> Response:
        return answer(_overview(call.service, sampler.rates(), webhooks()))

    def for_other_nodes() -> bytes:
        """Return the overview without the bridges: other nodes need not know which systems this node talks to."""
        mine = _overview(service, sampler.rates(), webhooks())
        return msgspec.json.encode(msgspec.structs.replace(mine, beside={}))

    service.hood.overviews.describe = for_other_nodes
    return {
        "/admin/overview": {"get": overview},
        "/admin/nodes/{name:path}": {"get": _other},
        "/admin/links": {"get": _all_links},
        "/admin/channels": {"get": _all_channels, "post": _move_channel},
        "/admin/links/{name:path}": {"delete": _remove_link},
    }


class _Sample(NamedTuple):
    time: float
    events_in: int
    deliveries: int
    busy: float


class _Sampler:
    """Samples of the counters, one for each of the last `WINDOW` seconds."""

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


def _overview(service: Context, rates: Rates, webhooks: int) -> Overview:
    node, hood = service.node, service.hood
    traffic: dict[str, float] = asdict(node.counters)
    started = traffic.pop("started")
    traffic.pop("links")
    all_sessions = node.core.sessions.values()
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
        subscriptions=sum(len(client.subscriptions) for client in node.core.broker.clients.all.values()),
        table=node.core.broker.entries,
        log=LogView(log.first, log.last, log.bytes),
        memory=_memory(),
        links=_links(service),
        overlay=hood.nodes(),
        webhooks=webhooks,
        beside={name: report() for name, report in node.reports.items()},
        prefix=_prefix(node.core.broker.routes),
        channels=_channels(node),
        domain=hood.domain,
        domains=sorted(domain_of(name) for name in hood.reachable() if is_foreign(name)),
    )


async def _other(call: Call) -> Response:
    """Answer with the overview of another node. The question goes over the links, without the caller's token."""
    name, hood = call.request.path_params["name"], call.service.hood
    if name == call.service.node.name or name not in hood.nodes():
        raise Problem(404, f"there is no other node {name[:200]} in this overlay")
    try:
        found = msgspec.json.decode(await hood.overviews.ask(name), type=Overview)
    except TimeoutError:
        raise Problem(504, f"{name[:200]} does not answer: the node is away, or of an earlier version") from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Problem(502, f"the answer of {name[:200]} is not an overview") from None
    return answer(msgspec.structs.replace(found, name=name))


def _channels(node: Node) -> list[ChannelView]:
    channels, views = node.core.channels, []
    for type in sorted(channels.homes.types):
        home = channels.homes.of(type)
        count = channels.numbers.counts.get(type, 0) if channels.homes.here(type) else None
        is_open = type not in channels.homes.waiting
        views.append(ChannelView(type, home.node, count, is_open, home.target, channels.moves.held(type)))
    return views


async def _all_channels(call: Call) -> Response:
    return answer(_channels(call.service.node))


async def _move_channel(call: Call) -> Response:
    """Give a channel another home; its publishers and subscribers go on."""
    asked, node = await read(call, ChannelToMove), call.service.node
    if asked.type not in node.core.channels.homes.types:
        raise Problem(404, f"the settings of {node.name} have no channel of the type {asked.type[:200]}")
    if asked.to not in call.service.hood.nodes():
        raise Problem(404, f"there is no node {asked.to[:200]} in this overlay")
    await node.submit(MoveChannel(asked.type, asked.to))
    return Response(None, 202)


def _prefix(routes: Routes) -> PrefixView | None:
    if not isinstance(routes, PrefixRoutes):
        return None
    trees = [
        TreeView(one.part, one.optimizer, one.version.term.round, one.version.number, one.nodes, one.loose)
        for one in routes.status
    ]
    return PrefixView(routes.by_tag, routes.by_content, trees)


def _memory() -> int:
    """Return the bytes of the process in memory; where the system does not tell, the most there ever were."""
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
    for name, link in node.core.links.items():
        up = hood.up.get(name)
        counted = node.counters.links.get(name)
        traffic = asdict(counted) if counted is not None else {}
        url = up.url if up is not None else reached.get(name, "")
        counts = node.core.broker.forwards.get(name, ForwardCounts())
        state = up is not None, link.role.value, len(link.outbox)
        views.append(LinkView(name, url, *state, traffic, counts.wanted, counts.unwanted))
    return views


async def _all_links(call: Call) -> Response:
    return answer(_links(call.service))


async def _remove_link(call: Call) -> Response:
    name = call.request.path_params["name"]
    if name not in call.service.node.core.links:
        raise Problem(404, f"there is no neighbour {name[:200]}")
    await call.service.hood.remove(name)
    return Response(None, 204)
