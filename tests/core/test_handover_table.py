"""Every state × every input of the handover: the table and the core agree, and an unknown pair changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, get_args

import msgspec
import pytest

from fieldfare.core.core import Core
from fieldfare.core.handover import OF_HANDOVERS, OF_REPLICAS
from fieldfare.core.handover_state import STATUS, HandoverError, SessionMoving
from fieldfare.core.handover_table import IGNORED, OF_CLIENTS, TRANSITIONS, HandoverInput, HandoverState
from fieldfare.core.state import Pending, RequestRefused
from fieldfare.filters import parse
from fieldfare.protocol import handover as h
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import JournalEntry
from fieldfare.routing.broker import Broker

S, Given = HandoverState, HandoverInput

UNREADABLE = {"one": "x LIKE"}


class Node:
    """The core of node b with its disk; a and c are its neighbours, and s is the session in question."""

    def __init__(self, *, secure: bool = False) -> None:
        self.rows: dict[str, dict[Any, Any]] = {}
        self.entries: list[JournalEntry] = []
        self.core = Core(Broker("b"), replicas=1, secure=secure)
        for neighbour in ("a", "c"):
            self.core.links.connect(neighbour, m.Role.PEER, 0.0)
        self.step()

    def step(self) -> Node:
        step = self.core.drain()
        self.entries += step.entries
        for kind, key, value in step.rows:
            self.rows.setdefault(kind, {})[key] = value
            if value is None:
                del self.rows[kind][key]
        self.core.release(step)
        return self

    def receive(self, *messages: h.HandoverMessage, sender: str = "a") -> Node:
        for message in messages:
            self.core.handovers.receive(m.Envelope("b", sender, h.encode(message)), 1.0)
        return self.step()

    def restart(self) -> None:
        self.core = Core(Broker("b", life=1), self.rows, self.entries, replicas=1, now=1.0)
        self.core.resume()

    @property
    def state(self) -> HandoverState:
        return self.core.handovers.states.of("s")

    def snapshot(self) -> object:
        """Everything that an input may change."""
        core = self.core
        parts = (
            core.sessions,
            core.handovers.arrivals,
            core.handovers.departures,
            core.replicas.held,
            core.replicas.holders,
        )
        filters = {
            name: (client.subscriptions, client.advertisements) for name, client in core.broker.clients.all.items()
        }
        plain = [{name: repr(one) for name, one in part.items()} for part in parts]
        unwritten = core.buffer.rows, core.buffer.entries, core.buffer.closing
        return (
            plain,
            repr(filters),
            core.position,
            core.handovers.departed.node_of("s"),
            repr(unwritten),
            dict(core.handovers.passes),
        )


# Nodes in each state, in several ways


def elsewhere() -> Node:
    return Node()


def here(*, durable: bool = True) -> Node:
    node = Node()
    node.core.presence.attach("s", "i", 0.0, durable=durable)
    node.core.presence.change_filters(m.Subscribe("one", parse("x = 1")), "s", 0.0)
    node.core.deliveries.replay("s", [Pending(1, ("one",), 9.0), Pending(2, ("one",), 9.0)])
    return node.step()


def requested(*, third: bool = False) -> Node:
    node = Node()
    assert node.core.handovers.claim("s", "t", 0.0, at="a") is None
    return node.receive(*[h.SessionRequest("s", "u")] * third, sender="c")


def arriving(*, third: bool = False) -> Node:
    return requested(third=third).receive(h.SessionDescription("s", "t", "i", ""))


def departing() -> Node:
    return here().receive(h.SessionRequest("s", "t"))


def ready() -> Node:
    return departing().receive(h.TargetReady("s", "t"))


def frozen() -> Node:
    node = ready()
    node.core.handovers.departures.freeze("s", 1.0)
    return node.step()


def replica(*, secure: bool = False, owner: str = "", complete: bool = True) -> Node:
    description = h.SessionDescription("s", "r", "i", owner, {"one": "x = 1"}, replica=True)
    return Node(secure=secure).receive(description, *[h.ReplicaProgress("s", "r", 0, 0, 0, 0, [], True)] * complete)


def replica_requested(*, third: bool = False) -> Node:
    node = replica()
    assert node.core.handovers.claim("s", "t", 0.0, at="a") is None
    return node.step().receive(*[h.SessionRequest("s", "u")] * third, sender="c")


NODES: Mapping[HandoverState, list[Callable[[], Node]]] = {
    S.ELSEWHERE: [elsewhere],
    S.REQUESTED: [requested, lambda: requested(third=True)],
    S.ARRIVING: [arriving, lambda: arriving(third=True)],
    S.HERE: [here],
    S.DEPARTING: [departing],
    S.READY: [ready],
    S.FROZEN: [frozen],
    S.REPLICA: [
        replica,
        lambda: replica(owner="ana"),
        lambda: replica(owner="ana", secure=True),
        lambda: replica(complete=False),
    ],
    S.REPLICA_REQUESTED: [replica_requested, lambda: replica_requested(third=True)],
}

MORE: Mapping[tuple[HandoverState, HandoverInput], list[Callable[[], Node]]] = {
    (S.HERE, Given.DETACH): [lambda: here(durable=False)],
    (S.HERE, Given.RESTART): [lambda: here(durable=False)],
}
"""Nodes for a single input: a session without a name ends with its connection."""


# Inputs, in several ways


def message(make: Callable[[], h.HandoverMessage], sender: str = "a") -> Callable[[Node], None]:
    def act(node: Node) -> None:
        content = h.encode(make())
        node.core.handovers.receive(m.Envelope("b", sender, content), 2.0)

    return act


def claim(**known: Any) -> Callable[[Node], None]:
    return lambda node: (node.core.handovers.claim("s", "t2", 2.0, **known), None)[1]


def holder_ready(node: Node) -> None:
    ticket = node.core.replicas.holders["s"]["a"].ticket
    message(lambda: h.TargetReady("s", ticket))(node)


def send_part(limit: int) -> Callable[[Node], None]:
    def act(node: Node) -> None:
        waiting = [(1, Pending(1, ("one",), 9.0)), (2, Pending(2, ("one",), 9.0))][:limit]
        node.core.handovers.departures.send_deliveries("s", waiting, {}, 2.0)

    return act


def take_over(holder: str) -> Callable[[Node], None]:
    return lambda node: node.core.handovers.take_over("s", holder, 2.0)


def expire(node: Node) -> None:
    if "s" in node.core.sessions:
        node.core.presence.detach("s", 2.0)
    node.core.expire(1000.0, 1.0)


def remind(node: Node) -> None:
    for _ in range(2):
        node.core.reminders.maintain()


TAKEN = h.SessionTransferred("s", "t", 0, 5, 1, 0, [])
INPUTS: Mapping[HandoverInput, list[Callable[[Node], None]]] = {
    Given.CLAIM: [claim(), claim(at="a"), claim(at="a", identity="i", moves=7)],
    Given.ATTACH: [lambda node: (node.core.presence.attach("s", "j", 2.0), None)[1]],
    Given.USE: [lambda node: node.core.deliveries.acknowledge("s", 0)],
    Given.CHANGE_FILTERS: [
        lambda node: node.core.presence.change_filters(m.Subscribe("two", parse("y = 1")), "s", 2.0)
    ],
    Given.LEAVE: [lambda node: node.core.presence.leave("s", 2.0)],
    Given.DETACH: [lambda node: node.core.presence.detach("s", 2.0)],
    Given.CANCEL: [lambda node: node.core.handovers.arrivals.cancel("s")],
    Given.TAKE_OVER: [take_over("b"), take_over("c"), take_over("nobody")],
    Given.OFFER: [lambda node: node.core.handovers.offer("s", "c", "o")],
    Given.VOUCH: [lambda node: node.core.handovers.departures.send_voucher(h.ClientVoucher("s", "t", b"", "ana"))],
    Given.FREEZE: [lambda node: node.core.handovers.departures.freeze("s", 2.0)],
    Given.SEND_PART: [send_part(1), send_part(2)],
    Given.EXPIRE: [expire],
    Given.REMIND: [remind],
    Given.RESTART: [Node.restart],
    Given.SESSION_REQUEST: [
        message(lambda: h.SessionRequest("s", "t3"), "c"),
        message(lambda: h.SessionRequest("s", "t3", "eve"), "c"),
    ],
    Given.TAKE_OVER_REQUEST: [
        message(lambda: h.SessionRequest("s", "t3", take_over=True), "c"),
        message(lambda: h.SessionRequest("s", "t3", "eve", take_over=True), "c"),
    ],
    Given.SESSION_OFFER: [message(lambda: h.SessionOffer("s", "t3", "ana"), "c")],
    Given.DESCRIPTION: [
        message(lambda: h.SessionDescription("s", "t", "i", "")),
        message(lambda: h.SessionDescription("s", "t", "i", "", UNREADABLE)),
        message(lambda: h.SessionDescription("s", "t", "i", ""), "c"),
    ],
    Given.VOUCHER: [message(lambda: h.ClientVoucher("s", "t", b"", ""))],
    Given.TARGET_READY: [message(lambda: h.TargetReady("s", "t"))],
    Given.DELIVERIES: [message(lambda: h.StoredDeliveries("s", "t", []))],
    Given.TRANSFERRED: [message(lambda: TAKEN)],
    Given.NOT_HERE: [
        message(lambda: h.SessionNotHere("s", "t", "c")),
        message(lambda: h.SessionNotHere("s", "t")),
        message(lambda: h.SessionNotHere("s", "t", refused="no")),
        message(lambda: h.SessionNotHere("s", "t", "b", gone=True)),
        message(lambda: h.SessionNotHere("s", "t", gone=True), "c"),
    ],
    Given.CANCELLED: [message(lambda: h.CancelHandover("s", "t"))],
    Given.REPLICA_DESCRIPTION: [
        message(lambda: h.SessionDescription("s", "r2", "i", "", replica=True)),
        message(lambda: h.SessionDescription("s", "r2", "j", "", UNREADABLE, replica=True)),
    ],
    Given.HOLDER_READY: [holder_ready],
    Given.REPLICA_DELIVERIES: [message(lambda: h.StoredDeliveries("s", "r", []))],
    Given.REPLICA_PROGRESS: [message(lambda: h.ReplicaProgress("s", "r", 0, 0, 0, 0, []))],
    Given.REPLICA_CANCELLED: [message(lambda: h.CancelHandover("s", "r"))],
    Given.TAKEN_OVER: [message(lambda: h.SessionTakenOver("s", "t", "i"))],
    Given.STALE: [
        message(lambda: h.SessionDescription("s", "old", "i", "")),
        message(lambda: h.CancelHandover("s", "old")),
        message(lambda: h.TargetReady("s", "old")),
        message(lambda: h.StoredDeliveries("s", "old", [])),
        message(lambda: h.SessionTakenOver("s", "t", "another")),
    ],
}

PAIRS = [(state, given) for state in S for given in Given]
KNOWN = [(state, given) for state, given in PAIRS if TRANSITIONS[state].get(given)]
IGNORED_PAIRS = [(state, given) for state, given in PAIRS if TRANSITIONS[state].get(given) == IGNORED]
UNKNOWN = [(state, given) for state, given in PAIRS if given not in TRANSITIONS[state]]


def named(value: HandoverState | HandoverInput) -> str:
    return value.name


@pytest.mark.parametrize("state", S, ids=named)
def test_each_state_can_be_reached(state: HandoverState) -> None:
    assert [make().state for make in NODES[state]] == [state] * len(NODES[state])


@pytest.mark.parametrize(("state", "given"), KNOWN, ids=named)
def test_a_known_input_leads_to_the_states_of_the_table_and_to_no_others(
    state: HandoverState, given: HandoverInput
) -> None:
    """Each of the next states is reached in one of the ways to give the input."""
    reached = set()
    for make in [*NODES[state], *MORE.get((state, given), [])]:
        for act in INPUTS[given]:
            node = make()
            with suppress(RequestRefused):
                act(node)
            reached.add(node.state)
            node.core.handovers.states.check_invariants("s")
    assert reached == set(TRANSITIONS[state][given])


@pytest.mark.parametrize(("state", "given"), IGNORED_PAIRS, ids=named)
def test_an_ignored_input_changes_nothing(state: HandoverState, given: HandoverInput) -> None:
    for make in NODES[state]:
        for act in INPUTS[given]:
            node = make()
            before = node.snapshot()
            act(node)
            after = node.snapshot()
            if given not in (Given.EXPIRE, Given.STALE):  # time is noted, and a stale description is answered
                assert after == before
            assert node.state is state


@pytest.mark.parametrize(("state", "given"), UNKNOWN, ids=named)
def test_an_unknown_input_is_an_error_and_changes_nothing(state: HandoverState, given: HandoverInput) -> None:
    error = HandoverError if given not in OF_CLIENTS else RequestRefused if state is S.ELSEWHERE else SessionMoving
    for make in NODES[state]:
        node = make()
        before = node.snapshot()
        with pytest.raises(error), node.core.handovers.states.transition("s", given):
            raise AssertionError("the input was let through")
        assert node.snapshot() == before


@pytest.mark.parametrize(("state", "given"), UNKNOWN, ids=named)
def test_an_unknown_input_from_outside_changes_nothing(state: HandoverState, given: HandoverInput) -> None:
    """Without an attempt in progress a message is late, and no error; all other inputs are refused."""
    for make in NODES[state]:
        for act in INPUTS[given]:
            node = make()
            before = node.snapshot()
            with suppress(HandoverError, RequestRefused, KeyError):
                act(node)
            if given is not Given.DESCRIPTION:  # answered: the sender keeps the session
                assert node.snapshot() == before
            assert node.state is state


@pytest.mark.parametrize("make", [arriving, departing, ready, frozen])
def test_a_message_of_a_third_node_is_stale(make: Callable[[], Node]) -> None:
    """Two nodes may have been asked with the same ticket."""
    for one in (h.CancelHandover("s", "t"), h.TargetReady("s", "t"), h.StoredDeliveries("s", "t", []), TAKEN):
        assert make().core.handovers.input_of(one, "c") is Given.STALE


# The table itself


def test_the_table_is_complete() -> None:
    assert set(TRANSITIONS) == set(S) == set(STATUS) == set(NODES)
    assert set(INPUTS) == set(Given)
    assert all(any(given in row for row in TRANSITIONS.values()) for given in Given)


def test_each_message_type_is_an_input() -> None:
    begins = {h.SessionRequest, h.SessionOffer, h.SessionTakenOver}
    kinds = set(get_args(h.AnyHandoverMessage)) - {h.StandInRequest}  # which is about no session here
    assert begins | OF_HANDOVERS.keys() | OF_REPLICAS.keys() == kinds
    of_messages = {given.value.split(",")[0] for given in Given} & {kind.__name__ for kind in kinds}
    assert of_messages == {kind.__name__ for kind in kinds}


def test_each_state_leads_to_each_other() -> None:
    """No state is out of reach, and no state is the end of a session's name."""
    for first in S:
        found, todo = {first}, [first]
        while todo:
            new = {after for states in TRANSITIONS[todo.pop()].values() for after in states} - found
            found |= new
            todo += new
        assert found == set(S), first


def test_usable_sessions_are_those_with_the_status_here() -> None:
    assert {state for state in S if Given.USE in TRANSITIONS[state]} == {
        state for state in S if STATUS[state] == "here"
    }


def test_use_never_changes_the_state() -> None:
    """The core checks the input alone, on the way of every event."""
    assert all(row[Given.USE] == (state,) for state, row in TRANSITIONS.items() if Given.USE in row)


def test_a_transfer_with_impossible_counts_changes_nothing() -> None:
    node = arriving()
    before = node.snapshot()
    with pytest.raises(HandoverError, match="more are acknowledged"):
        message(lambda: msgspec.structs.replace(TAKEN, acknowledged=6))(node)
    assert node.snapshot() == before
