"""Location-dependent subscriptions, judged by flooding: what would have arrived where one was must arrive, all of it.

Links have each a latency of its own and keep it, so that an event takes the same time in both runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.dynamic import MYLOC, DynamicFilter
from fieldfare.filters.filter import Filter
from fieldfare.mobility.broker import MobileBroker
from fieldfare.mobility.location import Location
from fieldfare.mobility.location_messages import Locate, LocationUpdate
from fieldfare.mobility.places import Reach, World, by_myloc, flooded, nothing_ahead, reach, within
from fieldfare.protocol import messages as m
from fieldfare.routing.broker import Broker
from fieldfare.routing.places import Graph
from fieldfare.routing.strategies import COVERING, FLOODING, SIMPLE, Strategy, with_advertisements
from fieldfare.simulation.checker import check
from fieldfare.simulation.links import Wire
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology, from_edges, line
from fieldfare.simulation.trace import Delivered

SQUARE: Graph = {"a": "bc", "b": "ad", "c": "ad", "d": "bc"}
MANY = 10
"""runs of each kind; a thousand were run by hand"""
TEMPLATE = "service = 'parking' AND location IN myloc"


def at(text: str, places: Iterable[str]) -> Filter:
    """Return the filter of a text for some places."""
    return DynamicFilter(text).fill({MYLOC: list(places)})


class Story(NamedTuple):
    """What happens, whoever brings the events."""

    topology: Topology
    latency: dict[frozenset[str], float]
    graph: Graph
    around: int
    home: str
    residence: float
    moves: list[tuple[float, str]]
    """when the client is where, from the beginning"""
    events: list[tuple[float, str, dict[str, str]]]
    """when, at which broker, and what"""

    def slowest(self) -> float:
        return max(self.latency.values(), default=0.0)

    def place(self, time: float) -> str:
        return [place for since, place in self.moves if since <= time][-1]

    def wanted(self, time: float, event: Event) -> bool:
        return at(TEMPLATE, within(self.graph, self.around)(self.place(time))).matches(event)


def story(seed: int, brokers: int = 6, places: int = 8) -> Story:
    """Any of them: a tree of brokers, a ring of places with some more ways, a walk that takes its time."""
    dice = Random(seed)
    names = [f"b{i}" for i in range(brokers)]
    edges = [(dice.choice(names[:i]), names[i]) for i in range(1, brokers)]
    graph: dict[str, set[str]] = {f"p{i}": {f"p{(i + 1) % places}"} for i in range(places)}
    for _ in range(dice.randrange(places)):
        graph[f"p{dice.randrange(places)}"].add(f"p{dice.randrange(places)}")
    residence, time, place = dice.uniform(0.3, 3.0), 50.0, "p0"
    moves = [(0.0, place)]
    while len(moves) < 15:
        time += residence + dice.choice([0.0, dice.expovariate(1 / residence)])
        place = dice.choice(sorted(graph[place]))
        moves.append((time, place))
    events = [
        (
            dice.uniform(45.0, time + 5.0),
            dice.choice(names),
            {"service": dice.choice(["parking", "parking", "fuel"]), "location": dice.choice(sorted(graph))},
        )
        for _ in range(250)
    ]
    latency = {frozenset(edge): dice.uniform(0.01, 1.0) for edge in edges}
    known = {place: sorted(others) for place, others in graph.items()}
    topology = from_edges(edges, names)
    return Story(topology, latency, known, dice.randrange(2), dice.choice(names), residence, moves, sorted(events))


def network(told: Story, make: Callable[[str], Any]) -> Network[Any]:
    net = Network(make, told.topology, links=lambda a, b: Wire(told.latency[frozenset((a, b))]))
    net.attach("me", told.home)
    for broker in told.topology.brokers:
        net.attach(f"at {broker}", broker)
    for time, broker, event in told.events:
        net.at(time, net.publish, f"at {broker}", event)
    return net


def got(net: Network[Any]) -> list[tuple[float, Event]]:
    net.drain()
    return [(r.time, r.event) for r in net.trace if isinstance(r, Delivered) and r.client == "me"]


def by_flooding(told: Story) -> list[tuple[float, Event]]:
    net = network(told, lambda name: Broker(name, FLOODING))
    net.subscribe("me", "all", "TRUE")
    return [(time, event) for time, event in got(net) if told.wanted(time, event)]


def roaming(told: Story, steps: Reach, strategy: Strategy = SIMPLE, *, stop: bool = True) -> Network[Any]:
    world = World(told.graph, steps, by_myloc(within(told.graph, told.around)))
    net = network(
        told, lambda name: MobileBroker(Broker(name, strategy), Location(world, stop=stop), next_hop=lambda to: to)
    )
    for time, place in told.moves:
        net.at(time, net.send, "me", Locate("here", TEMPLATE, place))
    return net


def enough(told: Story) -> Reach:
    return reach([told.slowest()], [told.slowest()], told.residence)


@settings(max_examples=MANY)
@given(st.integers(0, 10**9), st.booleans(), st.sampled_from([SIMPLE, COVERING, FLOODING]))
def test_all_that_flooding_would_bring_is_there(seed: int, stop: bool, strategy: Strategy) -> None:
    told = story(seed)
    wanted = by_flooding(told)
    assert wanted
    assert got(roaming(told, enough(told), strategy, stop=stop)) == wanted
    assert got(roaming(told, flooded, strategy, stop=stop)) == wanted


def test_fewer_steps_are_not_enough() -> None:
    """One way is not enough, though the book's formula counts no more; nor is nothing."""
    missed: defaultdict[str, int] = defaultdict(int)
    for seed in range(8):
        told = story(seed)
        wanted = by_flooding(told)
        one_way = reach([told.slowest()], [0.0], told.residence)
        for name, steps in (("nothing", nothing_ahead), ("one way", one_way), ("both ways", enough(told))):
            missed[name] += len(wanted) - len(got(roaming(told, steps)))
    assert missed["nothing"] > missed["one way"] > missed["both ways"] == 0


