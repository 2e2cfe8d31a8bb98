"""Take-overs while the session's node lives or fails: no order of messages loses a session or an event."""

from __future__ import annotations

from itertools import count, pairwise
from typing import Any

import pytest

from fieldfare.core.core import Core
from fieldfare.core.handover_table import HandoverState
from fieldfare.core.inputs import Input
from fieldfare.core.replica_state import ReplicaPart
from fieldfare.core.state import Publication, Session
from fieldfare.core.step import Step
from fieldfare.core.stored_deliveries import stored_deliveries
from fieldfare.core.take_over import GRACE, NUMBER_GAP
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import JournalEntry, RowKey, event_id
from fieldfare.protocol.versions import NEWEST, OLDEST
from fieldfare.routing.broker import Broker

NODES = ("b0", "b1", "b2")


class Line:
    """Three nodes in a line; messages wait at the sender until `deliver`. The session s is at b0, a publisher at b1."""

    def __init__(self, events: int = 2) -> None:
        self.cores = {name: Core(Broker(name), replicas=1, life="1") for name in NODES}
        self.logs: dict[str, dict[int, JournalEntry]] = {name: {} for name in NODES}
        self.rows: dict[str, dict[str, dict[RowKey, Any]]] = {name: {} for name in NODES}
        self.dead: set[str] = set()
        self.at, self.moves = "b0", 0
        """node of the client, and moves of its session, as far as the client knows"""
        self.tickets = count()
        for a, b in (("b0", "b1"), ("b1", "b0"), ("b1", "b2"), ("b2", "b1")):
            self.run(a, lambda core, now, b=b: core.links.connect(b, m.Role.PEER, now))  # type: ignore[misc]
            self.run(a, lambda core, _, b=b: core.envelopes.set_reachable(b, NODES))  # type: ignore[misc]
        self.run("b0", lambda core, now: core.presence.attach("s", "i", now))
        self.run("b0", lambda core, now: core.presence.change_filters(m.Subscribe("all", parse("TRUE")), "s", now))
        self.run("b1", lambda core, now: core.presence.attach("p", "p", now))
        self.settle()
        self.run("b0", lambda core, now: core.presence.detach("s", now))
        published = Publication("p", 1, [Event({"x": x}) for x in range(events)])
        self.run("b1", lambda core, now: core.publish([published], now))
        self.settle()

    def run(self, name: str, action: Input) -> None:
        core = self.cores[name]
        action(core, 1.0)
        step = core.drain()
        self._write(name, step)
        core.release(step)

    def _write(self, name: str, step: Step) -> None:
        self.logs[name] |= {entry.position: entry for entry in step.entries}
        for kind, key, value in step.rows:
            table = self.rows[name].setdefault(kind, {})
            if value is None:
                table.pop(key, None)
            else:
                table[key] = value

    def restart(self, name: str) -> None:
        """Kill a node, and start it from rows and log; the links come back at once."""
        entries = self.logs[name].values()
        core = self.cores[name] = Core(Broker(name), self.rows[name], entries, replicas=1, life="2", now=1.0)
        core.resume()
        self._write(name, core.drain())
        for link in core.links.values():
            link.released = link.last

    def deliver(self, *way: str) -> None:
        """Deliver everything that waits on each link of a way, in order."""
        for sender, to in pairwise(way):
            link = self.cores[sender].links[to]
            found = self.cores[sender].links.outgoing(to, link.acknowledged, 1000)
            if not found or self.dead & {sender, to}:
                continue
            messages = [self._encoded(sender, what) for _, what in found]
            self.run(to, lambda core, now: core.receive(sender, found[0][0], messages, now))  # noqa: B023
            self.run(sender, lambda core, _: core.links.acknowledge(to, found[-1][0]))  # noqa: B023

    def _encoded(self, name: str, what: bytes | int) -> bytes:
        if isinstance(what, bytes):
            return what
        return wire.encode_forward(self.logs[name][what])

    def send_part(self, name: str, limit: int = 1) -> None:
        """Freeze a departing session whose target is ready, or send the next deliveries."""
        departures = self.cores[name].handovers.departures
        if "s" in departures and departures["s"].ready:
            if not departures["s"].frozen:
                self.run(name, lambda core, now: core.handovers.departures.freeze("s", now))
            else:
                waiting = departures.next_deliveries("s", limit)
                send = lambda core, now: core.handovers.departures.send_deliveries("s", waiting, self.logs[name], now)  # noqa: E731
                self.run(name, send)

    def send_replicas(self, name: str) -> None:
        for session, holder in self.cores[name].replicas.due():
            ticket, waiting = self.cores[name].replicas.next_deliveries(session, holder, 1000)
            part = ReplicaPart(session, holder, ticket, stored_deliveries(waiting, self.logs[name]), None)
            self.run(name, lambda core, _: core.replicas.send_part(part))  # noqa: B023

    def settle(self) -> None:
        """Let everything happen that can, without a client."""
        for _ in range(20):
            self.deliver("b0", "b1", "b2", "b1", "b0")
            for name in self.cores.keys() - self.dead:
                self.send_part(name)
                self.send_replicas(name)

    def claim(self, at: str) -> Session | None:
        found: list[Session | None] = []
        about = {"at": self.at, "identity": "i", "moves": self.moves}
        ticket = f"t{next(self.tickets)}"
        self.run(at, lambda core, now: found.append(core.handovers.claim("s", ticket, now, **about)))  # type: ignore[arg-type]
        return found[0]

    def take_over(self, at: str, holder: str) -> None:
        self.run(at, lambda core, now: core.handovers.take_over("s", holder, now))

    def arrive(self, at: str) -> list[int]:
        """Claim the session until it is here, with little patience; return the sequence numbers of the deliveries."""
        for turn in range(8):
            session = self.claim(at)
            if session is not None:
                assert session.identity == "i"
                self.at, self.moves = at, session.moves
                deliveries = self.cores[at].deliveries.next("s", 1000, 1.0)
                return [event_id(self.logs[at][pending.position])[2] for _, pending in deliveries]
            self.settle()
            self.take_over(at, ("b1", self.at)[turn % 2])
        raise AssertionError(f"the session does not come: {self.cores[at].handovers.arrivals}")


