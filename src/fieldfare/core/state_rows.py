"""Rows of sessions, links, stored deliveries and filters: their values, and how to read them back.

The values are lists, whose order is the format. A later version appends values; a reader fills in defaults for the
values that an earlier version did not write.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fieldfare.core.state import NEVER, Link, Pending, Session, oldest_pending
from fieldfare.filters.filter import Filter
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import Row
from fieldfare.protocol.lineage import as_lineage
from fieldfare.protocol.messages import Message, Role


def session_row(name: str, session: Session, position: int) -> Row:
    """Return the row of a session; `position` is the last position of the log."""
    low = session.pending[oldest_pending(session)].position if session.pending else position + 1
    value = [
        session.identity,
        session.sequence,
        session.count,
        session.acknowledged,
        session.last_seen,
        low,
        session.dropped,
        session.owner,
        session.handover_mark,
        session.doubt,
        session.moves,
        session.lives,
        session.restored,
    ]
    return Row("session", (name,), value)


def session_of_row(value: Sequence[Any], now: float, *, doubtful: bool) -> Session:
    """Return the session of a row, not connected; `doubtful` says that the row may be older than what clients saw."""
    identity, sequence, count, acknowledged, _, low, dropped, owner, *more = value
    mark, doubt, moves, lives, restored = filled(more, "", 0, 0, (), False)
    return Session(
        identity,
        durable=True,
        connected=False,
        last_seen=now,
        sequence=sequence,
        count=count,
        sent=acknowledged,
        acknowledged=acknowledged,
        dropped=dropped,
        owner=owner,
        handover_mark=mark,
        doubt=doubt,
        moves=moves,
        lives=as_lineage(lives),
        restored=restored or doubtful,
        low=low,
    )


def link_row(neighbour: str, link: Link, position: int) -> Row:
    """Return the row of a link; `position` is the last position of the log."""
    low = min([link.low if link.outbox else position + 1, *link.already.values()])
    counts = [link.last, link.received, link.last_change, link.acknowledged]
    more = link.lives, link.remote_lives, link.renumbered_at, link.id
    value = [link.role.value, low, link.local_name, link.remote_name, counts, link.born, *more]
    return Row("neighbour", (neighbour,), value)


def link_of_row(value: Sequence[Any]) -> Link:
    """Return the link of a row, with an empty outbox."""
    role, _, local_name, remote_name, (last, received, last_change, acknowledged), born, *more = value
    lives, remote_lives, renumbered_at, id = filled(more, (), (), 0, "")
    return Link(
        Role(role),
        last=last,
        acknowledged=acknowledged,
        written=received,
        received=received,
        last_change=last_change,
        local_name=local_name,
        remote_name=remote_name,
        born=born,
        lives=as_lineage(lives),
        remote_lives=as_lineage(remote_lives),
        renumbered_at=renumbered_at,
        id=id,
    )


def pending_row(name: str, number: int, pending: Pending) -> Row:
    """Return the row of a delivery whose journal entry does not name the session."""
    value = [pending.position, list(pending.subscriptions), pending.expires, pending.replayed, pending.replaces]
    return Row("replayed", (name, number), value)


def pending_of_row(value: Sequence[Any]) -> Pending:
    """Return the delivery of a row; an earlier version wrote only the first values."""
    position, ids, expires, replayed, replaces = [*value[:2], *filled(value[2:], NEVER, True, None)]
    key = None if replaces is None else (replaces[0], replaces[1])
    return Pending(position, tuple(ids), expires, in_row=True, replayed=replayed, replaces=key)


def filter_rows(message: Message, name: str) -> list[Row]:
    """Return the rows that a change of a session's subscriptions or advertisements writes or deletes."""
    match message:
        case m.Subscribe(id=id, filter=filter):
            return [subscription_row(name, id, filter)]
        case m.Unsubscribe(id=id):
            return [Row("subscriptions", (name, id))]
        case m.Advertise(id=id, filter=filter):
            return [Row("advertisements", (name, id), str(filter))]
        case m.Unadvertise(id=id):
            return [Row("advertisements", (name, id))]
    return []


def subscription_row(name: str, id: str, filter: Filter) -> Row:
    """Return the row of a subscription; there is none for a dynamic filter that matches nothing at present."""
    return Row("subscriptions", (name, id), None if filter.is_empty else str(filter))


def filled(found: Sequence[Any], *defaults: Any) -> list[Any]:
    """Return the values of a row, completed with defaults, and without the values of a later version.

    >>> filled(["x"], "", 0, ())
    ['x', 0, ()]
    >>> filled(["x", 1, (), "later"], "", 0, ())
    ['x', 1, ()]
    """
    return [*found[: len(defaults)], *defaults[len(found) :]]
