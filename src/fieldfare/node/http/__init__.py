"""The HTTP API of a node: publish, subscribe with a sink, read streams, administer the node. `routes` makes it."""

from __future__ import annotations

from starlette.routing import BaseRoute

from fieldfare.node.context import Context
from fieldfare.node.http import admin, events, health, openapi, stream, subscriptions
from fieldfare.node.http.metrics import metrics
from fieldfare.node.http.resource import administrator, anybody, known, route
from fieldfare.node.http.webhooks import Webhooks

__all__ = ["routes"]


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
        route(service, "/events", known, post=events.publish),
        route(service, "/stream", known, get=stream.stream),
        route(service, "/subscriptions/{id}/confirm", anybody, get=confirm, post=confirm),
        *(route(service, path, known, **methods) for path, methods in subscriptions.handlers(hooks).items()),
        *(route(service, path, administrator, **methods) for path, methods in admin.handlers(service, hooks).items()),
    ]
