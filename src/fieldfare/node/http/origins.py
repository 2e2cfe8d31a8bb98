"""`Origins`: the check of which web pages may use a node, before all handlers of HTTP and WebSockets.

A browser sends requests to any address that a page names, this machine included. So every open page reaches a node that
listens to its own machine only. Two headers, which no page can change, tell the pages apart:

- `Host` is the name by which the browser knows the node. A page can let its own name lead here (*DNS rebinding*), and
  then has the same origin. So the name must belong to the node: an address, `localhost`, the name of this machine,
  `host`, the host of `public_url`, or an entry of `http.hosts`. An address cannot be made to lead elsewhere.
- `Origin` is the origin of the page: the node itself, or an entry of `http.origins`. Then, and only then, answers allow
  the page to read them (CORS). A page without an origin sends `null`, and is refused.

Without `Origin` no page can read the answer; browsers of today then send `Sec-Fetch-Site`, by which the node refuses
such a request, too, except for a link to the dashboard. Browsers always send `Origin` with a WebSocket: a WebSocket
without `Origin` comes from another program, and may use any `Host`, so that nodes and clients need no settings.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fieldfare.node.config import Config, origin_of
from fieldfare.node.counters import Counters
from fieldfare.node.http.errors import Problem, respond

PAGES: Final = ("/", "/dashboard")
"""paths that a link on another site may lead to, besides all below /dashboard"""
_HOST: Final = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]*)(:[0-9]*)?")
_ELSEWHERE: Final = frozenset({"cross-site", "same-site"})
_EXPOSED: Final = "Location, Retry-After, WWW-Authenticate"


class Origins:
    """An ASGI middleware that refuses requests of other sites' pages, by the settings `[http]`."""

    def __init__(self, app: ASGIApp, config: Config, traffic: Counters) -> None:
        self._app = app
        self._traffic = traffic
        self._allowed = frozenset(config.http.origins)
        public = urlsplit(config.public_url)
        names = ("localhost", socket.gethostname(), config.host, public.hostname or "", *config.http.hosts)
        self._hosts = frozenset(name.lower().rstrip(".") for name in names if name)
        self._own = origin_of(f"http{'s' if public.scheme in ('wss', 'https') else ''}://{public.netloc}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, with the headers of CORS for an allowed origin, or refuse the request with 403."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        try:
            self._check(scope, headers)
        except Problem as problem:
            self._traffic.refused += 1
            await _refuse(problem, scope, receive, send)
            return
        origin = headers.get("origin", "")
        if not self._allowed or scope["type"] == "websocket":
            await self._app(scope, receive, send)
        elif origin_of(origin) not in self._allowed:
            await self._app(scope, receive, _with({"Vary": "Origin"}, send))
        elif scope["method"] == "OPTIONS" and "access-control-request-method" in headers:
            await Response(None, 204, _preflight(origin, headers))(scope, receive, send)
        else:
            cors = {"Access-Control-Allow-Origin": origin, "Access-Control-Expose-Headers": _EXPOSED, "Vary": "Origin"}
            await self._app(scope, receive, _with(cors, send))

    def _check(self, scope: Scope, headers: Headers) -> None:
        origins = headers.getlist("origin")
        if scope["type"] == "websocket" and not origins:
            return
        hosts = headers.getlist("host")
        name = _name(hosts[0]) if len(hosts) == 1 else ""
        if name not in self._hosts and not name.endswith(".localhost") and not _is_address(name):
            raise Problem(
                403,
                f"this node is not called {_shown(name)}: if that name is right, add it to hosts in [http] of the"
                " settings (FIELDFARE_HTTP_HOSTS)",
                setting="http.hosts",
            )
        if not origins:
            self._check_site(scope, headers)
            return
        known = origin_of(origins[0]) if len(origins) == 1 else None
        secure = "s" if scope["scheme"] in ("https", "wss") else ""
        if known is None or known not in {origin_of(f"http{secure}://{hosts[0]}"), self._own, *self._allowed}:
            raise Problem(
                403,
                f"pages from {_shown(', '.join(origins))} may not use this node: to allow them, add the origin to"
                " origins in [http] of the settings (FIELDFARE_HTTP_ORIGINS, or fieldfare up --origin)",
                setting="http.origins",
            )

    def _check_site(self, scope: Scope, headers: Headers) -> None:
        """Refuse requests of other sites without an `Origin`, except for links to the dashboard."""
        if headers.get("sec-fetch-site", "") not in _ELSEWHERE:
            return
        path = scope["path"]
        visits = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest", "document") == "document"
        if scope["method"] in ("GET", "HEAD") and visits and (path in PAGES or path.startswith("/dashboard/")):
            return
        raise Problem(
            403,
            "a page of another site may not send this request: only origins in [http] of the settings may"
            " (FIELDFARE_HTTP_ORIGINS)",
            setting="http.origins",
        )


def _name(host: str) -> str:
    """Return the name in a `Host` header, without the port; empty if the header is malformed."""
    if not _HOST.fullmatch(host):  # `urlsplit` would parse [::1].example as ::1
        return ""
    try:
        parts = urlsplit(f"//{host}")
        _ = parts.port
    except ValueError:
        return ""
    return (parts.hostname or "").rstrip(".") if parts.netloc == host and "@" not in host else ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _shown(text: str) -> str:
    return repr(text[:200]) if text else "that"


def _preflight(origin: str, headers: Headers) -> Mapping[str, str]:
    return {
        "Access-Control-Allow-Origin": origin,
        "Access-Control-Allow-Methods": "GET, HEAD, POST, PUT, DELETE",
        "Access-Control-Allow-Headers": headers.get("access-control-request-headers", "")[:2000],
        "Access-Control-Max-Age": "600",
        "Vary": "Origin",
    }


def _with(more: Mapping[str, str], send: Send) -> Send:
    """Return a `send` that adds headers to the response."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in more.items():
                headers.append(name, value)
        await send(message)

    return sending


async def _refuse(problem: Problem, scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await respond(problem)(scope, receive, send)
    elif "websocket.http.response" in scope.get("extensions", {}):
        await receive()  # the `websocket.connect` that ASGI sends first
        await respond(problem)(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": problem.detail[:100]})
