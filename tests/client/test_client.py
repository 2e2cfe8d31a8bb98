from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.client.nodes import node, run, until
from tools.nodes.ports import free_port
from tools.waiting import PATIENCE

import fieldfare as ff
from fieldfare.client.driver import WINDOW
from fieldfare.client.errors import ConnectionLost, ConnectionRefused, MismatchError, Refused, WindowFull
from fieldfare.node.security import make_token


@pytest.mark.parametrize("json", [False, True])
def test_publish_and_subscribe(json: bool) -> None:
    async def main() -> None:
        async with node() as service, ff.connect(service.hood.url, json=json) as client:
            assert client.node == "a"
            assert client.session.startswith("~")
            assert client.connected
            async with client.subscribe("symbol LIKE 'IB%' AND price < 120") as quotes:
                when = datetime(2026, 1, 1, tzinfo=UTC)
                assert await client.publish({"symbol": "IBM", "price": 119, "at": when, "raw": b"\0"})
                await client.publish({"symbol": "IBM", "price": 121})
                await client.publish({"symbol": "IBM", "price": 118})
                assert await quotes.next(PATIENCE) == {"symbol": "IBM", "price": 119, "at": when, "raw": b"\0"}
                assert await quotes.next(PATIENCE) == {"symbol": "IBM", "price": 118}
                with pytest.raises(TimeoutError):
                    await quotes.next(0.05)
            assert service.node.core.interest() == set()
        assert client.closed
        with pytest.raises(ConnectionLost, match="closed"):
            await client.publish({})

    run(main())


@pytest.mark.parametrize(
    "filter", ["x > 1", ff.parse("x > 1"), {"sql": "x > 1"}, [{"not": {"exact": {"x": "1"}}}]], ids=str
)
def test_filters_in_all_forms(filter: Any) -> None:
    async def main() -> None:
        async with node() as service, ff.connect(service.hood.url) as client, client.subscribe(filter) as events:
            await client.publish({"x": 1})
            await client.publish({"x": 2})
            assert await events.next(PATIENCE) == {"x": 2}

    run(main())


def test_what_is_wrong_is_refused() -> None:
    async def main() -> None:
        async with node() as service, ff.connect(service.hood.url) as client:
            with pytest.raises(Refused, match="expected") as info:
                async with client.subscribe("x <"):
                    pass
            assert info.value.code == "bad"
            with pytest.raises(Refused):
                async with client.advertise("x <"):
                    pass
            with pytest.raises(TypeError, match="a filter is"):
                client.subscribe(5)
            with pytest.raises(TypeError, match="an event is"):
                await client.publish(5)
            with pytest.raises(ff.EventError):
                await client.publish({"x": object()})
            with pytest.raises(Refused, match="time to live"):
                await client.publish({}, ttl=0)
            with pytest.raises(ValueError, match="needs a durable session"):
                client.subscribe("TRUE", keep=True)
            async with client.subscribe("TRUE", id="a"):
                with pytest.raises(ValueError, match="in use"):
                    async with client.subscribe("TRUE", id="a"):
                        pass
            async with client.subscribe("TRUE") as events:
                await client.publish({"still": "here"})
                assert await events.next(PATIENCE) == {"still": "here"}

    run(main())


def test_batches_are_taken_all_or_none() -> None:
    async def main() -> None:
        async with node(settings={"limits.batch": 5}) as service, ff.connect(service.hood.url) as client:
            async with client.subscribe("TRUE") as events:
                assert await client.publish_batch([{"x": 1}, {"x": 2}]) == 2
                assert await client.publish_batch([]) == 0
                with pytest.raises(Refused, match="at most 5") as info:
                    await client.publish_batch([{"x": 0}] * 6)
                assert info.value.code == "limit"
                async with client.transaction() as tx:
                    tx.publish({"x": 3})
                    tx.publish({"x": 4})
                    await asyncio.sleep(0.05)
                    assert events.waiting <= 2
                with contextlib.suppress(ZeroDivisionError):
                    async with client.transaction() as tx:
                        tx.publish({"x": 5})
                        raise ZeroDivisionError
                with pytest.raises(RuntimeError, match="over"):
                    tx.publish({})
                await client.publish({"x": 6})
                assert [(await events.next(PATIENCE))["x"] for _ in range(5)] == [1, 2, 3, 4, 6]
            with pytest.raises(Refused, match="bytes"):
                await client.publish_batch([{"x": "x" * 250_000}] * 5)

    run(main())


