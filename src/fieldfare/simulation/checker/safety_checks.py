"""Safety: each delivery is allowed, comes once, and names the right subscriptions."""

from __future__ import annotations

from collections.abc import Mapping

from fieldfare.events.event import Event, fields_of
from fieldfare.simulation.checker.active_filters import ActiveFilter, advertised, any_match, subscribed
from fieldfare.simulation.checker.violations import EventId, Violation
from fieldfare.simulation.trace import Delivered, Published, Trace


def safety(trace: Trace, *, advertisements: bool = False) -> list[Violation]:
    """Find deliveries without a subscription at the time, without an earlier equal publication, or repeated.

    With advertisements, an event outside the publisher's advertisements must reach no client.
    """
    found: list[Violation] = []
    subscriptions, promised = subscribed(), advertised()
    published: dict[EventId, Event] = {}
    unpromised: set[EventId] = set()
    delivered: set[tuple[str, EventId]] = set()
    for record in trace:
        subscriptions.follow(record)
        promised.follow(record)
        if isinstance(record, Published):
            event_id = record.client, record.sequence
            if event_id in published:
                found.append(Violation("safety", record.order, f"{event_id} is published twice"))
            published[event_id] = record.event
            if advertisements and not any_match(promised.of[record.client], record.event):
                unpromised.add(event_id)
        elif isinstance(record, Delivered):
            event_id = record.publisher, record.sequence
            problem = None
            original = published.get(event_id)
            if original is None:
                problem = "was not published before"
            elif original is not record.event and original != record.event:
                problem = "is not as it was published"
            elif not _is_asked_for(record, subscriptions.of[record.client]):
                problem = "was not asked for"
            elif (record.client, event_id) in delivered:
                problem = "had been delivered before"
            elif event_id in unpromised:
                problem = "was not advertised"
            if problem is not None:
                found.append(Violation("safety", record.order, f"to {record.client}: {event_id} {problem}"))
            delivered.add((record.client, event_id))
    return found


def _is_asked_for(record: Delivered, asked: Mapping[str, ActiveFilter]) -> bool:
    """Tell whether a subscription matches; the first named by the delivery is likely, and tried first."""
    likely = asked.get(record.subscriptions[0]) if record.subscriptions else None
    if likely is not None and likely.filter.matches(record.event):
        return True
    return any_match(asked, record.event)


def attribution(trace: Trace) -> list[Violation]:
    """Find deliveries naming other subscriptions than the client's matching subscriptions."""
    found: list[Violation] = []
    subscriptions = subscribed()
    for record in trace:
        subscriptions.follow(record)
        if isinstance(record, Delivered):
            fields = fields_of(record.event)
            asked = subscriptions.of[record.client]
            right = sorted(id for id, one in asked.items() if one.filter.matches_fields(fields))
            if sorted(record.subscriptions) != right:
                problem = f"to {record.client}: for {sorted(record.subscriptions)} instead of {right}"
                found.append(Violation("attribution", record.order, problem))
    return found
