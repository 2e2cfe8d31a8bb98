"""The dashboard: a few static files that the node serves itself, and the policy under which a browser runs them.

The page holds no data. It asks this node's HTTP interface, with a token if there must be one, and no other node: this
one asks the others (see `overviews`), so that the token of an administrator never goes to an address that some node has
named. Its policy allows requests to this node only. Nothing else may be loaded, no script runs but these files, and no
other page may show it in a frame. A browser keeps the files, and asks each time whether they are still the same.
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
    "Cache-Control": "no-cache",  # keep it, but ask
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
}


class Asset(NamedTuple):
    """A file of the dashboard."""

    content: bytes
    kind: str
    etag: str


def assets() -> dict[str, Asset]:
    """The files, by name."""
    found = {}
    for file in resources.files(__name__).iterdir():
        kind = _KINDS.get("." + file.name.rpartition(".")[2])
        if kind is not None:
            content = file.read_bytes()
            found[file.name] = Asset(content, kind, f'"{hashlib.sha256(content).hexdigest()[:32]}"')
    return found


def policy(address: str) -> str:
    """A Content-Security-Policy that lets the page ask the node at an address, as the browser calls it.

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
    """Older browsers do not count WebSockets to the page's own origin as 'self'."""
    parts = urlsplit(address)
    place = parts.netloc.rpartition("@")[2]
    if parts.scheme not in ("ws", "wss", "http", "https") or not place or not _is_plain(place):
        return ()  # whoever asked said it: nothing of it may become a part of the policy
    secure = "s" if parts.scheme in ("wss", "https") else ""
    return f"http{secure}://{place}", f"ws{secure}://{place}"


def _is_plain(place: str) -> bool:
    return place.isascii() and all(char.isalnum() or char in ".-_:[]" for char in place)


def routes(_: Context) -> list[BaseRoute]:
    """The dashboard under /dashboard/."""
    files = assets()

    async def to_page(_: Request) -> Response:
        return RedirectResponse("dashboard/", headers=_HEADERS)  # relative: a proxy may have put us below a path

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