def test_posting_has_a_window() -> None:
    async def main() -> None:
        async with node() as service, ff.connect(service.hood.url) as client, client.subscribe("x >= 0") as events:
            for x in range(WINDOW):
                client.publish_soon({"x": -1 - x})
            with pytest.raises(WindowFull, match="wait_for_capacity"):
                client.publish_soon({"x": -1})
            await client.wait_for_capacity()
            receipts = [client.publish_soon({"x": x}) for x in range(500)]
            assert await receipts[-1]
            assert all(receipt.done for receipt in receipts)
            await client.drain()
            assert [(await events.next(PATIENCE))["x"] for _ in range(500)] == list(range(500))

    run(main())


def test_what_was_posted_is_safe_after_the_block() -> None:
    async def main() -> None:
        async with node() as service:
            async with ff.connect(service.hood.url) as client:
                for x in range(2000):
                    client.publish_soon({"x": x})
            assert service.node.storage.log.last == 2000

    run(main())


def test_one_bad_event_does_not_take_others_with_it() -> None:
    async def main() -> None:
        async with node(settings={"strategy": "covering+ads"}) as service, ff.connect(service.hood.url) as client:
            async with client.subscribe("TRUE") as events, client.advertise("good = TRUE"):
                receipts = [client.publish_soon({"good": n != 3, "n": n}) for n in range(6)]
                with pytest.raises(Refused, match="no advertisement"):
                    await client.drain()
                with pytest.raises(Refused, match="no advertisement"):
                    await receipts[3]
                assert {(await events.next(PATIENCE))["n"] for _ in range(5)} == {0, 1, 2, 4, 5}
                with pytest.raises(Refused, match="no advertisement"):
                    await client.publish({"good": False})
                client.publish_soon({"good": True, "n": 6})
            await client.drain()  # nothing that somebody has not heard of
            with pytest.raises(Refused):
                await client.publish({"good": True})

    run(main())


def test_a_refusal_that_nobody_heard_of_is_raised_when_the_block_ends() -> None:
    async def main() -> None:
        async with node(settings={"strategy": "covering+ads"}) as service:
            with pytest.raises(Refused, match="no advertisement"):
                async with ff.connect(service.hood.url) as client:
                    client.publish_soon({})

    run(main())


def test_ttl_and_replaces() -> None:
    async def main() -> None:
        async with (
            node() as service,
            ff.connect(service.hood.url, session="s", credit=1) as client,
            client.subscribe("TRUE") as events,
        ):
            await client.publish({"x": 0})
            await until(lambda: events.waiting == 1)
            await client.publish({"x": 1}, ttl=0.05)
            await client.publish({"x": 2}, replaces="it")
            await client.publish({"x": 3}, replaces="it")
            await asyncio.sleep(0.1)
            assert [(await events.next(PATIENCE))["x"] for _ in range(2)] == [0, 3]

    run(main())


class Quote(msgspec.Struct):
    symbol: str
    price: float
    tags: list[str] = []


@dataclasses.dataclass
class Venue:
    name: str


@dataclasses.dataclass
class Trade:
    symbol: str
    venue: Venue
    at: datetime
    price: Any = None


@pytest.mark.parametrize("json", [False, True])
def test_typed_events(json: bool) -> None:
    async def main() -> None:
        async with (
            node() as service,
            ff.connect(service.hood.url, json=json) as client,
            client.subscribe("price > 0", type=Quote) as quotes,
            client.subscribe("EXISTS venue", type=Trade) as trades,
        ):
            await client.publish(Quote("IBM", 119.5, ["a", "b"]))
            assert await quotes.next(PATIENCE) == Quote("IBM", 119.5, ["a", "b"])
            trade = Trade("IBM", Venue("x"), datetime(2026, 1, 1, tzinfo=UTC), ff.Interval(-2, -1))
            await client.publish(trade)
            assert await trades.next(PATIENCE) == trade
            await client.publish({"symbol": 5, "price": 2})
            with pytest.raises(MismatchError, match=r"position 3 is no Quote: .*symbol"):
                await quotes.next(PATIENCE)
            await client.publish(Quote("IBM", 1))
            assert (await quotes.next(PATIENCE)).price == 1

    run(main())


