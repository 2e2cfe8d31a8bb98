"""The port answers when the node is ready, and not before."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest
from tests.node.talking import settings, talking
from tools.nodes.ports import free_port
from tools.waiting import PATIENCE

from fieldfare.node import server
from fieldfare.node.server import running


def test_the_port_answers_when_the_node_has_loaded_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    load, begun, go_on = server._load, threading.Event(), threading.Event()

    def slowly() -> None:
        begun.set()
        assert go_on.wait(PATIENCE)
        load()

    monkeypatch.setattr(server, "_load", slowly)

    async def test() -> None:
        port = free_port()
        node = running(settings(flags={"port": port}))
        coming = asyncio.create_task(node.__aenter__())
        try:
            assert await asyncio.to_thread(begun.wait, PATIENCE)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port), 5)
        finally:
            go_on.set()
            service = await coming
        async with talking(service) as ana:
            await ana.subscribe("s", "x > 0")
        await node.__aexit__(None, None, None)

    asyncio.run(test())


def test_of_two_nodes_on_one_port_the_second_says_so() -> None:
    async def test() -> None:
        async with running(settings()) as service:
            flags = {"port": int(service.hood.url.rpartition(":")[2])}
            with pytest.raises(OSError, match=r"cannot listen on .* try another --port"):
                await running(settings("b", flags=flags)).__aenter__()

    asyncio.run(test())


def test_of_two_nodes_that_start_at_once_on_one_port_the_later_says_so() -> None:
    config = settings(flags={"port": free_port()})
    one, other = server._bound(config), server._bound(config)
    server._listen(one, config)
    with pytest.raises(OSError, match=r"cannot listen on .* try another --port"):
        server._listen(other, config)
    one.close()
