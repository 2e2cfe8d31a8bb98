"""Brokers on a DHT, each topic with a rendezvous of its own; nodes join, leave and fail."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.routing.runs import Step, steps

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.protocol import messages as m
from fieldfare.routing.broker import Broker
from fieldfare.routing.overlays.pastry import PastryNode, Peers
from fieldfare.routing.overlays.rendezvous import Rendezvous
from fieldfare.routing.overlays.ring import Ring, key_of
from fieldfare.routing.strategies import COVERING, IDENTITY, MERGING, RENDEZVOUS, Strategy

EVENTS = [Event({"type": type, "x": x}) for type, x in product("abc", range(3))] + [Event({"x": 1}), Event({"type": 7})]
FILTERS = list(map(parse, [
    "type = 'a'", "type = 'a' AND x < 2", "type = 'b' AND x > 0", "type IN ('a', 'b') AND x = 1", "x = 1", "x > 0",
    "type = 'c' OR x = 0", "type LIKE 'b%'", "type IS MISSING", "type = 'c'", "type = 7",
]))  # fmt: skip


class Cloud:
    """Brokers that can all reach each other; what is sent to one that is gone is lost, and the sender hears of that."""

    def __init__(self, strategy: Strategy, half: int = 3) -> None:
        self.strategy = strategy
        self.half = half
        self.brokers: dict[str, Broker] = {}
        self.channels: dict[tuple[str, str], deque[m.Message]] = {}
        self.wanting: dict[str, dict[str, Filter]] = {}
        self.got: list[tuple[str, int]] = []
        self.count = 0
        self.messages = 0

    def join(self, name: str) -> None:
        broker = Broker(name, self.strategy)
        assert isinstance(broker.routes, Rendezvous)
        broker.routes.topics = broker.routes.topics[:4]
        broker.routes.node = PastryNode(Peers(name, half=self.half))
        via = next(iter(self.brokers), None)
        self.brokers[name] = broker
        if via is not None:
            self.receive(name, m.Connect(), via)

    def forget(self, name: str) -> None:
        del self.brokers[name]
        for client in [client for client in self.wanting if client.split(".")[0] == name]:
            del self.wanting[client]
        for pair in [pair for pair in self.channels if name in pair]:
            del self.channels[pair]

    def fail(self, name: str) -> None:
        self.forget(name)
        for other in self.brokers:
            self.receive(other, m.Disconnect(), name)

    def retire(self, name: str) -> None:
        """Nobody has to find out: it says goodbye, and what is on the way to it is lost."""
        goodbyes = self.brokers[name].retire(0.0)
        self.forget(name)
        for send in goodbyes:
            if send.to in self.brokers:
                self.channels.setdefault((name, send.to), deque()).append(send.message)

    def subscribe(self, client: str, id: str, filter: Filter) -> None:
        self.wanting.setdefault(client, {})[id] = filter
        self.receive(client.split(".", maxsplit=1)[0], m.Subscribe(id, filter), client)

    def unsubscribe(self, client: str, id: str) -> None:
        self.wanting.get(client, {}).pop(id, None)
        self.receive(client.split(".", maxsplit=1)[0], m.Unsubscribe(id), client)

    def publish(self, client: str, event: Event) -> int:
        self.count += 1
        self.receive(client.split(".", maxsplit=1)[0], m.Publish(event, self.count), client)
        return self.count

    def receive(self, broker: str, message: m.Message, sender: str) -> None:
        for send in self.brokers[broker].receive(message, sender, 0.0):
            if isinstance(send.message, m.Deliver):
                assert (send.to, send.message.sequence) not in self.got, "twice"
                self.got.append((send.to, send.message.sequence))
                assert any(f.matches(send.message.event) for f in self.wanting[send.to].values()), "unasked"
            elif send.to in self.brokers:
                self.channels.setdefault((broker, send.to), deque()).append(send.message)
                self.messages += isinstance(send.message, m.Forward)

    def arrive(self, which: int) -> bool:
        busy = [pair for pair, channel in self.channels.items() if channel]
        if busy:
            sender, to = busy[which % len(busy)]
            self.receive(to, self.channels[sender, to].popleft(), sender)
        return bool(busy)

    def drain(self) -> None:
        for i in range(100_000):
            if not self.arrive(i):
                return
        raise AssertionError("no rest")

    def delivers_exactly(self) -> None:
        self.drain()
        for broker in self.brokers:
            for event in EVENTS:
                number = self.publish(f"{broker}.p", event)
                self.drain()
                wanted = {c for c, mine in self.wanting.items() if any(f.matches(event) for f in mine.values())}
                assert {client for client, other in self.got if other == number} == wanted, (broker, event)


@pytest.mark.parametrize("inner", [COVERING, IDENTITY, MERGING], ids=lambda strategy: strategy.name)
@few(30)
@given(first=st.integers(1, 6), steps=steps)
def test_meets_wherever_nodes_come_and_go(inner: Strategy, first: int, steps: Sequence[Step]) -> None:
    cloud = Cloud(replace(RENDEZVOUS, table=inner.table, merging=inner.merging))
    for i in range(first):
        cloud.join(f"b{i}")
        cloud.drain()
    born = first
    for step in steps:
        broker = list(cloud.brokers)[step.who % len(cloud.brokers)]
        client = f"{broker}.{step.what % 2}"
        match step.kind:
            case 0 | 1 | 2 | 3:
                cloud.subscribe(client, str(step.what % 3), FILTERS[step.what % len(FILTERS)])
            case 4 | 5:
                cloud.unsubscribe(client, str(step.what % 3))
            case 6:
                cloud.publish(client, EVENTS[step.what % len(EVENTS)])
            case 7 if born < 10:
                cloud.drain()
                cloud.join(f"b{born}")
                born += 1
            case 8 if len(cloud.brokers) > 1:
                cloud.drain()
                cloud.fail(broker)
            case 9 if len(cloud.brokers) > 1:
                cloud.drain()
                cloud.retire(broker)
            case _:
                cloud.arrive(step.what)
    cloud.drain()
    copies_are_right(cloud)
    cloud.delivers_exactly()
    for client, mine in list(cloud.wanting.items()):
        for id in list(mine):
            cloud.unsubscribe(client, id)
    cloud.drain()
    assert {name: broker.entries for name, broker in cloud.brokers.items() if broker.entries} == {}


@few(30)
@given(
    brokers=st.integers(3, 8),
    wanted=st.lists(st.tuples(st.integers(0, 7), st.sampled_from(FILTERS)), min_size=3, max_size=8),
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 63), st.sampled_from(EVENTS)), min_size=20, max_size=60),
)
def test_publishers_stay_in_order_across_topics(
    brokers: int, wanted: list[tuple[int, Filter]], steps: list[tuple[bool, int, Event]]
) -> None:
    """Events of few publishers, and arrivals in any order across links."""
    cloud = Cloud(RENDEZVOUS)
    for i in range(brokers):
        cloud.join(f"b{i}")
        cloud.drain()
    for number, (broker, filter) in enumerate(wanted):
        cloud.subscribe(f"b{broker % brokers}.{number}", "s", filter)
    cloud.drain()
    due: dict[str, list[int]] = {}
    publishers: dict[int, str] = {}
    for publishes, who, event in steps:
        if publishes:
            publisher = f"b{who % 2 % brokers}.p"
            number = cloud.publish(publisher, event)
            publishers[number] = publisher
            for client, mine in cloud.wanting.items():
                if any(filter.matches(event) for filter in mine.values()):
                    due.setdefault(client, []).append(number)
        else:
            cloud.arrive(who)
    cloud.drain()
    for client in cloud.wanting:
        got = [number for to, number in cloud.got if to == client]
        for publisher in set(publishers.values()):
            assert [n for n in got if publishers[n] == publisher] == [
                n for n in due.get(client, []) if publishers[n] == publisher
            ]


def test_whoever_does_not_answer_is_not_waited_for_twice() -> None:
    """A node that is gone without anybody noticing keeps events back for a while, not for ever."""
    cloud, names, some = cloud_of(4)
    owners = {f"t{i}": Ring().owner(names, key_of(some.topic_of(f"t{i}"))) for i in range(100)}
    type, gone = next((type, owner) for type, owner in owners.items() if owner != "b0")
    other = next(type for type, owner in owners.items() if owner != gone)
    reader = next(name for name in names if name not in ("b0", gone))
    cloud.subscribe(f"{reader}.0", "s", parse(f"type = '{other}'"))
    cloud.drain()
    cloud.publish("b0.p", Event({"type": type}))
    cloud.forget(gone)
    number = cloud.publish("b0.p", Event({"type": other}))
    cloud.drain()
    assert cloud.got == []
    broker, sent = cloud.brokers["b0"], []
    for _ in range(2):
        assert broker.wakes is not None
        sent += broker.tick(broker.wakes)
    assert [send.message.sequence for send in sent if isinstance(send.message, m.Forward)] == [number]


def copies_are_right(cloud: Cloud) -> None:
    """At rest, those next to a rendezvous keep what it was told, and nobody keeps anything else."""
    routes = {name: broker.routes for name, broker in cloud.brokers.items() if isinstance(broker.routes, Rendezvous)}
    expected: dict[tuple[str, str, str, str], set[Filter]] = {}
    for name, mine in routes.items():
        for topic, tree in mine._trees.items():
            if mine._parent(topic) is None:
                keepers = Ring().closest(routes, key_of(topic), mine.replicas + 1)[1:]
                told = {child: set(tree.filters_of(child)) for child in tree.roles}
                expected |= {(k, topic, name, c): wanted for k in keepers for c, wanted in told.items() if wanted}
    kept = {
        (name, topic, owner, child): set(filters)
        for name, mine in routes.items()
        for topic, owners in mine._copies.items()
        for owner, children in owners.items()
        for child, filters in children.items()
    }
    assert kept == expected


def test_the_successor_serves_at_once() -> None:
    cloud = Cloud(RENDEZVOUS)
    names = [f"b{i}" for i in range(8)]
    for name in names:
        cloud.join(name)
        cloud.drain()
    some = cloud.brokers["b0"].routes
    assert isinstance(some, Rendezvous)
    topic = some.topic_of("a")
    owner, heir = Ring().closest(names, key_of(topic), 2)
    subscriber, publisher = [name for name in names if name not in (owner, heir)][:2]
    cloud.subscribe(f"{subscriber}.0", "s", parse("type = 'a'"))
    cloud.drain()
    cloud.fail(owner)
    cloud.channels.clear()  # nothing of what the others said to mend their ways has arrived
    event = m.Forward(Event({"type": "a", "x": 1}), "p", 1, source=publisher)
    (routed,) = cloud.brokers[heir].route([event], publisher, now=0.0)
    assert subscriber in routed.neighbours


def test_brokers_off_the_way_keep_nothing() -> None:
    cloud = Cloud(RENDEZVOUS, half=1)
    for i in range(9):
        cloud.join(f"b{i}")
        cloud.drain()
    cloud.subscribe("b0.0", "s", parse("type = 'a'"))
    cloud.drain()
    holding = [name for name, broker in cloud.brokers.items() if broker.entries]
    assert "b0" in holding
    assert len(holding) < 6


def cloud_of(n: int) -> tuple[Cloud, list[str], Rendezvous]:
    cloud = Cloud(RENDEZVOUS)
    names = [f"b{i}" for i in range(n)]
    for name in names:
        cloud.join(name)
        cloud.drain()
    some = cloud.brokers["b0"].routes
    assert isinstance(some, Rendezvous)
    return cloud, names, some


def test_a_node_that_could_not_be_reached_for_a_moment_is_served_again() -> None:
    """Only the rendezvous notices, as when one of its messages is not answered in time."""
    cloud, names, some = cloud_of(3)
    owner, child, other = Ring().closest(names, key_of(some.topic_of("a")), 3)
    cloud.subscribe(f"{child}.0", "s", parse("type = 'a'"))
    cloud.drain()
    cloud.receive(owner, m.Disconnect(), child)
    cloud.drain()
    number = cloud.publish(f"{other}.p", Event({"type": "a", "x": 1}))
    cloud.drain()
    assert cloud.got == [(f"{child}.0", number)]


def test_copies_go_when_nobody_wants_anything() -> None:
    """A filter that a larger one covers goes in silence, and copies must forget it all the same."""
    cloud, names, _ = cloud_of(4)
    for name in names:
        for id, filter in (("small", "type = 'a' AND x = 1"), ("large", "type = 'a'")):
            cloud.subscribe(f"{name}.0", id, parse(filter))
            cloud.drain()
        for id in ("small", "large"):
            cloud.unsubscribe(f"{name}.0", id)
            cloud.drain()
    for broker in cloud.brokers.values():
        assert isinstance(broker.routes, Rendezvous)
        assert not any(any(owners.values()) for owners in broker.routes._copies.values())


def entries(cloud: Cloud) -> dict[str, int]:
    return {name: broker.entries for name, broker in cloud.brokers.items() if broker.entries}


def test_copies_follow_a_new_rendezvous() -> None:
    cloud, names, some = cloud_of(4)
    topic = some.topic_of("a")
    for name in names:
        cloud.subscribe(f"{name}.0", "s", parse("type = 'a'"))
    cloud.drain()
    copies_are_right(cloud)
    nearer = next(f"n{i}" for i in range(1000) if Ring().owner([*names, f"n{i}"], key_of(topic)) == f"n{i}")
    cloud.join(nearer)
    cloud.drain()
    copies_are_right(cloud)


def test_a_successor_asks_whether_wishes_still_stand() -> None:
    """What is taken back on the way to a rendezvous that fails is not known to those who kept copies."""
    cloud, names, some = cloud_of(4)
    owner, _, child = Ring().closest(names, key_of(some.topic_of("a")), 3)
    cloud.subscribe(f"{child}.0", "s", parse("type = 'a'"))
    cloud.drain()
    cloud.unsubscribe(f"{child}.0", "s")
    cloud.fail(owner)
    cloud.drain()
    assert entries(cloud) == {}


def test_what_a_failed_node_wanted_is_taken_back_further_up() -> None:
    cloud = Cloud(RENDEZVOUS, half=1)
    for i in range(14):
        cloud.join(f"b{i}")
        cloud.drain()
    routes = {name: broker.routes for name, broker in cloud.brokers.items() if isinstance(broker.routes, Rendezvous)}
    topic, child = next(
        (topic, name)
        for topic in routes["b0"].topics
        for name, mine in routes.items()
        if (up := mine._parent(topic)) is not None and routes[up]._parent(topic) is not None
    )
    type = next(f"t{i}" for i in range(1000) if routes["b0"].topic_of(f"t{i}") == topic)
    cloud.subscribe(f"{child}.0", "s", parse(f"type = '{type}'"))
    cloud.drain()
    assert len(entries(cloud)) >= 3
    cloud.fail(child)
    cloud.drain()
    assert entries(cloud) == {}
