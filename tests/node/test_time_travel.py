"""Nodes that go back in time, after a power failure or with an earlier copy of their folder: what they accept after
that is delivered, once."""

from __future__ import annotations

import asyncio
import copy
import itertools
import logging
import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.node.talking import linked, settings, talking, until

import fieldfare as ff
from fieldfare.core.core import Core
from fieldfare.core.state import Publication
from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.node.server import running
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.lineage import Lineage, extend
from fieldfare.protocol.link_frames import LinkResume
from fieldfare.routing.broker import Broker
from fieldfare.simulation.disk import Disk

# The broker alone, with every order of faults


class Pair:
    """Two linked brokers, whose disks can be set back: ana listens at b, bob publishes at a, eve at b."""

    def __init__(self) -> None:
        self.lives = itertools.count(1)
        self.now = 0.0
        self.disks = {"a": Disk(), "b": Disk()}
        self.copies: dict[str, list[Disk]] = {"a": [], "b": []}
        self.brokers = {name: self.start(name) for name in "ab"}
        self.seen, self.identity = 0, ""
        self.known: Lineage = ()
        self.got: list[int] = []
        self.due: set[int] = set()
        self.events = itertools.count(1)
        self.numbers = {"bob": 0, "eve": 0}
        self.identities = {"bob": "", "eve": ""}
        for name, other in ("ab", "ba"):
            self.do(name, partial(_connect, other, self.lineage(other)))
        self.publisher("bob", "a", fresh=True)
        self.publisher("eve", "b", fresh=True)
        self.attach()
        self.do("b", lambda core, now: core.presence.change_filters(m.Subscribe("s", parse("x > 0")), "ana", now))
        self.exchange()
        for name in "ab":
            self.copies[name].append(copy.deepcopy(self.disks[name]))

    def lineage(self, name: str) -> Lineage:
        return extend((), self.brokers[name].life, 1)

    def start(self, name: str, *, doubtful: bool = False) -> Core:
        disk, life = self.disks[name], next(self.lives)
        core = Broker(name, life=life, remember=1e9)
        return Core(
            core,
            *disk.load(),
            now=self.now,
            life=f"{name}{life}",
            doubtful=doubtful,
        )

    def do(self, name: str, action: Callable[[Core, float], object]) -> None:
        self.now += 1
        core = self.brokers[name]
        action(core, self.now)
        step = core.drain()
        self.disks[name].write(step)
        core.release(step)

    # Faults

    def restart(self, name: str, back: int | None = None) -> None:
        """End a broker, perhaps set its disk back to an earlier copy, and begin it anew."""
        if back is not None:
            self.copies[name] = self.copies[name][: back % len(self.copies[name]) + 1]  # later ones are another future
            self.disks[name] = copy.deepcopy(self.copies[name][-1])
            self.due.clear()  # what was accepted before may be lost
        self.brokers[name] = self.start(name, doubtful=back is not None)
        self.do(name, lambda core, _: core.resume())
        self.meet()
        if name == "b":
            self.attach()
        for publisher in ("bob",) if name == "a" else ("eve",):
            self.publisher(publisher, name, fresh=False)

    def meet(self) -> None:
        """What two nodes say to each other when they are linked again."""
        said = {}
        for name, other in ("ab", "ba"):
            self.do(name, lambda core, _, other=other: core.links.lives_of(other))  # type: ignore[misc]
            link = self.brokers[name].links[other]
            said[name] = LinkResume(
                "", "", link.written, link.remote_lives, link.lives, link.acknowledged + 1, link.last
            )
        for name, other in ("ab", "ba"):
            self.do(name, lambda core, _, other=other: core.links.resume(other, said[other], ""))  # type: ignore[misc]

    # Clients

    def attach(self) -> None:
        def job(core: Core, now: float) -> None:
            session = core.presence.attach("ana", f"ana{next(self.lives)}", now, known=self.identity)
            if session.identity != self.identity:
                self.seen = 0
            elif void := core.sessions.first_void("ana", self.seen, self.known):
                self.seen = void - 1

        self.do("b", job)
        session = self.brokers["b"].sessions["ana"]
        self.identity, self.known = session.identity, session.lives

    def publisher(self, name: str, at: str, *, fresh: bool) -> None:
        """A publisher comes; a fresh program remembers nothing."""
        known = "" if fresh else self.identities[name]
        self.do(at, lambda core, now: core.presence.attach(name, f"{name}{next(self.lives)}", now, known=known))
        session = self.brokers[at].sessions[name]
        if session.identity != known:
            self.numbers[name] = session.sequence
        self.identities[name] = session.identity

    def publish(self, name: str, at: str) -> None:
        event = next(self.events)
        self.numbers[name] += 1
        one = Publication(name, self.numbers[name], [Event({"x": event})])
        self.do(at, lambda core, now: core.publish([one], now))
        self.due.add(event)

    def take(self, *, acknowledge: bool) -> None:
        core = self.brokers["b"]
        for number, pending in core.deliveries.next("ana", 1000, self.now):
            if number > self.seen:
                self.seen = number
                event = ff_event(self.disks["b"].log[pending.position].event)
                self.got.append(event)
        if acknowledge:
            last = core.sessions["ana"].sent
            self.do("b", lambda core, _: core.deliveries.acknowledge("ana", last))

    def exchange(self) -> None:
        """Let the brokers say to each other all that they have to say."""
        for _ in range(4):
            for name, other in ("ab", "ba"):
                link = self.brokers[name].links[other]
                outgoing = self.brokers[name].links.outgoing(other, link.acknowledged, 10_000)
                if outgoing:
                    data = [self.bytes(name, what) for _, what in outgoing]
                    self.do(other, partial(_hear, name, outgoing[0][0], data))
                heard = self.brokers[other].links[name].written
                self.do(name, lambda core, _, other=other, heard=heard: core.links.acknowledge(other, heard))  # type: ignore[misc]

    def bytes(self, name: str, what: bytes | int) -> bytes:
        if isinstance(what, bytes):
            return what
        return wire.encode_forward(self.disks[name].log[what])


