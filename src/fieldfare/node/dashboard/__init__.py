"""The dashboard: static files that a node serves itself, and the policy under which a browser runs them.

The page contains no data. The page uses the HTTP API of this node, with a token if needed, and of no other node: this
node asks the others (see `overviews`), so the token of an administrator never goes to an address that another node has
named. The Content-Security-Policy allows requests to this node only, no other scripts or resources, and no frames.
Browsers keep the files, and ask each time whether a newer version exists.
"""

from __future__ import annotations

import hashlib
from importlib import resources
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from fieldfare.node.context import Context

_KINDS: Final = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEADERS: Final = {
    "Cache-Control": "no-cache",  # keep the file, but ask for a newer version each time
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Asset(NamedTuple):
    """A file of the dashboard in memory."""

    content: bytes
    kind: str
    etag: str


def assets() -> dict[str, Asset]:
    """Read the files of the dashboard, by name."""
    found = {}
    for file in resources.files(__name__).iterdir():
        kind = _KINDS.get("." + file.name.rpartition(".")[2])
        if kind is not None:
            content = file.read_bytes()
            found[file.name] = Asset(content, kind, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


def policy(address: str) -> str:
    """Return a Content-Security-Policy that allows requests to the node, at the address that the browser uses.

    >>> policy("http://10.0.0.7:7400").split("; ")[1]
    "connect-src 'self' http://10.0.0.7:7400 ws://10.0.0.7:7400"
    """
    return "; ".join((
        "default-src 'none'",
        " ".join(("connect-src 'self'", *_origins(address))),
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
    ))  # fmt: skip


def _origins(address: str) -> tuple[str, ...]:
    """Return the origins of HTTP and WebSockets: older browsers do not count WebSockets as 'self'."""
    parts = urlsplit(address)
    place = parts.netloc.rpartition("@")[2]
    if parts.scheme not in ("ws", "wss", "http", "https") or not place or not _is_plain(place):
        return ()  # the caller chose this `Host`: no part of it may enter the policy
    secure = "s" if parts.scheme in ("wss", "https") else ""
    return f"http{secure}://{place}", f"ws{secure}://{place}"


def _is_plain(place: str) -> bool:
    return place.isascii() and all(char.isalnum() or char in ".-_:[]" for char in place)


def routes(_: Context) -> list[BaseRoute]:
    """Return the routes of the files, below `/dashboard/`."""
    files = assets()

    async def to_page(_: Request) -> Response:
        return RedirectResponse("dashboard/", headers=_HEADERS)  # relative: a proxy may serve the node below a path

    async def serve(request: Request) -> Response:
        asset = files.get(request.path_params.get("name", "") or "index.html")
        if asset is None:
            return Response("the dashboard has no such file", 404, _HEADERS, "text/plain")
        headers = {
            **_HEADERS,
            "ETag": asset.etag,
            "Content-Security-Policy": policy(str(request.base_url)),
        }
        if asset.etag in request.headers.get("if-none-match", ""):
            return Response(None, 304, headers)
        return Response(asset.content, 200, headers, asset.kind)

    return [Route("/dashboard", to_page), Route("/dashboard/", serve), Route("/dashboard/{name}", serve)]
