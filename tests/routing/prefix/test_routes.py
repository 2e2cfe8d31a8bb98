"""Networks that forward by tags: exact at rest, and whatever happens no event is lost."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from hashlib import blake2b
from itertools import count
from random import Random
from typing import Any

import msgspec
import pytest
from tools.prefix.networks import FILTERS, Gossiping, Tally, Whispering, build, come_to_rest, run
from tools.prefix.samples import EVENTS, MIXED
from tools.samples import FILTERS as RANGES

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.protocol import messages as m
from fieldfare.routing.broker import Broker
from fieldfare.routing.prefix.options import PrefixOptions
from fieldfare.routing.strategies import PREFIX
from fieldfare.simulation import checker
from fieldfare.simulation.links import Wire, exponential
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Edge, Topology, random_tree
from fieldfare.simulation.trace import Delivered, Forwarded, Published

FAST = PrefixOptions(beat=0.2, patience=1.0, refresh=0.5)
CHAIN = Topology(tuple(f"b{i}" for i in range(5)), tuple(Edge(f"b{i}", f"b{i + 1}") for i in range(4)))
NARROW = [
    *(filter for filter in (*RANGES, *MIXED) if sum(map(filter.matches, EVENTS)) < len(EVENTS) / 4),
    *(parse(f"x = {x} AND s > '{'ab' * n}' AND y IS MISSING") for x in range(4) for n in range(8)),
]
"""filters that do not make events go everywhere"""


def path(topology: Topology, start: str, end: str) -> list[tuple[str, str]]:
    """The links from one broker to another in a tree."""
    ways: dict[str, list[tuple[str, str]]] = {start: []}
    neighbours = topology.neighbours()
    work = [start]
    for one in work:
        for other in neighbours[one]:
            if other not in ways:
                ways[other] = [*ways[one], (one, other)]
                work.append(other)
    return ways[end]


def populated(network: Gossiping, filters: list[Filter], dice: Random) -> dict[str, Filter]:
    """A client at some broker for each filter."""
    wanted = {f"c{number}": filter for number, filter in enumerate(filters)}
    for client, filter in wanted.items():
        network.attach(client, dice.choice(list(network.brokers)))
        network.subscribe(client, "s", filter)
    return wanted


# At rest


@pytest.mark.parametrize(
    "options",
    [
        FAST,
        replace(FAST, parts=3, threshold=0.8),
        replace(FAST, layout="popularity", optimizers=("b3", "b1")),
        replace(FAST, layout="selectivity", parts=2, threshold=0.0),
        *(replace(FAST, depth=depth) for depth in (0, 2)),
    ],
    ids=lambda one: f"{one.parts} {one.layout} {one.depth}",
)
def test_at_rest_events_go_where_somebody_wants_them(options: PrefixOptions) -> None:
    """Over exactly those links; with tags that are cut short also over others, but never over fewer."""
    dice = Random(str(options))
    topology = random_tree(6, 3)
    tally = Tally()
    network = build(topology, options, tally=tally)
    network.drain()
    wanted = populated(network, dice.sample(NARROW, 50), dice)
    assert come_to_rest(network, options)
    assert len(
        {member.placements.tree.digest for broker in network.living for member in broker.prefixed.followers}
    ) == (options.parts)
    leaders = {name for part in range(options.parts) for name in network.in_charge(part)}
    assert leaders == {"b3"} or not options.optimizers
    size = max(broker.prefixed.followers[0].placements.tree.size for broker in network.living)
    assert size >= 50 or options.parts > 1, "the engine is to be used"
    tally.counts.clear()
    since = len(network.trace)
    for number, event in enumerate(EVENTS * 2):
        network.publish(f"c{number % 7}", event)
    network.drain()
    assert (tally.problems, tally.counts["by content"]) == ([], 0)
    passed: defaultdict[tuple[str, int], set[tuple[str, str]]] = defaultdict(set)
    for record in network.trace[since:]:
        if isinstance(record, Forwarded):
            passed[record.publisher, record.sequence].add((record.broker, record.neighbour))
    for record in network.trace[since:]:
        if isinstance(record, Published):
            links = {
                link
                for client, filter in wanted.items()
                if filter.matches(record.event)
                for link in path(topology, record.broker, str(network.where(client)))
            }
            found = passed[record.client, record.sequence]
            assert found == links if options.depth is None else found >= links
    assert (tally.counts["false positives"] > 0) == (options.depth is not None)
    assert checker.check(network.trace) == []


def test_a_better_order_is_found_when_there_are_more_filters() -> None:
    """In which part a filter is does not change with it: `g` would be in another one than `a` and `b`."""
    options = replace(FAST, layout="popularity", parts=2)
    tally = Tally()
    network = build(CHAIN, options, tally=tally, links=Wire(exponential(0.1)))
    network.drain()
    dice = Random(1)
    few = [parse(f"b = {number}") for number in range(6)]
    wanted = populated(network, few, dice)
    assert come_to_rest(network, options)
    before = network.brokers["b0"].prefixed.followers[1].placements.tree
    assert "g" not in before.order.first
    for number in range(120):
        wanted[f"d{number}"] = parse(f"g BETWEEN {number} AND {number + 3} AND {'ab'[number % 2]} < 5")
        network.attach(f"d{number}", dice.choice(CHAIN.brokers))
        network.at(network.now + number / 60, network.subscribe, f"d{number}", "s", wanted[f"d{number}"])
    for number in range(100):
        event = {"a": dice.randrange(9), "b": dice.randrange(9), "g": dice.randrange(120)}
        network.at(network.now + number / 20, network.publish, dice.choice(sorted(wanted)[:6]), event)
    network.drain()
    assert come_to_rest(network, options)
    after = network.brokers["b4"].prefixed.followers[1].placements.tree
    assert after.order.first == ("g", "b", "a")
    assert after.version.term > before.version.term
    for client in wanted:
        network.unsubscribe(client, "s")
    network.drain()
    assert come_to_rest(network, options)
    assert [member.placements.tree.size for broker in network.living for member in broker.prefixed.followers] == [
        0
    ] * 10
    assert tally.problems == []
    assert checker.check(network.trace) == []


# Whatever happens


@pytest.mark.parametrize("seed", range(2))
def test_random_runs(seed: int) -> None:
    assert run(seed, steps=25).problems == []


def test_another_takes_over_and_nothing_is_lost() -> None:
    options = replace(FAST, optimizers=("b4", "b0", "b2"))
    tally = Tally()
    network = build(CHAIN, options, tally=tally)
    network.drain()
    dice = Random(2)
    wanted = populated(network, list(FILTERS[::3]), dice)
    assert come_to_rest(network, options)
    assert network.in_charge() == ["b4"]
    clients = [client for client in wanted if network.where(client) != "b4"]
    network.crash("b4")
    for number in range(100):
        network.at(network.now + number / 40, network.publish, dice.choice(clients), dice.choice(EVENTS))
    for number, filter in enumerate(FILTERS[1::3]):
        network.at(network.now + number / 10, network.subscribe, dice.choice(clients), f"t{number}", filter)
    longest = options.patience * (1 + 1 / 3) + 2 * options.beat + 1
    network.run(network.now + longest)
    assert network.in_charge() == ["b0"]
    network.drain()
    assert come_to_rest(network, options)
    assert tally.problems == []
    assert checker.check(network.trace) == []
    network.restart("b4")
    assert come_to_rest(network, options)
    assert network.in_charge() == ["b0"], "who is in charge stays so"


def test_two_parts_of_a_network_have_their_own_trees_until_they_meet() -> None:
    tally = Tally()
    network = build(CHAIN, FAST, tally=tally)
    network.drain()
    dice = Random(3)
    wanted = populated(network, list(FILTERS[::4]), dice)
    assert come_to_rest(network, FAST)
    network.partition(["b0", "b1"], ["b2", "b3", "b4"])
    for client, filter in zip(list(wanted), FILTERS[1::4], strict=False):
        network.subscribe(client, "t", filter)
    network.run(network.now + 5)
    assert len(network.in_charge()) == 2
    trees = [network.brokers[name].prefixed.followers[0].placements.tree for name in ("b0", "b4")]
    assert trees[0].version.term != trees[1].version.term
    network.heal()
    for number in range(150):
        network.at(network.now + number / 100, network.publish, dice.choice(sorted(wanted)), dice.choice(EVENTS))
    network.drain()
    assert tally.counts["by content"] > 0
    assert come_to_rest(network, FAST)
    assert tally.problems == []
    assert checker.check(network.trace) == []


@pytest.mark.parametrize("shape", ["peer", "hierarchical"])
def test_a_link_breaks_and_heals_again_and_again(shape: str) -> None:
    tally = Tally()
    topology = CHAIN if shape == "peer" else CHAIN.hierarchical()
    network = build(topology, FAST, tally=tally, links=Wire(exponential(0.2)))
    network.drain()
    dice = Random(4)
    wanted = populated(network, list(FILTERS[2::4]), dice)
    for number in range(150):
        network.at(network.now + number / 10, network.publish, dice.choice(sorted(wanted)), dice.choice(EVENTS))
    for number in range(15):
        network.at(network.now + number, network.partition, CHAIN.brokers[: dice.randint(1, 4)])
        network.at(network.now + number + dice.random() / 4, network.heal)
    network.drain()
    assert tally.problems == []
    assert checker.check(network.trace) == []


# Brokers that cannot read events

Seal = Callable[[m.Forward], Any]
KEY = b"only those at the edge have it"


def _keystream(event: m.Forward) -> Iterator[int]:
    for block in count():
        yield from blake2b(f"{event.publisher} {event.by} {event.sequence} {block}".encode(), key=KEY).digest()


def _mixed(event: m.Forward, data: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(data, _keystream(event), strict=False))


def encrypted(event: m.Forward) -> Event:
    return Event({"secret": _mixed(event, msgpack.encode(event.event))})


def decrypted(event: m.Forward) -> Event:
    secret = event.event["secret"]
    assert isinstance(secret, bytes)
    return msgpack.decode(_mixed(event, secret))


class Untouchable:
    """An event that nobody may look at."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"somebody wants to know its {name}")

    def __getitem__(self, name: str) -> Any:
        raise AssertionError("somebody looks into it")

    __iter__ = __len__ = __contains__ = __eq__ = __hash__ = __bool__ = __getitem__  # type: ignore[assignment]