WAY = (("b2", "b1"), ("b1", "b0"), ("b0", "b1"), ("b1", "b2"), ("b2", "b1"), ("b1", "b0"))
"""of a request, a description, and the word that the target is ready"""


@pytest.mark.parametrize("second", ["b0", "b1"])
@pytest.mark.parametrize("first", ["b0", "b1"])
@pytest.mark.parametrize("hops", range(len(WAY) + 4))
def test_an_impatient_client_loses_nothing(first: str, second: str, hops: int) -> None:
    """The target asks once more, or asks the replica holder, at each moment of a handover that goes well."""
    line = Line()
    line.claim("b2")
    for sender, to in WAY[:hops]:
        line.deliver(sender, to)
    for _ in range(hops - len(WAY)):
        line.send_part("b0")
    line.take_over("b2", first)
    line.deliver("b2", "b1", "b0")
    line.take_over("b2", second)
    line.settle()
    assert line.arrive("b2") == [1, 2]
    assert line.cores["b2"].handovers.states.of("s") is HandoverState.HERE


@pytest.mark.parametrize("hops", range(len(WAY) + 1))
def test_a_node_that_fails_in_a_handover_loses_nothing(hops: int) -> None:
    """The replica holder has all, and takes over when the client has waited for long enough."""
    line = Line()
    line.claim("b2")
    for sender, to in WAY[:hops]:
        line.deliver(sender, to)
    line.dead.add("b0")
    line.settle()
    assert line.arrive("b2") == [1, 2]


def test_a_session_that_has_moved_twice_survives_its_node() -> None:
    """The replica did not know of the moves, so the session taken over looked like an outdated copy."""
    line = Line()
    for node in ("b1", "b2"):
        assert line.arrive(node) == [1, 2]
        line.settle()
        line.run(node, lambda core, now: core.presence.detach("s", now))
    line.dead.add("b2")
    assert line.arrive("b1") == [1, 2]
    assert line.moves == 3


def test_a_target_hears_of_a_take_over_at_its_source() -> None:
    """It waited for the source until the client became impatient once more."""
    line = Line()
    line.claim("b2")
    line.deliver("b2", "b1", "b0", "b1", "b2")  # arriving
    line.run("b1", lambda core, _: core.replicas.take_over("s"))
    line.settle()
    assert line.cores["b2"].handovers.states.of("s") is HandoverState.ELSEWHERE
    assert line.arrive("b2") == [1, 2]


def test_an_outdated_copy_ends_although_it_departs() -> None:
    """The departure stayed behind without a session."""
    line = Line()
    line.run("b0", lambda core, _: core.handovers.requested("s", "t", "b1", None))
    line.at, line.moves = "b1", 5
    assert line.claim("b0") is None
    assert not line.cores["b0"].handovers.departures
    assert line.cores["b0"].handovers.arrivals["s"].source == "b1"


