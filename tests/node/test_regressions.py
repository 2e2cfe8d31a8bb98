"""Mistakes that the running node once made, each as small as it can be."""

from __future__ import annotations

import asyncio
import gc
import shutil
import ssl
import threading
import time
import weakref
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import websockets
from tests.node.lines import Line, served
from tests.node.talking import Talker, line, linked, settings, talking, until
from tools.effort import steps
from tools.waiting import PATIENCE

from fieldfare.core.interest import merged
from fieldfare.core.state import Publication
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.node import link_connection as links
from fieldfare.node.config import Secret
from fieldfare.node.connection import ClientConnection
from fieldfare.node.context import Context
from fieldfare.node.http import routes
from fieldfare.node.link_checks import LinkError
from fieldfare.node.link_connection import LinkConnection, keep_linked
from fieldfare.node.node import Node, NodeStopped
from fieldfare.node.security import make_token
from fieldfare.node.server import _open, running
from fieldfare.node.storage import storage
from fieldfare.node.storage.log import LogError
from fieldfare.protocol import frames as f
from fieldfare.protocol import link_frames
from fieldfare.protocol.codec import MSGPACK_CODEC
from fieldfare.protocol.link_frames import Messages
from fieldfare.protocol.numbers import NUMBER_LIMIT
from fieldfare.retry import Backoff

SECRET = "a secret that has more than thirty-two bytes"
SOON = PATIENCE
"""seconds in which all must happen here"""


def token(name: str) -> str:
    return make_token(Secret(SECRET), name, ["client"], 3600.0, time.time())


async def refused(node: Context, session: str) -> str:
    """Why a client may not have a session."""
    subprotocols = [websockets.Subprotocol(MSGPACK_CODEC.name)]
    async with websockets.connect(node.hood.url, subprotocols=subprotocols) as socket:
        talker = Talker(socket, MSGPACK_CODEC)
        await talker.say(f.Hello(session=session))
        answer = await talker.hear(f.Bye | f.Welcome, SOON)  # type: ignore[arg-type]
        assert isinstance(answer, f.Bye)
        return answer.reason


# Nothing that is accepted is lost, and no node stops for good


def test_a_number_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(folder=tmp_path)) as node, talking(node, "ana") as ana, talking(node, "bob") as bob:
            for number in (2**63, 2**64 - 1, NUMBER_LIMIT, NUMBER_LIMIT - 1):
                await ana.say(f.Publish(number, [msgspec.Raw(b"\x80")]))
                assert (await ana.hear(f.Refused, SOON)).number == number
            await bob.say(f.Publish(1, [msgspec.Raw(b"\x80")]))
            assert await bob.hear(f.Accepted, SOON) == f.Accepted(1)
        async with running(settings(folder=tmp_path)) as node, talking(node, "ana") as ana:
            assert (ana.welcome.accepted, node.node.core.position) == (0, 1)

    asyncio.run(test())


@pytest.mark.parametrize("sync", ["normal", "full"])
@pytest.mark.parametrize("broken", ["storage.write", "core.publish"])
@pytest.mark.parametrize("error", [LogError("it does not fit"), KeyError("a mistake of ours")], ids=["log", "mistake"])
def test_whatever_goes_wrong_in_writing_ends_the_node_as_a_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, sync: str, error: Exception
) -> None:
    config = settings(folder=tmp_path, flags={"log.sync": sync})

    async def test() -> None:
        node = Node(config)
        await node.start()
        await node.submit(lambda core, now: core.presence.attach("bob", "b", now))
        assert await node.publish(Publication("bob", 1, [Event({"x": 1})])) == 1

        def fails(*_: object) -> None:
            node.core.journal.position += 7  # it got half-way
            raise error

        of, name = broken.split(".")
        monkeypatch.setattr(getattr(node, of), name, fails)
        first = node.publish(Publication("bob", 2, [Event({"x": 2})]))
        second = node.submit(lambda core, _: core.position)
        done, _ = await asyncio.wait({first, second}, timeout=SOON)
        assert {type(one.exception()) for one in done} == {NodeStopped}
        assert len(done) == 2
        assert node.failure.done()
        assert node.failure.exception() is error
        assert not node.ready
        for later in (node.submit(lambda *_: 1), node.publish(Publication("bob", 2, [Event()]))):
            with pytest.raises(NodeStopped):
                await asyncio.wait_for(later, SOON)
        await node.stop()
        again = Node(config)
        await again.start()
        assert again.core.position == again.storage.log.last == 1
        assert await asyncio.wait_for(again.publish(Publication("bob", 2, [Event()])), SOON) == 2
        await again.stop()

    asyncio.run(test())


