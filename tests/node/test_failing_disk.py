"""A node that cannot write hangs up. It never says `Refused` of events that may be in its log already."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import pytest
import websockets
from tests.node.talking import settings, talking

import fieldfare as ff
from fieldfare.client.client import Client
from fieldfare.node.context import Context
from fieldfare.node.server import running
from fieldfare.protocol import frames as f
from fieldfare.protocol.journal import Row


def _break(node: Context, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the rows be written no more; the log still is."""

    def fail(rows: Iterable[Row]) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(node.node.storage._store, "commit", fail)


def test_what_was_logged_is_not_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = settings("a", tmp_path)

    async def test() -> None:
        async with running(config) as node, talking(node, "ana") as ana, talking(node, "bob") as bob:
            await ana.subscribe("s", "x > 0")
            await bob.publish(1, {"x": 1})
            _break(node, monkeypatch)
            with pytest.raises(websockets.ConnectionClosed):  # no answer comes
                await bob.publish(2, {"x": 2})
            assert not any(isinstance(frame, f.Refused) for frame in bob.kept)
            byes = [frame for frame in bob.kept if isinstance(frame, f.Bye)]
            assert all(bye.retry for bye in byes)
            with pytest.raises(Exception, match="disk I/O"):
                node.node.failure.result()
        monkeypatch.undo()
        async with running(config) as node, talking(node, "ana") as ana, talking(node, "bob") as bob:
            if bob.welcome.accepted < 2:
                await bob.publish(2, {"x": 2})
            assert await ana.events(2) == [{"x": 1}, {"x": 2}]
            assert await ana.silence()

    asyncio.run(test())


def test_a_client_says_it_again_to_the_node_that_comes_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with running(settings("a", tmp_path)) as node:
            port = int(node.hood.url.rpartition(":")[2])
            client = ff.connect(node.hood.url, session="bob")
            await client.__aenter__()
            await client.publish({"x": 1})
            _break(node, monkeypatch)
            ticket = asyncio.ensure_future(_published(client))
            await asyncio.wait([node.node.failure])
            assert node.node.failure.exception() is not None
        monkeypatch.undo()
        async with running(settings("a", tmp_path, {"port": port})) as node, talking(node, "ana") as ana:
            await asyncio.wait_for(ticket, 60)
            await ana.subscribe("s", "x > 0", 1)
            assert await ana.events(2) == [{"x": 1}, {"x": 2}]
            assert await ana.silence()
            await client.__aexit__(None, None, None)

    async def _published(client: Client) -> None:
        await client.publish({"x": 2})

    asyncio.run(test())
