"""Clients that share a session, at running nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.client.nodes import node, run, until
from tests.node.talking import line, settings
from tools.waiting import PATIENCE

import fieldfare as ff
from fieldfare.client.client import Client
from fieldfare.client.errors import ConnectionLost, ConnectionRefused, Refused


def worker(url: str, **options: Any) -> Client:
    return ff.connect(url, session="orders", shared=True, **options)


async def fill(url: str, count: int, **fields: object) -> None:
    async with ff.connect(url) as client:
        await client.publish_batch([{"n": n, **fields} for n in range(count)])


def test_each_event_goes_to_one_member() -> None:
    async def main() -> None:
        async with node() as service:
            url = service.hood.url
            async with (
                worker(url) as one,
                worker(url) as two,
                one.subscribe("EXISTS n", id="all") as first,
                two.subscribe("EXISTS n", id="all") as second,
            ):
                await fill(url, 10)
                got: list[list[Any]] = [
                    [(await events.next(PATIENCE))["n"] for _ in range(5)] for events in (first, second)
                ]
                assert sorted(got[0] + got[1]) == list(range(10))
                assert [sorted(some) for some in got] == got
            await until(lambda: service.node.core.members.of("orders") is None)
            async with worker(url) as three, three.subscribe("EXISTS n", id="all") as events:
                left = [await events.next_delivery(), await events.next_delivery()]
                assert {one.event["n"] for one in left} == {
                    got[0][-1],
                    got[1][-1],
                }  # the last of each is not acknowledged
                assert all(one.redelivered for one in left)

    run(main())


def test_the_deliveries_of_a_member_that_goes_come_to_another_in_order() -> None:
    async def main() -> None:
        async with node() as service:
            url = service.hood.url
            async with worker(url) as one, one.subscribe("EXISTS n", id="all") as first:
                await fill(url, 6)
                held = [await first.next_delivery() for _ in range(6)]
                await held[4].acknowledge()
                await held[1].acknowledge()
                await until(lambda: len(service.node.core.sessions["orders"].pending) == 4)
                async with worker(url) as two, two.subscribe("EXISTS n", id="all") as second:
                    await one.close()
                    rest = [await second.next_delivery() for _ in range(4)]
                    assert [(each.event["n"], each.redelivered) for each in rest] == [(n, True) for n in (0, 2, 3, 5)]
                    for each in rest:
                        await each.acknowledge()
                    await until(lambda: not service.node.core.sessions["orders"].pending)

    run(main())


def test_acknowledgements_in_any_order_outlive_a_restart(tmp_path: Path) -> None:
    async def main() -> None:
        async with node(folder=tmp_path) as service:
            url = service.hood.url
            async with worker(url) as one, one.subscribe("EXISTS n", id="all") as first:
                await fill(url, 5)
                held = [await first.next_delivery() for _ in range(5)]
                for each in (held[3], held[1]):
                    await each.acknowledge()
                await until(lambda: len(service.node.core.sessions["orders"].pending) == 3)
        async with (
            node(folder=tmp_path) as service,
            worker(service.hood.url) as one,
            one.subscribe("EXISTS n", id="all") as first,
        ):
            assert [(await first.next(PATIENCE))["n"] for _ in range(3)] == [0, 2, 4]
            with pytest.raises(TimeoutError):
                await first.next(0.05)

    run(main())


def test_events_of_a_key_stay_with_their_member() -> None:
    async def main() -> None:
        async with node() as service:
            url = service.hood.url
            async with (
                worker(url, key="account") as one,
                worker(url, key="account") as two,
                one.subscribe("EXISTS n", id="all") as first,
                two.subscribe("EXISTS n", id="all") as second,
                ff.connect(url) as bank,
            ):
                await bank.publish_batch([{"n": n, "account": "ab"[n % 2]} for n in range(8)])
                got = [[(await events.next(PATIENCE)) for _ in range(4)] for events in (first, second)]
                assert [{each["account"] for each in some} for some in got] in ([{"a"}, {"b"}], [{"b"}, {"a"}])
                assert {each["n"] for some in got for each in some} == set(range(8))
            with pytest.raises(ConnectionRefused, match="with the key 'account', not 'x'"):
                async with worker(url, key="account"), worker(url, key="x"):
                    pass

    run(main())


def test_a_shared_session_is_for_members_of_one_node() -> None:
    async def main() -> None:
        async with line(settings("a"), settings("b")) as (a, b):
            async with worker(a.hood.url) as one:
                with pytest.raises(ConnectionRefused, match="the session orders is shared by 1 member at a"):
                    async with ff.connect(a.hood.url, session="orders"):
                        pass
                async with worker(b.hood.url, at="a") as two:
                    assert two.node == "a"  # b knows the way
                with pytest.raises(ConnectionLost, match="shared by 1 member at a"):
                    async with ff.connect(b.hood.url, session="orders", at="a", token="any", insecure=True):
                        pass
                with pytest.raises(ValueError, match="any member could get the reply"):
                    await one.request({"x": 1})
            await until(lambda: a.node.core.members.of("orders") is None)
            async with worker(b.hood.url, at="a") as two:
                assert two.node == "b"

    run(main())


def test_a_member_publishes_as_itself_and_takes_the_place_of_its_former_connection() -> None:
    async def main() -> None:
        async with node() as service:
            url = service.hood.url
            async with worker(url, member="w1", reconnect=False) as one, worker(url) as two:
                async with two.subscribe("EXISTS n", id="all") as events:
                    assert await one.publish_batch([{"n": 1}, {"n": 2}]) == 2
                    await two.publish({"n": 3})
                    assert [(await events.next(PATIENCE))["n"] for _ in range(3)] == [1, 2, 3]
                with pytest.raises(Refused, match="shared by 2 members"):
                    await two.leave()
                async with worker(url, member="w1"):
                    await until(lambda: one.closed)

    run(main())


def test_a_member_needs_a_session() -> None:
    with pytest.raises(ValueError, match="a member of a shared session needs its name"):
        ff.connect("ws://127.0.0.1:1", shared=True)
