"""A node on a port: WebSockets for clients and neighbours, HTTP for everything else."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket as sockets
import ssl
from collections.abc import AsyncIterator, Callable
from typing import Any

import uvicorn
import websockets
from starlette.applications import Starlette
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from fieldfare.node import bridges, security
from fieldfare.node.carrying import Carrier
from fieldfare.node.config import Config
from fieldfare.node.connection import Connection
from fieldfare.node.links import LARGEST_FRAME, LINK, LinkConnection, LinkError, Neighbourhood
from fieldfare.node.node import Node
from fieldfare.node.security import AccessDenied
from fieldfare.node.service import HTTP, Service
from fieldfare.node.wanted import Wishes
from fieldfare.protocol.addresses import is_exposed, is_this_machine
from fieldfare.protocol.codec import CODECS

logger = logging.getLogger("fieldfare.node")

MakeRoutes = Callable[[Service], list[BaseRoute]]


class _Accepted:
    """A WebSocket of a client or a neighbour that came to us."""

    def __init__(self, socket: WebSocket) -> None:
        self._socket = socket

    async def receive(self) -> bytes | str | None:
        message = await self._socket.receive()
        if message["type"] == "websocket.disconnect":
            return None
        data: bytes | str | None = message.get("bytes")
        return data if data is not None else message.get("text", "")

    async def send(self, data: bytes | str) -> None:
        try:
            if isinstance(data, bytes):
                await self._socket.send_bytes(data)
            else:
                await self._socket.send_text(data)
        except (RuntimeError, OSError, WebSocketDisconnect) as error:  # so Starlette says that it is closed
            raise ConnectionError(str(error)) from None

    async def close(self, code: int, reason: str) -> None:
        with contextlib.suppress(RuntimeError, OSError, WebSocketDisconnect):
            await self._socket.close(code, reason)


class _Dialled:
    """A WebSocket to a neighbour that we went to."""

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


def make_app(service: Service, more: list[BaseRoute], lifespan: Any = None) -> Starlette:
    """All that answers."""

    async def client(socket: WebSocket) -> None:
        await _client(service, socket)

    async def link(socket: WebSocket) -> None:
        await _link(service, socket)

    return Starlette(routes=[WebSocketRoute("/", client), WebSocketRoute("/link", link), *more], lifespan=lifespan)


async def _client(service: Service, socket: WebSocket) -> None:
    codec = next((CODECS[name] for name in socket.scope.get("subprotocols", ()) if name in CODECS), None)
    if codec is None:
        await socket.close(1002, f"say which subprotocol: {' or '.join(CODECS)}")
        return
    if len(service.node.closers) >= service.node.config.limits.connections:
        await socket.close(1013, "too many connections")
        return
    await socket.accept(subprotocol=codec.name)
    token = security.bearer(socket.headers.get("authorization"))
    with contextlib.suppress(ConnectionError):
        await Connection(service.node, service.wishes, _Accepted(socket), codec, token).serve()


async def _link(service: Service, socket: WebSocket) -> None:
    node = service.node
    if LINK not in socket.scope.get("subprotocols", ()):
        await socket.close(1002, f"say which subprotocol: {LINK}")
        return
    try:
        token = security.bearer(socket.headers.get("authorization"))
        principal = security.principal_of(token, node.security, node.clock())
        security.may_join(principal)
    except AccessDenied as error:
        await socket.close(1008, str(error)[:100])
        return
    await socket.accept(subprotocol=LINK)
    subject = None if node.security is None else principal.name
    connection = LinkConnection(service.hood, _Accepted(socket), dialled=False, subject=subject)
    unwatch = security.watch(principal, node.security, connection.end)
    try:
        await connection.serve()
    except (LinkError, TimeoutError, ConnectionError) as error:
        logger.info("link: %s", error)
    finally:
        unwatch()


async def _open(url: str, config: Config, node: Node) -> _Dialled:
    """Go to a neighbour."""
    token = security.joining_token(config, node.clock())
    try:
        socket = await websockets.connect(
            url.rstrip("/").removesuffix("/link") + "/link",
            subprotocols=[websockets.Subprotocol(LINK)],
            additional_headers={"Authorization": f"Bearer {token}"} if token else None,
            ssl=security.tls_context(config) if url.startswith("wss:") else None,
            compression=None,
            max_size=None,
        )
    except websockets.InvalidHandshake as error:
        raise LinkError(f"{url} did not take us: {error}") from None
    return _Dialled(socket)


@contextlib.asynccontextmanager
async def running(config: Config, routes: MakeRoutes = lambda _: []) -> AsyncIterator[Service]:
    """A node that answers, as long as it is used with `async with`."""
    bridges.make_all(config)  # a mistake there is found before anything else begins
    listening = _listen(config)
    port = listening.getsockname()[1]
    node = Node(config)
    hood = Neighbourhood(node)
    scheme = "wss" if config.tls is not None and config.tls.certificate else "ws"
    _warn(config)
    hood.url = config.public_url or f"{scheme}://{_printable(config.host)}:{port}"
    service = Service(node, hood, Wishes(node))
    Carrier(node)
    await node.start()
    if node.security is not None and node.security.revocations is not None:
        node.beside(node.security.revocations.run())
    await node.submit(lambda broker, now: broker.attach(HTTP, node.fresh(), now, durable=False))
    server = uvicorn.Server(_uvicorn(config, make_app(service, routes(service))))
    server.install_signal_handlers = lambda: None  # type: ignore[attr-defined]
    tasks = [asyncio.create_task(server.serve(sockets=[listening]))]
    while not server.started and not tasks[0].done():
        await asyncio.sleep(0.01)
    if tasks[0].done():
        await node.stop()
        listening.close()
        tasks[0].result()  # a certificate that cannot be used, say
        raise OSError("the server has ended at once")
    tasks += [
        asyncio.create_task(hood.dial(url, lambda to: _open(to, config, node)), name=f"link to {url}")
        for url in config.join
    ]
    node.reports |= {runner.session: runner.status for runner in bridges.start(service)}
    try:
        yield service
    finally:
        for task in tasks[1:]:
            task.cancel()
        await asyncio.gather(*tasks[1:], return_exceptions=True)
        node.leaving.set()
        server.should_exit = True
        await asyncio.gather(tasks[0], return_exceptions=True)
        await node.stop()


def _warn(config: Config) -> None:
    """Say where tokens can be read on their way: a network may be private, so it is not refused."""
    if config.security is not None and config.tls is None and not is_this_machine(config.host):
        logger.warning("tokens come to %s without TLS, and everybody on the way can read them: set [tls]", config.host)
    if config.security is not None or not config.join_token.is_empty:
        for url in filter(is_exposed, config.join):
            logger.warning("over %s everybody on the way can read the token of this node: use wss://", url)


def _listen(config: Config) -> sockets.socket:
    family = sockets.AF_INET6 if ":" in config.host else sockets.AF_INET
    listening = sockets.socket(
        family, sockets.SOCK_STREAM, sockets.IPPROTO_TCP
    )  # else asyncio lets Nagle delay answers
    listening.setsockopt(sockets.SOL_SOCKET, sockets.SO_REUSEADDR, 1)
    try:
        listening.bind((config.host, config.port))
    except OSError as error:
        listening.close()
        raise OSError(f"cannot listen on {config.host}:{config.port}: {error.strerror}; try another --port") from None
    listening.listen(4096)
    return listening


def _printable(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _uvicorn(config: Config, app: Starlette) -> uvicorn.Config:
    tls = config.tls
    return uvicorn.Config(
        app,
        http="httptools",
        ws="websockets-sansio",
        ws_max_size=max(config.limits.frame_bytes, LARGEST_FRAME),  # of clients fewer are taken: see `Connection`
        ws_per_message_deflate=False,
        access_log=False,
        log_level="warning",
        lifespan="off",
        timeout_graceful_shutdown=2,
        server_header=False,
        ssl_certfile=tls.certificate if tls is not None and tls.certificate else None,
        ssl_keyfile=tls.key if tls is not None and tls.key else None,
        ssl_version=ssl.PROTOCOL_TLS_SERVER,
    )
