"""`Handovers`: sessions on the move between nodes. `protocol.handover` has the messages and the order of messages.

All state of a handover is in rows and journal entries, as everything else of the broker: after a kill, the node
continues in the middle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fieldfare.core.arrivals import Arrivals
from fieldfare.core.departures import Departures
from fieldfare.core.handover_state import Arrival, Departure, HandoverStatus, SessionMoving, TemporarilyRefused
from fieldfare.core.passes import Pass, first_pass
from fieldfare.core.session_names import check_session
from fieldfare.core.state import INTERNAL, RequestRefused, Session
from fieldfare.protocol import handover as h
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import EntryDetails, JournalEntry, Row, StoredRows
from fieldfare.routing.deduplication import EventId

if TYPE_CHECKING:
    from fieldfare.core.core import Core


class Handovers:
    """The arriving and departing sessions of a broker, and the nodes of departed sessions."""

    def __init__(self, core: Core, *, secure: bool = False) -> None:
        """Begin without handovers; with `secure`, a session goes only to the owner."""
        self._core = core
        self._secure = secure
        self.arrivals = Arrivals(core)
        self.departures = Departures(core)
        self.departed: dict[str, tuple[str, float]] = {}
        """Sessions that have left: the node of each, and when it left."""
        self.passes: dict[str, Pass] = {}
        """Passes of clients that follow their sessions to this node, by session."""

    # Requests of clients

    def status(self, name: str) -> HandoverStatus:
        """Return where a session is."""
        if name in self.arrivals:
            return "coming"
        if name in self.departures and self.departures[name].ready:
            return "going"
        return "here" if name in self._core.sessions and name not in self._core.replicas.held else "unknown"

    def source_of(self, name: str) -> str:
        """Return the source of an arriving session; for a departing session, the name of this node."""
        return self.arrivals[name].source if name in self.arrivals else self._core.broker.name

    def check_usable(self, name: str) -> None:
        """Raise `SessionMoving` for an arriving or departing session, and for a replica."""
        going = name in self.departures and self.departures[name].ready
        if going or name in self.arrivals or name in self._core.replicas.held:
            raise SessionMoving(f"the session {name} is on its way")

    def cancel_departure(self, name: str) -> None:
        """Cancel the departure of a session because of a client here, unless the target is ready already."""
        departure = self.departures.get(name)
        if departure is not None and not departure.ready:
            self.departures.cancel(name)

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
        is meant, and `moves` which of two copies: a copy with fewer moves than the client knows is a remainder at a
        failed node.
        """
        asking = owner if self._secure else None
        if (name, asking) in self.arrivals.refused:
            raise RequestRefused(self.arrivals.refused.pop((name, asking)))
        core, here, elsewhere = self._core, self._core.broker.name, at not in ("", self._core.broker.name)
        session = core.sessions[name] if self.status(name) == "here" else None
        # No node has an unclaimed session: to ask for it would never end.
        doubtful = elsewhere and name not in self.arrivals.unclaimed
        if session is not None and doubtful and identity not in ("", session.identity) and self._is_unused(name):
            core.sessions.end(name, now)  # its client dialled here once, and did not wait for the answer
            session = None
        if session is not None and doubtful and identity:
            if session.identity != identity:
                raise RequestRefused(f"{here} has another session {name}: leave it, or use another name")
            if session.moves < moves:
                core.sessions.end(name, now)
                session = None
        if session is not None:
            return self._attach(name, fresh, now, owner, identity)
        if self.status(name) == "unknown":
            replica = core.replicas.held.get(name)
            source = at if elsewhere else self.departed_to(name)
            source = source or (replica.node if replica is not None else "")
            if not source:
                return self._attach(name, fresh, now, owner, identity)
            if not core.envelopes.knows(source):
                raise TemporarilyRefused(f"{here} knows no way to the node {source}, which has the session {name}")
            self.arrivals.request(name, source, fresh, asking)
        return None

    def _is_unused(self, name: str) -> bool:
        """Tell whether a session holds nothing of value to a client."""
        session, client = self._core.sessions[name], self._core.broker.clients.all.get(name)
        filters = client is not None and (client.subscriptions or client.advertisements)
        return not (session.connected or session.sequence or session.count or filters)

    def _attach(self, name: str, fresh: str, now: float, owner: str, known: str) -> Session:
        if name not in self._core.replicas.holders:
            self._core.replicas.mark_changed(name)
        return self._core.sessions.attach(name, fresh, now, owner=owner, known=known)

    def offer(self, name: str, target: str, ticket: str) -> None:
        """Offer a session, with the client, to another node."""
        self._send(target, h.SessionOffer(name, ticket, self._core.sessions[name].owner))

    def cancel_unanswered(self) -> None:
        """Cancel all requests without an answer; after a restart no client waits for a session."""
        self.arrivals.cancel_unanswered()

    # Messages of other nodes

    def receive(self, envelope: m.Envelope, now: float, via: str = "") -> None:
        """Open an envelope for this node, or forward an envelope for another node."""
        if envelope.to != self._core.broker.name:
            self._core.envelopes.forward(envelope, via)
            return
        other, replicas = envelope.origin, self._core.replicas
        match h.decode(envelope.content):
            case h.SessionRequest(session=name, ticket=ticket, owner=owner, take_over=take_over):
                mine = name in replicas.held and name not in self.arrivals
                if take_over and mine and not (self._secure and replicas.held[name].owner != owner):
                    replicas.take_over(name)
                    self.forget_departed(name)
                self.requested(name, ticket, other, owner)
            case h.SessionOffer(session=name, ticket=ticket, owner=owner):
                check_session(name)
                if self.status(name) == "unknown":
                    self.arrivals.request(name, other, ticket, owner)
            case h.SessionDescription(replica=True) as description:
                check_session(description.session)
                replicas.accept(description, other, now)
            case h.SessionDescription() as description:
                self.arrivals.described(description, other, now)
            case h.ClientVoucher() as voucher:
                arrival = self.arrivals.of(voucher)
                if arrival is not None and arrival.session is not None and arrival.session.owner == voucher.owner:
                    self.passes[voucher.session] = first_pass(voucher, now)
            case h.TargetReady(session=name, ticket=ticket):
                if not replicas.holder_ready(name, ticket, other):
                    self.departures.target_ready(name, ticket)
            case h.StoredDeliveries() as deliveries:
                replicas.receive_deliveries(deliveries, now)
                self.arrivals.receive_deliveries(deliveries, now)
            case h.ReplicaProgress() as progress:
                replicas.update(progress, now)
            case h.SessionTakenOver(session=name, identity=identity):
                if replicas.taken_over(name, identity, other, now):
                    self._lost(name, other, now)
            case h.SessionTransferred() as transferred:
                self.arrivals.transferred(transferred, now)
            case h.SessionNotHere() as not_there:
                self.arrivals.not_there(not_there, now)
            case h.CancelHandover(session=name, ticket=ticket):
                self._cancelled(name, ticket, now)

    def requested(self, name: str, ticket: str, target: str, owner: str | None) -> None:
        """Answer the request of a node: begin the handover, refer to another node, or refuse."""
        core, departure = self._core, self.departures.get(name)
        session, replica = core.sessions.get(name), core.replicas.held.get(name)
        if name in self.arrivals:  # the session is not here yet: it goes on when it is
            self.arrivals.defer(name, ticket, target, owner)
        elif departure is not None and departure.ready:
            self._send(target, h.SessionNotHere(name, ticket, departure.target))
        elif replica is not None:
            self._send(target, h.SessionNotHere(name, ticket, replica.node))
        elif session is None or not session.durable or name.startswith(INTERNAL):
            self._send(target, h.SessionNotHere(name, ticket, self.departed_to(name)))
        elif session.owner != owner and (self._secure or owner is not None):
            self._send(target, h.SessionNotHere(name, ticket, refused=f"the session {name} belongs to somebody else"))
        else:
            self.departures.begin(name, session, ticket, target)

    def _lost(self, name: str, holder: str, now: float) -> None:
        """Note the take-over of a session by a replica holder, and disconnect the client here."""
        if name in self.departures:
            self.departures.remove(name)
        self._core.buffer.closing[name] = holder
        self.note_departed(name, holder, now)

    def _cancelled(self, name: str, ticket: str, now: float) -> None:
        arrival, departure = self.arrivals.get(name), self.departures.get(name)
        replica = self._core.replicas.held.get(name)
        if arrival is not None and arrival.ticket == ticket:
            self.arrivals.discard(name, now)
            if arrival.next_request is not None:
                following, node, _ = arrival.next_request
                self._send(node, h.SessionNotHere(name, following, arrival.source))
        elif departure is not None and departure.ticket == ticket and not departure.ready:
            self.departures.remove(name)
        if replica is not None and replica.ticket == ticket:
            self._core.replicas.drop(name, now)

    def _send(self, to: str, message: h.AnyHandoverMessage) -> None:
        self._core.envelopes.send(to, h.encode(message))

    # Sessions that have left

    def departed_to(self, name: str) -> str:
        """Return the node where a session went; empty if unknown."""
        return self.departed.get(name, ("", 0.0))[0]

    def note_departed(self, name: str, node: str, now: float) -> None:
        """Remember where a session went, for clients and nodes with requests for the session."""
        self.departed[name] = node, now
        self._core.buffer.store(Row("gone", (name,), [node, now]))

    def forget_departed(self, name: str) -> None:
        """Forget where a session went, after a return of the session or a long time."""
        if self.departed.pop(name, None) is not None:
            self._core.buffer.store(Row("gone", (name,)))

    def expire(self, now: float, life: float) -> None:
        """Forget where sessions went more than ten lives ago; until then a session may be in use elsewhere."""
        for name in [name for name, (_, when) in self.departed.items() if now - when > 10 * life]:
            self.forget_departed(name)

    # Events and recovery

    def delivered(self, name: str, number: int, event: EventId) -> None:
        """Note the event of a delivery to an arriving or departing session."""
        arrival = self.arrivals.get(name)
        if arrival is not None:
            arrival.event_ids[number] = event
        self.departures.delivered(name, event)

    def ended(self, name: str) -> None:
        """Forget everything about an ended session."""
        self.arrivals.unclaimed.discard(name)
        self.passes.pop(name, None)

    def low_water(self) -> list[int]:
        """Return the positions from which handovers still need the log."""
        moving: list[Arrival | Departure] = [*self.arrivals.values(), *self.departures.values()]
        return [one.since + 1 for one in moving]

    def restore(self, stored: StoredRows) -> None:
        """Recover from stored rows; the entries of the log follow."""
        self.arrivals.restore(stored)
        self.departures.restore(stored)
        for (name,), (node, _) in stored.get("gone", {}).items():
            self.departed[str(name)] = node, self._core.now  # clients could not come back while the node was down

    def restore_entry(self, entry: JournalEntry, details: EntryDetails) -> None:
        """Recover from an entry of the log."""
        self.arrivals.restore_entry(entry, details)
        self.departures.restore_entry(entry, details)