def test_nothing_ahead_is_to_unsubscribe_and_subscribe() -> None:
    for seed in range(4):
        told = story(seed)
        plain = network(told, lambda name: Broker(name, SIMPLE))
        for time, place in told.moves:
            plain.at(time, plain.subscribe, "me", "here", at(TEMPLATE, within(told.graph, told.around)(place)))
        assert got(roaming(told, nothing_ahead)) == got(plain)


def test_to_stop_spares_messages_and_changes_nothing_else() -> None:
    sent = {True: 0, False: 0}
    for seed in range(5):
        told = story(seed, places=5)
        kept = {}
        for stop in sent:
            net = roaming(told, enough(told), stop=stop)
            net.drain()
            sent[stop] += net.total_traffic().other
            kept[stop] = {
                (name, key): one.filter
                for name, b in net.brokers.items()
                for key, one in b.base.parts[0].subscriptions.items()
            }
        assert kept[True] == kept[False]
    assert sent[True] < sent[False]


# The book's example, and what it says of the wrapper


def chain(graph: Graph, hops: int, latency: float, moves: list[tuple[float, str]], end: float) -> Story:
    """Brokers in a line, with the client at one end, and at the other every place has an event ten times a second."""
    topology = line(hops + 1)
    events = [
        (10.003 + i / 10, f"b{hops}", {"service": "parking", "location": place})
        for i in range(int((end - 10) * 10))
        for place in graph
    ]
    wires = {frozenset(edge[:2]): latency for edge in topology.edges}
    return Story(topology, wires, graph, 0, "b0", 0.0, moves, events)


