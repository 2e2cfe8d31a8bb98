"""`Handovers`: sessions on the move between nodes.

`protocol.handover` has the messages and the order of messages, `handover_table` the states of a session and the inputs
of each state. All state of a handover is in rows and journal entries, as everything else of the broker: after a kill,
the node continues in the middle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from fieldfare.core.arrivals import Arrivals
from fieldfare.core.base import Base
from fieldfare.core.departures import Departures
from fieldfare.core.handover_state import Arrival, Departure, HandoverStatus, TemporarilyRefused
from fieldfare.core.handover_table import IGNORED, HandoverInput, HandoverState
from fieldfare.core.passes import Pass, with_first
from fieldfare.core.presence import Presence
from fieldfare.core.replicas import Replicas
from fieldfare.core.session_names import check_session
from fieldfare.core.session_parts import SessionParts
from fieldfare.core.stand_ins import StandIns
from fieldfare.core.state import INTERNAL, RequestRefused, Session
from fieldfare.core.take_over import may_take_over
from fieldfare.core.watchers import SessionWatcher
from fieldfare.protocol import handover as h
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import EntryDetails, JournalEntry, StoredRows
from fieldfare.routing.deduplication import EventId

OF_HANDOVERS: Final[Mapping[type[h.HandoverMessage], HandoverInput]] = {
    h.SessionDescription: HandoverInput.DESCRIPTION,
    h.ClientVoucher: HandoverInput.VOUCHER,
    h.TargetReady: HandoverInput.TARGET_READY,
    h.StoredDeliveries: HandoverInput.DELIVERIES,
    h.SessionTransferred: HandoverInput.TRANSFERRED,
    h.SessionNotHere: HandoverInput.NOT_HERE,
    h.CancelHandover: HandoverInput.CANCELLED,
    h.ReplicaProgress: HandoverInput.REPLICA_PROGRESS,
}
"""Inputs of the messages with the ticket of a handover."""
OF_REPLICAS: Final[Mapping[type[h.HandoverMessage], HandoverInput]] = {
    h.TargetReady: HandoverInput.HOLDER_READY,
    h.StoredDeliveries: HandoverInput.REPLICA_DELIVERIES,
    h.ReplicaProgress: HandoverInput.REPLICA_PROGRESS,
    h.CancelHandover: HandoverInput.REPLICA_CANCELLED,
}
"""Inputs of the messages with the ticket of a replica."""


class Handovers(SessionWatcher):
    """The arriving and departing sessions of a broker, and the nodes of departed sessions."""

    def __init__(
        self,
        base: Base,
        parts: SessionParts,
        *,
        replicas: Replicas,
        stand_ins: StandIns,
        departures: Departures,
        arrivals: Arrivals,
        presence: Presence,
        secure: bool = False,
    ) -> None:
        """Begin without handovers; with `secure`, a session goes only to the owner."""
        self._base = base
        self._parts = parts
        self._sessions = parts.sessions
        self._replicas = replicas
        self._stand_ins = stand_ins
        self._presence = presence
        self._secure = secure
        self.states = parts.sessions.states
        self.departed = arrivals.departed
        self.departures = departures
        self.arrivals = arrivals
        self._offered: dict[str, str] = {}
        """Targets of offered sessions: an administrator moves a session with all its members."""
        self.passes: dict[str, tuple[Pass, ...]] = {}
        """Passes of clients that follow their sessions to this node, by session."""

    # Requests of clients

    def status(self, name: str) -> HandoverStatus:
        """Return where a session is."""
        return self.states.status(name)

    def source_of(self, name: str) -> str:
        """Return the source of an arriving session; for a departing session, the name of this node."""
        return self.arrivals[name].source if name in self.arrivals else self._base.name

    def claim(
        self,
        name: str,
        fresh: str,
        now: float,
        *,
        at: str = "",
        identity: str = "",
        moves: int = 0,
        owner: str = "",
    ) -> Session | None:
        """Return the session of a client at this node, or None while the session is arriving.

        The client was `at` another node before, or nowhere. A `fresh` name serves as the identity of a new
        session, or as the ticket of a handover. The `identity`, if known to the client, tells which session of the name
        is meant, and `moves` which of two copies: a session that has come here from the client's node has moved once
        more, and a copy with no more moves than the client knows is a remainder at a failed node.
        """
        with self.states.transition(name, HandoverInput.CLAIM):
            return self._claim(name, fresh, now, at=at, identity=identity, moves=moves, owner=owner)

    def _claim(
        self, name: str, fresh: str, now: float, *, at: str, identity: str, moves: int, owner: str
    ) -> Session | None:
        asking = owner if self._secure else None
        if (name, asking) in self.arrivals.refused:
            raise self.arrivals.refused.pop((name, asking))
        here = self._base.name
        elsewhere = at not in ("", here)
        session = self._sessions[name] if self.status(name) == "here" else None
        # No node has an unclaimed session: to ask for it would never end.
        doubtful = elsewhere and name not in self.arrivals.unclaimed
        if session is not None and doubtful and identity not in ("", session.identity) and self._is_unused(name):
            self._end_copy(name, now)  # its client dialled here once, and did not wait for the answer
            session = None
        if session is not None and doubtful and identity:
            if session.identity != identity:
                raise RequestRefused(f"{here} has another session {name}: leave it, or use another name")
            if session.moves <= moves and moves:  # 0: the client may not know
                self._end_copy(name, now)
                session = None
        if session is not None:
            return self._attach(name, fresh, now, owner, identity)
        if self.status(name) == "unknown":
            replica = self._replicas.held.get(name)
            source = at if elsewhere else self.departed.node_of(name)
            source = source or (replica.node if replica is not None else "")
            if not source:
                return self._attach(name, fresh, now, owner, identity)
            if not self._base.envelopes.knows(source):
                raise TemporarilyRefused(f"{here} knows no way to the node {source}, which has the session {name}")
            self.arrivals.request(name, source, fresh, asking)
        return None

    def take_over(self, name: str, holder: str, now: float) -> None:
        """Ask a replica holder for a session after the silence of its node; or the node once more."""
        with self.states.transition(name, HandoverInput.TAKE_OVER) as next_states:
            # Clients name the holders, and an envelope to a wrong name would wait for ever.
            known = holder == self._base.name or self._base.envelopes.knows(holder)
            if next_states is not IGNORED and known:
                self.arrivals.take_over(name, holder, now)
                self._answer_deferred()

    def _answer_deferred(self) -> None:
        """Answer the nodes that have asked for a session while it was on its way here."""
        for request in self.arrivals.take_answerable():
            self.requested(*request)

    def _end_copy(self, name: str, now: float) -> None:
        self.departures.cancel(name)
        self._sessions.end(name, now)

    def _is_unused(self, name: str) -> bool:
        """Tell whether a session holds nothing of value to a client."""
        session, client = self._sessions[name], self._base.broker.clients.all.get(name)
        filters = client is not None and (client.subscriptions or client.advertisements)
        stated = self._parts.dynamic.values.get(name)
        return not (session.connected or session.sequence or session.count or filters or stated)

    def _attach(self, name: str, fresh: str, now: float, owner: str, known: str) -> Session:
        if name not in self._replicas.holders:
            self._replicas.session_changed(name)
        return self._presence.attach(name, fresh, now, owner=owner, known=known)

    def offer(self, name: str, target: str, ticket: str) -> None:
        """Offer a session, with the client, to another node."""
        with self.states.transition(name, HandoverInput.OFFER):
            self._offered[name] = target
            self._send(target, h.SessionOffer(name, ticket, self._sessions[name].owner))

    def cancel_unanswered(self) -> None:
        """Cancel all requests without an answer; after a restart no client waits for a session."""
        self.arrivals.cancel_unanswered()

    # Messages of other nodes

    def receive(self, envelope: m.Envelope, now: float, via: str = "") -> None:
        """Open an envelope for this node, or forward an envelope for another node."""
        if envelope.to != self._base.name:
            self._base.envelopes.forward(envelope, via)
            return
        message, other = h.decode(envelope.content), envelope.origin
        if isinstance(message, h.StandInRequest):
            check_session(message.session)
            self._stand_ins.accept(message, now)
            return
        if isinstance(message, h.SessionOffer) or (isinstance(message, h.SessionDescription) and message.replica):
            check_session(message.session)
        given = self.input_of(message, other)
        with self.states.transition(message.session, given) as next_states:
            if next_states is not IGNORED:
                self._apply(message, given, other, now)
                self._answer_deferred()
            elif isinstance(message, h.SessionDescription) and not message.replica:
                self._send(other, h.CancelHandover(message.session, message.ticket))

    def input_of(self, message: h.AnyHandoverMessage, sender: str) -> HandoverInput:
        """Return the input of the table that a message is: by type, attempt, and sender."""
        match message:
            case h.SessionRequest(take_over=take_over):
                return HandoverInput.TAKE_OVER_REQUEST if take_over else HandoverInput.SESSION_REQUEST
            case h.SessionOffer():
                return HandoverInput.SESSION_OFFER
            case h.SessionDescription(replica=True):
                return HandoverInput.REPLICA_DESCRIPTION
            case h.SessionTakenOver(session=name, identity=identity):
                session, holders = self._sessions.get(name), self._replicas.holders.get(name, {})
                known = session is not None and session.identity == identity and sender in holders
                return HandoverInput.TAKEN_OVER if known else HandoverInput.STALE
        if self._is_of_replica(message, sender):
            return OF_REPLICAS[type(message)]
        return OF_HANDOVERS[type(message)] if self._is_of_handover(message, sender) else HandoverInput.STALE

    def _is_of_handover(self, message: h.HandoverMessage, sender: str) -> bool:
        """Tell whether a message is about the attempt in progress, and of the node at the other end.

        A requested session may be described by any node: the session may have moved on.
        """
        arrival, departure = self.arrivals.get(message.session), self.departures.get(message.session)
        if arrival is not None and arrival.ticket == message.ticket:
            elsewhere = isinstance(message, h.SessionDescription | h.SessionNotHere)
            return arrival.session is None or arrival.source == sender or elsewhere
        return departure is not None and (departure.ticket, departure.target) == (message.ticket, sender)

    def _is_of_replica(self, message: h.HandoverMessage, sender: str) -> bool:
        replica = self._replicas.held.get(message.session)
        holder = self._replicas.holders.get(message.session, {}).get(sender)
        held = replica is not None and (replica.ticket, replica.node) == (message.ticket, sender)
        return type(message) in OF_REPLICAS and (held or (holder is not None and holder.ticket == message.ticket))

    def _apply(self, message: h.AnyHandoverMessage, given: HandoverInput, other: str, now: float) -> None:
        """Apply a message that the table knows in the present state of the session."""
        name, replicas = message.session, self._replicas
        match message:
            case h.SessionRequest(ticket=ticket, owner=owner, take_over=take_over):
                mine = self.states.of(name) is HandoverState.REPLICA
                mine = mine and not (self._secure and replicas.held[name].owner != owner)
                if take_over and mine and may_take_over(name, replicas.held[name], now):
                    replicas.take_over(name)
                    self.departed.forget(name)
                self.requested(name, ticket, other, owner)
            case h.SessionOffer(ticket=ticket, owner=owner):
                self.arrivals.request(name, other, ticket, owner)
            case h.SessionDescription(replica=True):
                replicas.accept(message, other, now)
            case h.SessionDescription():
                self.arrivals.described(message, other, now)
            case h.ClientVoucher():
                arrival = self.arrivals[name]
                if arrival.session is not None and arrival.session.owner == message.owner:
                    self.passes[name] = with_first(self.passes.get(name, ()), message, now)
            case h.TargetReady() if given is HandoverInput.HOLDER_READY:
                replicas.holder_ready(name, other)
            case h.TargetReady():
                self.departures.target_ready(name)
            case h.StoredDeliveries() if given is HandoverInput.REPLICA_DELIVERIES:
                replicas.receive_deliveries(message, now)
            case h.StoredDeliveries():
                self.arrivals.receive_deliveries(message, now)
            case h.ReplicaProgress():
                replicas.update(message, now)
            case h.SessionTakenOver():
                self._lost(name, other, now)
            case h.SessionTransferred():
                self.arrivals.transferred(message, now)
            case h.SessionNotHere():
                self.arrivals.not_there(message, other, now)
            case h.CancelHandover() if given is HandoverInput.REPLICA_CANCELLED:
                replicas.drop(name, now)
            case h.CancelHandover():
                self._cancelled(name, now)

    def requested(self, name: str, ticket: str, target: str, owner: str | None) -> None:
        """Answer the request of a node: begin the handover, refer to another node, or refuse."""
        departure = self.departures.get(name)
        session, replica = self._sessions.get(name), self._replicas.held.get(name)
        if self.states.of(name) is HandoverState.REQUESTED and self.arrivals[name].source == target:
            self._send(target, h.SessionNotHere(name, ticket, gone=True))  # each waits for the other: one has forgotten
        elif name in self.arrivals:  # the session is not here yet: it goes on when it is
            self.arrivals.defer(name, ticket, target, owner)
        elif departure is not None and departure.ready:
            if (departure.ticket, departure.target) != (ticket, target):  # else it comes already
                self._send(target, h.SessionNotHere(name, ticket, departure.target))
        elif replica is not None:
            self._send(target, h.SessionNotHere(name, ticket, replica.node))
        elif session is None or not session.durable or name.startswith(INTERNAL):
            self._send(target, h.SessionNotHere(name, ticket, self.departed.node_of(name), gone=True))
        elif session.owner != owner and (self._secure or owner is not None):
            self._send(target, h.SessionNotHere(name, ticket, refused=f"the session {name} belongs to somebody else"))
        elif self._parts.members.of(name) is not None and self._offered.get(name) != target:
            self._send(target, h.SessionNotHere(name, ticket, self._base.name, self._parts.members.description(name)))
        elif not self._parts.devices.may_go(name, target, offered=self._offered.get(name) == target):
            self._send(target, h.SessionNotHere(name, ticket, self._base.name, self._parts.devices.description(name)))
        else:
            self.departures.begin(name, session, ticket, target)
            self._replicas.offered(name, target)

    def _lost(self, name: str, holder: str, now: float) -> None:
        """End a session after the take-over by a replica holder, and disconnect the client here.

        The target of a departure has to ask the holder.
        """
        self.departures.cancel(name)
        self._replicas.forget_holder(name, holder)
        self._sessions.end(name, now)
        self._base.buffer.closing[name] = holder
        self.departed.note(name, holder, now)

    def _cancelled(self, name: str, now: float) -> None:
        if name in self.departures:
            self.departures.remove(name)
            return
        arrival = self.arrivals[name]
        self.arrivals.discard(name, now)
        if arrival.next_request is not None:
            following, node, _ = arrival.next_request
            self._send(node, h.SessionNotHere(name, following, arrival.source))

    def _send(self, to: str, message: h.AnyHandoverMessage) -> None:
        self._base.envelopes.send(to, message)

    # Events and recovery

    def any(self) -> bool:
        """Tell whether a session is arriving or departing."""
        return bool(self.states.arrivals or self.states.departures)

    def delivered(self, name: str, number: int, event: EventId) -> None:
        """Note the event of a delivery to an arriving or departing session."""
        arrival = self.states.arrivals.get(name)
        if arrival is not None:
            arrival.event_ids[number] = event
        self.departures.delivered(name, event)

    def session_ended(self, name: str) -> None:
        """Forget everything about an ended session."""
        self.arrivals.unclaimed.discard(name)
        self.passes.pop(name, None)
        self._offered.pop(name, None)

    def low_water(self) -> list[int]:
        """Return the positions from which handovers still need the log."""
        moving: list[Arrival | Departure] = [*self.arrivals.values(), *self.departures.values()]
        return [one.since + 1 for one in moving]

    def restore(self, stored: StoredRows, now: float) -> None:
        """Recover from stored rows; the entries of the log follow."""
        self.arrivals.restore(stored)
        self.departures.restore(stored)
        self.departed.restore(stored, now)

    def restore_entry(self, entry: JournalEntry, details: EntryDetails) -> None:
        """Recover from an entry of the log."""
        self.arrivals.restore_entry(entry, details)
        self.departures.restore_entry(entry, details)
