"""Subscribers that move lose nothing, get nothing twice, and hear every publisher in order."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tools.mobility.subscribers import PROTOCOLS, Protocol, judge, roam

from fieldfare.filters import parse
from fieldfare.mobility.broker import MobileBroker
from fieldfare.mobility.messages import MoveIn
from fieldfare.mobility.path_update import CoveredUpdate, PathUpdate
from fieldfare.mobility.ping_pong import PingPong
from fieldfare.mobility.sessions import MobileSession
from fieldfare.mobility.subscriber_messages import MoveUpdate, PrepareSubscriber, SubscriberTransfer
from fieldfare.mobility.subscribers import Subscribers, SubscriberVisit
from fieldfare.protocol.messages import Send, Subscribe
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import COVERING, STRATEGIES, Strategy, with_advertisements
from fieldfare.simulation import trace as records
from fieldfare.simulation.links import Wire
from fieldfare.simulation.mobile_clients import Roamer, ways
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import line


@pytest.mark.parametrize("name", PROTOCOLS)
@few(4)
@given(seed=st.integers(0, 2**32), choice=st.integers(0, 9))
def test_whoever_moves_gets_all_events_once_and_in_order(name: str, seed: int, choice: int) -> None:
    protocol = PROTOCOLS[name]
    strategy = protocol.strategies[choice % len(protocol.strategies)]
    assert judge(roam(seed, protocol, STRATEGIES[strategy])) == []


class AtOnce(PathUpdate):
    """Tears down at the old broker without waiting for the new subscriptions."""

    def confirm_path(self, client: str, visit: SubscriberVisit, *, told: bool, now: float) -> list[Send]:
        return [Send(visit.source, MoveUpdate(client, visit.source, self.base.name, visit.number))]


def _lost(protocol: Protocol, runs: int, slow: float) -> int:
    found = 0
    for seed in range(runs):
        trace = roam(seed, protocol, COVERING, slow=slow)
        found += sum(violation.rule == "liveness" for violation in judge(trace))
    return found


def test_tearing_down_at_once_loses_events() -> None:
    assert _lost(Protocol(AtOnce), 12, slow=0.0) > 10


def _network(
    part: type[Subscribers], brokers: int = 3, strategy: Strategy = COVERING, **options: object
) -> Network[MobileBroker]:
    topology = line(brokers)
    way = ways(topology)
    return Network(
        lambda name: MobileBroker(Broker(name, strategy), part(**options), next_hop=way(name)),
        topology, mesh=True, lazy=True, links=lambda a, b: Wire(1.0 if abs(int(a[1]) - int(b[1])) == 1 else 0.1),
    )  # fmt: skip


def _delivered(network: Network[MobileBroker]) -> list[tuple[float, str, int]]:
    return [(one.time, one.broker, one.sequence) for one in network.trace if isinstance(one, records.Delivered)]


def test_what_was_sent_to_a_client_that_had_just_gone_is_sent_again() -> None:
    network = _network(PathUpdate)
    ana = Roamer(network, "ana")
    ana.arrive("b0")
    ana.subscribe("x", "a = 1")
    network.attach("bob", "b0")
    network.drain()
    network.publish("bob", {"a": 1})
    network.detach("ana")
    network.publish("bob", {"a": 1})  # b0 does not know that she has gone
    ana.arrive("b0")
    network.publish("bob", {"a": 1})
    assert [number for _, _, number in _delivered(network)] == [1, 2, 3]


def test_a_session_arrives_when_the_update_has_gone_the_whole_way_and_comes_back_directly() -> None:
    network = _network(PathUpdate)
    ana = Roamer(network, "ana")
    ana.arrive("b0")
    ana.subscribe("x", "a = 1")
    network.attach("bob", "b2")
    network.drain()
    start = network.now
    network.publish("bob", {"a": 1})  # is on its way to b0
    network.at(start + 0.5, ana.arrive, "b2")
    network.drain()
    ((time, broker, number),) = _delivered(network)
    assert time - start == pytest.approx(2.6)
    assert (broker, number) == ("b2", 1)


def test_whoever_says_where_it_goes_finds_its_session_there() -> None:
    network = _network(PathUpdate)
    ana = Roamer(network, "ana")
    ana.arrive("b0")
    ana.subscribe("x", "a = 1")
    network.attach("bob", "b0")
    network.drain()
    ana.depart("b2")
    network.publish("bob", {"a": 1})
    network.drain()
    assert _delivered(network) == []
    start = network.now
    ana.arrive("b2")
    assert _delivered(network) == [(start, "b2", 1)]
    assert network.brokers["b0"].base.broker.clients.all == {}


def test_a_session_follows_a_client_that_does_not_wait_for_it() -> None:
    network = _network(PathUpdate, 4)
    ana = Roamer(network, "ana")
    ana.arrive("b0")
    ana.subscribe("x", "a = 1")
    network.attach("bob", "b0")
    network.drain()
    ana.arrive("b1")
    network.publish("bob", {"a": 1})
    ana.arrive("b3")
    ana.arrive("b2")
    network.drain()
    assert [(broker, number) for _, broker, number in _delivered(network)] == [("b2", 1)]
    assert {name for name, broker in network.brokers.items() if broker.base.broker.clients.all} == {"b2"}


@pytest.mark.parametrize(("part", "got"), [(PathUpdate, [1]), (CoveredUpdate, [])])
def test_the_covering_optimisation_loses_events_where_direct_messages_are_faster_than_they(
    part: type[Subscribers], got: list[int]
) -> None:
    network = _network(part, 5)
    ana = Roamer(network, "ana")
    ana.arrive("b0")
    ana.subscribe("x", "a = 1")
    for client, broker in (("bob", "b3"), ("carl", "b4")):
        network.attach(client, broker)
    network.subscribe("carl", "all", "TRUE")  # so b4 has nobody to tell that it wants what ana wants
    network.drain()
    network.publish("bob", {"a": 1})  # is at b4 in 1 s, and at b0 in 3 s
    network.at(network.now + 1.5, ana.arrive, "b4")
    network.drain()
    assert [one.sequence for one in network.trace if isinstance(one, records.Delivered) and one.client == "ana"] == got


@pytest.mark.parametrize("addressed", [True, False])
def test_a_promise_that_meets_the_update_on_its_way_loses_nothing(addressed: bool) -> None:
    """She would have heard of it where she was, and the new broker does not know of it yet when it sends the update."""
    network = _network(PathUpdate, strategy=with_advertisements(COVERING), addressed=addressed, again=2.5)
    ana = Roamer(network, "ana")
    ana.arrive("b0")
    ana.subscribe("x", "a = 1")
    network.attach("bob", "b0")
    network.drain()
    start = network.now
    network.advertise("bob", "all", "a > 0")
    network.at(start + 0.5, ana.arrive, "b2")
    for time in range(1, 8):
        network.at(start + time, network.publish, "bob", {"a": 1})
    network.drain()
    assert [number for _, _, number in _delivered(network)] == [1, 2, 3, 4, 5, 6, 7]


def test_pings_are_for_nobody_else() -> None:
    network = _network(PingPong)
    ana = Roamer(network, "ana")
    ana.arrive("b0")
    ana.subscribe("x", "TRUE")
    network.attach("bob", "b1")
    network.subscribe("bob", "all", "TRUE")
    network.drain()
    ana.arrive("b2")
    network.publish("bob", {"a": 1})
    network.drain()
    assert {(r.client, r.sequence) for r in network.trace if isinstance(r, records.Delivered)} == {
        ("ana", 1),
        ("bob", 1),
    }


def test_no_broker_keeps_anything_of_whom_has_gone_on() -> None:
    """Also under advertisements: the tables are in the end as if everybody had always been there."""
    strategy = with_advertisements(COVERING)
    for make in (PathUpdate, PingPong, CoveredUpdate):
        topology, dice = line(4), Random(1)
        network = _network(make, 4, strategy)
        ana = Roamer(network, "ana")
        ana.arrive("b0")
        network.attach("bob", "b3")
        network.advertise("bob", "all", "a > 0")
        ana.subscribe("x", "a = 1")
        network.drain()
        for _ in range(10):
            ana.arrive(dice.choice(topology.brokers))
            network.drain()
        ana.arrive("b0")
        network.drain()
        still = Network(lambda name: Broker(name, strategy), topology)
        still.attach("bob", "b3")
        still.advertise("bob", "all", "a > 0")
        still.attach("ana", "b0")
        still.subscribe("ana", "x", "a = 1")
        still.drain()
        pinged = 8 if make is PingPong else 0  # asked for where others may promise it, promised to all
        assert sum(network.table_sizes().values()) == sum(still.table_sizes().values()) + pinged


@pytest.mark.parametrize("part", [PathUpdate, PingPong])
def test_whoever_leaves_for_good_while_its_session_is_under_way_is_forgotten_everywhere(
    part: type[Subscribers],
) -> None:
    network = _network(part)
    ana = Roamer(network, "ana")
    ana.arrive("b0")
    ana.subscribe("x", "a = 1")
    network.drain()
    ana.arrive("b2")
    network.leave("ana")
    network.drain()
    for broker in network.brokers.values():
        (found,) = broker.base.parts
        assert isinstance(found, Subscribers)
        assert broker.base.broker.clients.all == {}
        assert found.visits == {}
        assert found.wakes is None


def test_who_has_not_said_before_that_it_moves_may_do_so_but_nothing_was_kept() -> None:
    network = _network(PathUpdate)
    for client in ("ana", "bob"):
        network.attach(client, "b0")
    network.subscribe("ana", "x", "a = 1")
    network.drain()
    network.move("ana", "b2", MoveIn("b0", {"x": parse("a = 1")}, moves=1))
    for _ in range(2):
        network.publish("bob", {"a": 1})
        network.drain()
    assert [(broker, number) for _, broker, number in _delivered(network)] == [("b2", 2)]


def test_a_session_takes_no_short_cut_past_a_stay_that_is_late() -> None:
    """Else the brokers between would wait for it for ever."""
    broker = MobileBroker(Broker("b"), PathUpdate(), next_hop=str)
    (part,) = broker.base.parts
    assert isinstance(part, Subscribers)
    broker.receive(MoveIn("", {"x": parse("a = 1")}), "ana", 0.0)
    broker.receive(MoveUpdate("ana", "b", "d", 3), "d", 0.0)  # is about the visit that c announces
    assert part.visits["ana"][0].successor is None
    broker.receive(PrepareSubscriber("ana", 2, {"x": parse("a = 1")}), "c", 0.0)
    broker.receive(MoveUpdate("ana", "b", "c", 1), "c", 0.0)
    (visit,) = part.visits["ana"].values()
    assert visit.successor is not None
    assert visit.successor.target == "d"


def test_word_of_a_stay_that_is_over_begins_no_other() -> None:
    broker = MobileBroker(Broker("b"), PathUpdate(), next_hop=str)
    broker.receive(MoveIn("a", {"x": parse("a = 1")}, moves=1), "ana", 0.0)
    broker.receive(SubscriberTransfer("ana", 1, MobileSession()), "a", 0.0)
    broker.receive(MoveUpdate("ana", "b", "c", 2), "c", 0.0)
    assert broker.receive(PrepareSubscriber("ana", 1, {"x": parse("a = 1")}), "a", 0.0) == []
    assert broker.base.broker.clients.all == {}


def test_word_of_an_earlier_stay_does_not_change_what_the_client_wants_now() -> None:
    broker = MobileBroker(Broker("b"), PathUpdate(), next_hop=str)
    broker.receive(MoveIn("c", {"new": parse("a = 1")}, moves=3), "ana", 0.0)
    broker.receive(PrepareSubscriber("ana", 1, {"old": parse("a = 2")}), "a", 0.0)  # she went to c before that
    assert broker.base.broker.clients.all["ana"].subscriptions == {"new": parse("a = 1")}


def test_a_client_that_comes_from_nowhere_gets_numbers_after_those_that_it_knows() -> None:
    broker = MobileBroker(Broker("b"), PathUpdate(), next_hop=str)
    broker.receive(MoveIn(received=7, subscriptions={"x": parse("TRUE")}), "ana", 0.0)
    broker.receive(Subscribe("x", parse("TRUE")), "bob", 0.0)
    (part,) = broker.base.parts
    assert isinstance(part, Subscribers)
    session = part.visits["ana"][0].session
    assert session is not None
    assert session.last == 7