def test_a_node_whose_log_is_gone_goes_on(tmp_path: Path) -> None:
    async def test() -> None:
        async with running(settings(folder=tmp_path)) as node, talking(node, "bob") as bob:
            await bob.publish(1, *({"x": x} for x in range(10)))
        shutil.rmtree(tmp_path / "log")
        for number in (11, 12):  # and once more
            async with running(settings(folder=tmp_path)) as node, talking(node, "bob") as bob, talking(node) as ana:
                assert bob.welcome.accepted == number - 1
                await ana.subscribe("s", "TRUE")
                await bob.say(f.Publish(number, [msgspec.Raw(b"\x80")]))
                assert await bob.hear(f.Accepted, SOON) == f.Accepted(number)
                assert len(await ana.deliveries(1, SOON)) == 1

    asyncio.run(test())


def test_old_events_come_in_any_order_of_positions(tmp_path: Path) -> None:
    """Read from disk, for a session that asked twice for what was there before."""

    async def test() -> None:
        async with running(settings(folder=tmp_path)) as node:
            async with talking(node) as bob:
                await bob.publish(1, *({"x": x} for x in range(100)))
            async with talking(node, "ana", credit=0) as ana:
                await ana.subscribe("all", "x >= 0", 1)
                await ana.subscribe("few", "x < 10", 1)
        async with running(settings(folder=tmp_path)) as node, talking(node, "ana") as ana:
            got = await ana.deliveries(110, SOON)
            assert [one.position for one in got] == [*range(1, 101), *range(1, 11)]
            assert [one.number for one in got] == [*range(1, 111)]

    asyncio.run(test())


def test_a_number_that_is_known_is_accepted_again() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node, "bob") as bob:
            assert await bob.publish(1, {"x": 1}, {"x": 2}) == f.Accepted(2)
            for number in (1, 2):
                await bob.say(f.Publish(number, [msgspec.Raw(b"\x80")]))
                assert await bob.hear(f.Accepted, SOON) == f.Accepted(2)
            assert node.node.storage.log.last == 2

    asyncio.run(test())


# Links


def test_links_carry_more_than_fits_in_a_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit for clients is not that for neighbours, and no frame is much larger than it need be."""
    sizes: list[int] = []
    send = LinkConnection._send

    async def spy(self: LinkConnection, frame: link_frames.AnyLinkFrame) -> None:
        if isinstance(frame, Messages):
            sizes.append(sum(map(len, frame.messages)))
        await send(self, frame)

    monkeypatch.setattr(LinkConnection, "_send", spy)

    async def test() -> None:
        small = settings("a", flags={"limits.frame_bytes": 65_536})
        async with line(small, settings("b")) as (a, b), talking(a) as ana, talking(b) as bob:
            await ana.subscribe("s", "TRUE")
            await until(b.node.core.interest)
            await bob.publish(1, *({"x": x, "t": "y" * 10_000} for x in range(90)))
            assert len(await ana.deliveries(90, SOON)) == 90
            await bob.publish(91, {"x": 91, "t": "y" * 200_000})  # a single one that is larger than that
            assert len(await ana.deliveries(1, SOON)) == 1
        assert max(sizes) < links.CHUNK_BYTES + 2 * 10_100

    asyncio.run(test())


def test_a_neighbour_misses_only_what_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A node without a folder keeps so much and no more."""
    monkeypatch.setattr(storage.MemoryLog.__init__, "__defaults__", (100,))
    monkeypatch.setattr(storage, "AT_HAND", 50)

    async def test() -> None:
        async with running(settings("a")) as a, talking(a) as bob:
            other = settings("b", tmp_path, {"join": (a.hood.url,)})
            async with running(other) as b, talking(b, "ana") as ana:
                await linked(a, b)
                await ana.subscribe("s", "TRUE")
                await until(a.node.core.interest)
            await bob.publish(1, *({"x": x} for x in range(300)))
            async with running(other) as b, talking(b, "ana") as ana:
                got = [dict(ana.codec.event(bytes(one.event)).tree)["x"] for one in await ana.deliveries(100, SOON)]
                assert got == [*range(200, 300)]
                await bob.publish(301, {"x": 300})
                assert len(await ana.deliveries(1, SOON)) == 1
                await until(lambda: not a.node.core.links["b"].outbox, SOON)

    asyncio.run(test())


def test_a_neighbour_that_is_away_counts_for_cycles(tmp_path: Path) -> None:
    """Known from before, and not up yet: a - b - c, and a reaches c first."""

    async def test() -> None:
        async with running(settings("c", tmp_path / "c")) as c:
            with_c = settings("b", tmp_path / "b", {"join": (c.hood.url,)})
            async with running(with_c) as b:
                await linked(b, c)
                async with running(settings("a", tmp_path / "a", {"join": (b.hood.url,)})) as a:
                    await linked(a, b)
            async with running(with_c) as b, running(settings("a", tmp_path / "a")) as a:
                await linked(b, c)
                assert not a.hood.up
                socket, version = await _open(c.hood.url, a.node.config, None)
                with pytest.raises(LinkError, match="would close a cycle"):
                    await asyncio.wait_for(LinkConnection(a.hood, socket, version, dialled=True).serve(), SOON)
                assert "c" not in a.node.core.links

    asyncio.run(test())


