"""`Origins`: which web pages may speak to a node. It stands before all that answers, HTTP and WebSockets alike.

A browser sends requests to any address that a page names, this machine included, so a node that only this machine
reaches is still in reach of every page that somebody opens. Two headers, which no page can change, tell them apart:

- `Host` is the name by which the browser knows the node. A page can let its own name lead here (*DNS rebinding*), and
  is then of the same origin. So the name must be one of the node's own: an address, `localhost`, the name of this
  machine, `host`, that of `public_url`, or one of `http.hosts`. An address cannot be made to lead elsewhere.
- `Origin` is where the page comes from. It must be the node itself, or be named in `http.origins`. Then, and only then,
  answers say so (CORS). A page without an origin says `null`, and is refused.

Where `Origin` is missing no page can read the answer; browsers of today then say `Sec-Fetch-Site`, by which such a
request is refused too, but for a link to the dashboard. Browsers always send `Origin` with a WebSocket: one without it
is no browser's, and may call the node as it likes, so that nodes and clients need no settings.
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
"""what a link on a page from elsewhere may lead to, with all below /dashboard"""
_HOST: Final = re.compile(r"(\[[^\[\]]*\]|[^\[\]:]*)(:[0-9]*)?")
_ELSEWHERE: Final = frozenset({"cross-site", "same-site"})
_EXPOSED: Final = "Location, Retry-After, WWW-Authenticate"


class Origins:
    """An application that answers only those who may speak to it."""

    def __init__(self, app: ASGIApp, config: Config, traffic: Counters) -> None:
        """The settings say who may."""
        self._app = app
        self._traffic = traffic
        self._allowed = frozenset(config.http.origins)
        public = urlsplit(config.public_url)
        names = ("localhost", socket.gethostname(), config.host, public.hostname or "", *config.http.hosts)
        self._hosts = frozenset(name.lower().rstrip(".") for name in names if name)
        self._own = origin_of(f"http{'s' if public.scheme in ('wss', 'https') else ''}://{public.netloc}")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer, or refuse."""
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
                f"this node is not called {_shown(name)}: if it should be, add that to hosts in [http] of its settings"
                " (FIELDFARE_HTTP_HOSTS)",
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
                f"pages from {_shown(', '.join(origins))} may not speak to this node: if they should, add that to"
                " origins in [http] of its settings (FIELDFARE_HTTP_ORIGINS, or fieldfare up --origin)",
                setting="http.origins",
            )

    def _check_site(self, scope: Scope, headers: Headers) -> None:
        """A page may not send requests from elsewhere without saying from where, but lead people to the dashboard."""
        if headers.get("sec-fetch-site", "") not in _ELSEWHERE:
            return
        path = scope["path"]
        visits = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest", "document") == "document"
        if scope["method"] in ("GET", "HEAD") and visits and (path in PAGES or path.startswith("/dashboard/")):
            return
        raise Problem(
            403,
            "a page from elsewhere may not send this request: only origins in [http] of the settings may"
            " (FIELDFARE_HTTP_ORIGINS)",
            setting="http.origins",
        )


def _name(host: str) -> str:
    """The name in a `Host` header, without a port."""
    if not _HOST.fullmatch(host):  # `urlsplit` reads [::1].example as ::1
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
    """Send with more headers."""

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
        await receive()  # what asks to connect
        await respond(problem)(scope, receive, send)
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": problem.detail[:100]})
