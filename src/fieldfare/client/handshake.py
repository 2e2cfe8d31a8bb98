"""The handshake with a node: a WebSocket, `Hello`, and `Welcome`."""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import websockets
import websockets.uri

from fieldfare.client.errors import ConnectionLost, ConnectionRefused
from fieldfare.protocol import frames as f
from fieldfare.protocol.addresses import is_exposed
from fieldfare.protocol.codec import Codec, FrameError
from fieldfare.protocol.problems import VERSION_NEEDED, detail_of
from fieldfare.protocol.versions import subprotocols

logger = logging.getLogger("fieldfare.client")

PATIENCE: Final = 10.0
"""Seconds for a node to answer."""


class Dialled(NamedTuple):
    """A WebSocket to a node, and the node's answer to `Hello`."""

    socket: websockets.ClientConnection
    welcome: f.Welcome


class Redirected(ConnectionLost):
    """Another node has the members of the session."""

    def __init__(self, reason: str, to: str) -> None:
        super().__init__(reason)
        self.to = to


def check_url(url: str) -> None:
    """Raise a ValueError for a text that is no WebSocket URL."""
    try:
        websockets.uri.parse_uri(url)
    except (websockets.InvalidURI, ValueError):
        raise ValueError(f"{url!r} is no URL of a node: write ws://host:port, or wss://host:port") from None


async def dial(
    urls: list[str],
    codec: Codec[Any],
    ssl: tls.SSLContext | None,
    hello: Callable[[], f.Hello],
    wait: Callable[[str], None] = lambda _: None,
    *,
    insecure: bool = False,
) -> Dialled:
    """Connect to the first URL with an answer. URLs without an answer go to the end of the list.

    `wait` is called with the name of the node that still has the session. Without `insecure` no token is sent where
    others can read the traffic.
    """
    problems = []
    for url in tuple(urls):
        try:
            return await _dial_one(url, codec, ssl, hello, wait, insecure=insecure)
        except (OSError, TimeoutError, websockets.InvalidHandshake, websockets.ConnectionClosed) as error:
            if isinstance(error, ConnectionRefused | Redirected):
                raise
            problems.append(f"{url}: {str(error) or type(error).__name__}")
            urls.append(urls.pop(0))
    raise ConnectionLost("no node answers at " + "; ".join(problems))


async def _dial_one(
    url: str,
    codec: Codec[Any],
    ssl: tls.SSLContext | None,
    hello: Callable[[], f.Hello],
    wait: Callable[[str], None],
    *,
    insecure: bool,
) -> Dialled:
    first = hello()
    if (first.token or first.ticket) and is_exposed(url):
        problem = f"over {url} everybody on the way can read your token: use wss://"
        if not insecure:
            raise ConnectionRefused(f"{problem}, or set insecure=True")
        logger.warning(problem)
    offered = [websockets.Subprotocol(name) for name in subprotocols(codec.form)]
    options: dict[str, Any] = {"ssl": ssl} if ssl is not None else {}
    try:
        socket = await websockets.connect(
            url, subprotocols=offered, compression=None, max_size=None, close_timeout=2, **options
        )
    except websockets.InvalidStatus as error:
        if error.response.status_code == VERSION_NEEDED:
            raise ConnectionRefused(f"{url}: {detail_of(error.response.body) or error}") from None
        raise
    try:
        if socket.subprotocol not in offered:
            raise ConnectionRefused(f"{url} is no node of Fieldfare, or of another version: it knows no {offered}")
        await socket.send(codec.encode(first))
        welcome = await _receive(socket, codec)
        while isinstance(welcome, f.Waiting):
            wait(welcome.source)
            welcome = await _receive(socket, codec)
        if isinstance(welcome, f.Bye):
            if welcome.to:
                raise Redirected(welcome.reason, welcome.to)
            raise ConnectionLost(welcome.reason) if welcome.retry else ConnectionRefused(welcome.reason)
        if not isinstance(welcome, f.Welcome):
            raise ConnectionRefused(f"{url} answered with {type(welcome).__name__} instead of Welcome")
        if (first.shared and not welcome.shared) or first.device != welcome.device:
            raise ConnectionRefused(f"{welcome.node} knows no shared sessions: it has an earlier version of Fieldfare")
    except FrameError as error:
        await socket.close()
        raise ConnectionRefused(f"{url} is no node of Fieldfare: {error}") from None
    except BaseException:
        await socket.close()
        raise
    return Dialled(socket, welcome)


async def _receive(socket: websockets.ClientConnection, codec: Codec[Any]) -> f.FromNode:
    async with asyncio.timeout(PATIENCE):  # `wait_for` may swallow a cancellation in Python 3.11
        return codec.from_node(await socket.recv())


def reason_of(closed: websockets.ConnectionClosed) -> str:
    """Return the reason of a closed WebSocket, for people."""
    received = closed.rcvd
    return (
        f"the node closed the connection: {received.reason or received.code}"
        if received is not None
        else "the connection broke"
    )