def test_a_neighbour_that_has_parted_is_counted_no_more() -> None:
    async def test() -> None:
        async with line(settings("a"), settings("b")) as (a, _):
            assert "b" in a.node.counters.links
            await a.hood.remove("b")
            assert "b" not in a.node.counters.links

    asyncio.run(test())


@pytest.mark.parametrize("error", [ValueError("b has received 100"), NodeStopped("stopped"), KeyError(7)])
def test_whatever_happens_a_node_dials_again(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
    monkeypatch.setattr(links, "BACKOFF", Backoff(0.001, 15.0))
    tried: list[str] = []

    async def fails(url: str) -> Any:
        tried.append(url)
        raise error

    async def test() -> None:
        async with running(settings("a")) as a:
            dialling = asyncio.create_task(keep_linked(a.hood, "ws://b", fails))
            await until(lambda: len(tried) > 2, SOON)
            dialling.cancel()
            await asyncio.gather(dialling, return_exceptions=True)

    asyncio.run(test())


# What is wanted


def test_the_end_of_a_former_connection_is_not_that_of_the_new_one() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node) as ana:
            former = Line(f.Hello(session="bob"))
            async with served(node, former) as gone:
                await until(lambda: former.sent)
                former.stop_reading()  # as behind a dead network
                async with talking(node, "bob") as bob:
                    assert isinstance(await bob.ask(f.WatchInterest), f.Done)
                    assert (await bob.hear(f.Interest)).filters == []
                    former.read_again()
                    await asyncio.wait_for(gone, SOON)
                    assert isinstance(former.sent[-1], f.Bye)
                    await ana.subscribe("s", "x > 5")
                    assert (await bob.hear(f.Interest, SOON)).filters == ["x > 5"]

    asyncio.run(test())


def _complex(boxes: int, number: int) -> Filter:
    return parse(
        " OR ".join(
            f"(a BETWEEN {i * 10 + number} AND {i * 10 + number + 4} AND b{number} = {i})" for i in range(boxes)
        )
    )


def test_filters_whose_union_is_too_complex_stay_apart() -> None:
    filters = {_complex(150, number) for number in range(3)}
    assert set(merged(filters)) == filters


def test_what_is_wanted_is_found_at_once() -> None:
    """It is looked for at every change, while everybody waits."""
    filters = {_complex(60, number) for number in range(10)}
    assert steps(lambda: merged(filters)) < 1_000_000
    assert set(merged(filters)) == filters


# One client does not hurt the others


def test_writing_does_not_wait_for_searches(tmp_path: Path) -> None:
    """All threads that others use are busy."""

    async def test() -> None:
        done = threading.Event()
        async with running(settings(folder=tmp_path, flags={"log.sync": "full"})) as node, talking(node) as bob:
            busy = [asyncio.create_task(asyncio.to_thread(done.wait, 2 * PATIENCE)) for _ in range(40)]
            try:
                await asyncio.sleep(0.05)
                await bob.say(f.Publish(1, [msgspec.Raw(b"\x80")]))
                assert await bob.hear(f.Accepted, SOON) == f.Accepted(1)
            finally:
                done.set()
                await asyncio.gather(*busy)

    asyncio.run(test())


def test_events_over_http_replace_only_those_of_the_same_person() -> None:
    async def test() -> None:
        config = settings(flags={"security.secret": SECRET})
        async with (
            running(config, routes) as node,
            httpx.AsyncClient(base_url="http" + node.hood.url.removeprefix("ws"), trust_env=False) as client,
            talking(node, token=token("ana"), credit=0) as ana,
        ):
            await ana.subscribe("s", "TRUE")
            for name, event in (("bob", {"alarm": 1}), ("eve", {"coffee": 2}), ("bob", {"alarm": 3})):
                headers = {"Authorization": f"Bearer {token(name)}"}
                answer = await client.post("/events?replaces=state", json=event, headers=headers)
                assert answer.status_code == 202, answer.text
            await ana.say(f.Credit(10))
            assert await ana.events(2) == [{"coffee": 2}, {"alarm": 3}]

    asyncio.run(test())


