"""A node on a port: WebSockets for clients and neighbours, HTTP for everything else."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import logging
import socket as sockets
import ssl
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from functools import partial
from typing import Any, Final

import uvicorn
import websockets
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from fieldfare.core.inputs import Attach
from fieldfare.filters import parse
from fieldfare.matching import backend
from fieldfare.node import bridges, security
from fieldfare.node.accepted_socket import AcceptedSocket
from fieldfare.node.config import Config, Limits
from fieldfare.node.connection import ClientConnection
from fieldfare.node.context import HTTP, Context
from fieldfare.node.descriptors import raise_limit, share
from fieldfare.node.handover_sender import HandoverSender
from fieldfare.node.http.errors import Problem, respond
from fieldfare.node.http.origins import Origins
from fieldfare.node.interest import Interests
from fieldfare.node.link_checks import LinkError
from fieldfare.node.link_connection import LinkConnection, keep_linked
from fieldfare.node.listener import ACCEPT, Door, Plain
from fieldfare.node.neighbourhood import Neighbourhood
from fieldfare.node.node import Node
from fieldfare.node.security import AccessDenied
from fieldfare.node.sockets import Socket
from fieldfare.node.web_server import Server
from fieldfare.protocol import link_frames
from fieldfare.protocol.addresses import is_exposed, is_this_machine
from fieldfare.protocol.codec import CODECS
from fieldfare.protocol.problems import VERSION_NEEDED, detail_of
from fieldfare.protocol.versions import Subprotocol, chosen, not_spoken, subprotocols

logger = logging.getLogger("fieldfare.node")

BACKLOG: Final = 4096
"""Connections that may wait to be accepted."""
MEETING: Final = 64 << 10
"""Largest first frame of a neighbour in bytes."""
MakeRoutes = Callable[[Context], list[BaseRoute]]


class _Dialled:
    """The `Socket` of a dialled neighbour."""

    def __init__(self, socket: websockets.ClientConnection) -> None:
        self._socket = socket

    async def receive(self) -> bytes | str | None:
        try:
            return await self._socket.recv()
        except websockets.ConnectionClosed:
            return None

    async def send(self, data: bytes | str) -> None:
        try:
            await self._socket.send(data)
        except websockets.ConnectionClosed as error:
            raise ConnectionError(str(error)) from None

    async def close(self, code: int, reason: str) -> None:
        await self._socket.close(code, reason)


async def nowhere(request: Request, _: Exception) -> Response:
    """Answer a request for a path that does not exist."""
    return respond(Problem(404, f"there is no {request.url.path} here: GET / lists all paths"))


def make_app(service: Context, more: list[BaseRoute], lifespan: Any = None) -> Starlette:
    """Return the ASGI application: WebSockets and HTTP routes."""

    async def client(socket: WebSocket) -> None:
        await _client(service, socket)

    async def link(socket: WebSocket) -> None:
        await _link(service, socket)

    routes = [WebSocketRoute("/", client), WebSocketRoute("/link", link), *more]
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers={404: nowhere})
    app.add_middleware(Origins, config=service.node.config, traffic=service.node.counters)
    return app


async def _client(service: Context, socket: WebSocket) -> None:
    protocol = await _subprotocol(service.node, socket, list(CODECS))
    if protocol is None:
        return
    if len(service.node.closers) >= service.node.config.limits.connections:
        await socket.close(1013, "too many connections")
        return
    await socket.accept(subprotocol=str(protocol))
    accepted = _taken_over(socket)
    token, codec = security.bearer(socket.headers.get("authorization")), CODECS[protocol.form]
    with contextlib.suppress(ConnectionError):
        await ClientConnection(
            service.node, service.interests, accepted, codec, token, version=protocol.version
        ).serve()
    await accepted.closed()


async def _subprotocol(node: Node, socket: WebSocket, forms: list[str]) -> Subprotocol | None:
    """Choose a subprotocol of those that the other side offers; refuse the connection if none is spoken here."""
    offered, highest = socket.scope.get("subprotocols", ()), node.config.speaks
    protocol = chosen(offered, forms, highest)
    if protocol is None:
        problem = Problem(VERSION_NEEDED, not_spoken(node.name, offered, forms, highest))
        await socket.send_denial_response(respond(problem))
    return protocol


def _taken_over(socket: WebSocket) -> AcceptedSocket:
    """Return the socket below ASGI, which has answered the handshake; ASGI makes a task and two queues of a message."""
    accept: Callable[[], AcceptedSocket] = socket.scope["state"][ACCEPT]
    return accept()


async def _link(service: Context, socket: WebSocket) -> None:
    node = service.node
    protocol = await _subprotocol(node, socket, [link_frames.FORM])
    if protocol is None:
        return
    try:
        token = security.bearer(socket.headers.get("authorization"))
        principal = security.principal_of(token, node.security, node.clock())
        security.may_join(principal)
    except AccessDenied as error:
        await socket.close(1008, str(error)[:100])
        return
    await socket.accept(subprotocol=str(protocol))
    accepted = _taken_over(socket)
    accepted.widen(MEETING)
    subject = None if node.security is None else principal.name
    met = partial(accepted.widen, link_frames.MAX_FRAME)
    connection = LinkConnection(service.hood, accepted, protocol.version, dialled=False, subject=subject, met=met)
    unwatch = security.watch(principal, node.security, connection.stop)
    try:
        await connection.serve()
    except (LinkError, TimeoutError, ConnectionError) as error:
        logger.info("link: %s", error)
    finally:
        unwatch()
    await accepted.closed()


def _links(hood: Neighbourhood, config: Config) -> Iterator[tuple[str, Coroutine[Any, Any, None]]]:
    """Yield the neighbours to dial. A node of another domain must not see a token that this domain takes."""

    async def join(url: str) -> tuple[Socket, int]:
        return await _open(url, config, security.joining_token(config, hood.node.clock()))

    for url in config.join:
        yield url, keep_linked(hood, url, join)
    for domain, border in config.federation.borders.items():
        if border.url:
            token = border.token.reveal() or None
            yield border.url, keep_linked(hood, border.url, partial(_open, config=config, token=token), domain)


async def _open(url: str, config: Config, token: str | None) -> tuple[Socket, int]:
    """Dial a neighbour; return the socket and the version to speak."""
    try:
        socket = await websockets.connect(
            url.rstrip("/").removesuffix("/link") + "/link",
            subprotocols=[websockets.Subprotocol(name) for name in subprotocols(link_frames.FORM, config.speaks)],
            additional_headers={"Authorization": f"Bearer {token}"} if token else None,
            ssl=(security.tls_context(config) or ssl.create_default_context()) if url.startswith("wss:") else None,
            compression=None,
            max_size=link_frames.MAX_FRAME,
        )
    except websockets.InvalidHandshake as error:
        body = error.response.body if isinstance(error, websockets.InvalidStatus) else None
        raise LinkError(f"{url} did not take us: {detail_of(body) or error}") from None
    protocol = chosen([socket.subprotocol or ""], [link_frames.FORM], config.speaks)
    if protocol is None:
        await socket.close()
        raise LinkError(f"{url} did not take us: it names no version that {config.name} speaks")
    return _Dialled(socket), protocol.version


@contextlib.asynccontextmanager
async def running(config: Config, routes: MakeRoutes = lambda _: []) -> AsyncIterator[Context]:
    """Run a node on a port for the time of an `async with` block."""
    bridges.make_all(config)  # a mistake in a bridge's settings is found before anything else begins
    door = _door(config)
    listening = _bound(config)
    port = listening.getsockname()[1]
    # The first subscription would wait for these, and everybody with it; nothing is compiled here that was not before.
    loading = asyncio.get_running_loop().run_in_executor(None, _load)
    node = Node(config)
    hood = Neighbourhood(node)
    scheme = "wss" if config.tls is not None and config.tls.certificate else "ws"
    _warn(config)
    hood.url = config.public_url or f"{scheme}://{_printable(config.host)}:{port}"
    service = Context(node, hood, Interests(node))
    HandoverSender(node)
    await node.start()
    if node.security is not None and node.security.revocations is not None:
        node.spawn(node.security.revocations.run())
    await node.submit(Attach(HTTP, node.fresh_name(), durable=False))
    await loading
    try:
        _listen(listening, config)
    except OSError:
        await node.stop()
        raise
    server = Server(_uvicorn(make_app(service, routes(service))))
    serving = asyncio.create_task(server.serve(sockets=[]))  # the door has the socket
    while not server.started and not serving.done():
        await asyncio.sleep(0.01)
    if serving.done():
        await node.stop()
        listening.close()
        serving.result()
        raise OSError("the server has ended at once")
    protocol = partial(Plain, config=server.config, server_state=server.server_state, app_state={})
    tasks = [asyncio.create_task(work, name="door") for work in (door.accept(listening, protocol), door.sweep())]
    tasks += [asyncio.create_task(work, name=f"link to {url}") for url, work in _links(hood, config)]
    node.reports |= {runner.session: runner.status for runner in bridges.start(service)}
    try:
        yield service
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        listening.close()
        node.leaving.set()
        server.end()
        await asyncio.gather(serving, return_exceptions=True)
        await door.close()
        await node.stop()


def _warn(config: Config) -> None:
    """Warn where tokens travel unencrypted; no refusal, since the network may be private."""
    if config.security is not None and config.tls is None and not is_this_machine(config.host):
        logger.warning("tokens come to %s without TLS, and everybody on the way can read them: set [tls]", config.host)
    if config.security is not None or not config.join_token.is_empty:
        borders = [border.url for border in config.federation.borders.values() if border.url]
        for url in filter(is_exposed, [*config.join, *borders]):
            logger.warning("over %s everybody on the way can read the token of this node: use wss://", url)


def _load() -> None:
    """Load the parser; warn where kernels must be compiled. They are loaded in the background, with many filters."""
    parse("price < 10")
    if not backend.cached():
        logger.info("the matching kernels are compiled when this node has many filters; `fieldfare warmup` does it now")


def _bound(config: Config) -> sockets.socket:
    """Bind the node's port against other processes; answers begin when the node is ready."""
    family = sockets.AF_INET6 if ":" in config.host else sockets.AF_INET
    listening = sockets.socket(
        family, sockets.SOCK_STREAM, sockets.IPPROTO_TCP
    )  # else asyncio lets Nagle delay answers
    listening.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    try:
        listening.bind((config.host, config.port))
    except OSError as error:
        listening.close()
        raise _taken(config, error) from None
    return listening