def test_request_and_reply() -> None:
    async def main() -> None:
        async with node() as service, ff.connect(service.hood.url) as asker, ff.connect(service.hood.url) as other:
            async with other.subscribe("type = 'rfq'") as requests:

                async def serve() -> None:
                    async for request in requests:
                        await other.reply(request, {"price": request["size"] * 2})  # type: ignore[operator]

                server = asyncio.create_task(serve())
                answers = await asyncio.gather(*(asker.request({"type": "rfq", "size": n}) for n in range(20)))
                assert [answer["price"] for answer in answers] == [2 * n for n in range(20)]
                server.cancel()
            with pytest.raises(TimeoutError, match="no client replied"):
                await asker.request({"type": "rfq"}, timeout=0.05)
            with pytest.raises(ValueError, match="no field reply_to"):
                await other.reply({"x": 1}, {})

    run(main())


def test_only_what_is_wanted_is_sent() -> None:
    async def main() -> None:
        async with node() as service, ff.connect(service.hood.url, quench=True) as client:
            assert await client.interest() == ()
            assert not await client.publish({"x": 1})
            assert not await client.publish_soon({"x": 1})
            async with ff.connect(service.hood.url) as other, other.subscribe("x > 1") as events:
                while await client.interest() == ():
                    await asyncio.sleep(0.01)
                assert await client.interest() == ("x > 1",)
                assert await client.publish_batch([{"x": 1}, {"x": 2}, {"x": 3}]) == 2
                assert not await client.publish({"x": 1})
                assert await client.publish({"x": 4})
                assert [(await events.next(PATIENCE))["x"] for _ in range(3)] == [2, 3, 4]
            assert service.node.storage.log.last == 3

    run(main())


def test_what_happened_before() -> None:
    async def main() -> None:
        async with node() as service, ff.connect(service.hood.url) as client:
            for x in range(5):
                await client.publish({"x": x})
            async with client.subscribe("x > 1", since=1) as events:
                await client.publish({"x": 5})
                assert [(await events.next(PATIENCE))["x"] for _ in range(4)] == [2, 3, 4, 5]
            async with client.subscribe("x > 1", since=datetime(2020, 1, 1, tzinfo=UTC)) as events:
                assert (await events.next(PATIENCE))["x"] == 2
            with pytest.raises(Refused, match="no time"):
                async with client.subscribe("x > 1", since="yesterday"):
                    pass

    run(main())


def test_an_event_for_two_subscriptions_is_done_when_both_are() -> None:
    async def main() -> None:
        async with node() as service, ff.connect(service.hood.url, session="ana") as client:
            session = service.node.core.sessions["ana"]
            async with client.subscribe("x > 0", id="a") as one, client.subscribe("x > 1", id="b") as two:
                await client.publish({"x": 1})
                await client.publish({"x": 2})
                first = await anext(aiter(one.deliveries()))
                second = await one.next_delivery()
                both = await two.next_delivery()
                assert (first.number, second.number, both.number) == (1, 2, 2)
                assert (first.position, first.publisher, first.subscriptions) == (1, "ana", ("a",))
                assert set(both.subscriptions) == {"a", "b"}
                assert abs(both.time - datetime.now(UTC).timestamp()) < 1000
                await second.acknowledge()
                await second.acknowledge()
                await asyncio.sleep(0.1)
                assert session.acknowledged == 0
                await first.acknowledge()
                await until(lambda: session.acknowledged == 1)
                await asyncio.sleep(0.1)
                assert session.acknowledged == 1
                await both.acknowledge()
                await until(lambda: session.acknowledged == 2)

    run(main())


def test_a_slow_consumer_keeps_no_more_than_its_credit() -> None:
    async def main() -> None:
        async with (
            node() as service,
            ff.connect(service.hood.url, credit=20) as client,
            client.subscribe("TRUE") as events,
        ):
            for x in range(500):
                client.publish_soon({"x": x})
            await client.drain()
            await until(lambda: events.waiting == 20)
            for x in range(500):
                assert (await events.next(PATIENCE))["x"] == x
                assert events.waiting <= 20

    run(main())