def _connect(other: str, known: Lineage, core: Core, now: float) -> None:
    core.links.connect(other, m.Role.PEER, now, remote_lives=known)


def _hear(other: str, first: int, data: list[bytes], core: Core, now: float) -> None:
    core.receive(other, first, data, now)


def ff_event(data: bytes) -> int:
    x = msgpack.decode(data)["x"]
    assert isinstance(x, int)
    return x


ACTIONS = st.one_of(
    st.tuples(st.just("bob"), st.booleans()),
    st.tuples(st.just("eve"), st.booleans()),
    st.tuples(st.just("take"), st.booleans()),
    st.tuples(st.just("exchange"), st.none()),
    st.tuples(st.just("copy"), st.sampled_from("ab")),
    st.tuples(st.just("restart"), st.sampled_from("ab")),
    st.tuples(st.just("back"), st.tuples(st.sampled_from("ab"), st.integers(0, 9))),
)


@given(st.lists(ACTIONS, max_size=40))
def test_what_is_accepted_after_going_back_is_delivered_once(actions: list[tuple[str, object]]) -> None:
    logging.getLogger("fieldfare.node").disabled = True
    pair = Pair()
    for what, about in actions:
        match what, about:
            case (("bob" | "eve"), fresh):
                at = "a" if what == "bob" else "b"
                if fresh:
                    pair.publisher(what, at, fresh=True)
                pair.publish(what, at)
            case "take", done:
                pair.take(acknowledge=bool(done))
            case "exchange", _:
                pair.exchange()
            case "copy", name:
                pair.copies[str(name)].append(copy.deepcopy(pair.disks[str(name)]))
            case "restart", name:
                pair.restart(str(name))
            case "back", (str() as name, int() as which):
                pair.restart(name, which)
    pair.exchange()
    pair.take(acknowledge=True)
    assert pair.due <= set(pair.got)
    assert len(pair.got) == len(set(pair.got))


# Real nodes


def test_a_client_gets_what_is_accepted_after_an_earlier_copy_was_restored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    folder, copied, config = tmp_path / "a", tmp_path / "copy", settings("a", tmp_path / "a")

    async def publish(url: str, numbers: range) -> None:
        async with ff.connect(url) as bob:
            for number in numbers:
                await bob.publish({"x": number})

    async def test() -> None:
        got: list[object] = []
        async with running(config) as node:
            port = node.hood.url.rpartition(":")[2]
            again = settings("a", folder, {"port": int(port)})
            client = ff.connect(node.hood.url, session="ana")
            await client.__aenter__()
            events = client.subscribe("x > 0")
            await events.__aenter__()
            await publish(node.hood.url, range(1, 11))
            got += [(await events.next(30))["x"] for _ in range(10)]
            await asyncio.sleep(0.1)  # until it is acknowledged
        shutil.copytree(folder, copied)
        async with running(again) as node:
            await publish(node.hood.url, range(11, 61))
            got += [(await events.next(30))["x"] for _ in range(50)]
        shutil.rmtree(folder)
        shutil.move(copied, folder)
        async with running(again) as node:
            await publish(node.hood.url, range(101, 301))
            got += [(await events.next(30))["x"] for _ in range(200)]
            await client.__aexit__(None, None, None)
        assert got == [*range(1, 61), *range(101, 301)]

    asyncio.run(test())
    assert "forgotten 50 deliveries" in caplog.text


