"""`GET /health` (the process is alive), `GET /ready` (the node accepts requests) and `GET /` (links to the API)."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from typing import Final

import msgspec
from starlette.responses import RedirectResponse, Response

from fieldfare.node.http.errors import Problem
from fieldfare.node.http.resource import Call, answer

LINKS: Final = {
    "events": "/events",
    "subscriptions": "/subscriptions",
    "stream": "/stream",
    "health": "/health",
    "ready": "/ready",
    "metrics": "/metrics",
    "openapi": "/openapi.json",
    "overview": "/admin/overview",
}


class Alive(msgspec.Struct, frozen=True):
    """The answer of `/health`: a constant, since a dead process gives none."""

    status: str = "alive"


class Ready(msgspec.Struct, frozen=True):
    """The answer of `/ready` while the node accepts requests."""

    ready: bool = True


class About(msgspec.Struct, frozen=True):
    """The answer of `/` for programs: name, version, and links to the parts of the API."""

    name: str
    version: str
    links: dict[str, str]


def our_version() -> str:
    """Return the version of Fieldfare; "unknown" in a source folder that was never installed."""
    try:
        return version("fieldfare")
    except PackageNotFoundError:
        return "unknown"


async def health(_: Call) -> Response:
    """Answer that the process is alive; a node that cannot write is alive, too."""
    return answer(Alive())


async def ready(call: Call) -> Response:
    """Answer whether the node accepts requests; if not, 503 with the reasons."""
    node = call.service.node
    reasons = [] if node.ready else ["the node has not started yet, or is stopping"]
    if node.failure.done() and not node.failure.cancelled() and (error := node.failure.exception()) is not None:
        reasons = [f"the node cannot write: {error}"]
    if reasons:
        raise Problem(503, "; ".join(reasons), {"Retry-After": "1"}, reasons=reasons)
    return answer(Ready())


async def root(call: Call) -> Response:
    """Redirect browsers to the dashboard; answer programs with links."""
    config = call.service.node.config
    if config.dashboard and "text/html" in call.request.headers.get("accept", ""):
        return RedirectResponse("/dashboard")
    more = {"dashboard": "/dashboard"} if config.dashboard else {}
    return answer(About(call.service.node.name, our_version(), {**LINKS, **more}))