class Vault:
    """Keeps the events that inner brokers have no more than a handle of."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str, int], Event] = {}

    def put(self, event: m.Forward) -> Any:
        self._kept[event.publisher, event.by, event.sequence] = event.event
        return Untouchable()

    def get(self, event: m.Forward) -> Event:
        return self._kept[event.publisher, event.by, event.sequence]


class Keyed(Broker):
    """A broker at the edge: what it sends to others is sealed, and it can open what comes."""

    def __init__(self, name: str, life: int, seal: Seal, unseal: Seal) -> None:
        super().__init__(name, replace(PREFIX, prefix=FAST), life=life, remember=1000.0)
        self._seal, self._unseal = seal, unseal

    def receive(self, message: m.Message, sender: str, now: float) -> list[m.Send]:
        if isinstance(message, m.Forward):
            message = msgspec.structs.replace(message, event=self._unseal(message))
        return [
            m.Send(send.to, msgspec.structs.replace(send.message, event=self._seal(send.message)))
            if isinstance(send.message, m.Forward)
            else send
            for send in super().receive(message, sender, now)
        ]


class Blind(Broker):
    """An inner broker."""

    def __init__(self, name: str, life: int) -> None:
        super().__init__(name, replace(PREFIX, prefix=replace(FAST, blind=True)), life=life, remember=1000.0)

    def receive(self, message: m.Message, sender: str, now: float) -> list[m.Send]:
        if isinstance(message, m.Forward) and type(message.event) is Event:
            assert list(message.event) == ["secret"]
        return super().receive(message, sender, now)


STAR = Topology(
    tuple(f"b{i}" for i in range(10)),
    tuple(Edge(f"b{a}", f"b{b}") for a, b in ((0, 1), (0, 2), (0, 3), (1, 4), (1, 5), (2, 6), (2, 7), (3, 8), (3, 9))),
)


def sealed_network(topology: Topology, seal: Seal, unseal: Seal) -> tuple[Network[Any], list[str]]:
    """Brokers with one neighbour have the key, those between do not; the names of the first."""
    lives = count(1)
    edge = [name for name, others in topology.neighbours().items() if len(others) == 1]

    def make(name: str) -> Broker:
        return Keyed(name, next(lives), seal, unseal) if name in edge else Blind(name, next(lives))

    return Whispering(make, topology, links=Wire(exponential(0.1))), edge


@pytest.mark.parametrize(
    ("topology", "hidden"),
    [
        pytest.param(CHAIN, "encrypted", id="chain-encrypted"),
        pytest.param(STAR, "untouchable", id="star-untouchable"),
        pytest.param(CHAIN, "untouchable", id="chain-untouchable", marks=pytest.mark.long),
        pytest.param(STAR, "encrypted", id="star-encrypted", marks=pytest.mark.long),
    ],
)
def test_brokers_on_the_way_never_look_at_content(topology: Topology, hidden: str) -> None:
    vault = Vault()
    seal, unseal = (encrypted, decrypted) if hidden == "encrypted" else (vault.put, vault.get)
    network, edge = sealed_network(topology, seal, unseal)
    network.drain()
    dice = Random(hidden)
    sound = [event for event in EVENTS if event == msgpack.decode(msgpack.encode(event))]  # a NaN never is
    clients = [f"c{number}" for number in range(8)]
    for number, client in enumerate(clients):
        network.attach(client, edge[number % len(edge)])

    def busy(seconds: float) -> None:
        """Subscriptions change the tree while events are on their way."""
        for number in range(round(seconds * 20)):
            network.at(network.now + number / 20, network.publish, dice.choice(clients), dice.choice(sound))
        for number in range(round(seconds * 4)):
            args = dice.choice(clients), dice.choice("xyz"), dice.choice(FILTERS)
            network.at(network.now + number / 4, network.subscribe, *args)
        network.drain()

    inner = [name for name in topology.brokers if name not in edge]
    unread = 0
    busy(3)
    for broker in inner:
        network.crash(broker)
        network.run(network.now + dice.random())
        network.restart(broker)
        network.drain()
        busy(0.5)
        unread += network.brokers[broker].routes.by_content
    assert unread > 0
    assert checker.check(network.trace) == []
    network.run(network.now + 10)
    before = [(network.brokers[name].routes.by_tag, network.brokers[name].routes.by_content) for name in inner]
    busy(1)
    network.run(network.now + 5)
    since = len(network.trace)
    by_content = [network.brokers[name].routes.by_content for name in inner]
    for client in clients:
        for event in sound[::4]:
            network.publish(client, event)
    network.drain()
    assert checker.check(network.trace) == []
    assert by_content == [network.brokers[name].routes.by_content for name in inner]
    assert all(network.brokers[name].routes.by_tag > tagged for name, (tagged, _) in zip(inner, before, strict=True))
    assert any(isinstance(record, Delivered) for record in network.trace[since:])


def test_a_broker_that_is_not_blind_would_look() -> None:
    """The events of the test above do notice it."""
    broker = Broker("a", PREFIX)
    broker.receive(m.Connect(), "b", 0.0)
    broker.receive(m.Connect(), "c", 0.0)
    broker.receive(m.FilterUpdate((parse("x = 1"),)), "c", 0.0)
    event: Any = Untouchable()
    with pytest.raises(AssertionError, match="somebody"):
        broker.receive(m.Forward(event, "ana", 1, "b", "b", tag=b""), "b", 0.0)
    blind = Blind("a", 1)
    blind.receive(m.Connect(), "b", 0.0)
    blind.receive(m.Connect(), "c", 0.0)
    blind.receive(m.Connect(m.Role.PARENT), "d", 0.0)
    blind.receive(m.Connect(), "e", 0.0)
    blind.receive(m.FilterUpdate((parse("x = 1"),)), "c", 0.0)
    blind.receive(m.FilterUpdate((parse("x = 2"),)), "b", 0.0)
    sends = blind.receive(m.Forward(event, "ana", 1, "b", "b", tag=b""), "b", 0.0)
    assert [send.to for send in sends] == ["c", "d"], "all that want anything, and parents"
