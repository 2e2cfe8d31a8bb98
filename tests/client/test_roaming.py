"""Clients that go from node to node: the application sees one unbroken stream."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from tests.client.nodes import cut, node, run, until
from tools.nodes.ports import free_port
from tools.waiting import PATIENCE

import fieldfare as ff
from fieldfare.client.client import Client
from fieldfare.client.errors import ConnectionLost, ConnectionRefused, Refused
from fieldfare.client.subscription import Subscription
from fieldfare.node.context import Context


@contextlib.asynccontextmanager
async def line(folder: Path | None = None) -> AsyncIterator[list[Context]]:
    """Three nodes, a – b – c."""
    async with contextlib.AsyncExitStack() as stack:
        services: list[Context] = []
        for name in "abc":
            join = [services[-1].hood.url] if services else []
            data = folder / name if folder is not None else None
            services.append(await stack.enter_async_context(node(data, settings={"name": name, "join": join})))
        await until(lambda: all(len(one.hood.reachable()) == 3 for one in services))
        yield services


async def publish(client: Client, count: int, pause: float = 0.002) -> None:
    for number in range(count):
        await client.publish({"n": number})
        await asyncio.sleep(pause)


async def take(events: Subscription[ff.Event], count: int) -> list[object]:
    return [(await events.next(PATIENCE))["n"] for _ in range(count)]


def test_both_sides_move_and_nothing_is_lost(tmp_path: Path) -> None:
    async def work() -> None:
        async with (
            line(tmp_path) as nodes,
            ff.connect(nodes[0].hood.url, session="taxi") as taxi,
            ff.connect(nodes[2].hood.url, session="office") as office,
            office.subscribe("n >= 0") as events,
        ):
            await until(nodes[0].node.core.interest)
            driving = asyncio.create_task(publish(taxi, 300))
            taking = asyncio.create_task(take(events, 300))
            for there, back in ((1, 0), (2, 1), (0, 2), (2, 0), (1, 1)):
                await asyncio.gather(office.move(nodes[back].hood.url), taxi.move(nodes[there].hood.url))
                assert (office.node, taxi.node) == ("abc"[back], "abc"[there])
                await asyncio.sleep(0.05)
            await driving
            assert await taking == list(range(300))
            await office.publish({"n": -1})
            assert events.waiting == 0
        assert [len(one.node.core.sessions) for one in nodes] == [1, 3, 1]  # each has one for HTTP

    run(work())


def test_a_client_that_is_cut_off_goes_on_elsewhere() -> None:
    async def work() -> None:
        states: list[str] = []
        async with contextlib.AsyncExitStack() as stack:
            b = await stack.enter_async_context(node(settings={"name": "b"}))
            a = await stack.enter_async_context(node(settings={"name": "a", "join": [b.hood.url]}))
            await until(lambda: len(a.hood.reachable()) == 2 == len(b.hood.reachable()))
            dead = f"ws://127.0.0.1:{free_port()}"
            urls = [a.hood.url, b.hood.url]
            roamer = ff.connect(urls, session="r", on_state=lambda state, _: states.append(state))
            await stack.enter_async_context(roamer)
            publisher = await stack.enter_async_context(ff.connect(b.hood.url))
            events = await stack.enter_async_context(roamer.subscribe("n >= 0"))
            await until(b.node.core.interest)
            await publish(publisher, 10)
            assert await take(events, 5) == [0, 1, 2, 3, 4]
            roamer._driver.connection.addresses.urls[0] = dead  # the first node is alive, but not for us
            cut(roamer)
            await publish(publisher, 10)
            assert await take(events, 15) == [5, 6, 7, 8, 9, *range(10)]
            assert roamer.node == "b"
            assert "waiting" in states
            assert "r" not in a.node.core.sessions

    run(work())


def test_a_session_comes_when_its_node_is_back(tmp_path: Path) -> None:
    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            port = free_port()
            b = await stack.enter_async_context(node(tmp_path / "b", settings={"name": "b"}))
            settings = {"name": "a", "join": [b.hood.url]}
            async with node(tmp_path / "a", port, settings) as a:
                await until(lambda: len(b.hood.reachable()) == 2 == len(a.hood.reachable()))
                async with ff.connect(a.hood.url, session="r") as client, client.subscribe("n >= 0", keep=True):
                    pass
                await publish(await stack.enter_async_context(ff.connect(a.hood.url)), 5)
                await until(b.node.core.interest)
            publisher = await stack.enter_async_context(ff.connect(b.hood.url))
            await publish(publisher, 5)
            roamer = ff.connect(b.hood.url, session="r", at="a")
            coming = asyncio.create_task(roamer.__aenter__())
            await asyncio.sleep(0.3)
            assert not coming.done()
            await stack.enter_async_context(node(tmp_path / "a", port, settings))
            await coming
            stack.push_async_exit(roamer)
            events = await stack.enter_async_context(roamer.subscribe("n >= 0"))
            assert await take(events, 10) == [0, 1, 2, 3, 4] * 2

    run(work())


def test_who_does_not_say_where_he_was_is_still_found() -> None:
    async def work() -> None:
        async with line() as nodes:
            async with ff.connect(nodes[0].hood.url, session="s") as client, client.subscribe("n >= 0", keep=True):
                await client.move(nodes[2].hood.url)
            async with ff.connect(nodes[1].hood.url) as publisher:
                await publish(publisher, 3)
            async with ff.connect(nodes[0].hood.url, session="s") as client, client.subscribe("n >= 0") as events:
                assert await take(events, 3) == [0, 1, 2]

    run(work())


def test_a_move_that_cannot_be_leaves_everything_as_it_is() -> None:
    async def work() -> None:
        async with (
            line() as nodes,
            ff.connect(nodes[0].hood.url, session="s") as client,
            client.subscribe("n >= 0") as events,
        ):
            with pytest.raises(ConnectionLost):
                await client.move(f"ws://127.0.0.1:{free_port()}")
            async with ff.connect(nodes[2].hood.url, session="s"):  # another one of the same name
                with pytest.raises(ConnectionRefused, match="another session s"):
                    await client.move(nodes[2].hood.url)
            await publish(client, 3)
            assert await take(events, 3) == [0, 1, 2]
            assert client.node == "a"

    run(work())


def test_without_a_session_a_move_is_a_new_beginning() -> None:
    async def work() -> None:
        async with (
            line() as nodes,
            ff.connect(nodes[0].hood.url) as client,
            client.subscribe("n >= 0") as events,
        ):
            await client.move(nodes[1].hood.url)
            await publish(client, 3)
            assert await take(events, 3) == [0, 1, 2]
            assert client.node == "b"

    run(work())


def test_a_keeper_stands_in_for_a_node_that_never_comes_back(tmp_path: Path) -> None:
    async def work() -> None:
        kept = {"sessions.replicas": 1, "sessions.patience_seconds": 0.3}
        async with contextlib.AsyncExitStack() as stack:
            b = await stack.enter_async_context(node(tmp_path / "b", settings={"name": "b", **kept}))
            c = await stack.enter_async_context(
                node(tmp_path / "c", settings={"name": "c", "join": [b.hood.url], **kept})
            )
            async with contextlib.AsyncExitStack() as first:
                a = await first.enter_async_context(
                    node(tmp_path / "a", settings={"name": "a", "join": [b.hood.url], **kept})
                )
                await until(lambda: all(len(one.hood.reachable()) == 3 for one in (a, b, c)))
                roamer = ff.connect([a.hood.url, c.hood.url], session="r")
                await stack.enter_async_context(roamer)
                events = await stack.enter_async_context(roamer.subscribe("n >= 0"))
                await until(lambda: "r" in b.node.core.replicas.held)
                publisher = await stack.enter_async_context(ff.connect(c.hood.url))
                await until(c.node.core.interest)
                await publish(publisher, 10)
                assert await take(events, 5) == [0, 1, 2, 3, 4]
            await publish(publisher, 10)
            assert await take(events, 15) == [5, 6, 7, 8, 9, *range(10)]
            assert roamer.node == "c"
            await publish(roamer, 1)
            assert await take(events, 1) == [0]

    run(work())


def test_a_node_sends_a_client_elsewhere() -> None:
    async def work() -> None:
        async with (
            line() as nodes,
            ff.connect(nodes[0].hood.url, session="s") as client,
            client.subscribe("n >= 0") as events,
        ):
            publishing = asyncio.create_task(publish(client, 50))
            await asyncio.sleep(0.05)
            asked = Request(f"{nodes[0].hood.url.replace('ws', 'http', 1)}/admin/moves", method="POST")
            asked.data, asked.headers = b'{"session": "s", "to": "c"}', {"Content-type": "application/json"}
            assert (await asyncio.to_thread(urlopen, asked)).status == 202
            await publishing
            assert await take(events, 50) == list(range(50))
            assert client.node == "c"

    run(work())


def test_a_session_that_nobody_has_any_more_begins_anew() -> None:
    async def work() -> None:
        async with (
            line() as nodes,
            ff.connect(nodes[0].hood.url, session="s") as client,
            client.subscribe("n >= 0") as events,
        ):
            await nodes[0].node.submit(lambda core, now: core.sessions.end("s", now))
            await client.move(nodes[1].hood.url)
            await publish(client, 3)
            assert await take(events, 3) == [0, 1, 2]

    run(work())


def test_a_session_that_nobody_has_used_gives_way() -> None:
    """A node that was slow may have one of a client that went elsewhere before it was answered."""

    async def work() -> None:
        async with (
            line() as nodes,
            ff.connect(nodes[0].hood.url, session="taxi") as taxi,
            taxi.subscribe("n >= 0") as events,
        ):
            await nodes[2].node.submit(lambda core, now: core.presence.attach("taxi", "another", now))
            await nodes[2].node.submit(lambda core, now: core.presence.detach("taxi", now))
            await taxi.move(nodes[2].hood.url)
            await taxi.publish({"n": 1})
            assert await take(events, 1) == [1]

    run(work())


def test_who_is_coming_back_does_so_before_he_moves() -> None:
    async def work() -> None:
        async with (
            line() as nodes,
            ff.connect([one.hood.url for one in nodes], session="s") as client,
            client.subscribe("n >= 0") as events,
        ):
            cut(client)
            await until(lambda: not client.connected)
            await client.move(nodes[2].hood.url)
            await publish(client, 3)
            assert await take(events, 3) == [0, 1, 2]
            assert client.node == "c"

    run(work())


@pytest.mark.parametrize("session", ["", "s"])
def test_who_is_cancelled_goes_though_no_node_answers(session: str) -> None:
    async def work() -> None:
        entered = asyncio.Event()

        async def watch(url: str) -> None:
            async with ff.connect(url, session=session) as client, client.subscribe("n >= 0") as events:
                entered.set()
                async for _ in events:
                    pass

        async with node() as one:
            task = asyncio.create_task(watch(one.hood.url))
            await entered.wait()
        task.cancel()
        done, _ = await asyncio.wait({task}, timeout=PATIENCE)
        assert done

    run(work())


def test_a_program_ends_whatever_it_has_subscribed_to() -> None:
    async def work() -> None:
        entered = asyncio.Event()

        async def watch(url: str) -> None:
            async with ff.connect(url) as client, client.subscribe("n >= 0") as events:
                entered.set()
                async for _ in events:
                    pass

        async with node() as one:
            task = asyncio.create_task(watch(one.hood.url))
            await entered.wait()
            client = next(other for other in asyncio.all_tasks() if other.get_name() == "fieldfare client")
            task.cancel()
            client.cancel()  # as asyncio.run does with all at once
            done, _ = await asyncio.wait({task}, timeout=PATIENCE)
            assert done

    run(work())


def test_a_move_to_where_one_is_changes_nothing() -> None:
    async def work() -> None:
        async with (
            line() as nodes,
            ff.connect(nodes[0].hood.url, session="s") as client,
            client.subscribe("n >= 0") as events,
        ):
            await client.move(nodes[0].hood.url)
            await publish(client, 3)
            assert await take(events, 3) == [0, 1, 2]

    run(work())


def test_who_has_lost_his_node_is_told_where_to_go() -> None:
    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            async with node(settings={"name": "a"}) as one:
                client = await stack.enter_async_context(ff.connect(one.hood.url))
            other = await stack.enter_async_context(node(settings={"name": "b"}))
            await client.move(other.hood.url)
            assert await client.publish({"n": 1})
            assert client.node == "b"

    run(work())


def test_whoever_closes_ends_a_move() -> None:
    async def work() -> None:
        async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while await reader.read(1000):
                pass
            writer.close()

        server = await asyncio.start_server(silent, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with node() as one:
            client = await ff.connect(one.hood.url, session="s").__aenter__()
            moving = asyncio.create_task(client.move(f"ws://127.0.0.1:{port}"))
            await asyncio.sleep(0.05)
            await client.close()
            with pytest.raises(ConnectionLost):
                await moving
        server.close()
        await asyncio.sleep(0.05)

    run(work())


def test_advertisements_go_ahead_and_linger(tmp_path: Path) -> None:
    async def work() -> None:
        settings = {"strategy": "covering+ads", "mobility.publisher_policy": "prefetch-delayed"}
        async with (
            node(settings={"name": "b", **settings}) as b,
            node(tmp_path, settings={"name": "a", "join": [b.hood.url], **settings}) as a,
        ):
            await until(lambda: len(a.hood.reachable()) == 2 == len(b.hood.reachable()))
            async with ff.connect(a.hood.url, session="taxi") as taxi, taxi.advertise("n >= 0"):
                with pytest.raises(Refused, match="knows no way to the node nowhere"):
                    await taxi.leave_for("nowhere")
                await taxi.leave_for("b")
                await until(lambda: "taxi" in b.node.core.stand_ins)
                await taxi.move(b.hood.url)
                await until(lambda: "taxi" in a.node.core.stand_ins and "taxi" not in b.node.core.stand_ins)
                await taxi.publish({"n": 1})

    run(work())
