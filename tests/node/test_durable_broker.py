"""Brokers that are killed at any moment: what was accepted arrives, once and in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.routing.runs import Step as Happening
from tests.routing.runs import parents, steps, tree
from tools.samples import FILTERS, UNIVERSE

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.node.durable_broker import DurableBroker
from fieldfare.node.state import NEVER, Pending, Publication, RequestRefused
from fieldfare.node.step import Step
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import (
    JournalEntry,
    details_of,
    handed_over,
    is_handed_over,
    last_complete_position,
    low_water,
)
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import STRATEGIES, Strategy

Rows = dict[str, dict[tuple[str | int, ...], object]]


class Disk:
    """Rows and a log, as they would be on disk."""

    def __init__(self) -> None:
        self.rows: Rows = {}
        self.log: list[JournalEntry] = []

    def append(self, entries: Sequence[JournalEntry]) -> None:
        for entry in entries:
            assert entry.position == len(self.log) + 1
            self.log.append(entry)

    def write(self, step: Step) -> None:
        for kind, key, value in step.rows:
            table = self.rows.setdefault(kind, {})
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value


class Client:
    """A client that says again what was not accepted, and takes each delivery once."""

    def __init__(self, name: str, home: str) -> None:
        self.name, self.home = name, home
        self.here = False
        self.unsafe: dict[int, Event] = {}
        self.said: dict[int, Event] = {}
        self.count = 0
        self.done = 0
        self.got: list[tuple[str, int]] = []


class World:
    """Brokers with disks, links that forget what is on the way when they break, and clients."""

    def __init__(
        self, strategy: Strategy, links: Sequence[tuple[str, str, m.Role]], *, forgetful: bool = False
    ) -> None:
        """Forgetful brokers do not remember events: then numbers alone must see to it that nothing comes twice."""
        self.strategy = strategy
        self.remember = 0.1 if forgetful else 1e9
        self.now = 0.0
        self.lives = count()
        names = sorted({name for a, b, _ in links for name in (a, b)})
        self.disks = {name: Disk() for name in names}
        self.brokers = {name: self.broker(name) for name in names}
        self.sent: dict[tuple[str, str], int] = {}
        """the last number that is on the way or has arrived, by sender and receiver"""
        self.channels: dict[tuple[str, str], list[tuple[int, list[bytes]] | int]] = {}
        self.asides: dict[tuple[str, str], list[bytes]] = {}
        """what may get lost"""
        self.clients = {f"{name}.{i}": Client(f"{name}.{i}", name) for name in names for i in (0, 1)}
        for a, b, role in links:
            for one, other, its in ((a, b, role), (b, a, role.opposite)):
                self.channels[one, other], self.sent[one, other], self.asides[one, other] = [], 0, []
                self.run(one, lambda broker, now, other=other, its=its: broker.links.connect(other, its, now))  # type: ignore[misc]
                self.regain(one, other)
        for client in self.clients.values():
            self.come(client)

    def make(self, name: str) -> Broker:
        return Broker(name, self.strategy, life=next(self.lives), remember=self.remember)

    def broker(self, name: str, disk: Disk | None = None, first: int = 1) -> DurableBroker:
        if disk is None:
            return DurableBroker(self.make(name), life=self.life())
        return DurableBroker(self.make(name), disk.rows, disk.log[first - 1 :], now=self.now, life=self.life())

    def life(self) -> str:
        """A name that no other life of a log has."""
        return f"life {next(self.lives)}"

    def run(self, name: str, action: Callable[[DurableBroker, float], object], die: int = 0, torn: int = 0) -> bool:
        """A step of a broker, which may die before anything is written (1), with some of the log written (2), with all
        of it but no rows (3), or before it says anything (4)."""
        self.now += 1
        broker, disk = self.brokers[name], self.disks[name]
        action(broker, self.now)
        if broker.broker.wakes is not None and self.now >= broker.broker.wakes:
            broker.tick(self.now)
        step = broker.drain()
        if die != 1:
            disk.append(step.entries[: torn % (len(step.entries) + 1)] if die == 2 else step.entries)
        if die in (0, 4):
            disk.write(step)
        if die:
            self.crash(name)
            return False
        broker.release(step)
        self.say(name)
        return True

    def say(self, name: str) -> None:
        """Let sessions and neighbours take what they may."""
        broker = self.brokers[name]
        for client in self.clients.values():
            if client.home == name and client.here:
                for number, pending in broker.deliveries.next(client.name, 1000, self.now):
                    entry = self.disks[name].log[pending.position - 1]
                    if number > client.done:
                        client.done = number
                        client.got.append(
                            (entry.publisher, handed_over(entry.sequence) if is_handed_over(entry) else entry.sequence)
                        )
        for (one, other), sent in self.sent.items():
            if one == name and other in broker.links:
                self.asides[one, other] += broker.links.take_unnumbered(other)
                outgoing = broker.links.outgoing(other, sent, 1000)
                if outgoing:
                    first = outgoing[0][0]
                    self.channels[one, other].append((first, [self.bytes(name, what) for _, what in outgoing]))
                    self.sent[one, other] = outgoing[-1][0]

    def bytes(self, name: str, what: bytes | int) -> bytes:
        if isinstance(what, bytes):
            return what
        entry = self.disks[name].log[what - 1]
        rest = details_of(entry)
        return wire.encode_forward(
            entry.event, entry.publisher, entry.sequence, by=rest.by, source=rest.source, expires=rest.expires,
            replaces=rest.replaces, tag=rest.tag,
        )  # fmt: skip

    def crash(self, name: str) -> None:
        """What is on the way to and from it is lost; it comes back with what is on its disk."""
        for client in self.clients.values():
            client.here = client.here and client.home != name
        disk = self.disks[name]
        if disk.log:
            del disk.log[last_complete_position(disk.log[-1]) :]
        first = low_water(disk.rows)
        self.brokers[name] = self.broker(name, disk, first)
        self.run(name, lambda broker, _: broker.resume())
        for a, b in [pair for pair in self.channels if pair[0] == name]:
            self.flap(a, b)

    def flap(self, a: str, b: str) -> None:
        """A link breaks, and is there again."""
        for one, other in ((a, b), (b, a)):
            self.channels[one, other].clear()
            self.asides[one, other].clear()
            self.regain(one, other)
        for one, other in ((a, b), (b, a)):
            heard = self.brokers[other].links[one].written
            self.sent[one, other] = heard
            self.run(one, lambda broker, _, other=other, heard=heard: broker.links.acknowledge(other, heard))  # type: ignore[misc]

    def regain(self, one: str, other: str) -> None:
        self.run(one, lambda broker, now: broker.links.link_up(other, now))

    def come(self, client: Client) -> None:
        client.here = True
        self.run(client.home, lambda broker, now: broker.sessions.attach(client.name, f"{client.name}@", now))
        again = {**dict(list(client.said.items())[-2:]), **client.unsafe}  # some of it needlessly
        for number, event in sorted(again.items(), key=lambda item: item[0]):
            self.say_publish(client, number, [event])

    def say_publish(self, client: Client, number: int, events: Sequence[Event], die: int = 0, torn: int = 0) -> None:
        answers: list[int | RequestRefused] = []
        publication = Publication(client.name, number, events)
        if self.run(client.home, lambda broker, now: answers.extend(broker.publish([publication], now)), die, torn):
            (answer,) = answers
            assert isinstance(answer, int)
            client.unsafe = {n: event for n, event in client.unsafe.items() if n > answer}

    def publish(self, client: Client, events: Sequence[Event], die: int = 0, torn: int = 0) -> None:
        first = client.count + 1
        for event in events:
            client.count += 1
            client.unsafe[client.count] = client.said[client.count] = event
        if client.here:
            self.say_publish(client, first, events, die, torn)

    def whisper(self, which: int) -> None:
        """Let something arrive that may get lost."""
        busy = [pair for pair, asides in self.asides.items() if asides]
        if busy:
            sender, to = busy[which % len(busy)]
            data = self.asides[sender, to].pop(0)
            self.run(to, lambda broker, now: broker.links.receive_unnumbered(sender, data, now))

    def arrive(self, which: int, die: int = 0) -> bool:
        self.whisper(which)
        busy = [pair for pair, channel in self.channels.items() if channel]
        if busy:
            sender, to = busy[which % len(busy)]
            message = self.channels[sender, to].pop(0)
            for _ in range(2 if which % 5 == 4 and not die else 1):  # it may come twice
                if isinstance(message, int):
                    if self.run(to, lambda broker, _: broker.links.acknowledge(sender, message), die):
                        continue
                elif self.run(to, lambda broker, now: broker.links.receive(sender, *message, now), die, which):
                    self.channels[to, sender].append(self.brokers[to].links[sender].written)
        return bool(busy)

    def settle(self) -> None:
        for client in self.clients.values():
            if not client.here:
                self.come(client)
        for i in range(50_000):
            if not self.arrive(i):
                return
        raise AssertionError("no rest")


@pytest.mark.parametrize("name", ["covering", "merging", "identity", "imperfect", "simple", "flooding", "covering+ads",
                                  "prefix"])  # fmt: skip
@few(10)
@given(
    parents=parents, forgetful=st.booleans(), shape=st.sampled_from(["peer", "hierarchical"]),
    wanted=st.lists(st.tuples(st.integers(0, 63), st.integers(0, 63)), max_size=8), happenings=steps,
)  # fmt: skip
def test_what_was_accepted_arrives_once_and_in_order(
    *,
    name: str,
    parents: Sequence[int],
    shape: str,
    wanted: Sequence[tuple[int, int]],
    happenings: Sequence[Happening],
    forgetful: bool,
) -> None:
    world = World(STRATEGIES[name], tree(parents, shape), forgetful=forgetful)
    clients = list(world.clients.values())
    if STRATEGIES[name].advertisements is not None:
        for client in clients:
            change(world, client, m.Advertise("all", parse("TRUE")))
        world.settle()
    asked: dict[str, list[Filter]] = {}
    for who, what in wanted:
        client, filter = clients[who % len(clients)], FILTERS[what % len(FILTERS)]
        asked.setdefault(client.name, []).append(filter)
        change(world, client, m.Subscribe(f"s{what}", filter))
    world.settle()
    events: dict[tuple[str, int], Event] = {}
    for step in happenings:
        client = clients[step.who % len(clients)]
        die = max(0, step.what % 10 - 5)  # mostly 0
        match step.kind:
            case 0 | 1 | 2 | 3 | 4:
                several = [UNIVERSE[(step.what + i) % len(UNIVERSE)] for i in range(1 + step.kind % 3)]
                world.publish(client, several, die, step.who)
                for i, event in enumerate(reversed(several)):
                    events[client.name, client.count - i] = event
            case 5:
                world.crash(client.home)
            case 6:
                world.flap(*list(world.channels)[step.what % len(world.channels)])
            case 7 if client.here:
                client.here = False
                world.run(client.home, lambda broker, now, one=client: broker.sessions.detach(one.name, now))  # type: ignore[misc]
            case 8 if not client.here:
                world.come(client)
            case 9 if client.here:
                acknowledge(world, client, die)
            case 10:
                world.run(client.home, lambda broker, _: broker.checkpoint(), die)
            case _:
                world.arrive(step.what, die)
    world.settle()
    for client in clients:
        mine = asked.get(client.name, [])
        due = {id for id, event in events.items() if any(filter.matches(event) for filter in mine)}
        assert sorted(client.got) == sorted(due)
        assert not client.unsafe
        for publisher in {publisher for publisher, _ in client.got}:
            numbers = [number for other, number in client.got if other == publisher]
            assert numbers == sorted(numbers)
    for client in clients:
        acknowledge(world, client)
    world.settle()
    for home, disk in world.disks.items():
        assert not disk.rows.get("outbox")
        broker = world.brokers[home]
        assert broker.low_water() == broker.position + 1 == len(disk.log) + 1


def change(world: World, client: Client, message: m.Message) -> None:
    world.run(client.home, lambda broker, now: broker.sessions.change_filters(message, client.name, now))


def acknowledge(world: World, client: Client, die: int = 0) -> None:
    world.run(client.home, lambda broker, _: broker.deliveries.acknowledge(client.name, client.done), die)


def test_a_client_that_leaves_takes_its_rows_along() -> None:
    world = World(STRATEGIES["covering"], [("b1", "b0", m.Role.PEER)])
    change(world, world.clients["b0.0"], m.Subscribe("s", parse("x = 1")))
    world.settle()
    assert world.disks["b1"].rows["told"]
    world.publish(world.clients["b1.0"], [Event({"x": 1, "y": 1})])
    world.settle()
    assert world.brokers["b0"].low_water() == 1
    world.clients["b0.0"].here = False
    world.run("b0", lambda broker, now: broker.sessions.end("b0.0", now))
    del world.clients["b0.0"]
    world.settle()
    assert not world.disks["b0"].rows["subscriptions"]
    assert ("b0.0",) not in world.disks["b0"].rows["session"]
    assert not world.disks["b1"].rows["told"]
    assert world.brokers["b0"].low_water() == 2


def one_broker(**options: object) -> DurableBroker:
    broker = DurableBroker(Broker("b"), **options)  # type: ignore[arg-type]
    for name in ("ana", "bob"):
        broker.sessions.attach(name, f"{name}@1", 0.0)
    broker.sessions.change_filters(m.Subscribe("s", parse("x >= 0")), "ana", 0.0)
    broker.drain()
    return broker


def publish(
    broker: DurableBroker, number: int, *events: dict[str, object], now: float = 0.0, **options: object
) -> Step:
    (answer,) = broker.publish([Publication("bob", number, [Event(one) for one in events], **options)], now)  # type: ignore[arg-type]
    assert isinstance(answer, int), answer
    step = broker.drain()
    broker.release(step)
    return step


def positions(broker: DurableBroker, now: float = 0.0) -> list[int]:
    return [pending.position for _, pending in broker.deliveries.next("ana", 1000, now)]


def test_without_a_session_nothing_is_kept() -> None:
    broker = DurableBroker(Broker("b"))
    broker.sessions.attach("ana", "1", 0.0, durable=False)
    broker.sessions.change_filters(m.Subscribe("s", parse("x = 1")), "ana", 0.0)
    assert broker.publish([Publication("ana", 1, [Event({"x": 1})])], 0.0) == [1]
    step = broker.drain()
    assert step.rows == []
    assert details_of(step.entries[0]).to == []
    broker.release(step)
    assert positions(broker) == [1]
    broker.sessions.detach("ana", 0.0)
    assert not broker.broker.clients.all


def test_who_has_not_come_is_refused() -> None:
    broker = DurableBroker(Broker("b"))
    with pytest.raises(RequestRefused, match="no session ana"):
        broker.sessions.change_filters(m.Subscribe("s", parse("x = 1")), "ana", 0.0)
    (answer,) = broker.publish([Publication("ana", 1, [Event({"x": 1})])], 0.0)
    assert isinstance(answer, RequestRefused)


def test_nobody_takes_what_is_not_written() -> None:
    broker = one_broker()
    broker.publish([Publication("bob", 1, [Event({"x": 1})])], 0.0)
    assert positions(broker) == []
    broker.release(broker.drain())
    assert positions(broker) == [1]


def test_what_is_too_old_is_not_delivered() -> None:
    broker = one_broker()
    publish(broker, 1, {"x": 1}, expires=10.0)
    publish(broker, 2, {"x": 2})
    assert positions(broker, now=11.0) == [2]


def test_events_replace_each_other_while_they_wait() -> None:
    broker = one_broker()
    publish(broker, 1, {"x": 1}, replaces="price")
    assert positions(broker) == [1]  # it is on its way
    for number in (2, 3):
        publish(broker, number, {"x": number}, replaces="price")
    publish(broker, 4, {"x": 4}, replaces="other")
    assert positions(broker) == [3, 4]
    broker.sessions.attach("ana", "", 1.0)
    assert positions(broker) == [1, 3, 4]


def test_of_what_is_too_much_the_oldest_goes() -> None:
    broker = one_broker(limit=3)
    for number in range(1, 6):
        publish(broker, number, {"x": number})
    assert broker.sessions["ana"].dropped == 2
    assert positions(broker) == [3, 4, 5]


def test_a_slow_client_without_a_session_has_to_go() -> None:
    broker = DurableBroker(Broker("b"), queue=2, policy="disconnect")
    for name in ("ana", "bob"):
        broker.sessions.attach(name, name, 0.0, durable=False)
    broker.sessions.change_filters(m.Subscribe("s", parse("x >= 0")), "ana", 0.0)
    assert publish(broker, 1, {"x": 1}, {"x": 2}).overflowing == set()
    assert publish(broker, 3, {"x": 3}).overflowing == {"ana"}


def test_old_events_are_replayed_and_survive() -> None:
    broker = one_broker()
    publish(broker, 1, {"y": 1}, {"y": 2})
    disk = Disk()
    broker.checkpoint()
    broker.deliveries.replay("ana", [Pending(position, ("old",), NEVER) for position in (1, 2)])
    step = broker.drain()
    disk.write(step)
    again = DurableBroker(Broker("b"), disk.rows, [], now=1.0)
    again.sessions.attach("ana", "", 1.0)
    assert [(n, p.position, p.subscriptions) for n, p in again.deliveries.next("ana", 9, 1.0)] == [
        (1, 1, ("old",)),
        (2, 2, ("old",)),
    ]
    again.deliveries.acknowledge("ana", 2)
    disk.write(again.drain())
    assert disk.rows["replayed"] == {}


def test_what_was_not_sent_cannot_be_acknowledged() -> None:
    broker = one_broker()
    publish(broker, 1, {"x": 1})
    with pytest.raises(RequestRefused, match="was not sent"):
        broker.deliveries.acknowledge("ana", 1)


def test_sessions_that_nobody_comes_back_to_end() -> None:
    broker = one_broker()
    broker.sessions.detach("ana", 5.0)
    assert broker.expire(10.0, life=20.0) == []
    assert broker.expire(30.0, life=20.0) == ["ana"]
    assert "ana" not in broker.broker.clients.all


def test_a_neighbour_that_has_forgotten_begins_anew() -> None:
    broker = one_broker()
    broker.links.connect("c", m.Role.PEER, 0.0, local_name="m", remote_name="t1")
    broker.release(broker.drain())
    assert len(broker.links.outgoing("c", 0, 9)) == 1
    broker.links.acknowledge("c", 1)
    assert broker.links["c"].acknowledged == 1
    broker.links.connect("c", m.Role.PEER, 0.0, local_name="m2", remote_name="t2")
    broker.release(broker.drain())
    assert (broker.links["c"].acknowledged, len(broker.links.outgoing("c", 0, 9))) == (0, 1)


def test_numbers_leave_nothing_out() -> None:
    broker = one_broker()
    broker.links.connect("c", m.Role.PEER, 0.0)
    with pytest.raises(ValueError, match="left out"):
        broker.links.receive("c", 2, [wire.encode(m.FilterUpdate())], 0.0)
    with pytest.raises(ValueError, match="was the last"):
        broker.links.acknowledge("c", 7)