def test_leaving_a_subscription_frees_what_waited_for_it() -> None:
    async def main() -> None:
        async with node() as service, ff.connect(service.hood.url, session="ana", credit=10) as client:
            async with client.subscribe("x >= 0") as events:
                for x in range(50):
                    client.publish_soon({"x": x})
                await client.drain()
                async for _ in events:
                    break
            assert not service.node.core.broker.clients.all["ana"].subscriptions
            async with client.subscribe("y = 1") as events:
                await client.publish({"y": 1})
                assert await events.next(PATIENCE) == {"y": 1}

    run(main())


def test_a_session_keeps_what_is_to_be_kept(tmp_path: Path) -> None:
    async def main() -> None:
        async with node(tmp_path) as service:
            async with ff.connect(service.hood.url, session="ana") as client:
                async with client.subscribe("x > 0", id="s", keep=True) as events:
                    for x in (1, 2, 3):
                        await client.publish({"x": x})
                    assert (await events.next(PATIENCE))["x"] == 1
                    assert (await events.next(PATIENCE))["x"] == 2
                async with client.subscribe("x > 0", id="s", keep=True) as events:
                    assert (await events.next(PATIENCE))["x"] == 2  # it was not done with
            async with ff.connect(service.hood.url) as other:
                await other.publish({"x": 4})
            async with ff.connect(service.hood.url, session="ana") as client:
                async with client.subscribe("y > 0", id="t"):
                    await asyncio.sleep(0.05)  # what comes for the other one waits
                async with client.subscribe("x > 0", id="s") as events:
                    assert [(await events.next(PATIENCE))["x"] for _ in range(3)] == [2, 3, 4]
                await client.leave()
                assert client.closed
            assert "ana" not in service.node.core.sessions

    run(main())


def test_nobody_there() -> None:
    async def main() -> None:
        with pytest.raises(ConnectionLost, match=r"no node answers at ws://127\.0\.0\.1"):
            async with ff.connect(f"ws://127.0.0.1:{free_port()}"):
                pass
        for url in ("http://127.0.0.1", "127.0.0.1:7400", ""):
            with pytest.raises(ValueError, match="write ws://"):
                ff.connect(url)
        with pytest.raises(ValueError, match="at least one"):
            ff.connect([])
        with pytest.raises(ValueError, match="credit"):
            ff.connect("ws://127.0.0.1:1", credit=0)
        async with node() as service:
            async with ff.connect([f"ws://127.0.0.1:{free_port()}", service.hood.url]) as client:
                assert await client.publish({})
            with pytest.raises(ConnectionRefused, match="200 printable"):
                async with ff.connect(service.hood.url, session="~x"):
                    pass

    run(main())


def test_a_session_is_used_by_one(tmp_path: Path) -> None:
    states: list[str] = []

    async def main() -> None:
        async with node(tmp_path) as service:
            hook = lambda state, reason: states.append(state)  # noqa: E731
            async with (
                ff.connect(service.hood.url, session="ana", on_state=hook) as first,
                first.subscribe("TRUE") as events,
            ):
                waiting = asyncio.create_task(events.next())
                async with ff.connect(service.hood.url, session="ana") as second:
                    with pytest.raises(ConnectionRefused, match="another connection"):
                        await waiting
                    assert first.closed
                    with pytest.raises(ConnectionRefused, match="another connection"):
                        await first.publish({})
                    assert not second.closed
        assert states == ["connected", "closed"]

    run(main())


def test_tokens() -> None:
    async def main() -> None:
        config = {"security.secret": "s" * 40}
        async with node(settings=config) as service:
            with pytest.raises(ConnectionRefused, match="token"):
                async with ff.connect(service.hood.url):
                    pass
            tokens: list[str] = []

            def token() -> str:
                tokens.append(make_token("s" * 40, "ana", ["client"], 60, time.time()))
                return tokens[-1]

            async with ff.connect(service.hood.url, token=token) as client, client.subscribe("x = 1") as events:
                await client.publish({"x": 1})
                assert await events.next(PATIENCE) == {"x": 1}
            assert len(tokens) == 1

    run(main())


def test_a_client_that_is_not_used_hangs_up() -> None:
    """Even if it is over before its task has begun."""

    async def test() -> None:
        async with node() as service:
            async with ff.connect(service.hood.url) as client:
                pass
            assert not client.connected
            await until(lambda: not service.node.closers)

    run(test())
