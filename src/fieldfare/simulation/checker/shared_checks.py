"""Checks of shared sessions: each event goes to a single member at a time, to another only after the first has gone.

An event is given to a member until the acknowledgement, or until the connection ends. Meanwhile no other member may
have the event, and with a key no other member may have any event of the same key. An acknowledged event never comes
again, unless a replica of the session takes over from a failed node: a replica knows only acknowledgements
without a gap before.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable
from typing import NamedTuple

from fieldfare.simulation.checker.violations import EventId, Violation
from fieldfare.simulation.trace import (
    AcknowledgedByMember,
    Crashed,
    Delivered,
    DeliveredToMember,
    MemberGone,
    Published,
    Record,
    Restarted,
    Trace,
)


def first_deliveries(trace: Trace) -> Trace:
    """Return a trace in which a shared session gets each event once: with the first delivery to any member."""
    if not any(isinstance(record, DeliveredToMember) for record in trace):
        return trace
    seen: set[tuple[str, EventId]] = set()
    found: list[Record] = []
    for record in trace:
        if isinstance(record, DeliveredToMember):
            about = record.client, (record.publisher, record.sequence)
            if about in seen:
                continue
            seen.add(about)
            *fields, _, _ = record
            found.append(Delivered._make([*fields, 0]))  # members get no channel number
        else:
            found.append(record)
    return found


class _Holder(NamedTuple):
    """A member with an event."""

    broker: str
    member: str
    key: Hashable


class _Shared:
    """The events of a shared session, as the trace goes on."""

    def __init__(self) -> None:
        self.held: dict[EventId, _Holder] = {}
        self.acknowledged: set[EventId] = set()
        self.unmarked: set[EventId] = set()
        """events that came without the mark of a repetition"""
        self.latest: dict[tuple[Hashable, str], int] = {}
        """by key and publisher: the last event that came for the first time"""
        self.seen: set[EventId] = set()

    def release(self, member: str | None, broker: str | None) -> None:
        """End the hold of a member, or of all members at a node."""
        gone = [event for event, one in self.held.items() if member == one.member or broker == one.broker]
        for event in gone:
            del self.held[event]

    def problem(self, record: DeliveredToMember, event: EventId, key: Hashable, *, mortal: bool) -> str | None:
        """Return the fault of a delivery, if any, and take the delivery into account.

        A `mortal` event has a time to live: with a clock set back, such an event may live again after later ones.
        """
        holder = self.held.get(event)
        others = {one.member for one in self.held.values() if key is not None and one.key == key} - {record.member}
        latest = self.latest.get((key, record.publisher), -1)
        first = event not in self.seen
        self.seen.add(event)
        self.held[event] = _Holder(record.broker, record.member, key)
        if first and key is not None:
            self.latest[key, record.publisher] = max(latest, record.sequence)
        if holder is not None:
            return f"is still held by {holder.member}"
        if event in self.acknowledged:
            return "was acknowledged before"
        if event in self.unmarked and not record.redelivered:
            return "comes again without a mark"
        if not record.redelivered:
            self.unmarked.add(event)
        if others:
            return f"has the key {key!r}, of which {sorted(others)} hold events"
        if first and key is not None and record.sequence < latest and not mortal:
            return f"comes after event {latest}, of the same key {key!r}"
        return None


def shared(trace: Trace, *, key: str = "") -> list[Violation]:
    """Find events given to two members at once, repeated without a mark, or out of the order of their keys."""
    found: list[Violation] = []
    sessions: defaultdict[str, _Shared] = defaultdict(_Shared)
    mortal = {(record.client, record.sequence) for record in trace if isinstance(record, Published) and record.ttl}
    last = {record.broker: type(record) for record in trace if isinstance(record, Crashed | Restarted)}
    for record in trace:
        match record:
            case DeliveredToMember(client=client, publisher=publisher, sequence=sequence, event=event):
                event_id = publisher, sequence
                value = event.get(key) if key else None
                problem = sessions[client].problem(record, event_id, value, mortal=event_id in mortal)
                if problem is not None:
                    about = f"to {record.member} of {client}: {event_id}"
                    found.append(Violation("shared", record.order, f"{about} {problem}"))
            case AcknowledgedByMember(client=client, publisher=publisher, sequence=sequence, member=member):
                session, event_id = sessions[client], (publisher, sequence)
                session.acknowledged.add(event_id)
                if event_id in session.held and session.held[event_id].member == member:
                    del session.held[event_id]
            case MemberGone(client=client, member=member):
                sessions[client].release(member, None)
            case Crashed(broker=broker):
                for session in sessions.values():
                    session.release(None, broker)
                    if last[broker] is Crashed:  # for good
                        session.acknowledged.clear()
    return found
