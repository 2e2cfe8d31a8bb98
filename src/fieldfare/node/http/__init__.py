"""The HTTP API of a node: publish, subscribe with a sink, read streams, administer the node. `routes` makes it."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import BaseRoute

from fieldfare.node.attachment import no_clients
from fieldfare.node.context import Context
from fieldfare.node.http import admin, events, health, openapi, stream, subscriptions
from fieldfare.node.http.errors import Problem
from fieldfare.node.http.metrics import metrics
from fieldfare.node.http.resource import Call, Handler, administrator, anybody, known, route
from fieldfare.node.http.webhooks import Webhooks

__all__ = ["routes"]


def _for_clients(service: Context, hooks: Webhooks) -> dict[str, dict[str, Handler]]:
    """Return the handlers of publishers and subscribers by path and method; without clients all are refused."""
    found: dict[str, dict[str, Handler]] = {
        "/events": {"post": events.publish},
        "/stream": {"get": stream.stream},
        **subscriptions.handlers(hooks),
    }
    if service.node.config.clients:
        return found

    async def refuse(call: Call) -> Response:
        raise Problem(403, no_clients(call.service.node))

    return {path: dict.fromkeys(methods, refuse) for path, methods in found.items()}


def routes(service: Context) -> list[BaseRoute]:
    """Return all routes of the API; stored webhooks begin to deliver."""
    hooks = Webhooks(service)
    confirm = subscriptions.confirmation(hooks)
    return [
        route(service, "/", anybody, get=health.root),
        route(service, "/health", anybody, get=health.health),
        route(service, "/ready", anybody, get=health.ready),
        route(service, "/openapi.json", anybody, get=openapi.openapi),
        route(service, "/metrics", administrator, get=metrics(service, hooks)),
        route(service, "/subscriptions/{id}/confirm", anybody, get=confirm, post=confirm),
        *(route(service, path, known, **methods) for path, methods in _for_clients(service, hooks).items()),
        *(route(service, path, administrator, **methods) for path, methods in admin.handlers(service, hooks).items()),
    ]
