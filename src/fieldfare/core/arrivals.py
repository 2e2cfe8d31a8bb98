"""`Arrivals`: sessions on the way from other nodes, seen from the target of the handover.

An arriving session has two parts for a while: the part from the source, and an *interim session* under another mark,
which gets the events at this node meanwhile. When the first part is complete, both parts are joined.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from fieldfare.core import losses
from fieldfare.core.base import Base
from fieldfare.core.departed import Departed
from fieldfare.core.dynamic_filters import read_dynamic
from fieldfare.core.handover_state import Arrival, HandoverError, SharedElsewhere
from fieldfare.core.handover_table import IGNORED, HandoverInput
from fieldfare.core.replicas import Replicas
from fieldfare.core.session_parts import SessionParts
from fieldfare.core.stand_ins import StandIns
from fieldfare.core.state import RequestRefused, Session, pending_event
from fieldfare.core.stored_deliveries import details_for, pending_of, readable
from fieldfare.core.take_over import may_take_over
from fieldfare.protocol import handover as h
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import (
    EntryDetails,
    JournalEntry,
    Row,
    StoredRows,
    handed_over,
    is_handed_over,
)
from fieldfare.protocol.lineage import MOST

MOST_ASKED: Final = 100
"""Nodes that are asked for a session, one after the other; nodes that have forgotten a move may refer to each other."""


class Arrivals(Mapping[str, Arrival]):
    """The arriving sessions by name."""

    def __init__(
        self, base: Base, parts: SessionParts, replicas: Replicas, stand_ins: StandIns, departed: Departed
    ) -> None:
        """Serve the arriving sessions of a node."""
        self._base = base
        self._parts = parts
        self._sessions = parts.sessions
        self._states = parts.sessions.states
        self._replicas = replicas
        self._stand_ins = stand_ins
        self.departed = departed
        self.refused: dict[tuple[str, str | None], RequestRefused] = {}
        """Reasons why requested sessions do not come, by name and owner."""
        self.unclaimed: set[str] = set()
        """Sessions that no node had and that began anew here, until their clients come."""
        self._answerable: list[tuple[str, str, str, str | None]] = []

    def __getitem__(self, name: str) -> Arrival:
        """Return the arrival of a session."""
        return self._states.arrivals[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the arriving sessions."""
        return iter(self._states.arrivals)

    def __len__(self) -> int:
        """Return the number of arriving sessions."""
        return len(self._states.arrivals)

    # Requests of clients

    def request(self, name: str, source: str, ticket: str, owner: str | None) -> None:
        """Ask a node for a session."""
        self.refused.pop((name, owner), None)
        self._states.arrivals[name] = Arrival(ticket, source, owner, self._base.journal.position)
        self._store(name)
        self._send(source, h.SessionRequest(name, ticket, owner))

    def take_over(self, name: str, holder: str, now: float) -> None:
        """Ask a replica holder for a session after the silence of its node, with the same ticket.

        The source stays the source until the description of the holder is here: a slow source may have given away the
        session already, and nobody else may have a replica any more. A node that remembers where the session went asks
        there, for the client may not know.
        """
        arrival, replicas = self[name], self._replicas
        if holder != self._base.name:
            arrival.holder = holder
            self._send(holder, h.SessionRequest(name, arrival.ticket, arrival.owner, take_over=True))
        elif name in replicas.held:
            if may_take_over(name, replicas.held[name], now):
                replicas.take_over(name)
                self._arrived(name, now)
        elif arrival.session is None and (node := self.departed.node_of(name)):
            self._ask(name, node)

    def _ask(self, name: str, node: str) -> None:
        """Ask another node than before for a requested session."""
        arrival = self[name]
        arrival.source = node
        self._store(name)
        self._send(node, h.SessionRequest(name, arrival.ticket, arrival.owner))

    def cancel(self, name: str) -> None:
        """Cancel a request after the client has gone. A session already described by the source comes all the same."""
        with self._states.transition(name, HandoverInput.CANCEL) as next_states:
            if next_states is not IGNORED and self[name].next_request is None:
                self._send(self[name].source, h.CancelHandover(name, self[name].ticket))
                self._remove(name)

    def cancel_unanswered(self) -> None:
        """Cancel all requests without an answer; after a restart no client waits for a session."""
        for name in list(self):
            self.cancel(name)

    # Messages of the source

    def described(self, message: h.SessionDescription, source: str, now: float) -> None:
        """Subscribe to the filters of a session, store all events from now on, and report `TargetReady`."""
        arrival, name = self[message.session], message.session
        if arrival.session is not None and (arrival.source, arrival.session.identity) == (source, message.identity):
            self._send(source, h.TargetReady(name, message.ticket))  # the source has forgotten the first
            return
        if arrival.session is not None and source not in (arrival.source, arrival.holder):
            self._send(source, h.CancelHandover(name, message.ticket))
            return
        try:
            advertise = [m.Advertise(id, wire.filter_of(text)) for id, text in message.advertisements.items()]
            filters = {id: wire.filter_of(text) for id, text in message.subscriptions.items()}
            dynamic, values = read_dynamic(message)
        except ValueError as error:
            self._send(source, h.CancelHandover(name, message.ticket))
            reason = f"{self._base.name} cannot read a filter of the session {name}: {error}"
            self._refuse(name, RequestRefused(reason))
            return
        if arrival.session is not None:  # the node described the session and then fell silent: the replica has it all
            self._sessions.end(name, now)
        if name in self._replicas.held:  # its node has answered, so the replica is not needed
            self._replicas.drop(name, now)
        arrival.source, arrival.since, arrival.holder, arrival.event_ids = source, self._base.journal.position, "", {}
        arrival.session = Session(message.identity, True, False, now, owner=message.owner)
        self._sessions[name] = Session(
            message.identity, True, False, now, owner=message.owner, handover_mark=arrival.interim_mark
        )
        self._store(name)
        self._sessions.store(name)
        subscribe = [m.Subscribe(id, filter) for id, filter in filters.items() if id not in dynamic]
        for change in (*advertise, *subscribe):
            self._sessions.apply_change(change, name, now)
        self._parts.dynamic.accept(name, dynamic, filters, values, now)
        self._send(source, h.TargetReady(name, message.ticket))

    def receive_deliveries(self, message: h.StoredDeliveries, now: float) -> None:
        """Log the events from the source, for the session alone."""
        arrival, part = self._part(message.session)
        arrival.holder = ""  # the source is not silent
        for one in readable(message):
            details = details_for(one, message.session, arrival.interim_mark)
            sequence = handed_over(one.sequence)
            position = self._base.journal.append(now, one.publisher, sequence, one.event, details)
            part.pending[one.number] = pending_of(one, position)

    def _part(self, name: str) -> tuple[Arrival, Session]:
        """Return an arrival, and the part of the session that the source has sent so far."""
        arrival = self[name]
        assert arrival.session is not None, f"{name} is not described"
        return arrival, arrival.session

    def transferred(self, message: h.SessionTransferred, now: float) -> None:
        """Join both parts of a session: the deliveries of the source first, then the events missing there."""
        if not message.acknowledged <= message.count:
            raise HandoverError(
                f"the session {message.session} has {message.count} deliveries, and more are acknowledged"
            )
        name = message.session
        arrival, session = self._part(name)
        interim = self._sessions[name]
        session.sequence, session.count, session.acknowledged = message.sequence, message.count, message.acknowledged
        session.dropped, session.doubt = message.dropped + interim.dropped, message.doubt
        session.moves, session.lives, session.warned = message.moves + 1, message.lives[-MOST:], message.warned
        self._base.buffer.store(losses.row(name, session))
        session.sent, session.handover_mark = session.acknowledged, arrival.final_mark(self._base.journal.position)
        session.sent_before = message.count  # the source may have sent all of them
        self._sessions[name] = session
        carried, session.pending = session.pending, {}
        for number in sorted(carried):
            self._parts.deliveries.deliver_stored(name, carried[number], number)
        last = {(publisher, by): sequence for publisher, by, sequence in message.last_events}
        meanwhile = [(interim.pending[number], arrival.event_ids[number]) for number in sorted(interim.pending)]
        for pending, (publisher, by, sequence) in meanwhile + arrival.after_arrival:
            if sequence > last.get((publisher, by), -1):  # the source has delivered all events up to that one
                self._parts.deliveries.deliver_stored(name, pending)
        session.oldest = min(session.pending, default=session.count + 1)
        self._parts.devices.arrive(name, message.devices, now)
        self._arrived(name, now)

    def not_there(self, message: h.SessionNotHere, other: str, now: float) -> None:
        """Follow a session to the next node; if its own node says that no node has the session, a new one begins here.

        Once the session is described, only the source counts, which has forgotten the handover: a new session begins
        with the filters and events that have arrived, or the session stays there.
        """
        arrival, name = self[message.session], message.session
        if arrival.session is not None and (other != arrival.source or not (message.gone or message.refused)):
            return
        if arrival.session is not None and message.refused:
            self._sessions.end(name, now)
        elif arrival.session is not None:
            self.unclaimed.add(name)
            self._sessions[name].identity, self._sessions[name].restored = arrival.ticket, True
            self._arrived(name, now)
            return
        if message.refused:
            shared = SharedElsewhere(message.refused, message.node)
            self._refuse(name, shared if message.node else RequestRefused(message.refused), message.node)
            return
        node = message.node
        if node == self._base.name:  # so the session was here once
            node = self.departed.node_of(name)
        arrival.asked += 1
        if node and arrival.asked < MOST_ASKED:
            self._ask(name, node)
        elif other != arrival.source:
            return  # a replica holder that has no replica any more: the session may be on its way to its next node
        elif name in self._replicas.held:
            self._replicas.take_over(name)
            self._arrived(name, now)
        else:
            self.unclaimed.add(name)
            self._sessions[name] = Session(arrival.ticket, True, False, now, owner=arrival.owner or "")
            self._arrived(name, now)

    def discard(self, name: str, now: float) -> None:
        """Forget an arrival, with the received part of the session."""
        arrival = self[name]
        self._remove(name)
        if arrival.session is not None:
            self._sessions.end(name, now)

    def _arrived(self, name: str, now: float) -> None:
        next_request = self[name].next_request
        self._remove(name)
        self.departed.forget(name)
        self._sessions[name].last_seen = now
        self._sessions.store(name)
        self._base.buffer.wake(name)
        self._replicas.session_changed(name)
        self._stand_ins.arrived(name, now)
        if next_request is not None:
            self._answerable.append((name, *next_request))

    def take_answerable(self) -> list[tuple[str, str, str, str | None]]:
        """Remove and return the deferred requests of third nodes for sessions that have arrived."""
        answerable, self._answerable = self._answerable, []
        return answerable

    def _refuse(self, name: str, reason: RequestRefused, node: str = "") -> None:
        arrival = self[name]
        self._remove(name)
        self.refused[name, arrival.owner] = reason
        if arrival.next_request is not None:
            ticket, asking, _ = arrival.next_request
            self._send(asking, h.SessionNotHere(name, ticket, node, str(reason)))

    def defer(self, name: str, ticket: str, target: str, owner: str | None) -> None:
        """Note the request of a third node, which is answered when the session is here; the latest such request counts.

        The node of an earlier request hears where the session goes.
        """
        arrival = self[name]
        if arrival.next_request is not None and arrival.next_request[:2] != (ticket, target):
            earlier, node, _ = arrival.next_request
            self._send(node, h.SessionNotHere(name, earlier, target))
        arrival.next_request = ticket, target, owner
        self._store(name)

    # Rows and recovery

    def _send(self, to: str, message: h.AnyHandoverMessage) -> None:
        self._base.envelopes.send(to, message)

    def _remove(self, name: str) -> None:
        del self._states.arrivals[name]
        self._base.buffer.store(Row("arrival", (name,)))

    def _store(self, name: str) -> None:
        one = self[name]
        identity = one.session.identity if one.session is not None else None
        owner = one.session.owner if one.session is not None else ""
        value = [one.since + 1, one.ticket, one.source, one.owner, identity, owner, one.next_request]
        self._base.buffer.store(Row("arrival", (name,), value))

    def restore(self, stored: StoredRows) -> None:
        """Recover from stored rows; the entries of the log follow."""
        for (name,), (low, ticket, source, wanted, identity, owner, following) in stored.get("arrival", {}).items():
            session = None if identity is None else Session(identity, True, False, owner=owner)
            request = None if following is None else (following[0], following[1], following[2])
            self._states.arrivals[str(name)] = Arrival(ticket, source, wanted, low - 1, session, next_request=request)

    def restore_entry(self, entry: JournalEntry, details: EntryDetails) -> None:
        """Recover from an entry of the log: add the event to a part of the session, according to the mark."""
        for name, mark, number, ids in details.to:
            arrival = self.get(name)
            if arrival is None or arrival.session is None:
                continue
            event = entry.publisher, details.by, entry.sequence
            pending = pending_event(entry.position, ids, entry.publisher, details)
            if mark == arrival.interim_mark and is_handed_over(entry):
                arrival.session.pending[number] = pending
            elif mark == arrival.interim_mark:
                arrival.event_ids[number] = event
            elif mark.startswith(arrival.final_mark(0)[:-1]):
                arrival.after_arrival.append((pending, event))
