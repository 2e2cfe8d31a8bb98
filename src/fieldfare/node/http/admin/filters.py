"""`/admin/table`, `/admin/explain` and `/admin/match`: the filters of a node, and a filter compared with them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from typing import Any, Final

from starlette.responses import Response

from fieldfare.events import json
from fieldfare.events.event import Event
from fieldfare.events.tags import tag
from fieldfare.filters.diagnosis import diagnose
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import unnamed
from fieldfare.matching.index import Index
from fieldfare.node.context import Context
from fieldfare.node.http.admin.views import (
    Branch,
    Explanation,
    Finding,
    MatchAnswer,
    TableNode,
    TableView,
    ToExplain,
    ToMatch,
)
from fieldfare.node.http.resource import Call, Handler, answer, number, read
from fieldfare.node.node import Node
from fieldfare.node.security.filter_admission import admitted, within
from fieldfare.routing.table_routes import TableRoutes
from fieldfare.tables.cover_graph import immediate_covers

MOST_FILTERS: Final = 500
"""filters of a table that is shown with its edges"""
MOST_RELATED: Final = 100
"""filters of each kind in an explanation"""
CLIENTS: Final = "(clients)"
"""name of the interface that all clients together are"""


def handlers(service: Context) -> dict[str, dict[str, Handler]]:
    """Return the handlers by path and method."""
    relations = _Relations(service.node)

    async def explain(call: Call) -> Response:
        asked = await read(call, ToExplain)
        filter = await admitted(asked.filter, call.service.node.config.limits)
        return answer(await relations.explain(filter))

    return {
        "/admin/table": {"get": _table},
        "/admin/explain": {"post": explain},
        "/admin/match": {"post": _match},
    }


async def _filters_of(node: Node) -> dict[Filter, set[str]]:
    """Return all filters of the node, with the interfaces that need their events."""
    clients = node.core.broker.clients.all.values()
    found = [(filter, CLIENTS) for client in clients for filter in client.subscriptions.values()]
    routes, told = node.core.broker.routes, []
    if isinstance(routes, TableRoutes):
        told = [
            (unnamed(filter), neighbour) for neighbour in node.core.links for filter in routes.filters_of(neighbour)
        ]
    return await asyncio.to_thread(_together, [*found, *told])


def _together(found: Iterable[tuple[Filter, str]]) -> dict[Filter, set[str]]:
    together: dict[Filter, set[str]] = {}
    for filter, interface in found:
        together.setdefault(filter, set()).add(interface)
    return together


async def _table(call: Call) -> Response:
    found, most = await _filters_of(call.service.node), number(call, "limit", MOST_FILTERS, 1, MOST_FILTERS)
    return answer(await asyncio.to_thread(_graph, found, most))


def _graph(found: dict[Filter, set[str]], most: int) -> TableView:
    shown = sorted(((str(filter), filter) for filter in found), key=lambda one: one[0])[:most]
    nodes = [TableNode(text, sorted(found[filter])) for text, filter in shown]
    return TableView(len(found), nodes, _edges([filter for _, filter in shown]), len(found) > len(shown))


def _edges(filters: Sequence[Filter]) -> list[tuple[int, int]]:
    return sorted(immediate_covers(filters))


class _Relations:
    """An index of all filters of the node, rebuilt only after a change of subscriptions."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._version = -1
        self._index: Index[Filter] = Index()

    async def explain(self, filter: Filter) -> Explanation:
        """Return the relations of a filter to all filters of the node."""
        if self._version != self._node.core.changes:
            version, wanted = self._node.core.changes, list(await _filters_of(self._node))
            self._index = await asyncio.to_thread(lambda: Index((one, one) for one in wanted))
            self._version = version
        return await within(lambda: _explained(filter, self._index), self._node.config.limits)


def _explained(filter: Filter, index: Index[Filter]) -> Explanation:
    covers, above = set(index.covered(filter)), set(index.covering(filter))
    rest = set(index.overlapping(filter)) - covers - above
    return Explanation(str(filter), _texts(covers), _texts(above), _texts(rest), len(index))


def _texts(filters: Iterable[Filter]) -> list[str]:
    return sorted(map(str, filters))[:MOST_RELATED]


async def _match(call: Call) -> Response:
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
    """Return a value of an event as JSON; a missing or uncertain value as null."""
    try:
        return tag(value)
    except AssertionError:
        return None