def test_a_neighbour_gets_what_is_accepted_after_an_earlier_copy_was_restored(tmp_path: Path) -> None:
    folder, copied = tmp_path / "a", tmp_path / "copy"

    async def test() -> None:
        async with running(settings("b", tmp_path / "b")) as b, talking(b, "ana") as ana:
            await ana.subscribe("s", "x > 0")
            first = settings("a", folder, {"join": (b.hood.url,)})
            async with running(first) as a, talking(a, "bob") as bob:
                await linked(a, b)
                await until(a.node.core.interest)
                await bob.publish(1, {"x": 1})
                await ana.events(1)
                await until(lambda: not a.node.core.links["b"].outbox)
            shutil.copytree(folder, copied)
            async with running(first) as a, talking(a, "bob") as bob:
                for x in range(2, 32):
                    await bob.publish(bob.welcome.accepted + x, {"x": x})
                await ana.events(30)
                await until(lambda: not a.node.core.links["b"].outbox)
            shutil.rmtree(folder)
            shutil.move(copied, folder)
            async with running(first) as a, talking(a, "bob") as bob:
                for x in range(1, 51):  # a program that knows only what the node says
                    await bob.publish(bob.welcome.accepted + x, {"x": 100 + x})
                assert [one["x"] for one in await ana.events(50)] == list(range(101, 151))

    asyncio.run(test())


def test_a_neighbour_that_went_back_is_told_again_what_is_wanted(tmp_path: Path) -> None:
    """Else it would wait for ever for messages that were safe there, and are not kept here."""
    folder, copied = tmp_path / "b", tmp_path / "copy"

    async def test() -> None:
        async with running(settings("a", tmp_path / "a")) as a, talking(a, "ana") as ana:
            other = settings("b", folder, {"join": (a.hood.url,)})
            async with running(other) as b:
                await linked(a, b)
            shutil.copytree(folder, copied)
            async with running(other) as b:
                await linked(a, b)
                await ana.subscribe("s", "x > 0")
                await until(b.node.core.interest)
                await until(lambda: not a.node.core.links["b"].outbox)
            shutil.rmtree(folder)
            shutil.move(copied, folder)
            async with running(other) as b, talking(b, "bob") as bob:
                await until(b.node.core.interest)
                await bob.publish(1, {"x": 1})
                assert await ana.events(1) == [{"x": 1}]

    asyncio.run(test())


def test_a_program_that_starts_anew_counts_on_unless_the_folder_may_be_an_earlier_one(tmp_path: Path) -> None:
    config, copied = settings("a", tmp_path / "a"), tmp_path / "copy"

    async def test() -> None:
        welcomes = []
        for _ in range(3):
            async with running(config) as node, talking(node, "bob") as bob:
                welcomes.append(bob.welcome)
                await bob.publish(bob.welcome.accepted + 1, {"x": 1})
            if len(welcomes) == 2:
                shutil.copytree(tmp_path / "a", copied)
                shutil.rmtree(tmp_path / "a")
                shutil.move(copied, tmp_path / "a")
        assert [one.accepted for one in welcomes] == [0, 1, 0]
        assert welcomes[0].identity == welcomes[1].identity != welcomes[2].identity

    asyncio.run(test())


def test_who_knows_more_of_the_same_life_than_a_node_goes_on_from_where_the_node_is() -> None:
    """A machine may be set back while its node runs: then no new life tells it."""
    pair = Pair()
    for _ in range(3):
        pair.publish("bob", "a")
    pair.exchange()
    pair.take(acknowledge=False)
    core, session = pair.brokers["b"], pair.brokers["b"].sessions["ana"]
    assert core.sessions.first_void("ana", pair.seen, pair.known) == 0
    assert core.sessions.first_void("ana", session.count + 5, pair.known) == session.count + 1
    link = pair.brokers["a"].links["b"]
    more = LinkResume("", "", link.last + 7, link.lives, link.remote_lives, 1, link.received - 1)
    assert pair.brokers["a"].links.resume("b", more, "") == link.last
    assert link.received == more.last