def test_the_filters_of_the_book() -> None:
    told = chain(SQUARE, 3, 0.01, [(0.0, "a"), (1.0, "b"), (2.0, "d")], 0.0)
    net = roaming(told, lambda hop: hop)
    for time, filters in (
        (0.5, ["a", "abc", "abcd", "abcd"]),
        (1.5, ["b", "abd", "abcd", "abcd"]),
        (9.0, ["d", "bcd"]),
    ):
        net.run(time)
        kept = [next(iter(net.brokers[f"b{i}"].base.parts[0].subscriptions.values())).filter for i in range(4)]
        assert kept[: len(filters)] == [at(TEMPLATE, places) for places in filters]
    # The third hop has everything from the start: no move is told beyond the broker that finds that out.
    assert [net.traffic[f"b{i}", f"b{i + 1}"].other for i in range(3)] == [3, 3, 1]


def test_who_unsubscribes_and_subscribes_is_blind_for_a_round_trip() -> None:
    ring: Graph = {f"p{i}": [f"p{(i + 1) % 3}"] for i in range(3)}
    told = chain(ring, 4, 0.25, [(0.0, "p0"), (20.0, "p1"), (30.0, "p2")], 40.0)
    arrived = set(got(roaming(told, nothing_ahead)))
    missed = [time for time, event in by_flooding(told) if (time, event) not in arrived]
    for since, _ in told.moves[1:]:
        times = [time - since for time in missed if since <= time < since + 10]
        assert max(times) - min(times) == pytest.approx(2.0, abs=0.15)  # four hops there and four back
        assert min(times) == pytest.approx(0.0, abs=0.15)
    assert len(missed) == 2 * 20


@pytest.mark.parametrize(("residence", "starves"), [(1.9, True), (2.3, False)])
def test_who_never_stays_for_a_round_trip_starves(residence: float, starves: bool) -> None:
    ring: Graph = {f"p{i}": [f"p{(i + 1) % 6}"] for i in range(6)}
    moves = [(0.0, "p0"), *((15 + i * residence, f"p{i}") for i in range(1, 6))]
    told = chain(ring, 4, 0.25, moves, 15 + 6 * residence)
    first, last = moves[1][0], moves[-1][0]
    while_moving = [time for time, _ in got(roaming(told, nothing_ahead)) if first <= time < last]
    assert (not while_moving) is starves
    assert got(roaming(told, reach([0.25], [0.25], residence))) == by_flooding(told)


# Beside ordinary subscriptions


