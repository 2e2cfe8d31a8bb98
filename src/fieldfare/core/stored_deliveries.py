"""Deliveries of a moving session: from the log to a handover message, and back."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping

from fieldfare.core.state import NEVER, Pending, pending_event
from fieldfare.events import msgpack
from fieldfare.events.limits import EventError
from fieldfare.protocol.event_options import options_of
from fieldfare.protocol.handover import StoredDeliveries, StoredDelivery
from fieldfare.protocol.journal import (
    EntryDetails,
    JournalEntry,
    Receiver,
    details_of,
    handed_over,
    is_handed_over,
)

logger = logging.getLogger("fieldfare.node")


def readable(message: StoredDeliveries) -> list[StoredDelivery]:
    """Return the deliveries with readable events: an unreadable event would spoil a whole frame for a client."""
    found = []
    for one in message.items:
        try:
            msgpack.decode(one.event)
        except EventError as error:
            logger.error(
                "an event that came with the session %s cannot be read, and is left out: %s", message.session, error
            )
        else:
            found.append(one)
    return found


def details_for(one: StoredDelivery, session: str, mark: str) -> EntryDetails:
    """Return the journal details of a delivery from a handover message."""
    to: list[Receiver] = [(session, mark, one.number, one.subscriptions)]
    return EntryDetails(one.by, one.source, to=to, **options_of(one))


def pending_of(one: StoredDelivery, position: int) -> Pending:
    """Return a delivery from a handover message as pending; the event is in the log at the position."""
    return pending_event(position, one.subscriptions, one.publisher, one, replayed=one.replayed)


def stored_deliveries(
    waiting: Iterable[tuple[int, Pending]], entries: Mapping[int, JournalEntry]
) -> list[StoredDelivery]:
    """Return waiting deliveries with events, as far as the log still has the events."""
    return [_stored(n, pending, entries[pending.position]) for n, pending in waiting if pending.position in entries]


def _stored(number: int, pending: Pending, entry: JournalEntry) -> StoredDelivery:
    details = details_of(entry)
    expires = 0.0 if pending.expires == NEVER else pending.expires
    sequence = handed_over(entry.sequence) if is_handed_over(entry) else entry.sequence
    return StoredDelivery(
        number=number,
        subscriptions=pending.subscriptions,
        publisher=entry.publisher,
        sequence=sequence,
        by=details.by,
        source=details.source,
        event=entry.event,
        replayed=pending.replayed,
        **{**options_of(details, StoredDelivery), "expires": expires},
    )
