"""Relocation, judged by the checker in random runs; and what the book says of it, one thing after the other."""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import Any

import pytest
from tools.mobility.relocation import NAMES, judge, network, part, relocate

from fieldfare.events.event import Event
from fieldfare.filters import NOTHING, parse
from fieldfare.mobility.broker import MobileBroker
from fieldfare.mobility.messages import Acknowledge, MobileEnvelope, MoveIn, MoveOut
from fieldfare.mobility.relocation import Relocation
from fieldfare.mobility.relocation_messages import GapNotice, Replay, Resubscribe, VisitComplete
from fieldfare.mobility.visits import RelocationVisit, in_publisher_order
from fieldfare.protocol.messages import Deliver, Leave, Message, Subscribe
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import COVERING, FLOODING, SIMPLE, STRATEGIES, Strategy, by_name
from fieldfare.simulation.checker import check
from fieldfare.simulation.links import Wire
from fieldfare.simulation.mobile_clients import Roamer, ways
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology, from_edges, line, random_tree
from fieldfare.simulation.trace import Delivered

ADS = by_name("simple+ads")
BOOK = from_edges([("b1", "b2"), ("b2", "b4"), ("b4", "b5"), ("b5", "b6"), ("b2", "b3"), ("b5", "b7"), ("b4", "b8")])
"""somewhat more than its figure: from b6 to b1, with the publisher at b4 or b8, and another at b7"""


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("seed", range(1, 4))
def test_nothing_is_lost_or_doubled_or_out_of_order(seed: int, name: str) -> None:
    """Fast moves, queues at brokers, others who subscribe, promises that come and go; many more runs by hand."""
    run = relocate(7 * seed, STRATEGIES[name])
    assert run.moved
    assert judge(run) == []


@pytest.mark.parametrize("seed", [171, 202])
def test_every_stay_is_found_though_no_advertisement_shows_the_way(seed: int) -> None:
    """A resub must go to where the client was, also past brokers that know better or point elsewhere."""
    assert judge(relocate(seed, ADS)) == []


def test_word_from_the_next_place_may_be_faster_than_the_client_itself() -> None:
    """Then the visit is over before it begins; but where the client was before must still hear of it."""
    net = network(line(4), SIMPLE)
    here = net.brokers["b1"]
    here.receive(Resubscribe("me", 2, "b3", source="b1"), "b2", 0.0)
    sends = here.receive(MoveIn("b0", moves=1), "me", 0.0)
    assert [(send.to, type(send.message)) for send in sends] == [("b0", Resubscribe), ("b2", MobileEnvelope)]
    assert isinstance(sends[0].message, Resubscribe)
    assert (sends[0].message.moves, sends[0].message.border) == (1, "b1")
    assert sends[1].message == MobileEnvelope("b3", "b1", Replay("me", 2, 1, 1, border="b1"))
    (send,) = here.receive(MobileEnvelope("b1", "b0", Replay("me", 1, 0, 0)), "b0", 0.0)
    assert send.message == MobileEnvelope("b3", "b1", Replay("me", 2, 0, 0))
    here.receive(MobileEnvelope("b1", "b3", VisitComplete("me", 2)), "b2", 0.0)
    assert not part(net, "b1").visits


def setting(
    topology: Topology, strategy: Strategy, at: str, *publishers: str, **options: Any
) -> tuple[Network[Any], Roamer]:
    """A client that wants everything, and publishers by the names of their brokers."""
    net = network(topology, strategy, **options)
    for broker in publishers:
        net.attach(f"at {broker}", broker)
        net.advertise(f"at {broker}", "all", "a >= 0")
    net.drain()
    roamer = Roamer(net, "me")
    roamer.arrive(at)
    roamer.subscribe("s", "a >= 0")
    net.drain()
    return net, roamer


def got(net: Network[Any], client: str = "me") -> list[tuple[str, int]]:
    net.drain()
    return [(r.publisher, r.sequence) for r in net.trace if isinstance(r, Delivered) and r.client == client]


def pointers(net: Network[Any]) -> dict[str, str]:
    entries = {broker: part(net, broker).entries.get("me") for broker in net.brokers}
    return {broker: entry.to for broker, entry in entries.items() if entry is not None}


