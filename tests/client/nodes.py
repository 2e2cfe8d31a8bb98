"""Real nodes in the same process, for tests of the client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tools.waiting import PATIENCE

from fieldfare.client.client import Client
from fieldfare.node.config import load
from fieldfare.node.context import Context
from fieldfare.node.http import routes
from fieldfare.node.server import running


@contextlib.asynccontextmanager
async def node(
    folder: Path | None = None,
    port: int = 0,
    settings: Mapping[str, Any] = MappingProxyType({}),
    file: Path | None = None,
) -> AsyncIterator[Context]:
    data = {"data": str(folder)} if folder is not None else {"data": ""}
    async with running(load(file, {}, {"port": port, "name": "a", **data, **settings}), routes) as service:
        yield service


def run(work: Coroutine[Any, Any, None], seconds: float = PATIENCE) -> None:
    asyncio.run(asyncio.wait_for(work, seconds))


async def until(true: Callable[[], object], seconds: float = PATIENCE) -> None:
    async with asyncio.timeout(seconds):
        while not true():
            await asyncio.sleep(0.005)


def cut(client: Client) -> None:
    """Break the connection without a word."""
    assert client._driver.connection.socket is not None
    client._driver.connection.socket.transport.abort()
