"""Coming back: a broker takes up what was stored, rows first, then the entries of the log.

Rows say how things stood at the last checkpoint or later, and the log what happened since; an entry that is seen twice
changes nothing. A row that cannot be read, or that belongs to a session or neighbour of which nothing else is left, is
set aside with a word in the log: it must not keep everything else from coming back. The row itself stays where it is.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from fieldfare.filters import EVERYTHING, parse
from fieldfare.filters.filter import Filter
from fieldfare.node import losses
from fieldfare.node.state import NEVER, Link, Pending, Session, pending_of_row
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.journal import JournalEntry, RowKey, StoredRows, details_of, is_handed_over, replacement_key
from fieldfare.protocol.lineage import as_lineage
from fieldfare.protocol.messages import FilterUpdate, Role
from fieldfare.routing.routes import LOCAL

if TYPE_CHECKING:
    from fieldfare.node.durable_broker import DurableBroker

OF_SESSIONS: Final = ("subscriptions", "advertisements", "replayed", "copy", "kept", "departure")
"""kinds of rows that are of no use without a row of the session"""
OF_NEIGHBOURS: Final = ("told", "outbox")
"""kinds of rows that are of no use without a row of the neighbour"""

logger = logging.getLogger("fieldfare.node")


def restore(broker: DurableBroker, stored: StoredRows, entries: Iterable[JournalEntry]) -> None:
    """Let a new broker take up what was stored."""
    stored = _without_orphans(stored)
    _restore_sessions(broker, stored.get("session", {}))
    _restore_links(broker, stored.get("neighbour", {}))
    _restore_filters(broker, stored)
    losses.restore(broker, stored)
    broker.letters.restore(stored)
    broker.keeping.restore(stored)
    broker.moving.restore(stored)
    for (name, number), row in sorted(stored.get("replayed", {}).items()):
        session = broker.sessions[str(name)]
        session.count = max(session.count, int(number))
        if int(number) > session.done:
            session.pending[int(number)] = pending_of_row(row)
            broker.replace(str(name), session, int(number))
    for (neighbour, number), data in stored.get("outbox", {}).items():
        broker.links[str(neighbour)].outbox[int(number)] = data
    broker.position = int(stored.get("checkpoint", {}).get((), 0))
    for entry in entries:
        _restore_entry(broker, entry)
    broker.keeping.settle()
    for session in broker.sessions.values():
        _trim(session, broker.limit)
        session.replays = sum(pending.replayed for pending in session.pending.values())
        session.oldest = next(iter(session.pending), session.count + 1)
        session.released = session.sent = session.count  # an earlier life may have sent all of it
    nothing = wire.encode(FilterUpdate())  # what was numbered but not written, nobody has heard
    for link in broker.links.values():
        link.outbox = {n: link.outbox.get(n, nothing) for n in range(link.safe + 1, link.said + 1)}
        link.low = min((what for what in link.outbox.values() if isinstance(what, int)), default=broker.position)
        link.released = link.said


def _without_orphans(stored: StoredRows) -> StoredRows:
    """Rows without those of sessions and neighbours that are gone, as after `fieldfare admin salvage`."""
    left = {kind: dict(rows) for kind, rows in stored.items()}
    for owners, kinds in (("session", OF_SESSIONS), ("neighbour", OF_NEIGHBOURS)):
        known = {key[0] for key in stored.get(owners, {})}
        for kind in kinds:
            for key in [key for key in left.get(kind, {}) if key[0] not in known]:
                logger.error("a row (%s) is set aside: of the %s %s nothing else is stored", kind, owners, key[0])
                del left[kind][key]
    for key in [key for key, row in left.get("arrival", {}).items() if row[4] is not None]:
        if key not in left.get("session", {}):
            logger.error("the session %s was on its way here, and is lost", key[0])
            del left["arrival"][key]
    return left


def _restore_sessions(broker: DurableBroker, rows: Mapping[RowKey, Any]) -> None:
    for (name,), (identity, sequence, count, done, _, low, dropped, owner, *more) in rows.items():
        moved, doubt, moves, lives, restored = _filled(more, "", 0, 0, (), False)
        broker.sessions[str(name)] = Session(
            identity, True, False, broker.now, sequence, count, 0, done, done, dropped, owner,
            moved=moved, doubt=doubt, moves=moves, lives=as_lineage(lives), restored=restored or broker.doubtful,
            low=low,
        )  # fmt: skip


def _filled(found: Sequence[Any], *defaults: Any) -> list[Any]:
    """What a row has; an earlier version may have written less."""
    return [*found, *defaults[len(found) :]]


def _restore_links(broker: DurableBroker, rows: Mapping[RowKey, Any]) -> None:
    for (neighbour,), (role, _, mine, theirs, counts, born, *more) in rows.items():
        said, heard, changed, safe = counts
        lives, known, since, id = _filled(more, (), (), 0, "")
        broker.links[str(neighbour)] = Link(
            Role(role), said, 0, safe, heard, heard, changed, mine, theirs, born=born,
            lives=as_lineage(lives), known=as_lineage(known), since=since, id=id,
        )  # fmt: skip
        broker.broker.receive(m.Connect(Role(role)), str(neighbour), broker.now)


def _restore_filters(broker: DurableBroker, stored: StoredRows) -> None:
    for neighbour, about, text in stored.get("told", {}):
        broker.links[str(neighbour)].told.setdefault(about, {})[str(text)] = None  # type: ignore[arg-type]
    for neighbour, link in broker.links.items():
        for about in sorted(link.told):  # promises first: subscriptions may depend on them
            # What a neighbour asks for that cannot be read may be anything: so it gets everything, and misses nothing.
            asked = {_readable(text, f"of the node {neighbour}, which gets everything") for text in link.told[about]}
            filters = dict.fromkeys(EVERYTHING if filter is None else filter for filter in asked)
            broker.broker.receive(FilterUpdate(tuple(filters), about=about), neighbour, broker.now)
    for about, make in (("advertisements", m.Advertise), ("subscriptions", m.Subscribe)):
        for (name, id), text in stored.get(about, {}).items():
            filter = _readable(text, f"of the session {name} ({id}), which is without it")
            if filter is not None:
                broker.broker.receive(make(str(id), filter), str(name), broker.now)


def _readable(text: str, whose: str) -> Filter | None:
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:
        logger.error("a stored filter cannot be read: one %s. %s", whose, str(error)[:300])
        return None


def _restore_entry(broker: DurableBroker, entry: JournalEntry) -> None:
    """Let an entry have had its effect, if that is not in the rows already."""
    rest = details_of(entry)
    broker.position = max(broker.position, entry.position)
    broker.moving.restore_entry(entry, rest)
    broker.keeping.restore_entry(entry, rest)
    if entry.time >= broker.now + broker.ahead - 2 * broker.broker.remember and not is_handed_over(entry):
        broker.broker.note_seen(entry.publisher, rest.by, entry.sequence, broker.now)
    publisher = broker.sessions.get(entry.publisher)
    if publisher is not None and publisher.identity == rest.by and rest.via == LOCAL:  # a neighbour may say anything
        publisher.sequence = max(publisher.sequence, entry.sequence)
    link = broker.links.get(rest.via)
    if link is not None and entry.position > max(link.born, link.since):
        if rest.after <= link.changed:
            link.heard = link.taken = max(link.heard, rest.number)
        elif rest.number > link.heard:  # something before it was not written: both come again
            link.already[rest.number] = entry.position
    for name, mark, number, ids in rest.to if not is_handed_over(entry) else ():
        session = broker.sessions.get(name)
        if session is not None and session.mark == mark:
            session.count = max(session.count, number)
            if number > session.done and entry.position >= session.low:
                key = replacement_key(entry.publisher, rest.replaces)
                session.pending[number] = Pending(entry.position, tuple(ids), rest.expires or NEVER, replaces=key)
                broker.replace(name, session, number)
                if len(session.pending) > 2 * broker.limit:
                    _trim(session, broker.limit)
    for neighbour, number in rest.out:
        link = broker.links.get(neighbour)
        if link is not None and entry.position > link.born:
            link.said = max(link.said, number)
            if number > link.safe:
                link.outbox[number] = entry.position


def _trim(session: Session, limit: int) -> None:
    """Drop again what was dropped since the row of a session was written, and count it."""
    last = {number: session.pending[number] for number in sorted(session.pending)[-limit:]}
    session.dropped += len(session.pending) - len(last)
    session.pending = last
