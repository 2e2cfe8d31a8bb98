from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from tests.client.nodes import cut, node, run, until
from tools.nodes.ports import free_port
from tools.waiting import PATIENCE

import fieldfare as ff
from fieldfare.client.errors import ConnectionLost, Refused


@pytest.mark.parametrize("json", [False, True])
def test_a_restart_of_the_node_is_only_a_pause(tmp_path: Path, json: bool) -> None:
    """Publishing and subscribing go on; nothing is lost and nothing comes twice."""

    async def main() -> None:
        port = free_port()
        url = f"ws://127.0.0.1:{port}"
        seen: list[int] = []
        total, stop = 0, False
        states: list[str] = []

        async def publish() -> None:
            nonlocal total
            async with ff.connect(url, session="pub", json=json) as client:
                while not stop:
                    for _ in range(20):
                        await client.wait_for_capacity()
                        client.publish_soon({"n": total})
                        total += 1
                    await asyncio.sleep(0.002)

        async def subscribe() -> None:
            hook = lambda state, reason: states.append(state)  # noqa: E731
            async with (
                ff.connect(url, session="sub", credit=50, json=json, on_state=hook) as client,
                client.subscribe("n >= 0") as events,
            ):
                ready.set()
                async for event in events:
                    seen.append(event["n"])  # type: ignore[arg-type]
                    if event["n"] % 7 == 0:  # type: ignore[operator]
                        await asyncio.sleep(0)

        ready = asyncio.Event()
        tasks: list[asyncio.Task[None]] = []
        for turn in range(3):
            async with node(tmp_path, port):
                if not tasks:
                    tasks.append(asyncio.create_task(subscribe()))
                    await ready.wait()
                    tasks.append(asyncio.create_task(publish()))
                before = len(seen)
                await until(lambda before=before: len(seen) > before + 100)  # type: ignore[misc]
                if turn == 2:
                    stop = True
                    await tasks[1]
                    await until(lambda: len(seen) >= total)
                    await asyncio.sleep(0.1)
                    tasks[0].cancel()
                    await asyncio.gather(tasks[0], return_exceptions=True)
        assert seen == list(range(total))
        assert states.count("connected") == 3

    run(main())


def test_broken_connections(tmp_path: Path) -> None:
    async def main() -> None:
        async with node(tmp_path) as service:
            dice = random.Random(7)
            seen: list[int] = []
            async with (
                ff.connect(service.hood.url, session="sub", credit=40) as receiver,
                ff.connect(service.hood.url, session="pub") as sender,
                receiver.subscribe("n >= 0") as events,
            ):

                async def take() -> None:
                    async for event in events:
                        seen.append(event["n"])  # type: ignore[arg-type]
                        if dice.random() < 0.05:
                            await asyncio.sleep(0.001)

                taking = asyncio.create_task(take())
                for n in range(3000):
                    await sender.wait_for_capacity()
                    sender.publish_soon({"n": n})
                    if n % 500 == 250:
                        await asyncio.sleep(dice.random() * 0.02)
                        for client in (sender, receiver):
                            if client.connected:
                                cut(client)
                await sender.drain()
                await until(lambda: len(seen) >= 3000)
                await asyncio.sleep(0.1)
                assert seen == list(range(3000))
                await until(lambda: service.node.core.sessions["sub"].acknowledged >= 2999)
                taking.cancel()

    run(main())


def test_without_a_session_all_begins_anew() -> None:
    async def main() -> None:
        async with (
            node() as service,
            ff.connect(service.hood.url) as client,
            client.subscribe("n >= 0") as plain,
            client.subscribe("n >= 0", since=0) as whole,
        ):
            for n in range(3):
                await client.publish({"n": n})
            await until(lambda: whole.waiting == 3)
            before = client.session
            cut(client)
            await service.publish([ff.Event({"n": 3})])  # while it is away
            await until(lambda: client.connected and client.session != before)
            assert await client.publish({"n": 4})
            assert [(await plain.next(PATIENCE))["n"] for _ in range(4)] == [0, 1, 2, 4]
            assert [(await whole.next(PATIENCE))["n"] for _ in range(5)] == [0, 1, 2, 3, 4]
            for n in range(5, 3000):
                client.publish_soon({"n": n})
            for n in range(5, 3000):  # the credit of what came before was given back
                assert (await plain.next(PATIENCE))["n"] == (await whole.next(PATIENCE))["n"] == n

    run(main())


def test_what_was_asked_while_away_is_done_afterwards(tmp_path: Path) -> None:
    async def main() -> None:
        port = free_port()
        async with node(tmp_path, port):
            client = await ff.connect(f"ws://127.0.0.1:{port}", session="ana").__aenter__()
            left = await client.subscribe("x = 1").__aenter__()
            await client.publish({"x": 0})
        await until(lambda: not client.connected)
        subscribing = asyncio.create_task(client.subscribe("x = 2").__aenter__())
        leaving = asyncio.create_task(left.__aexit__(None, None, None))
        publishing = asyncio.create_task(client.publish({"x": 2}))
        await asyncio.sleep(0.05)
        assert not any(task.done() for task in (subscribing, publishing))
        await leaving  # which waits for nobody
        async with node(tmp_path, port) as service:
            events = await subscribing
            assert await publishing
            assert await events.next(PATIENCE) == {"x": 2}
            assert list(service.node.core.broker.clients.all["ana"].subscriptions) == ["x = 2"]
            await client.close()

    run(main())


def test_a_refusal_that_was_lost_comes_again(tmp_path: Path) -> None:
    """The node has refused one event and accepted the next, and the connection broke before it could say so."""

    async def main() -> None:
        async with (
            node(tmp_path, settings={"strategy": "covering+ads"}) as service,
            ff.connect(service.hood.url, session="ana") as client,
            client.advertise("good = TRUE"),
        ):
            assert client._driver.connection.socket is not None
            client._driver.connection.socket.transport.pause_reading()
            bad = asyncio.create_task(client.publish({"good": False}))
            await asyncio.sleep(0.05)
            good = asyncio.create_task(client.publish({"good": True}))
            await until(lambda: service.node.storage.log.last == 1)
            cut(client)
            with pytest.raises(Refused, match="no advertisement"):
                await bad
            assert await good
            assert service.node.storage.log.last == 1

    run(main())


def test_no_reconnecting_if_not_wanted() -> None:
    async def main() -> None:
        async with (
            node() as service,
            ff.connect(service.hood.url, reconnect=False) as client,
            client.subscribe("TRUE") as events,
        ):
            cut(client)
            with pytest.raises(ConnectionLost, match="broke"):
                await events.next(PATIENCE)
            assert client.closed

    run(main())


def test_another_node_takes_over() -> None:
    async def main() -> None:
        async with node(settings={"name": "b"}) as second:
            async with node() as first:
                client = await ff.connect([first.hood.url, second.hood.url]).__aenter__()
                subscription = client.subscribe("x > 0")
                events = await subscription.__aenter__()
                assert client.node == "a"
            await until(lambda: client.node == "b")
            await client.publish({"x": 1})
            assert await events.next(PATIENCE) == {"x": 1}
            await client.close()

    run(main())


def test_what_is_wanted_is_asked_again() -> None:
    async def main() -> None:
        async with node() as service, ff.connect(service.hood.url, quench=True) as client:
            assert not await client.publish({"x": 1})
            before = client.session
            cut(client)
            await until(lambda: client.session != before)
            assert await client.interest() == ()
            assert not await client.publish({"x": 1})

    run(main())
