"""`Resource`: the application at a path. A resource identifies the caller, calls the handler, and answers errors.

A handler gets a `Call` and returns a response. A method without a handler gets 405 with the allowed methods, which
OPTIONS tells, too. `origins` has decided earlier which web pages may send requests at all.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from fieldfare.node import security
from fieldfare.node.context import Context
from fieldfare.node.http.errors import Problem, problem_of, respond
from fieldfare.node.security import EVERYBODY, Principal

T = TypeVar("T")

JSON: Final = "application/json"


class Call(NamedTuple):
    """A request with its caller and the node."""

    service: Context
    request: Request
    principal: Principal


Handler = Callable[[Call], Awaitable[Response]]
Guard = Callable[[Context, Request], Principal]


def anybody(_: Context, __: Request) -> Principal:
    """Let everybody in; the handler must not use the principal."""
    return EVERYBODY


def known(service: Context, request: Request) -> Principal:
    """Let in callers that the access rules know, if the node is ready; the handler checks further permissions."""
    principal = _principal(service, request)
    _check_ready(service)
    return principal


def administrator(service: Context, request: Request) -> Principal:
    """Let in administrators; GET works even while the node is not ready."""
    principal = _principal(service, request)
    security.may_administer(principal)
    if request.method not in ("GET", "HEAD"):
        _check_ready(service)
    return principal


def _principal(service: Context, request: Request) -> Principal:
    token = security.bearer(request.headers.get("authorization"))
    return security.principal_of(token, service.node.security, service.node.clock())


def _check_ready(service: Context) -> None:
    if not service.node.ready:
        raise Problem(503, f"{service.node.name} is not ready: try again in a moment", {"Retry-After": "1"})


class Resource:
    """The application at a path, with a guard and a handler for each method."""

    def __init__(self, service: Context, guard: Guard, handlers: Mapping[str, Handler]) -> None:
        self._service = service
        self._guard = guard
        self.handlers = handlers

    @property
    def allowed(self) -> str:
        """The methods of this resource, as the `Allow` header has them."""
        heads = ["HEAD"] if "GET" in self.handlers else []
        return ", ".join([*self.handlers, *heads, "OPTIONS"])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request; errors become problem details, and a client that leaves gets no answer."""
        request = Request(scope, receive)
        try:
            response = await self._answer(request)
        except ClientDisconnect:
            return
        except Exception as error:  # noqa: BLE001 - `problem_of` logs unexpected errors
            problem = problem_of(error)
            self._service.node.counters.refused += 400 <= problem.status < 500
            response = respond(problem)
        await response(scope, receive, send)

    async def _answer(self, request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        if method == "OPTIONS" and method not in self.handlers:
            return Response(None, 204, {"Allow": self.allowed})
        handler = self.handlers.get(method)
        if handler is None:
            raise Problem(
                405, f"{request.method} is not allowed here; allowed are {self.allowed}", {"Allow": self.allowed}
            )
        return await handler(Call(self._service, request, self._guard(self._service, request)))


def route(service: Context, path: str, guard: Guard, **handlers: Handler) -> Route:
    """Return a route with handlers by method: `get=...`, `post=...`."""
    by_method = {method.upper(): handler for method, handler in handlers.items()}
    return Route(path, Resource(service, guard, by_method))


def answer(what: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """Return a response with a value as JSON."""
    return Response(msgspec.json.encode(what), status, headers, JSON)


def media_type(request: Request) -> str:
    """Return the content type of a request, in lower case and without parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def body(call: Call) -> bytes:
    """Return the body, read piece by piece: of a body that is too long the node never holds more than the limit."""
    limit = call.service.node.config.limits.body_bytes
    encoding = call.request.headers.get("content-encoding", "identity").strip().lower()
    if encoding != "identity":
        raise Problem(
            415,
            f"the body is encoded as {encoding}, and must be sent without encoding",
            {"Accept-Encoding": "identity"},
        )
    said = call.request.headers.get("content-length", "")
    too_long = Problem(413, f"the body has more than {limit} bytes, the limit of this node (limits.body_bytes)")
    if said.isdecimal() and int(said) > limit:
        raise too_long
    pieces: list[bytes] = []
    size = 0
    async for piece in call.request.stream():
        size += len(piece)
        if size > limit:
            raise too_long
        pieces.append(piece)
    return b"".join(pieces)


async def read(call: Call, kind: type[T]) -> T:
    """Return the JSON body as a value of a type; Problem 415 or 400 if that fails."""
    if media_type(call.request) != JSON:
        raise Problem(415, f"send JSON, with Content-Type: {JSON}", {"Accept": JSON})
    data = await body(call)
    try:
        return msgspec.json.decode(data, type=kind)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Problem(400, f"the body is not JSON: {error}") from None


def only(call: Call, *names: str) -> None:
    """Refuse unknown parameters: a misspelt parameter would silently do nothing."""
    for name in call.request.query_params:
        if name not in names:
            raise Problem(
                400, f"there is no parameter {name[:40]!r}; there are {', '.join(names)}", parameter=name[:40]
            )


def number(call: Call, name: str, default: int, low: int, high: int) -> int:
    """Return a whole number of the query; Problem 400 outside the bounds."""
    text = call.request.query_params.get(name)
    if text is None:
        return default
    if not text.isascii() or not text.isdigit() or len(text) > 15 or not low <= int(text) <= high:
        raise Problem(400, f"{name} is a whole number from {low} to {high}, not {text[:40]!r}", parameter=name)
    return int(text)
