"""Brokers that are killed at any moment: what was accepted arrives, once and in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.routing.harness import FILTERS, UNIVERSE
from tests.routing.runs import Step as Happening
from tests.routing.runs import parents, steps, tree

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.node.durable import (
    Accepted,
    Acknowledge,
    Attach,
    Delivery,
    Detach,
    DurableBroker,
    Numbered,
    Received,
    Step,
)  # fmt: skip
from fieldfare.routing import messages as m
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import STRATEGIES, Strategy

Disk = dict[str, dict[tuple[str | int, ...], object]]


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

    def hear(self, message: m.Message) -> None:
        if isinstance(message, Accepted):
            self.unsafe = {n: event for n, event in self.unsafe.items() if n > message.sequence}
        elif isinstance(message, Delivery) and message.position > self.done:
            self.done = message.position
            self.got.append((message.deliver.publisher, message.deliver.sequence))


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
        self.disks: dict[str, Disk] = {name: {} for name in names}
        self.brokers = {name: DurableBroker(self.make(name)) for name in names}
        self.channels: dict[tuple[str, str], deque[m.Message]] = {}
        self.clients = {f"{name}.{i}": Client(f"{name}.{i}", name) for name in names for i in (0, 1)}
        for a, b, role in links:
            self.channels[a, b], self.channels[b, a] = deque(), deque()
            self.run(a, m.Connect(role), b)
            self.run(b, m.Connect(role.opposite), a)
        for client in self.clients.values():
            self.come(client)

    def make(self, name: str) -> Broker:
        return Broker(name, self.strategy, life=next(self.lives), remember=self.remember)

    def run(self, broker: str, message: m.Message, sender: str, die: int = 0) -> None:
        """A step of a broker, which may die before its rows are written (1) or before its messages are sent (2)."""
        self.now += 1
        step = self.brokers[broker].receive(message, sender, self.now)
        if die != 1:
            self.write(broker, step)
        if die:
            self.crash(broker)
        else:
            self.send(broker, step)

    def write(self, broker: str, step: Step) -> None:
        for kind, key, value in step.rows:
            table = self.disks[broker].setdefault(kind, {})
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value

    def send(self, broker: str, step: Step) -> None:
        for send in step.sends:
            if isinstance(send.message, Numbered | Received):
                self.channels[broker, send.to].append(send.message)
            elif send.to in self.clients and self.clients[send.to].here:
                self.clients[send.to].hear(send.message)

    def crash(self, broker: str) -> None:
        """What is on the way to and from it is lost; it comes back with what is on its disk."""
        for client in self.clients.values():
            client.here = client.here and client.home != broker
        again = self.brokers[broker] = DurableBroker(self.make(broker), self.disks[broker])
        step = again.introduce()
        self.write(broker, step)
        for a, b in [pair for pair in self.channels if pair[0] == broker]:
            self.flap(a, b)

    def flap(self, a: str, b: str) -> None:
        """A link breaks, and is there again."""
        for one, other in ((a, b), (b, a)):
            self.channels[one, other].clear()
        for one, other in ((a, b), (b, a)):
            step = self.brokers[one].resume(other, self.brokers[other].heard(one))
            self.write(one, step)
            self.send(one, step)

    def come(self, client: Client) -> None:
        client.here = True
        self.run(client.home, Attach(), client.name)
        again = {**dict(list(client.said.items())[-2:]), **client.unsafe}  # some of it needlessly
        for number, event in sorted(again.items(), key=lambda item: item[0]):
            self.run(client.home, m.Publish(event, number), client.name)

    def publish(self, client: Client, event: Event, die: int = 0) -> None:
        client.count += 1
        client.unsafe[client.count] = client.said[client.count] = event
        if client.here:
            self.run(client.home, m.Publish(event, client.count), client.name, die)

    def arrive(self, which: int, die: int = 0) -> bool:
        busy = [pair for pair, channel in self.channels.items() if channel]
        if busy:
            sender, to = busy[which % len(busy)]
            message = self.channels[sender, to].popleft()
            self.run(to, message, sender, die)
            if which % 5 == 4 and not die:
                self.run(to, message, sender)  # it came twice
        return bool(busy)

    def settle(self) -> None:
        for client in self.clients.values():
            if not client.here:
                self.come(client)
        for i in range(50_000):
            if not self.arrive(i):
                return
        raise AssertionError("no rest")


@pytest.mark.parametrize("name", ["covering", "merging", "identity", "imperfect", "simple", "flooding", "covering+ads"])
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
            world.run(client.home, m.Advertise("all", parse("TRUE")), client.name)
        world.settle()
    asked: dict[str, list[Filter]] = {}
    for who, what in wanted:
        client, filter = clients[who % len(clients)], FILTERS[what % len(FILTERS)]
        asked.setdefault(client.name, []).append(filter)
        world.run(client.home, m.Subscribe(f"s{what}", filter), client.name)
    world.settle()
    events: dict[tuple[str, int], Event] = {}
    for step in happenings:
        client = clients[step.who % len(clients)]
        die = max(0, step.what % 8 - 5)  # mostly 0
        match step.kind:
            case 0 | 1 | 2 | 3 | 4:
                event = UNIVERSE[step.what % len(UNIVERSE)]
                world.publish(client, event, die)
                events[client.name, client.count] = event
            case 5:
                world.crash(client.home)
            case 6:
                world.flap(*list(world.channels)[step.what % len(world.channels)])
            case 7 if client.here:
                client.here = False
                world.run(client.home, Detach(), client.name)
            case 8 if not client.here:
                world.come(client)
            case 9 if client.here:
                world.run(client.home, Acknowledge(client.done), client.name, die)
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
        world.run(client.home, Acknowledge(client.done), client.name)
    world.settle()
    for disk in world.disks.values():
        assert not disk.get("pending")
        assert not disk.get("outbox")


def test_a_client_that_leaves_takes_its_rows_along() -> None:
    world = World(STRATEGIES["covering"], [("b1", "b0", m.Role.PEER)])
    world.run("b0", m.Subscribe("s", parse("x = 1")), "b0.0")
    world.settle()
    assert world.disks["b1"]["told"]
    world.publish(world.clients["b1.0"], Event({"x": 1, "y": 1}))
    world.settle()
    assert world.disks["b0"]["pending"]
    world.run("b0", m.Leave(), "b0.0")
    world.settle()
    for kind in ("pending", "subscriptions"):
        assert not world.disks["b0"][kind]
    assert ("b0.0",) not in world.disks["b0"]["session"]
    assert not world.disks["b1"]["told"]


def test_without_a_session_nothing_is_kept() -> None:
    broker = DurableBroker(Broker("b"))
    broker.receive(Attach(session=False), "ana", 0.0)
    assert broker.receive(m.Subscribe("s", parse("x = 1")), "ana", 0.0).rows == []
    rows, sends = broker.receive(m.Publish(Event({"x": 1}), 1), "ana", 0.0)
    assert [row.kind for row in rows] == ["event"]
    assert [type(send.message) for send in sends] == [Delivery, Accepted]
    broker.receive(Detach(), "ana", 0.0)
    assert not broker.broker.clients.all


def test_who_has_not_come_is_refused() -> None:
    with pytest.raises(ValueError, match="attach first"):
        DurableBroker(Broker("b")).receive(m.Subscribe("s", parse("x = 1")), "ana", 0.0)