def test_ids_have_a_limit() -> None:
    async def test() -> None:
        async with running(settings()) as node, talking(node) as ana:
            for kind in (f.Subscribe, f.Advertise):
                answer = await ana.ask(kind, "i" * 201, "x > 0")
                assert isinstance(answer, f.Refused)
                assert "200 characters" in answer.reason
                assert isinstance(await ana.ask(kind, "i" * 200, "x > 0"), f.Done)
            long = await ana.publish(1, {"x": 1}, replaces="r" * 201)
            assert isinstance(long, f.Refused)
            assert "200 characters" in long.reason
            assert await ana.publish(1, {"x": 1}, replaces="r" * 200) == f.Accepted(1)
            assert [one.subscriptions for one in await ana.deliveries(1)] == [("i" * 200,)]

    asyncio.run(test())


def test_who_asks_and_does_not_read_has_to_wait() -> None:
    async def test() -> None:
        many = 5000
        async with running(settings()) as node:
            client = Line(f.Hello(), *(f.Unsubscribe(request, "nobody") for request in range(1, many + 1)))
            async with served(node, client):
                await until(lambda: client.written)
                client.stop_reading()
                for _ in range(3 * many):
                    await asyncio.sleep(0)
                assert len(client.coming) > many // 2
                client.read_again()
                await until(lambda: len(client.sent) == many + 1)  # and nothing is forgotten

    asyncio.run(test())


def test_there_are_so_many_sessions_and_no_more() -> None:
    async def test() -> None:
        async with running(settings(flags={"limits.sessions": 4})) as node:
            before = len(node.node.core.sessions)
            for number in range(before, 4):
                async with talking(node, f"s{number}"):
                    pass
            assert "4 sessions already" in await refused(node, "another")
            assert "4 sessions already" in await refused(node, "")
            async with talking(node, f"s{before}"):  # which is there
                pass
            assert len(node.node.core.sessions) == 4

    asyncio.run(test())


def test_a_new_session_has_one_owner() -> None:
    """Two say hello at the same time."""

    async def test() -> None:
        async with running(settings(flags={"security.secret": SECRET})) as node:
            both = [Line(f.Hello(session="inbox", token=token(name))) for name in ("ana", "eve")]
            async with served(node, both[0]), served(node, both[1]):
                await until(lambda: both[0].sent and both[1].sent, SOON)
                assert isinstance(both[0].sent[0], f.Welcome)
                assert isinstance(both[1].sent[0], f.Bye)
                assert "somebody else" in both[1].sent[0].reason
                assert node.node.core.sessions["inbox"].owner == "ana"
                await asyncio.sleep(0.01)
                assert len(both[0].sent) == 1  # and she stays

    asyncio.run(test())


@pytest.mark.parametrize("policy", ["disconnect", "buffer"])
def test_a_stream_that_is_read_is_not_too_slow(policy: str) -> None:
    async def test() -> None:
        config = settings(flags={"sessions.policy": policy, "sessions.queue": 50})
        async with (
            running(config, routes) as node,
            httpx.AsyncClient(base_url="http" + node.hood.url.removeprefix("ws"), trust_env=False) as client,
            talking(node) as bob,
            client.stream("GET", "/stream") as answer,
            asyncio.timeout(PATIENCE),
        ):
            (name,) = set(node.node.core.sessions) - {"~http", bob.welcome.session}
            lines = answer.aiter_lines()
            for number in range(1, 201, 20):
                await bob.publish(number, *({"x": x} for x in range(20)))
                got = 0
                while got < 20:
                    read = await anext(lines, None)
                    assert read is not None
                    assert "too slow" not in read
                    got += read.startswith("data")
            await until(lambda: not node.node.core.sessions[name].pending, SOON)

    asyncio.run(test())


def test_a_certificate_that_is_none_is_said_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        for name in ("c.pem", "k.pem"):
            (tmp_path / name).write_text("junk")
        flags = {"tls.certificate": str(tmp_path / "c.pem"), "tls.key": str(tmp_path / "k.pem")}
        with pytest.raises((ssl.SSLError, OSError)):
            async with running(settings(folder=tmp_path / "data", flags=flags)):
                raise AssertionError("it runs, and nobody can reach it")
        async with running(settings(folder=tmp_path / "data")) as node:  # nothing was left open
            assert node.node.ready

    asyncio.run(test())


def test_a_connection_is_not_kept_until_its_token_ends() -> None:
    async def test() -> None:
        async with running(settings(flags={"security.secret": SECRET})) as node:
            client = Line(f.Hello(token=token("ana")))
            connection = ClientConnection(node.node, node.interests, client.socket, MSGPACK_CODEC, None)
            gone = weakref.ref(connection)
            serving = asyncio.create_task(connection.serve())
            written = client.written
            await until(lambda: written)
            assert isinstance(client.sent[0], f.Welcome)
            client.close()
            await asyncio.wait_for(serving, SOON)
            del client, connection, serving
            await asyncio.sleep(0.01)
            gc.collect()
            assert gone() is None

    asyncio.run(test())
