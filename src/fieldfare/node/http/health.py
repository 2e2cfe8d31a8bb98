"""`GET /health`: is the process alive? `GET /ready`: does the node take requests? `GET /`: where everything is."""

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
    """The process answers."""

    status: str = "alive"


class Ready(msgspec.Struct, frozen=True):
    """The node takes requests."""

    ready: bool = True


class About(msgspec.Struct, frozen=True):
    """What this is, and where to go on."""

    name: str
    version: str
    links: dict[str, str]


def our_version() -> str:
    """The version of this package."""
    try:
        return version("fieldfare")
    except PackageNotFoundError:  # run from a folder that was never installed
        return "unknown"


async def health(_: Call) -> Response:
    """The process is alive if this comes."""
    return answer(Alive())


async def ready(call: Call) -> Response:
    """Whether the node takes requests; if not, why."""
    node = call.service.node
    reasons = [] if node.ready else ["the node has not started yet, or is stopping"]
    if node.failure.done() and not node.failure.cancelled() and (error := node.failure.exception()) is not None:
        reasons = [f"the node cannot write: {error}"]
    if reasons:
        raise Problem(503, "; ".join(reasons), {"Retry-After": "1"}, reasons=reasons)
    return answer(Ready())


async def root(call: Call) -> Response:
    """For people the dashboard, for programs where everything is."""
    config = call.service.node.config
    if config.dashboard and "text/html" in call.request.headers.get("accept", ""):
        return RedirectResponse("/dashboard")
    more = {"dashboard": "/dashboard"} if config.dashboard else {}
    return answer(About(call.service.node.name, our_version(), {**LINKS, **more}))