def _listen(listening: sockets.socket, config: Config) -> None:
    try:
        listening.listen(BACKLOG)
    except OSError as error:  # another node was bound to the same port, and was ready before
        listening.close()
        raise _taken(config, error) from None


def _taken(config: Config, error: OSError) -> OSError:
    where = f"{_printable(config.host)}:{config.port}"
    problem = "is in use, by another node perhaps" if error.errno == errno.EADDRINUSE else f"{error.strerror}"
    return OSError(f"cannot listen on {where}: port {config.port} {problem}; try another --port")


def _printable(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _door(config: Config) -> Door:
    """Return the listener, with a limit according to the file descriptors."""
    descriptors = raise_limit()
    most = share(descriptors).connections
    if config.limits.connections > most:
        chosen = config.limits.connections != Limits().connections
        logger.log(
            logging.WARNING if chosen else logging.INFO,
            "limits.connections is %d, but with %d file descriptors there are %d connections at most: raise ulimit -n",
            config.limits.connections,
            descriptors,
            most,
        )
    return Door(config.limits, min(config.limits.connections, most), _tls(config))


def _tls(config: Config) -> ssl.SSLContext | None:
    """Return the TLS settings of the port; None without a certificate."""
    tls = config.tls
    if tls is None or not tls.certificate:
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    # An empty passphrase: OpenSSL would otherwise ask for one at the terminal, and wait.
    context.load_cert_chain(tls.certificate, tls.key, password="")
    return context


def _uvicorn(app: Starlette) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http="httptools",  # `door` extends this and the next
        ws="websockets-sansio",
        ws_per_message_deflate=False,
        ws_ping_interval=None,  # `AcceptedSocket` sends pings
        access_log=False,
        log_level="error",  # warnings are about what strangers send, and there may be very many of them
        lifespan="off",
        server_header=False,
    )
