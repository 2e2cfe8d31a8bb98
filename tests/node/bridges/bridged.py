"""A node with one bridge, for tests with a server on the other side."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
from tests.node.talking import settings, until

from fieldfare.node.bridges import Status
from fieldfare.node.context import Context
from fieldfare.node.server import running


@contextlib.asynccontextmanager
async def bridged(
    table: Mapping[str, Any], folder: Path | None = None, name: str = "a", *, up: bool = True, **flags: object
) -> AsyncIterator[tuple[Context, Callable[[], Status]]]:
    """A node with a bridge called plant."""
    config = msgspec.structs.replace(settings(name, folder, flags), bridge=({"name": "plant", **table},))
    async with running(config) as node:
        status = node.node.reports["bridge:plant"]
        if up:
            await until(lambda: status().up)
        yield node, status