def test_a_replica_described_again_knows_the_counts_at_once() -> None:
    """A holder took over with numbers that the client had had, and would have ignored."""
    line = Line()
    assert line.arrive("b0") == [1, 2]
    line.run("b0", lambda core, now: core.deliveries.acknowledge("s", 2))
    line.run("b0", lambda core, now: core.publish([Publication("s", 1, [Event({"x": 1})])], now))
    line.settle()
    line.claim("b1")  # the holder is the target, and forgets the replica
    line.deliver("b1", "b0", "b1")
    line.run("b0", lambda core, now: core.presence.attach("s", "", now))  # the client comes back: the session stays
    line.deliver("b0", "b1")
    assert line.cores["b1"].handovers.states.of("s") is HandoverState.REPLICA
    line.dead.add("b0")
    line.run("b1", lambda core, _: core.replicas.take_over("s"))
    session = line.cores["b1"].sessions["s"]
    assert (session.sequence, session.acknowledged) == (1, 3 + NUMBER_GAP)


@pytest.mark.parametrize("restarted", [False, True])
def test_a_holder_forgets_what_came_by_a_former_filter(restarted: bool) -> None:
    """An event is at the holder before a change of filters is, and comes to the session's node behind the change."""
    line = Line(0)
    line.run("b0", lambda core, now: core.presence.change_filters(m.Subscribe("all", parse("x > 5")), "s", now))
    published = Publication("p", 1, [Event({"x": x}) for x in (3, 7)])
    line.run("b1", lambda core, now: core.publish([published], now))
    assert len(line.cores["b1"].sessions["s"].pending) == 2
    line.deliver("b0", "b1")
    if restarted:
        line.restart("b1")
    line.settle()
    line.dead.add("b0")
    assert line.arrive("b1") == [2]


def test_a_holder_keeps_what_waits_at_the_node_under_a_former_filter() -> None:
    line = Line()
    line.run("b0", lambda core, now: core.presence.change_filters(m.Subscribe("all", parse("x > 5")), "s", now))
    line.settle()
    line.dead.add("b0")
    assert line.arrive("b1") == [1, 2]


@pytest.mark.parametrize("forever", [False, True])
@pytest.mark.parametrize("at", ["b0", "b1"])
@pytest.mark.parametrize("version", [OLDEST, NEWEST])
def test_an_incomplete_replica_waits_for_the_node_of_the_session(version: int, at: str, forever: bool) -> None:
    """The node was killed between the arrival of a session and the word to the holder: what waited there was lost."""
    line = Line()
    line.cores["b1"].links["b2"].version = version
    assert line.arrive("b2") == [1, 2]
    line.run("b2", lambda core, _: core.replicas.renew("s"))  # as after an arrival
    line.deliver("b2", "b1", "b2")  # the holder is ready, and has nothing yet
    line.dead.add("b2")
    line.claim(at)
    for _ in range(2):
        line.take_over(at, "b1")
        line.deliver("b0", "b1", "b0", "b1", "b0")
    assert line.cores["b1"].replicas.held["s"].former is not None
    assert line.cores[at].handovers.status("s") == "coming"
    if forever:
        line.cores["b1"].replicas.held["s"].wanted = -GRACE
        assert line.arrive(at) == []
    else:
        line.dead.clear()
        assert line.arrive(at) == [1, 2]


def test_a_session_on_its_way_is_not_begun_anew() -> None:
    """Its next node was killed, and the holder had no replica any more: the client got an empty session."""
    line = Line()
    line.claim("b2")
    for sender, to in WAY:
        line.deliver(sender, to)
    line.dead.add("b2")
    line.settle()  # b0 gives all to b2, and b1 forgets the replica
    for _ in range(3):
        assert line.claim("b0") is None
        line.take_over("b0", "b1")
        line.settle()
    line.dead.clear()
    assert line.arrive("b0") == [1, 2]


def test_a_node_that_knows_where_a_session_went_asks_there() -> None:
    """The client knew only the failed node and the holder, which had given the session to the next node."""
    line = Line()
    line.dead.add("b0")
    line.claim("b2")
    line.settle()
    line.take_over("b2", "b1")
    line.settle()
    assert line.cores["b2"].handovers.states.of("s") is HandoverState.HERE
    line.run("b1", lambda core, now: core.replicas.drop("s", now))  # as if a client had asked b1 a moment earlier
    assert line.at == "b0"  # the client did not wait at b2
    assert line.arrive("b1") == [1, 2]


def test_a_replica_of_an_older_node_is_complete_when_the_node_has_news_and_a_newer_version() -> None:
    line = Line()
    line.run("b0", lambda core, now: core.replicas.renew("s"))
    line.settle()
    line.cores["b1"].replicas.held["s"].former = 0  # the older version had not said that this is all
    line.run("b0", lambda core, now: core.publish([Publication("s", 1, [Event({"x": 9})])], now))
    line.settle()
    assert line.cores["b1"].replicas.held["s"].former is None