@settings(max_examples=MANY // 2)
@given(st.integers(0, 10**9), st.sampled_from([SIMPLE, COVERING, with_advertisements(COVERING)]))
def test_others_notice_nothing(seed: int, strategy: Strategy) -> None:
    told, dice = story(seed), Random(seed)
    net = roaming(told, enough(told), strategy)
    for broker in told.topology.brokers:
        net.advertise(f"at {broker}", "all", "TRUE")
        net.attach(f"other {broker}", broker)
        places = ", ".join(f"'{place}'" for place in dice.sample(sorted(told.graph), 3))
        net.at(dice.uniform(0, 60), net.subscribe, f"other {broker}", "s", f"location IN ({places})")
        net.at(dice.uniform(60, 90), net.unsubscribe, f"other {broker}", "s")
    assert got(net) == by_flooding(told)
    others = [record for record in net.trace if getattr(record, "client", "") != "me"]
    assert check(others, advertisements=strategy.advertisements is not None) == []


def deliveries(sends: list[m.Send]) -> list[tuple[str, tuple[str, ...]]]:
    return [(send.to, send.message.subscriptions) for send in sends if isinstance(send.message, m.Deliver)]


def alone(strategy: Strategy = SIMPLE) -> tuple[MobileBroker, Location]:
    part = Location(World(SQUARE, lambda hop: hop))
    return MobileBroker(Broker("b", strategy), part, next_hop=lambda to: to), part


def test_one_delivery_for_subscriptions_of_both_kinds() -> None:
    broker, _ = alone()
    broker.receive(m.Subscribe("all", parse("TRUE")), "me", 0.0)
    broker.receive(Locate("here", "at IN myloc", "a"), "me", 0.0)
    sends = broker.receive(m.Publish(Event({"at": "a"})), "you", 0.0)
    assert deliveries(sends) == [("me", ("all", "here"))]
    assert deliveries(broker.receive(m.Publish(Event({"at": "b"})), "you", 0.0)) == [("me", ("all",))]


def test_an_id_means_one_thing_at_a_time() -> None:
    broker, part = alone()
    published = m.Publish(Event({"at": "a"}))
    for message, found in (
        (Locate("s", "at IN myloc", "a"), [("me", ("s",))]),
        (m.Subscribe("s", parse("at = 'b'")), []),
        (Locate("s", "at IN myloc", "a"), [("me", ("s",))]),
        (m.Unsubscribe("s"), []),
        (Locate("s", "at IN myloc", "a"), [("me", ("s",))]),
        (m.Leave(), []),
    ):
        broker.receive(message, "me", 0.0)
        assert deliveries(broker.receive(published, "you", 0.0)) == found
    assert not part.subscriptions


def test_at_some_places_nothing_is_wanted() -> None:
    broker, part = alone()
    broker.receive(m.Connect(), "x", 0.0)
    for place, found in (("a", [("me", ("s",))]), ("b", []), ("d", [])):
        (send,) = broker.receive(Locate("s", "at IN myloc AND at IN ('a', 'c')", place), "me", 0.0)
        assert send.to == "x"
        assert part.subscriptions["me", "s"].place == place
        assert deliveries(broker.receive(m.Publish(Event({"at": "a"})), "you", 0.0)) == found


def test_links_come_and_go() -> None:
    broker, part = alone()
    broker.receive(Locate("s", "at IN myloc", "a"), "me", 0.0)
    told = LocationUpdate("b/me/s", "at IN myloc", "a", 1)
    assert broker.receive(m.Connect(), "x", 0.0) == [m.Send("x", told)]
    assert broker.receive(m.Connect(), "y", 0.0) == [m.Send("y", told)]
    assert broker.receive(LocationUpdate("x/you/s", "at IN myloc", "b", 1), "x", 0.0) == [
        m.Send("y", LocationUpdate("x/you/s", "at IN myloc", "b", 2))
    ]
    event = m.Forward(Event({"at": "b"}), "p", 1)
    assert broker.receive(event, "x", 0.0) == []  # it is not sent back
    event = m.Forward(Event({"at": "b"}), "p", 2)
    assert broker.receive(event, "y", 0.0) == [m.Send("x", event)]
    gone = [m.Send("y", LocationUpdate("x/you/s", "at IN myloc", "", 2))]
    assert broker.receive(m.Disconnect(), "x", 0.0) == gone
    assert list(part.subscriptions) == [("me", "s")]
    assert broker.receive(m.Unsubscribe("s"), "me", 0.0) == [
        m.Send("y", LocationUpdate("b/me/s", "at IN myloc", "", 1))
    ]


@pytest.mark.parametrize(
    "wrong", [Locate("s", "at IN (", "a"), Locate("s", "at IN myloc", "z"), Locate("s", "x = 1 AND x = 2", "a")]
)
def test_what_makes_no_sense_is_refused(wrong: Locate) -> None:
    broker, part = alone()
    (send,) = broker.receive(wrong, "me", 0.0)
    assert isinstance(send.message, m.Refuse)
    assert send.message.about == "s"
    assert not part.subscriptions


def test_events_are_counted_and_those_of_nobody_refused() -> None:
    broker, _ = alone(with_advertisements(SIMPLE))
    broker.receive(Locate("s", "at IN myloc", "a"), "me", 0.0)
    event = Event({"at": "a"})
    (send,) = broker.receive(m.Publish(event), "you", 0.0)
    assert isinstance(send.message, m.Refuse)
    broker.receive(m.Advertise("all", parse("TRUE")), "you", 0.0)
    got = [send.message for _ in range(3) for send in broker.receive(m.Publish(event), "you", 0.0)]
    numbers = [one.sequence for one in got if isinstance(one, m.Deliver)]
    assert len(numbers) == 3
    assert all(a < b for a, b in pairwise(numbers))
