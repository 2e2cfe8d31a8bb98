"""`/admin`: the state of a node, for dashboards and people with curl. All of it needs the permission `administer`."""

from __future__ import annotations

from fieldfare.node.context import Context
from fieldfare.node.http.admin import filters, overview, patterns, pipelines, sessions
from fieldfare.node.http.resource import Handler
from fieldfare.node.http.webhooks import Webhooks

__all__ = ["handlers"]


def handlers(service: Context, hooks: Webhooks) -> dict[str, dict[str, Handler]]:
    """Return all handlers by path and method."""
    return {
        **overview.handlers(service, lambda: len(hooks.all)),
        **sessions.handlers(),
        **filters.handlers(service),
        **patterns.handlers(),
        **pipelines.handlers(),
    }