def heard(net: Network[Any], kind: type[Message], monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often brokers hear something from now on."""
    counts: Counter[str] = Counter()
    receive = Relocation.receive

    def counting(self: Relocation, message: Message, sender: str, now: float) -> list[Any]:
        counts[self.base.name] += isinstance(message, kind)
        return receive(self, message, sender, now)

    monkeypatch.setattr(Relocation, "receive", counting)
    return counts


# The book's example


def test_only_brokers_between_the_two_places_change(monkeypatch: pytest.MonkeyPatch) -> None:
    net, roamer = setting(BOOK, SIMPLE, "b6", "b4")
    before, resubs = pointers(net), heard(net, Resubscribe, monkeypatch)
    assert len(before) == len(BOOK.brokers)
    roamer.arrive("b1")
    net.drain()
    after = pointers(net)
    assert {broker for broker in after if after[broker] != before[broker]} == {"b1", "b2", "b4", "b5", "b6"}
    assert resubs == Counter({"b2": 1, "b4": 1, "b5": 1, "b6": 1})
    assert net.total_traffic().admin == 0  # routing tables are not concerned


@pytest.mark.parametrize("strategy", [SIMPLE, ADS])
def test_the_same_in_any_tree(strategy: Strategy) -> None:
    changes = 0
    for seed in range(12):
        dice = Random(seed)
        tree = random_tree(dice.randint(3, 9), seed)
        way = ways(tree)
        net, roamer = setting(tree, strategy, dice.choice(tree.brokers), *dice.sample(tree.brokers, 2))
        for _ in range(5):
            old, before, new = roamer.source, pointers(net), dice.choice(tree.brokers)
            roamer.arrive(new)
            net.drain()
            after, between = pointers(net), {old}
            while old != new:
                old = way(old)(new)
                between.add(old)
            changed = {broker for broker in tree.brokers if after.get(broker) != before.get(broker)}
            assert changed <= between if strategy is ADS else changed == (between if len(between) > 1 else set())
            changes += len(changed)
            assert after[new] == ""
            assert list(part(net, new).visits["me"]) == [roamer.moves]
    assert changes > 100


def test_with_advertisements_the_junction_is_where_the_ways_meet(monkeypatch: pytest.MonkeyPatch) -> None:
    net, roamer = setting(BOOK, ADS, "b6", "b4")
    assert pointers(net) == {"b6": "", "b5": "b6", "b4": "b5"}  # from the publisher to the client, and nowhere else
    roamer.arrive("b1")
    net.drain()
    assert pointers(net) == {"b1": "", "b2": "b1", "b4": "b2"}  # the old path is shut down as far as the junction


def test_another_junction_is_passed_by_the_fetch_and_stops_the_shutdown() -> None:
    net, roamer = setting(BOOK, ADS, "b6", "b4", "b7")
    assert pointers(net) == {"b6": "", "b5": "b6", "b4": "b5", "b7": "b5"}
    roamer.arrive("b1")
    net.drain()
    assert pointers(net) == {"b1": "", "b2": "b1", "b4": "b2", "b5": "b4", "b7": "b5"}
    net.publish("at b7", {"a": 1})
    assert got(net) == [("at b7", 1)]


@pytest.mark.parametrize("strategy", [SIMPLE, ADS])
def test_what_came_before_the_replay_waits_for_it(strategy: Strategy) -> None:
    net, roamer = setting(BOOK, strategy, "b6", "b8")
    roamer.depart()
    for _ in range(3):
        net.publish("at b8", {"a": 1})
    net.drain()
    assert got(net) == []
    roamer.arrive("b1")
    net.run(net.now + 0.25)  # the junction has heard of it, the old border not yet
    net.publish("at b8", {"a": 1})
    net.run(net.now + 0.35)  # as far as the new border, while the replay is on its way
    (visit,) = part(net, "b1").visits["me"].values()
    assert visit.session is None
    assert [delivery.sequence for delivery in visit.buffered] == [4]
    assert [sequence for _, sequence in got(net)] == [1, 2, 3, 4]
    assert check(net.trace, order="fifo", advertisements=strategy is ADS) == []
    assert [broker for broker in net.brokers if part(net, broker).visits] == ["b1"]


def test_what_the_client_has_got_is_not_replayed() -> None:
    """It left without a word, and without having acknowledged anything."""
    net, roamer = setting(line(3), SIMPLE, "b0", "b2")
    for _ in range(3):
        net.publish("at b2", {"a": 1})
    net.run(net.now + 1)
    for _ in range(2):
        net.publish("at b2", {"a": 1})
    roamer.arrive("b1")
    assert [sequence for _, sequence in got(net)] == [1, 2, 3, 4, 5]
    assert net.taken["me"] == 5


def test_who_returns_to_the_same_broker_gets_the_buffer_at_once() -> None:
    net, roamer = setting(line(3), SIMPLE, "b0", "b2")
    roamer.depart()
    net.publish("at b2", {"a": 1})
    net.drain()
    sent = net.total_traffic()
    roamer.arrive("b0")
    assert got(net) == [("at b2", 1)]
    assert net.total_traffic() == sent


def test_a_duplicate_that_the_book_does_not_speak_of() -> None:
    """Somebody else wants the event, too, and so it comes to the new border by two ways: once in the replay."""
    net, roamer = setting(line(3), SIMPLE, "b0", "b0")
    net.attach("other", "b2")
    net.subscribe("other", "s", "TRUE")
    net.drain()
    roamer.arrive("b2")
    net.run(net.now + 0.15)  # b1 has heard of it, b0 not yet
    net.publish("at b0", {"a": 1})
    replays: list[Replay] = []
    receive = part(net, "b2").receive

    def watching(message: Message, sender: str, now: float) -> list[Any]:
        if isinstance(message, Replay):
            replays.append(message)
            assert len(part(net, "b2").visits["me"][1].buffered) == 1
        return receive(message, sender, now)

    part(net, "b2").receive = watching  # type: ignore[method-assign]
    assert got(net) == [("at b0", 1)]
    assert [len(replay.deliveries) for replay in replays] == [1]
    assert got(net, "other") == [("at b0", 1)]


def test_who_unsubscribes_and_subscribes_loses_and_doubles_even_if_all_is_flooded() -> None:
    for start, end, times in (("b0", "b2", 0), ("b2", "b0", 2)):
        topology = line(3)
        net = Network(lambda name: Broker(name, FLOODING), topology, links=Wire(1.0))
        net.attach("p", "b2")
        net.attach("me", start)
        net.subscribe("me", "s", "TRUE")
        net.publish("p", {"a": 1})
        net.run(0.5)
        net.send("me", Leave())
        net.attach("me", end)
        net.subscribe("me", "s", "TRUE")
        assert len(got(net)) == times


# Bounds


def test_who_has_waited_long_enough_goes_on_with_a_gap() -> None:
    gaps: list[Message] = []
    net, roamer = setting(line(4), SIMPLE, "b0", "b3", patience=5.0, on_message=lambda _, said: gaps.append(said))
    roamer.depart()
    net.publish("at b3", {"a": 1})
    net.drain()
    net.crash("b0")
    roamer.arrive("b2")
    net.publish("at b3", {"a": 2})
    net.run(net.now + 4.0)
    assert [r for r in net.trace if isinstance(r, Delivered)] == []
    net.run(net.now + 2.0)
    assert [r.sequence for r in net.trace if isinstance(r, Delivered)] == [2]
    assert [gap for gap in gaps if isinstance(gap, GapNotice)] == [GapNotice((0,))]
    # A replay that comes after all is not wanted any more.
    late = Replay("me", 1, 0, 0, (Deliver(Event({"a": 1}), "at b3", 1, ("s",)),))
    assert part(net, "b2").receive(late, "b0", net.now) == []


def test_a_full_buffer_throws_the_oldest_away_and_says_so() -> None:
    said: list[Message] = []
    net, roamer = setting(line(3), SIMPLE, "b0", "b2", limit=2, on_message=lambda _, message: said.append(message))
    roamer.depart()
    for _ in range(5):
        net.publish("at b2", {"a": 1})
    net.drain()
    roamer.arrive("b1")
    assert [sequence for _, sequence in got(net)] == [4, 5]
    assert said[0] == GapNotice((), 3)


def test_who_leaves_is_forgotten_everywhere() -> None:
    net, roamer = setting(BOOK, SIMPLE, "b6", "b4")
    roamer.arrive("b1")
    net.drain()
    net.leave("me")
    net.publish("at b4", {"a": 1})
    assert got(net) == []
    assert pointers(net) == {}
    assert not any(part(net, broker).visits for broker in net.brokers)


def test_a_new_link_hears_of_all_entries() -> None:
    topology = Topology(("b0", "b1", "b2"), line(2).edges)
    way = ways(line(3))
    net: Network[Any] = Network(
        lambda name: MobileBroker(Broker(name, COVERING), Relocation(), next_hop=way(name)), topology
    )
    net.attach("p", "b2")
    roamer = Roamer(net, "me")
    roamer.arrive("b0")
    roamer.subscribe("s", "TRUE")
    net.drain()
    net.connect("b1", "b2")
    net.drain()
    net.publish("p", {"a": 1})
    assert got(net) == [("p", 1)]


def test_what_cannot_match_is_refused_and_strangers_are_the_brokers_clients() -> None:
    net, _ = setting(line(2), SIMPLE, "b0", "b1")
    net.send("me", Subscribe("none", NOTHING))
    net.attach("other", "b0")
    net.subscribe("other", "s", "TRUE")
    net.send("other", Acknowledge(1))
    net.send("me", MoveOut("b1"))
    net.publish("at b1", {"a": 1})
    net.drain()
    assert got(net) == got(net, "other") == [("at b1", 1)]
    assert part(net, "b0").entries["me"].news.subscriptions == {"s": parse("a >= 0")}


def test_who_says_again_that_it_is_here_gets_what_it_has_not_got() -> None:
    net, roamer = setting(line(2), SIMPLE, "b0", "b1")
    for _ in range(3):
        net.publish("at b1", {"a": 1})
    net.drain()
    again = part(net, "b0").receive(MoveIn("", dict(roamer.subscriptions), received=1), "me", net.now)
    assert [(send.to, send.message.number) for send in again if isinstance(send.message, Deliver)] == [
        ("me", 2),
        ("me", 3),
    ]


def test_word_that_comes_twice_changes_nothing() -> None:
    net, roamer = setting(line(2), SIMPLE, "b0", "b1")
    entry = part(net, "b1").entries["me"]
    assert part(net, "b1").receive(entry.news, "b0", net.now) == []
    assert part(net, "b0").receive(MoveIn("", dict(roamer.subscriptions)), "me", net.now) == []
    assert part(net, "b0").receive(Subscribe("s", parse("a >= 0")), "me", net.now) == []


# Visits


def delivery(publisher: str, sequence: int, number: int = 0) -> Deliver:
    return Deliver(Event({"a": sequence}), publisher, sequence, ("s",), number=number)


def test_each_once_and_in_turn() -> None:
    mixed = [delivery("p", 2), delivery("q", 1), delivery("p", 1), delivery("p", 2), delivery("p", 3)]
    assert [(one.publisher, one.sequence) for one in in_publisher_order(mixed)] == [
        ("p", 1),
        ("q", 1),
        ("p", 2),
        ("p", 3),
    ]


def test_a_stay_is_complete_when_every_stay_before_has_been_heard_of() -> None:
    visit = RelocationVisit("me", 4, 0.0)
    visit.pieces[2] = Replay("me", 4, 2, 2)
    assert visit.missing == [0, 1, 3]
    visit.pieces[0] = Replay("me", 4, 0, 1)
    assert visit.missing == [3]
    assert not visit.complete
    visit.pieces[3] = Replay("me", 4, 3, 3)
    assert visit.complete


def test_what_the_client_had_does_not_come_again_by_another_way() -> None:
    visit = RelocationVisit("me", 1, 0.0, received=2)
    visit.accept(delivery("p", 2), None)
    visit.accept(delivery("p", 4), None)
    visit.pieces[0] = Replay("me", 1, 0, 0, (delivery("p", 3, 3),), ((("p", ""), 2),))
    visit.unblock()
    assert visit.session is not None
    assert [(one.sequence, one.number) for one in visit.session.pending] == [(3, 3), (4, 4)]
