"""Clients that come and go in the simulator, and how the checker judges what they get."""

from __future__ import annotations

from tools.simulation.flooding import Flooding

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.mobility.messages import MoveIn
from fieldfare.protocol.messages import Deliver, Message, Send
from fieldfare.simulation import trace as records
from fieldfare.simulation.checker import check, liveness, local_liveness
from fieldfare.simulation.mobile_clients import ways
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import from_edges, line
from fieldfare.simulation.trace import (
    Arrived,
    Delivered,
    Departed,
    Published,
    Quiet,
    Record,
    Subscribed,
    Up,
)
from fieldfare.simulation.trace_files import from_arrow, to_arrow

EVENT = Event({"a": 1})


def _trace(*rest: Record) -> list[Record]:
    first: list[Record] = [Up(0.0, 0, "b0", "b1"), Subscribed(0.0, 1, "b0", "ana", "x", parse("a = 1")), Quiet(0.0, 2)]
    return [record._replace(order=number) for number, record in enumerate([*first, *rest])]


PUBLISHED = Published(1.0, 0, "b1", "bob", 1, EVENT)
DELIVERED = Delivered(1.0, 0, "b1", "ana", "bob", 1, EVENT, ("x",))
DEPARTED, ARRIVED, QUIET = Departed(1.0, 0, "b0", "ana"), Arrived(1.0, 0, "b1", "ana"), Quiet(1.0, 0)


def test_who_is_away_must_get_events_by_the_first_quiet_moment_at_which_it_is_back() -> None:
    assert liveness(_trace(DEPARTED, PUBLISHED, QUIET, QUIET)) == []
    assert liveness(_trace(DEPARTED, PUBLISHED, QUIET, ARRIVED, DELIVERED, QUIET)) == []
    assert [found.order for found in liveness(_trace(DEPARTED, PUBLISHED, QUIET, ARRIVED, QUIET, DELIVERED))] == [7]
    assert [found.order for found in liveness(_trace(PUBLISHED, DEPARTED, QUIET, ARRIVED, QUIET))] == [7]


def test_who_is_away_owes_others_nothing() -> None:
    carl = Subscribed(0.5, 0, "b0", "carl", "y", parse("a = 1"))
    assert len(liveness(_trace(carl, QUIET, DEPARTED, PUBLISHED, QUIET))) == 1


def test_only_who_stays_gets_events_of_its_own_broker_at_once() -> None:
    here = PUBLISHED._replace(broker="b0")
    assert len(local_liveness(_trace(here))) == 1
    assert local_liveness(_trace(here, DEPARTED)) == []


def test_records_of_moves_are_read_as_they_were_written() -> None:
    trace = _trace(DEPARTED, ARRIVED)
    assert from_arrow(to_arrow(trace)) == trace


def test_who_is_away_hears_nothing_and_is_not_heard() -> None:
    network = Network(Flooding, line(2))
    for client, broker in (("ana", "b0"), ("bob", "b1")):
        network.attach(client, broker)
    network.subscribe("ana", "x", "a = 1")
    network.drain()
    network.detach("ana")
    assert network.where("ana") is None
    assert not network.publish("ana", EVENT)
    network.publish("bob", EVENT)
    network.drain()
    network.at(network.now, network.attach, "ana", "b0")  # and a plain broker has kept nothing
    network.drain()
    kinds = [type(record) for record in network.trace if isinstance(record, Departed | Arrived | Delivered)]
    assert kinds == [Departed, Arrived]
    assert {violation.rule for violation in check(network.trace)} == {"liveness"}


class Numbering:
    """Answers whatever it hears with deliveries of certain numbers."""

    wakes = None

    def __init__(self, *numbers: int) -> None:
        self.numbers = numbers

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        return [Send("ana", Deliver(EVENT, "bob", number, ("x",), number=number)) for number in self.numbers]

    def tick(self, now: float) -> list[Send]:
        return []

    def snapshot(self) -> bytes:
        return b""


def test_a_client_takes_no_number_twice() -> None:
    network = Network(lambda _: Numbering(1, 2, 2, 1, 3), line(1))
    network.attach("ana", "b0")
    network.send("ana", MoveIn())
    assert [one.sequence for one in network.trace if isinstance(one, records.Delivered)] == [1, 2, 3]
    assert network.taken == {"ana": 3}


def test_a_broker_reaches_a_client_when_it_has_heard_that_it_is_there() -> None:
    network = Network(lambda _: Numbering(1), line(1), processing=1.0)
    for client in ("ana", "bob"):
        network.attach(client, "b0")
    network.send("bob", MoveIn())  # ana would get an answer to that in a second
    network.at(0.5, network.move, "ana", "b0", MoveIn())
    network.drain()
    assert [one.time for one in network.trace if isinstance(one, records.Delivered)] == [2.0]


def test_ways_lead_to_everybody() -> None:
    way = ways(from_edges([("a", "b"), ("b", "c"), ("b", "d"), ("d", "e")]))
    assert [way("a")(to) for to in "bcde"] == ["b"] * 4
    assert [way("b")(to) for to in "acde"] == ["a", "c", "d", "d"]
