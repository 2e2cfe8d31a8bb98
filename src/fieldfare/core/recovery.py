"""Recovery: a broker takes state from stored rows first, then from the entries of the log.

Rows hold the state of the last checkpoint or later, the log the events since; a repeated entry changes
nothing. An unreadable row, or a row of an unknown session or neighbour, is skipped with
an error in the log: a bad row must not prevent the recovery of everything else. The row stays in the store.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from fieldfare.core import losses
from fieldfare.core.link_table import INCOMPLETE
from fieldfare.core.patterns import STATE_ROWS
from fieldfare.core.state import FilterKey, Session, pending_event
from fieldfare.core.state_rows import link_of_row, pending_of_row, session_of_row
from fieldfare.filters import EVERYTHING, parse
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import NamedFilter
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.channels import identity_of
from fieldfare.protocol.journal import (
    EntryDetails,
    JournalEntry,
    Row,
    StoredRows,
    details_of,
    handed_over,
    high_water,
    is_handed_over,
)
from fieldfare.protocol.messages import FilterUpdate
from fieldfare.routing.routes import LOCAL

if TYPE_CHECKING:
    from fieldfare.core.core import Core
    from fieldfare.core.step import StepBuffer

OF_SESSIONS: Final = (
    "subscriptions",
    "advertisements",
    "dynamic",
    "parameters",
    "replayed",
    "acknowledged",
    "device",
    "copy",
    "kept",
    "former",
    "departure",
)
"""Kinds of rows that are of no use without the row of the session."""
OF_NEIGHBOURS: Final = ("told", "outbox", INCOMPLETE)
"""Kinds of rows that are of no use without the row of the neighbour."""

NEW_ROWS: Final = ("acknowledged", "device", "dynamic", "parameters", "stand-in", "former", *STATE_ROWS)
"""Kinds of rows that the version before does not know, and leaves alone; see `life_rows`."""

logger = logging.getLogger("fieldfare.node")


def life_rows(life: int) -> tuple[Row, Row]:
    """Return the rows to write, in this order, at the beginning of a life of the log, which has a number.

    The first is the mark of this version. The version before leaves the mark and `NEW_ROWS` alone: if the last life has
    no mark, such rows are older than the rest, and may be about a former session of the same name.
    """
    return Row("newest", (), life), Row("life", (), life)


def restore(core: Core, stored: StoredRows, entries: Iterable[JournalEntry]) -> None:
    """Fill a new broker with the stored state."""
    stored = _without_orphans(_without_outdated(stored, core.buffer))
    for (name,), row in stored.get("session", {}).items():
        core.sessions[str(name)] = session_of_row(row, core.now, doubtful=core.doubtful)
    _restore_links(core, stored)
    _restore_filters(core, stored)
    core.stand_ins.restore(stored, core.now)
    core.dynamic.restore(stored, core.now)
    losses.restore(core.sessions, stored)
    core.members.restore(stored)
    core.devices.places.restore(stored, core.now)
    core.envelopes.restore(stored)
    core.replicas.restore(stored)
    core.handovers.restore(stored, core.now)
    core.channels.restore(stored)
    core.patterns.restore(stored, core.now)
    for (name, number), row in sorted(stored.get("replayed", {}).items()):
        session = core.sessions[str(name)]
        session.count = max(session.count, int(number))
        if int(number) > session.acknowledged:
            session.pending[int(number)] = pending_of_row(row)
            core.deliveries.replace_earlier(str(name), session, int(number))
    for (neighbour, number), data in stored.get("outbox", {}).items():
        core.links[str(neighbour)].outbox[int(number)] = data
    core.journal.position = high_water(stored)
    for entry in entries:
        _restore_entry(core, entry)
    core.replicas.finish_restore()
    _finish(core)


def _finish(core: Core) -> None:
    for name, session in core.sessions.items():
        _trim(core, name, session)
        session.rows = sum(pending.in_row for pending in session.pending.values())
        session.oldest = next(iter(session.pending), session.count + 1)
        session.released = session.sent_before = session.count  # an earlier process may have sent all of it
    core.devices.places.finish_restore()
    nothing = wire.NOTHING  # stands for numbers that were given but not written: nobody has heard them
    for link in core.links.values():
        link.outbox = {n: link.outbox.get(n, nothing) for n in range(link.acknowledged + 1, link.last + 1)}
        link.low = min((what for what in link.outbox.values() if isinstance(what, int)), default=core.journal.position)
        link.released = link.last
    core.channels.finish_restore(doubtful=core.doubtful)
    core.patterns.finish_restore(doubtful=core.doubtful)


def _without_outdated(stored: StoredRows, buffer: StepBuffer) -> StoredRows:
    """Return the rows without those of `NEW_ROWS` if an older version has run since, and delete these."""
    last, marked = (stored.get(kind, {}).get((), 0) for kind in ("life", "newest"))
    if marked >= last:
        return stored
    outdated = [Row(kind, key) for kind in NEW_ROWS for key in stored.get(kind, {})]
    if outdated:
        logger.warning("an older version has used this folder: %d rows of the newest are void", len(outdated))
        buffer.store(*outdated)
    return {kind: rows for kind, rows in stored.items() if kind not in NEW_ROWS}


def _without_orphans(stored: StoredRows) -> StoredRows:
    """Return the rows of known sessions and neighbours; after `fieldfare admin salvage` there may be others."""
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


def _restore_links(core: Core, stored: StoredRows) -> None:
    """Restore the links; after the loss of rows, filters of neighbours may be missing among the others."""
    for (neighbour,), row in stored.get("neighbour", {}).items():
        link = core.links[str(neighbour)] = link_of_row(row)
        core.broker.receive(m.Connect(link.role), str(neighbour), core.now)
        link.incomplete = (neighbour,) in stored.get(INCOMPLETE, {})
        if core.doubtful and not link.incomplete and core.broker.routes.subjects():
            link.incomplete = True
            core.buffer.store(Row(INCOMPLETE, (neighbour,), 1))


def _restore_filters(core: Core, stored: StoredRows) -> None:
    for neighbour, about, *key in stored.get("told", {}):
        core.links[str(neighbour)].filters.setdefault(about, {})[tuple(map(str, key))] = None  # type: ignore[arg-type]
    for neighbour, link in core.links.items():
        for about in sorted(link.filters):  # advertisements first: subscriptions may depend on them
            # An unreadable filter of a neighbour may be any filter: the neighbour gets all events, and misses none.
            filters = dict.fromkeys(_of_neighbour(key, neighbour) for key in link.filters[about])
            update = core.borders.cut(neighbour, FilterUpdate(tuple(filters), about=about))
            core.broker.receive(update, neighbour, core.now)
    for about, make in (("advertisements", m.Advertise), ("subscriptions", m.Subscribe)):
        for (name, id), text in stored.get(about, {}).items():
            filter = _parsed(text, f"of the session {name} ({id}), which is without it")
            if filter is not None:
                core.broker.receive(make(str(id), filter), str(name), core.now)


def _of_neighbour(key: FilterKey, neighbour: str) -> Filter:
    text, *name = key
    read = _parsed(text, f"of the node {neighbour}, which gets everything")
    filter = EVERYTHING if read is None else read
    return NamedFilter(name[0], filter) if name else filter


def _parsed(text: str, whose: str) -> Filter | None:
    try:
        return parse(text)
    except (ValueError, RecursionError) as error:
        logger.error("a stored filter cannot be read: one %s. %s", whose, str(error)[:300])
        return None


def _restore_entry(core: Core, entry: JournalEntry) -> None:
    """Apply an entry, unless the rows contain the effect already."""
    details = details_of(entry)
    core.journal.position = max(core.journal.position, entry.position)
    core.handovers.restore_entry(entry, details)
    core.replicas.restore_entry(entry, details)
    core.channels.restore_entry(entry, details)
    core.patterns.restore_entry(entry, details)
    if entry.time >= core.now + core.journal.ahead - 2 * core.broker.remember and not is_handed_over(entry):
        core.broker.note_seen(entry.publisher, details.by, entry.sequence, core.now)
    _restore_origin(core, entry, details)
    void = core.patterns.is_void(entry, details)
    if not is_handed_over(entry):
        _restore_deliveries(core, entry, details, void=void)
    for neighbour, number in details.out:
        link = core.links.get(neighbour)
        if link is not None and entry.position > link.born:
            link.last = max(link.last, number)
            if number > link.acknowledged and not void:
                link.outbox[number] = entry.position


def _restore_origin(core: Core, entry: JournalEntry, details: EntryDetails) -> None:
    """Restore the count of the publisher, or of the sending neighbour."""
    publisher = core.sessions.get(entry.publisher)
    sequence = handed_over(entry.sequence) if details.channel_home else entry.sequence
    # A neighbour may name any publisher, so only an event that was published here counts.
    if publisher is not None and publisher.identity == identity_of(details.by) and details.via == LOCAL:
        publisher.sequence = max(publisher.sequence, sequence)
        core.replicas.published(entry.publisher)  # a kill may have come between the entry and the report
    link = core.links.get(details.via)
    if link is not None and entry.position > max(link.born, link.renumbered_at):
        if details.after <= link.last_change:
            link.written = link.received = max(link.written, details.number)
        elif details.number > link.written:  # an earlier message was not written: the neighbour sends both again
            link.already[details.number] = entry.position


def _restore_deliveries(core: Core, entry: JournalEntry, details: EntryDetails, *, void: bool) -> None:
    for name, mark, number, ids in details.to:
        session = core.sessions.get(name)
        if session is not None and session.mark == mark:
            session.count = max(session.count, number)
            done = number <= session.acknowledged or core.members.is_done(name, number)
            if not done and not void and entry.position >= session.low:
                session.pending[number] = pending_event(entry.position, ids, entry.publisher, details)
                core.deliveries.replace_earlier(name, session, number)
                if len(session.pending) > 2 * core.limit:
                    _trim(core, name, session)


def _trim(core: Core, name: str, session: Session) -> None:
    """Drop the oldest deliveries beyond the limit again, as before the restart, and count the drops."""
    numbers = sorted(session.pending)
    for number in numbers[: -core.limit]:
        core.devices.places.miss(name, number)
    last = {number: session.pending[number] for number in numbers[-core.limit :]}
    session.dropped += len(session.pending) - len(last)
    session.pending = last
