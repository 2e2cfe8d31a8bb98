"""`Arrivals`: sessions on the way from other nodes, seen from the target of the handover.

An arriving session has two parts for a while: the part from the source, and an *interim session* under another mark,
which gets the events at this node meanwhile. When the first part is complete, both parts are joined.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fieldfare.core import losses
from fieldfare.core.handover_state import Arrival
from fieldfare.core.state import NEVER, Pending, Session
from fieldfare.core.stored_deliveries import details_for, pending_of, readable
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
    replacement_key,
)
from fieldfare.protocol.lineage import MOST

if TYPE_CHECKING:
    from fieldfare.core.core import Core


class Arrivals(dict[str, Arrival]):
    """The arriving sessions by name."""

    def __init__(self, core: Core) -> None:
        """Begin without arriving sessions, for a broker."""
        super().__init__()
        self._core = core
        self.refused: dict[tuple[str, str | None], str] = {}
        """Reasons why requested sessions do not come, by name and owner."""
        self.unclaimed: set[str] = set()
        """Sessions that no node had and that began anew here, until their clients come."""

    def of(self, message: h.HandoverMessage) -> Arrival | None:
        """Return the arrival with the session and ticket of a message; None if the message is about another attempt."""
        arrival = self.get(message.session)
        return arrival if arrival is not None and arrival.ticket == message.ticket else None

    # Requests of clients

    def request(self, name: str, source: str, ticket: str, owner: str | None) -> None:
        """Ask a node for a session."""
        self.refused.pop((name, owner), None)
        self[name] = Arrival(ticket, source, owner, self._core.position)
        self._store(name)
        self._send(source, h.SessionRequest(name, ticket, owner))

    def take_over(self, name: str, holder: str, ticket: str, now: float) -> None:
        """Ask a replica holder for a session after the silence of its node; or the node once more."""
        arrival, here = self.get(name), self._core.broker.name
        if arrival is None or not (holder == here or self._core.envelopes.knows(holder)):
            return  # clients name the holders, and an envelope to a wrong name would wait for ever
        if arrival.session is not None:  # the node described the session and then fell silent: the replica has it all
            self.discard(name, now)
            arrival = Arrival(ticket, holder, arrival.owner, self._core.position, next_request=arrival.next_request)
            self[name] = arrival
        arrival.source = holder
        self._store(name)
        if holder != here:
            self._send(holder, h.SessionRequest(name, arrival.ticket, arrival.owner, take_over=True))
        elif name in self._core.replicas.held:
            self._core.replicas.take_over(name)
            self._arrived(name, now)

    def cancel(self, name: str) -> None:
        """Cancel a request after the client has gone. A session already described by the source comes all the same."""
        arrival = self.get(name)
        if arrival is not None and arrival.session is None and arrival.next_request is None:
            self._send(arrival.source, h.CancelHandover(name, arrival.ticket))
            self._remove(name)

    def cancel_unanswered(self) -> None:
        """Cancel all requests without an answer; after a restart no client waits for a session."""
        for name in list(self):
            self.cancel(name)

    # Messages of the source

    def described(self, message: h.SessionDescription, source: str, now: float) -> None:
        """Subscribe to the filters of a session, store all events from now on, and report `TargetReady`."""
        core, arrival, name = self._core, self.of(message), message.session
        if arrival is None or arrival.session is not None:
            self._send(source, h.CancelHandover(name, message.ticket))
            return
        try:
            advertise = [m.Advertise(id, wire.filter_of(text)) for id, text in message.advertisements.items()]
            subscribe = [m.Subscribe(id, wire.filter_of(text)) for id, text in message.subscriptions.items()]
        except ValueError as error:
            self._send(source, h.CancelHandover(name, message.ticket))
            self._refuse(name, f"{core.broker.name} cannot read a filter of the session {name}: {error}")
            return
        if name in core.replicas.held:  # its node has answered, so the replica is not needed
            core.replicas.drop(name, now)
        arrival.source, arrival.since = source, core.position
        arrival.session = Session(message.identity, True, False, now, owner=message.owner)
        core.sessions[name] = Session(
            message.identity, True, False, now, owner=message.owner, handover_mark=arrival.interim_mark
        )
        self._store(name)
        core.sessions.store(name)
        for change in (*advertise, *subscribe):
            core.sessions.apply_change(change, name, now)
        self._send(source, h.TargetReady(name, message.ticket))

    def receive_deliveries(self, message: h.StoredDeliveries, now: float) -> None:
        """Log the events from the source, for the session alone."""
        arrival = self.of(message)
        if arrival is None or arrival.session is None:
            return
        for one in readable(message):
            details = details_for(one, message.session, arrival.interim_mark)
            sequence = handed_over(one.sequence)
            position = self._core.append_entry(now, one.publisher, sequence, one.event, details)
            arrival.session.pending[one.number] = pending_of(one, position)

    def transferred(self, message: h.SessionTransferred, now: float) -> None:
        """Join both parts of a session: the deliveries of the source first, then the events missing there."""
        core, arrival, name = self._core, self.of(message), message.session
        if arrival is None or arrival.session is None:
            return
        interim, session = core.sessions[name], arrival.session
        session.sequence, session.count, session.acknowledged = message.sequence, message.count, message.acknowledged
        session.dropped, session.doubt = message.dropped + interim.dropped, message.doubt
        session.moves, session.lives, session.warned = message.moves + 1, message.lives[-MOST:], message.warned
        core.buffer.store(losses.row(name, session))
        session.sent, session.handover_mark = session.acknowledged, arrival.final_mark(core.position)
        session.sent_before = message.count  # the source may have sent all of them
        core.sessions[name] = session
        carried, session.pending = session.pending, {}
        for number in sorted(carried):
            core.deliveries.deliver_stored(name, carried[number], number)
        last = {(publisher, by): sequence for publisher, by, sequence in message.last_events}
        meanwhile = [(interim.pending[number], arrival.event_ids[number]) for number in sorted(interim.pending)]
        for pending, (publisher, by, sequence) in meanwhile + arrival.after_arrival:
            if sequence > last.get((publisher, by), -1):  # the source has delivered all events up to that one
                core.deliveries.deliver_stored(name, pending)
        session.oldest = min(session.pending, default=session.count + 1)
        self._arrived(name, now)

    def not_there(self, message: h.SessionNotHere, now: float) -> None:
        """Follow a session to the next node; if no node has the session, a new one begins here."""
        core, arrival, name = self._core, self.of(message), message.session
        if arrival is None:
            return
        if message.refused:
            self._refuse(name, message.refused)
            return
        node = message.node
        if node == core.broker.name:  # so the session was here once
            node = core.handovers.departed_to(name)
        if node:
            arrival.source = node
            self._store(name)
            self._send(arrival.source, h.SessionRequest(name, arrival.ticket, arrival.owner))
        elif name in core.replicas.held:
            core.replicas.take_over(name)
            self._arrived(name, now)
        else:
            self.unclaimed.add(name)
            core.sessions[name] = Session(arrival.ticket, True, False, now, owner=arrival.owner or "")
            self._arrived(name, now)

    def discard(self, name: str, now: float) -> None:
        """Forget an arrival, with the received part of the session."""
        arrival = self[name]
        self._remove(name)
        if arrival.session is not None:
            self._core.sessions.end(name, now)

    def _arrived(self, name: str, now: float) -> None:
        core, next_request = self._core, self[name].next_request
        self._remove(name)
        core.handovers.forget_departed(name)
        core.sessions[name].last_seen = now
        core.sessions.store(name)
        core.buffer.wake(name)
        core.replicas.mark_changed(name)
        if next_request is not None:
            core.handovers.requested(name, *next_request)

    def _refuse(self, name: str, reason: str) -> None:
        arrival = self[name]
        self._remove(name)
        self.refused[name, arrival.owner] = reason
        if arrival.next_request is not None:
            ticket, node, _ = arrival.next_request
            self._send(node, h.SessionNotHere(name, ticket, refused=reason))

    def defer(self, name: str, ticket: str, target: str, owner: str | None) -> None:
        """Note the request of a third node, which is answered when the session is here; the latest such request counts.

        The node of an earlier request hears where the session goes.
        """
        arrival = self[name]
        if arrival.next_request is not None:
            earlier, node, _ = arrival.next_request
            self._send(node, h.SessionNotHere(name, earlier, target))
        arrival.next_request = ticket, target, owner
        self._store(name)

    # Rows and recovery

    def _send(self, to: str, message: h.AnyHandoverMessage) -> None:
        self._core.envelopes.send(to, h.encode(message))

    def _remove(self, name: str) -> None:
        del self[name]
        self._core.buffer.store(Row("arrival", (name,)))

    def _store(self, name: str) -> None:
        one = self[name]
        identity = one.session.identity if one.session is not None else None
        owner = one.session.owner if one.session is not None else ""
        value = [one.since + 1, one.ticket, one.source, one.owner, identity, owner, one.next_request]
        self._core.buffer.store(Row("arrival", (name,), value))

    def restore(self, stored: StoredRows) -> None:
        """Recover from stored rows; the entries of the log follow."""
        for (name,), (low, ticket, source, wanted, identity, owner, following) in stored.get("arrival", {}).items():
            session = None if identity is None else Session(identity, True, False, owner=owner)
            request = None if following is None else (following[0], following[1], following[2])
            self[str(name)] = Arrival(ticket, source, wanted, low - 1, session, next_request=request)

    def restore_entry(self, entry: JournalEntry, details: EntryDetails) -> None:
        """Recover from an entry of the log: add the event to a part of the session, according to the mark."""
        for name, mark, number, ids in details.to:
            arrival = self.get(name)
            if arrival is None or arrival.session is None:
                continue
            event = entry.publisher, details.by, entry.sequence
            key = replacement_key(entry.publisher, details.replaces)
            pending = Pending(entry.position, tuple(ids), details.expires or NEVER, replaces=key)
            if mark == arrival.interim_mark and is_handed_over(entry):
                arrival.session.pending[number] = pending
            elif mark == arrival.interim_mark:
                arrival.event_ids[number] = event
            elif mark.startswith(arrival.final_mark(0)[:-1]):
                arrival.after_arrival.append((pending, event))
