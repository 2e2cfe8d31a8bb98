"""Whoever leaves does not wait for ever, and whoever has not come in is told so at once."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.client.nodes import node, run, until
from tools.nodes.ports import free_port

import fieldfare as ff
from fieldfare.client import driver as module
from fieldfare.client.client import Client
from fieldfare.client.errors import ConnectionLost, NotEntered
from fieldfare.client.sync import SyncClient

URL = "ws://127.0.0.1:9"


@pytest.mark.parametrize("session", ["", "ana"])
def test_leaving_a_subscription_while_the_node_is_away(tmp_path: Path, session: str) -> None:
    """The node is told when it is back."""

    async def main() -> None:
        port = free_port()
        stopping = node(tmp_path, port)
        await stopping.__aenter__()
        async with ff.connect(f"ws://127.0.0.1:{port}", session=session) as client:
            async with client.subscribe("x > 0", id="one"):
                await stopping.__aexit__(None, None, None)
                await until(lambda: not client.connected)
            async with node(tmp_path, port) as service:
                await until(lambda: client.connected, 30)
                async with client.subscribe("y > 0", id="one") as events:  # the same id, for something else
                    await client.publish({"x": 1})
                    await client.publish({"y": 1})
                    assert await events.next(10) == {"y": 1}
                await until(lambda: not service.node.core.interest())

    run(main(), 60)


def test_leaving_an_advertisement_while_the_node_is_away(tmp_path: Path) -> None:
    """What was posted under it is accepted first, and it may be used again."""

    async def main() -> None:
        port, settings = free_port(), {"strategy": "covering+ads"}
        stopping = node(tmp_path, port, settings)
        await stopping.__aenter__()
        async with ff.connect(f"ws://127.0.0.1:{port}", session="ana") as client:
            async with client.advertise("x > 0", id="one"):
                await stopping.__aexit__(None, None, None)
                await until(lambda: not client.connected)
                receipt = client.publish_soon({"x": 1})
            async with node(tmp_path, port, settings) as service:
                assert await receipt
                await until(lambda: not service.node.core.broker.clients.get("ana").advertisements)
                async with client.advertise("x > 0", id="one"):
                    await client.publish({"x": 2})

    run(main(), 60)


@pytest.mark.parametrize("posted", [True, False])
def test_leaving_a_client_while_the_node_is_away(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, posted: bool
) -> None:
    monkeypatch.setattr(module, "LEAVE_TIMEOUT", 0.1)

    async def main() -> None:
        stopping = node()
        service = await stopping.__aenter__()

        async def leave() -> None:
            async with ff.connect(service.hood.url, session="ana") as client, client.subscribe("x > 0"):
                await stopping.__aexit__(None, None, None)
                await until(lambda: not client.connected)
                if posted:
                    client.publish_soon({"x": 1})

        if posted:
            with pytest.raises(ConnectionLost, match="1 published events are not safe"):
                await leave()
        else:
            await leave()
            assert "goes on at a as it was" in caplog.text

    run(main(), 60)


def test_a_request_does_not_wait_for_a_node_that_is_away() -> None:
    async def main() -> None:
        stopping = node()
        service = await stopping.__aenter__()
        async with ff.connect(service.hood.url) as client:
            await stopping.__aexit__(None, None, None)
            await until(lambda: not client.connected)
            with pytest.raises(TimeoutError, match="no client replied"):
                await client.request({"x": 1}, timeout=0.1)

    run(main(), 60)


CALLS: dict[str, Callable[[Any], Any]] = {
    "publish": lambda client: client.publish({}),
    "publish_batch": lambda client: client.publish_batch([{}]),
    "publish_soon": lambda client: client.publish_soon({}),
    "wait_for_capacity": lambda client: client.wait_for_capacity(),
    "drain": lambda client: client.drain(),
    "transaction": lambda client: (
        client.transaction().__enter__() if isinstance(client, SyncClient) else client.transaction()
    ),
    "subscribe": lambda client: client.subscribe("x > 0"),
    "advertise": lambda client: (
        client.advertise("x > 0").__enter__() if isinstance(client, SyncClient) else client.advertise("x > 0")
    ),
    "set": lambda client: client.set(budget=1),
    "set_place": lambda client: client.set_place("here"),
    "interest": lambda client: client.interest(),
    "request": lambda client: client.request({}),
    "reply": lambda client: client.reply({"reply_to": "x"}, {}),
    "move": lambda client: client.move(URL),
    "leave_for": lambda client: client.leave_for("b"),
    "leave": lambda client: client.leave(),
    "close": lambda client: client.close(),
}


async def _called(name: str, client: Client) -> None:
    answer = CALLS[name](client)
    if inspect.isawaitable(answer):
        await answer


def _public(kind: type) -> list[str]:
    return [name for name, _ in inspect.getmembers(kind, inspect.isfunction) if name[0] != "_"]


@pytest.mark.parametrize("name", _public(Client))
def test_a_client_that_nobody_has_entered_says_so(name: str) -> None:
    async def main() -> None:
        client = ff.connect(URL)
        assert not client.connected
        with pytest.raises(NotEntered, match="async with"):
            await _called(name, client)

    run(main(), 10)


@pytest.mark.parametrize("name", [name for name in _public(Client) if name != "close"])
def test_a_client_that_is_closed_says_so(name: str) -> None:
    async def main() -> None:
        async with node() as service:
            async with ff.connect(service.hood.url) as client:
                pass
            with pytest.raises(ConnectionLost, match="closed"):
                await _called(name, client)
            await client.close()  # twice does no harm

    run(main(), 10)


@pytest.mark.parametrize("name", _public(SyncClient))
def test_a_client_without_asyncio_says_so_too(name: str) -> None:
    with pytest.raises(NotEntered, match=r"inside `with ff.connect_sync"):
        CALLS[name](ff.connect_sync(URL))


def test_a_client_without_asyncio_that_is_closed_says_so_too() -> None:
    async def main() -> None:
        async with node() as service:
            await asyncio.to_thread(use, service.hood.url)

    def use(url: str) -> None:
        with ff.connect_sync(url) as client:
            pass
        for name in _public(SyncClient):
            with pytest.raises(ConnectionLost, match="closed"):
                CALLS[name](client)

    run(main())


def test_a_subscription_without_asyncio_that_nobody_has_entered_says_so_too() -> None:
    async def main() -> None:
        async with node() as service:
            await asyncio.to_thread(use, service.hood.url)

    def use(url: str) -> None:
        with ff.connect_sync(url) as client:
            with (
                client.subscribe("x > 0") as waiting,
                pytest.raises(TimeoutError, match=r"no event came in 0\.1 seconds"),
            ):
                waiting.next(timeout=0.1)
            for events in (client.subscribe("x > 0"), client.subscribe("x > 0").deliveries()):
                with pytest.raises(NotEntered, match=r"inside `with client\.subscribe"):
                    next(iter(events))

    run(main(), 10)


def test_a_subscription_that_nobody_has_entered_says_so() -> None:
    async def main() -> None:
        async with node() as service, ff.connect(service.hood.url) as client:
            for events in (client.subscribe("x > 0"), client.subscribe("x > 0").deliveries()):
                with pytest.raises(NotEntered, match="async with"):
                    async for _ in events:
                        pass

    run(main(), 10)
