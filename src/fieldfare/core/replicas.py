"""`Replicas`: copies of sessions at neighbours, in case a node fails for good.

The node of a session chooses *replica holders* among the neighbours. A holder does not get the session's events from
the node, but subscribes to the same filters; so an event on any disk reaches the holder, even after a failure of
the session's node. The holder numbers the events independently. After a take-over the session therefore continues with
numbers far beyond the node's, and may repeat events known to the client: such deliveries are *in doubt*,
and the client drops known events. `protocol.handover` has the messages.

A change of filters comes to the holder later than to the node, so the holder takes some events by the former filters
that the session never gets. After each change the node sends all waiting deliveries anew, and at the end word that
these are all: what the holder took before the change, and is not among them, is forgotten.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import islice
from typing import Any, Final

from fieldfare.core.base import Base
from fieldfare.core.domains import is_foreign
from fieldfare.core.dynamic_filters import read_dynamic
from fieldfare.core.handover_table import HandoverInput
from fieldfare.core.replica_state import Replica, ReplicaHolder, ReplicaPart
from fieldfare.core.session_parts import SessionParts
from fieldfare.core.state import INTERNAL, Pending, Session, pending_event, pending_numbers
from fieldfare.core.stored_deliveries import details_for, pending_of, readable
from fieldfare.core.take_over import become_session
from fieldfare.core.watchers import DeliveryWatcher, LinkWatcher, SessionWatcher
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
from fieldfare.routing.deduplication import EventId

logger = logging.getLogger("fieldfare.node")

FORMER: Final = "former"
"""Kind of the rows with the last delivery of an incomplete replica by former filters."""
SINCE: Final = 3
"""First version of nodes that say when a replica is complete; a replica of an older node never is."""


class Replicas(SessionWatcher, DeliveryWatcher, LinkWatcher):
    """The holders of a node's own sessions, and the replicas held for others."""

    def __init__(self, base: Base, parts: SessionParts, count: int) -> None:
        """Begin without replicas; each session shall have `count` holders, if there are so many neighbours."""
        self._base = base
        self._parts = parts
        self._sessions = parts.sessions
        self._states = parts.sessions.states
        self._count = count
        self.holders: dict[str, dict[str, ReplicaHolder]] = {}
        """Holders of this node's sessions, by session and neighbour."""
        self.held = parts.sessions.states.held
        """Replicas at this node, by session."""
        self._event_ids: dict[str, dict[int, EventId]] = {}
        """Events of the deliveries that are not acknowledged, by session and number."""
        self._changed: set[str] = set()
        self._published: set[str] = set()
        """Sessions with replicas that have published in the present step."""
        self._due: set[tuple[str, str]] = set()

    def _send(self, to: str, message: h.AnyHandoverMessage) -> None:
        self._base.envelopes.send(to, message)

    # At the node of a session

    def session_changed(self, name: str) -> None:
        """Schedule a description for the holders of a new or changed session, at the end of the step."""
        if self._count:
            self._changed.add(name)

    def link_begun(self, neighbour: str) -> None:
        """Let a new neighbour become a holder of sessions with too few holders."""
        for name, session in self._sessions.items():
            few = len(self.holders.get(name, {})) < self._count
            if session.durable and few and name not in self.held and neighbour not in self.holders.get(name, {}):
                self._changed.add(name)

    def link_ended(self, neighbour: str, outbox: Iterable[bytes | int]) -> None:
        """Forget a former neighbour as a holder."""
        for name, holders in self.holders.items():
            if holders.pop(neighbour, None) is not None:
                self._base.buffer.store(Row("copy", (name, neighbour)))
                self._changed.add(name)

    def assign_holders(self) -> None:
        """At the end of a step: choose holders for changed sessions, send the present filters, and the new counts."""
        published, self._published = self._published, set()
        for name in sorted(published):
            self._report(name, [])
        self.describe_changed()

    def describe_changed(self) -> None:
        """Send the present filters of changed sessions: before any later event, which must meet the same filters."""
        changed, self._changed = self._changed, set()
        for name in sorted(changed):
            session = self._sessions.get(name)
            here = self._states.status(name) == "here"
            if name in self._states.departures:  # the session may stay after all
                self._changed.add(name)
                continue
            mine = name not in self.held and not name.startswith(INTERNAL) and here
            if session is not None and session.durable and mine:
                self._describe(name, session)

    def _describe(self, name: str, session: Session) -> None:
        holders = self.holders.setdefault(name, {})
        life, changes = self._base.broker.life, self._sessions.changes + self._base.links.changes
        fresh = f"{self._base.name}/{life}/{changes}/{self._base.journal.position}"
        near = [one for one in sorted(self._base.links) if one not in holders and not is_foreign(one)]
        more = near[: self._count - len(holders)]
        for number, holder in enumerate([*holders, *more]):  # a holder stays one: clients know its name
            present = self._parts.descriptions.of(name, f"{fresh}+{number}", replica=True)
            known = holders.get(holder)
            stated = present.dynamic, present.parameters, present.advertisements, present.devices
            if known is not None and known.subscriptions == present.subscriptions and known.stated == stated:
                continue
            holders[holder] = ReplicaHolder(present.ticket, present.subscriptions, stated=stated)
            self._store_holder(name, holder)
            self._send(holder, present)
            if session.sequence or session.count:  # a new replica knows no counts, and may have to take over at once
                self._report(name, [], holder)

    def session_ended(self, name: str) -> None:
        """Cancel the replicas of an ended session."""
        self._event_ids.pop(name, None)
        for holder, one in self.holders.pop(name, {}).items():
            self._send(holder, h.CancelHandover(name, one.ticket))
            self._base.buffer.store(Row("copy", (name, holder)))

    def renew(self, name: str) -> None:
        """Replace the replicas of a session after a change of identity."""
        if self.holders.get(name):
            self.session_ended(name)
            self._changed.add(name)

    def holder_ready(self, name: str, holder: str) -> None:
        """Schedule the waiting deliveries for a subscribed holder."""
        one = self.holders[name][holder]
        one.ready, one.upto = True, self._sessions[name].count
        self._due.add((name, holder))
        self._store_holder(name, holder)
        self._complete(name, holder)

    def due(self) -> list[tuple[str, str]]:
        """Return the pairs of session and holder for which waiting deliveries have to be sent."""
        self._due = {pair for pair in self._due if self._is_due(*pair)}
        return sorted(self._due)

    def _is_due(self, name: str, holder: str) -> bool:
        one = self.holders.get(name, {}).get(holder)
        return one is not None and one.ready and one.sent < one.upto

    def next_deliveries(self, name: str, holder: str, limit: int) -> tuple[str, list[tuple[int, Pending]]]:
        """Return the ticket of a holder, and the deliveries to send next."""
        one, session = self.holders[name][holder], self._sessions[name]
        numbers = pending_numbers(session, max(one.sent + 1, session.oldest), one.upto)
        return one.ticket, [(number, session.pending[number]) for number in islice(numbers, limit)]

    def send_part(self, part: ReplicaPart) -> None:
        """Send deliveries to a holder, unless the replica was renewed meanwhile."""
        one = self.holders.get(part.name, {}).get(part.holder)
        if one is not None and one.ticket == part.ticket:
            if part.items:
                self._send(part.holder, h.StoredDeliveries(part.name, part.ticket, list(part.items)))
            one.sent = one.upto if part.upto is None else part.upto
            self._store_holder(part.name, part.holder)
            self._complete(part.name, part.holder)

    def _complete(self, name: str, holder: str) -> None:
        """Tell a holder that it has all deliveries from before its present filters, as soon as it has."""
        if not self._is_due(name, holder):
            self._report(name, [], holder)

    def acknowledged(self, name: str, number: int) -> None:
        """Tell the holders which events a client has acknowledged; a holder's numbers differ, so events are named."""
        event_ids = self._event_ids.get(name, {})
        if not self.holders.get(name):
            return
        last: dict[tuple[str, str], int] = {}
        while event_ids and (first := next(iter(event_ids))) <= number:
            event = event_ids.pop(first)
            last[event[:2]] = event[2]
        self._report(name, [(publisher, by, sequence) for (publisher, by), sequence in last.items()])

    def published(self, name: str) -> None:
        """Schedule a report of the publisher's count, at the end of the step.

        A client repeats events that may not have been accepted. A holder that took over without the count would take
        them for new events, and they could reach subscribers a second time. The report follows the events on the same
        links: a holder never knows of an event that is lost.
        """
        if self.holders.get(name):
            self._published.add(name)

    def _report(self, name: str, last_events: list[EventId], *some: str) -> None:
        """Tell some holders, or all, how far a session is, and whether the replica is complete."""
        session, holders = self._sessions.get(name), self.holders.get(name, {})
        if session is None:
            return
        counts = session.sequence, session.count, session.acknowledged, session.moves
        for holder in some or holders:
            one = holders[holder]
            complete = one.ready and not self._is_due(name, holder)
            self._send(holder, h.ReplicaProgress(name, one.ticket, *counts, last_events, complete))

    def offered(self, name: str, target: str) -> None:
        """Schedule another copy for a holder that a session is described to, unless the session goes there.

        The description of an arriving session takes the place of the replica, and is dropped if the session stays.
        """
        one = self.holders.get(name, {}).get(target)
        if one is not None:
            one.subscriptions, one.ready = None, False
            self._changed.add(name)
            self._store_holder(name, target)

    def forget_holder(self, name: str, holder: str) -> None:
        """Forget a holder that has taken over a session."""
        if self.holders.get(name, {}).pop(holder, None) is not None:
            self._base.buffer.store(Row("copy", (name, holder)))

    # At a replica holder

    def accept(self, description: h.SessionDescription, node: str, now: float) -> None:
        """Hold a replica, or apply new filters to a held replica; refuse if a session here has the same name."""
        base, name, replica = self._base, description.session, self.held.get(description.session)
        if replica is not None and replica.identity != description.identity:
            self.drop(name, now)
            replica = None
        if replica is None and name in self._states.arrivals:
            return
        try:
            filters = {id: wire.filter_of(text) for id, text in description.subscriptions.items()}
            advertise = [m.Advertise(id, wire.filter_of(text)) for id, text in description.advertisements.items()]
            dynamic, values = read_dynamic(description)
        except ValueError as error:
            logger.error("the session %s of %s has no copy here: a filter cannot be read: %s", name, node, error)
            return
        if replica is None:
            mark = f"{description.ticket}/{base.journal.position}"
            replica = Replica(description.ticket, node, description.identity, description.owner, mark)
            self.held[name] = replica
            self._sessions[name] = Session(replica.identity, True, False, now, owner=replica.owner, handover_mark=mark)
        replica.ticket, replica.node, replica.moves = description.ticket, node, max(replica.moves, description.moves)
        replica.former = self._sessions[name].count
        base.buffer.store(Row(FORMER, (name,), replica.former))
        self._store_replica(name)
        self._sessions.store(name)
        self._parts.devices.set_names(name, description.devices, now)
        before, promised = base.broker.clients.get(name).subscriptions, base.broker.clients.get(name).advertisements
        subscribe = [m.Subscribe(id, filter) for id, filter in filters.items() if id not in dynamic]
        ended: list[m.Message] = [m.Unsubscribe(id) for id in before if id not in filters and id not in dynamic]
        ended += [m.Unadvertise(id) for id in promised if id not in description.advertisements]
        self._parts.dynamic.accept(name, dynamic, filters, values, now)
        for message in (*advertise, *subscribe, *ended):  # neighbours ask for events before the session publishes here
            self._sessions.apply_change(message, name, now)
        self._send(node, h.TargetReady(name, description.ticket))

    def receive_deliveries(self, message: h.StoredDeliveries, now: float) -> None:
        """Log deliveries from before the beginning of the replica."""
        replica = self.held[message.session]
        for one in readable(message):
            details = details_for(one, message.session, replica.mark)
            position = self._base.journal.append(now, one.publisher, handed_over(one.sequence), one.event, details)
            replica.carried[one.number] = pending_of(one, position), (one.publisher, one.by, one.sequence)

    def update(self, progress: h.ReplicaProgress, now: float) -> None:
        """Apply the progress of a session: forget the events acknowledged by the client."""
        replica, name = self.held[progress.session], progress.session
        replica.sequence, replica.count = progress.sequence, progress.count
        replica.acknowledged, replica.moves = progress.acknowledged, progress.moves
        for publisher, by, sequence in progress.last_events:
            replica.last_events[publisher, by] = max(sequence, replica.last_events.get((publisher, by), -1))
        self._store_replica(name)
        self._sessions[name].last_seen = now
        self._trim(name, replica)
        if progress.complete and replica.former is not None:
            former, replica.former, replica.wanted = replica.former, None, None
            self._base.buffer.store(Row(FORMER, (name,)))
            self._parts.deliveries.forget(name, self._sessions[name], former)
            replica.event_ids = {n: event for n, event in replica.event_ids.items() if n > former}

    def _trim(self, name: str, replica: Replica) -> None:
        replica.carried = {number: item for number, item in replica.carried.items() if number > replica.acknowledged}
        pending = self._sessions[name].pending
        for number in [number for number, event in replica.event_ids.items() if not replica.may_need(event)]:
            del replica.event_ids[number]
            pending.pop(number, None)

    def take_over(self, name: str) -> None:
        """Turn a replica into the session, and tell the session's node, which may live after all."""
        replica = self._release(name)
        self._trim(name, replica)
        become_session(self._parts, name, replica, self._base.journal.position)
        self._send(replica.node, h.SessionTakenOver(name, replica.ticket, replica.identity))

    def _release(self, name: str) -> Replica:
        """Hold a replica no longer."""
        self._base.buffer.store(Row("kept", (name,)), Row(FORMER, (name,)))
        return self.held.pop(name)

    def drop(self, name: str, now: float) -> None:
        """Forget a superfluous replica, with the stored events."""
        self._release(name)
        self._sessions.end(name, now)

    def expire(self, now: float, life: float, wall: float) -> None:
        """Drop replicas without news for ten times the life of a session; usually the session's node cancels before.

        Deliveries with a time to live before a time of the wall clock are dropped, too, as at the session's node.
        """
        for replica in self.held.values():
            replica.carried = {number: one for number, one in replica.carried.items() if one[0].expires > wall}
        for name in [name for name in self.held if now - self._sessions[name].last_seen > 10 * life]:
            with self._states.transition(name, HandoverInput.EXPIRE):
                self.drop(name, now)

    # Events, rows and recovery

    def any(self) -> bool:
        """Tell whether a session here has replicas, or is one."""
        return bool(self.holders or self.held)

    def delivered(self, name: str, number: int, event: EventId) -> None:
        """Note the event of a delivery to a session with replicas, or to a replica."""
        if name in self.holders:
            self._event_ids.setdefault(name, {})[number] = event
        if name in self.held:
            self.held[name].event_ids[number] = event

    def low_water(self) -> list[int]:
        """Return the positions from which replicas still need the log."""
        carried = (one.carried.values() for one in self.held.values() if one.carried)
        return [min(pending.position for pending, _ in items) for items in carried]

    def _store_holder(self, name: str, holder: str) -> None:
        one = self.holders[name][holder]
        value = [one.ticket, one.subscriptions, one.ready, one.upto, one.sent]
        self._base.buffer.store(Row("copy", (name, holder), value))

    def _store_replica(self, name: str) -> None:
        one = self.held[name]
        last_events = [[publisher, by, sequence] for (publisher, by), sequence in one.last_events.items()]
        low = min((pending.position for pending, _ in one.carried.values()), default=self._base.journal.position + 1)
        about = [one.ticket, one.node, one.identity, one.owner, one.mark]
        value: list[Any] = [low, *about, one.sequence, one.count, one.acknowledged, one.moves, last_events]
        self._base.buffer.store(Row("kept", (name,), value))

    def checkpoint(self) -> None:
        """Write the rows of all held replicas."""
        for name in self.held:
            self._store_replica(name)

    def restore(self, stored: StoredRows) -> None:
        """Recover from stored rows; the entries of the log follow."""
        for (name, holder), row in stored.get("copy", {}).items():
            self.holders.setdefault(str(name), {})[str(holder)] = ReplicaHolder(*row)
            self._due.add((str(name), str(holder)))
            if self.holders[str(name)][str(holder)].subscriptions is None:
                self._changed.add(str(name))
        for (name,), (_, ticket, node, identity, owner, mark, *counts, last) in stored.get("kept", {}).items():
            sequence, count, acknowledged, moves = counts
            last_events = {(publisher, by): number for publisher, by, number in last}
            about = ticket, node, identity, owner, mark
            former = stored.get(FORMER, {}).get((name,))
            self.held[str(name)] = Replica(*about, sequence, count, acknowledged, moves, last_events, former)

    def restore_entry(self, entry: JournalEntry, details: EntryDetails) -> None:
        """Recover from an entry of the log: note again the event for sessions with replicas, and for replicas."""
        sequence = handed_over(entry.sequence) if is_handed_over(entry) else entry.sequence
        event = entry.publisher, details.by, sequence
        for name, mark, number, ids in details.to:
            replica, session = self.held.get(name), self._sessions.get(name)
            if replica is not None and mark == replica.mark and is_handed_over(entry):
                pending = pending_event(entry.position, ids, entry.publisher, details)
                replica.carried[number] = pending, event
            elif replica is not None and mark == replica.mark:
                replica.event_ids[number] = event
            elif (
                name in self.holders and session is not None and session.mark == mark and number > session.acknowledged
            ):
                self._event_ids.setdefault(name, {})[number] = event

    def finish_restore(self) -> None:
        """After the last entry of the log: forget the acknowledged events."""
        for name, replica in self.held.items():
            self._trim(name, replica)
