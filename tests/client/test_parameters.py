"""Dynamic filters and places of sessions, at real nodes."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.client.nodes import cut, node, run, until
from tools.nodes.ports import free_port
from tools.waiting import PATIENCE

import fieldfare as ff
from fieldfare.client.errors import Refused
from fieldfare.client.subscription import Subscription

PARKING = "service = 'parking' AND location IN myloc"


def parking(place: str, number: int = 0) -> dict[str, object]:
    return {"service": "parking", "location": place, "n": number}


@contextlib.asynccontextmanager
async def street(tmp_path: Path, **settings: object) -> AsyncIterator[Any]:
    """A node with a street of four places."""
    graph = tmp_path / "street.toml"
    graph.write_text("1 = ['2']\n2 = ['3']\n3 = ['4']\n", "utf-8")
    async with node(settings={"places.graph": str(graph), **settings}) as service:
        yield service


async def take(events: Subscription[ff.Event], count: int) -> list[object]:
    return [(await events.next(PATIENCE))["n"] for _ in range(count)]


def test_a_place_decides_what_comes(tmp_path: Path) -> None:
    async def work() -> None:
        async with street(tmp_path) as service, ff.connect(service.hood.url) as client:
            async with client.subscribe(PARKING) as events:
                await client.publish(parking("1", 1))  # no place is stated yet
                await client.set_place("1")
                await client.publish_batch([parking("1", 2), parking("2", 3)])
                await client.set_place("2")
                await client.publish_batch([parking("1", 4), parking("2", 5)])
                await client.set_place(None)
                await client.publish(parking("2", 6))
                await client.set_place("3")
                await client.publish(parking("3", 7))
                assert await take(events, 3) == [2, 5, 7]
            with pytest.raises(Refused, match="the movement graph has no place '33'"):
                await client.set_place("33")
            with pytest.raises(Refused, match="a place is a text"):
                await client.set(myloc=3)

    run(work())


def test_values_change_together_and_a_wrong_value_changes_nothing() -> None:
    async def work() -> None:
        async with node() as service, ff.connect(service.hood.url) as client:
            await client.set(budget=10, likes=["book"])
            async with client.subscribe("price <= :budget AND category IN :likes") as events:
                await client.publish_batch(
                    [{"n": 1, "price": 9, "category": "book"}, {"n": 2, "price": 11, "category": "book"}]
                )
                await client.set(budget=20, likes=["toy", "book"])
                await client.publish_batch([{"n": 3, "price": 15, "category": "toy"}])
                with pytest.raises(Refused, match=":likes behind IN is a list of values, not 'toy'"):
                    await client.set(budget=5, likes="toy")
                await client.publish_batch([{"n": 4, "price": 15, "category": "toy"}])
                assert await take(events, 3) == [1, 3, 4]
            assert service.node.core.dynamic.values[client.session] == {"budget": 20, "likes": ("toy", "book")}

    run(work())


def test_a_session_keeps_its_place_through_a_restart_and_moves_with_it(tmp_path: Path) -> None:
    async def work() -> None:
        port = free_port()
        async with (
            node(tmp_path / "a", port, {"name": "a"}) as a,
            ff.connect(a.hood.url, session="ana") as ana,
            ana.subscribe(PARKING, id="p", keep=True),
        ):
            await ana.set_place("here")
        async with (
            node(tmp_path / "a", port, {"name": "a"}) as a,
            node(tmp_path / "b", settings={"name": "b", "join": [a.hood.url]}) as b,
            ff.connect(b.hood.url) as city,
        ):
            await until(lambda: len(a.hood.reachable()) == 2 and b.node.core.interest())
            await city.publish_batch([parking("here", 1), parking("there", 2)])
            async with (
                ff.connect(a.hood.url, session="ana") as ana,
                ana.subscribe(PARKING, id="p", keep=True) as events,
            ):
                assert await take(events, 1) == [1]
                await ana.move(b.hood.url)
                await city.publish_batch([parking("there", 3), parking("here", 4)])
                assert await take(events, 1) == [4]
                await ana.set_place("there")
                await city.publish_batch([parking("there", 5), parking("here", 6)])
                assert await take(events, 1) == [5]
            assert b.node.core.dynamic.values["ana"] == {"myloc": "there"}
            assert not a.node.core.dynamic.values.get("ana")

    run(work())


def test_a_client_states_its_place_again_at_a_node_that_has_forgotten_it(tmp_path: Path) -> None:
    """The folder goes back to the time before the place, as after a power failure; no delivery is lost with it."""
    port, folder, copy = free_port(), tmp_path / "a", tmp_path / "copy"

    async def work() -> None:
        async with contextlib.AsyncExitStack() as stack:
            async with node(folder, port) as first:
                ana = await stack.enter_async_context(ff.connect(first.hood.url, session="ana"))
                events = await stack.enter_async_context(ana.subscribe(PARKING, id="p"))
            shutil.copytree(folder, copy)
            async with node(folder, port):
                await ana.set_place("here")
            shutil.rmtree(folder)
            copy.rename(folder)
            async with node(folder, port):
                await ana.publish(parking("here", 1))
                assert await take(events, 1) == [1]
                await stack.aclose()  # before the node: the client asks for its acknowledgement

    run(work())


def test_a_broken_connection_repeats_the_latest_values_only(tmp_path: Path) -> None:
    async def work() -> None:
        async with street(tmp_path) as service, ff.connect(service.hood.url, session="ana") as client:
            cut(client)
            moves = [asyncio.create_task(client.set_place(place)) for place in "1234"]
            await asyncio.gather(*moves)
            assert service.node.core.dynamic.values["ana"] == {"myloc": "4"}

    run(work())


def test_a_session_keeps_its_filter_at_a_node_of_version_2_and_its_client_states_values_again_after_it() -> None:
    async def work() -> None:
        async with (
            node(settings={"name": "a"}) as a,
            node(settings={"name": "b", "speaks": 2, "join": [a.hood.url]}) as b,
            ff.connect(a.hood.url, session="ana") as ana,
        ):
            await until(lambda: len(a.hood.reachable()) == 2 and len(b.hood.reachable()) == 2)
            await ana.set_place("here")
            async with ana.subscribe(PARKING, id="p", keep=True):
                pass
            await ana.move(b.hood.url)
            assert {str(one) for one in b.node.core.interest()} == {"location = 'here' AND service = 'parking'"}
            with pytest.raises(Refused, match="b speaks version 2, which has no SetParameters"):
                await ana.set_place("there")
            with pytest.raises(Refused, match="b speaks version 2, which has no SetParameters"):
                await ana.subscribe(PARKING, id="q").__aenter__()
            await ana.move(a.hood.url)
            async with ana.subscribe(PARKING, id="p", keep=True) as events:
                await ana.publish(parking("here", 1))
                assert await take(events, 1) == [1]

    run(work())


def test_the_log_is_replayed_for_the_present_place(tmp_path: Path) -> None:
    async def work() -> None:
        async with street(tmp_path, **{"places.here": 1}) as service, ff.connect(service.hood.url) as client:
            await client.publish_batch([parking(place, number) for number, place in enumerate("1234", 1)])
            await client.set_place("4")
            async with client.subscribe(PARKING, since=1) as events:
                await client.publish(parking("3", 5))
                assert await take(events, 3) == [3, 4, 5]

    run(work())


@pytest.mark.parametrize(
    ("limits", "values", "problem"),
    [
        ({"limits.parameters": 1}, {"a": 1, "b": 2}, "a session has at most 1 parameters"),
        ({"limits.parameter_bytes": 20}, {"a": "x" * 30}, "at most 20 bytes"),
        ({}, {"a": {"b": 1}}, "a: .* is not a value"),
    ],
)
def test_limits(limits: dict[str, object], values: dict[str, object], problem: str) -> None:
    async def work() -> None:
        async with node(settings=limits) as service, ff.connect(service.hood.url) as client:
            with pytest.raises(Refused, match=problem):
                await client.set(**values)
            assert not service.node.core.dynamic.values.get(client.session)

    run(work())


def test_more_dynamic_filters_than_the_limit_are_refused() -> None:
    async def work() -> None:
        async with (
            node(settings={"limits.dynamic_filters": 1}) as service,
            ff.connect(service.hood.url) as client,
            client.subscribe("a = :a", id="one"),
            client.subscribe("a = 1", id="two"),
        ):
            with pytest.raises(Refused, match="at most 1 subscriptions with parameters"):
                await client.subscribe("b = :a", id="three").__aenter__()

    run(work())


def test_a_client_without_asyncio_states_values(tmp_path: Path) -> None:
    async def work() -> None:
        async with street(tmp_path) as service:

            def program() -> list[object]:
                with ff.connect_sync(service.hood.url) as client, client.subscribe(f"{PARKING} AND n > :low") as events:
                    client.set_place("2")
                    client.set(low=1)
                    client.publish_batch([parking("2", 1), parking("2", 2)])
                    return [next(iter(events))["n"]]

            assert await asyncio.to_thread(program) == [2]

    run(work())
