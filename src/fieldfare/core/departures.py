"""`Departures`: sessions on the way to other nodes, seen from the source of the handover."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING

from fieldfare.core.handover_state import Departure
from fieldfare.core.state import Pending, Session, pending_numbers
from fieldfare.core.stored_deliveries import stored_deliveries
from fieldfare.protocol import handover as h
from fieldfare.protocol.journal import EntryDetails, JournalEntry, Row, StoredRows, is_handed_over
from fieldfare.routing.deduplication import EventId

if TYPE_CHECKING:
    from fieldfare.core.core import Core


class Departures(dict[str, Departure]):
    """The departing sessions by name.

    A departure can be cancelled until the target is ready. Then the session is frozen, the waiting deliveries are sent
    in parts, and with the last part the session ends here.
    """

    def __init__(self, core: Core) -> None:
        """Begin without departing sessions, for a broker."""
        super().__init__()
        self._core = core

    def begin(self, name: str, session: Session, ticket: str, target: str) -> None:
        """Describe a session to a target, and note from now on which events the session gets."""
        if name in self:
            self.cancel(name)
        self[name] = Departure(ticket, target, self._core.position)
        self._store(name)
        filters = self._core.sessions.filters_of(name)
        self._send(target, h.SessionDescription(name, ticket, session.identity, session.owner, *filters))

    def cancel(self, name: str) -> None:
        """Keep a session here, and tell the target."""
        departure = self[name]
        self.remove(name)
        self._send(departure.target, h.CancelHandover(name, departure.ticket))

    def remove(self, name: str) -> None:
        """Forget a departure, and delete the row."""
        del self[name]
        self._core.buffer.store(Row("departure", (name,)))

    def target_ready(self, name: str, ticket: str) -> None:
        """Let a session go: the target has subscribed to all filters."""
        departure = self.get(name)
        if departure is None or departure.ticket != ticket or departure.ready:
            return
        departure.ready = True
        self._store(name)
        self._core.buffer.closing[name] = departure.target

    def freeze(self, name: str, now: float) -> None:
        """Remove the filters of a departing session.

        Never in the same step as `target_ready`: the row of the departure must be on disk before.
        """
        departure = self[name]
        if departure.ready and not departure.frozen:
            departure.frozen = True
            self._core.sessions.drop_filters(name, now)

    def next_deliveries(self, name: str, limit: int) -> list[tuple[int, Pending]]:
        """Return the deliveries of a frozen session to send next; `send_deliveries` needs the journal entries, too."""
        departure, session = self[name], self._core.sessions[name]
        numbers = pending_numbers(session, max(departure.sent + 1, session.oldest), session.count)
        return [(number, session.pending[number]) for number in islice(numbers, limit)]

    def send_deliveries(
        self, name: str, waiting: Sequence[tuple[int, Pending]], entries: Mapping[int, JournalEntry], now: float
    ) -> bool:
        """Send deliveries to the target, as far as the log has the events; tell whether no more are left.

        With the last part the session ends here.
        """
        departure, session = self[name], self._core.sessions[name]
        items = stored_deliveries(waiting, entries)
        session.dropped += len(waiting) - len(items)
        if items:
            self._send(departure.target, h.StoredDeliveries(name, departure.ticket, items))
        if waiting:
            departure.sent = waiting[-1][0]
            self._store(name)
        if self.next_deliveries(name, 1):
            return False
        last_events = [(publisher, by, sequence) for (publisher, by), sequence in departure.last_events.items()]
        counts = session.sequence, session.count, session.acknowledged, session.dropped
        more = session.doubt, session.moves, session.lives, session.warned
        self._send(departure.target, h.SessionTransferred(name, departure.ticket, *counts, last_events, *more))
        self.remove(name)
        self._core.sessions.end(name, now)
        self._core.handovers.note_departed(name, departure.target, now)
        return True

    def send_voucher(self, voucher: h.ClientVoucher) -> None:
        """Send the target a voucher for the client of a session."""
        departure = self.get(voucher.session)
        if departure is not None and departure.ticket == voucher.ticket:
            self._send(departure.target, voucher)

    def delivered(self, name: str, event: EventId) -> None:
        """Note a delivered event, so as to keep the target from another delivery."""
        departure = self.get(name)
        if departure is not None:
            departure.last_events[event[:2]] = event[2]

    def _send(self, to: str, message: h.AnyHandoverMessage) -> None:
        self._core.envelopes.send(to, h.encode(message))

    def _store(self, name: str) -> None:
        one = self[name]
        value = [one.since + 1, one.ticket, one.target, one.ready, one.sent]
        self._core.buffer.store(Row("departure", (name,), value))

    def restore(self, stored: StoredRows) -> None:
        """Recover from stored rows; the entries of the log follow."""
        for (name,), (low, ticket, target, ready, sent) in stored.get("departure", {}).items():
            self[str(name)] = Departure(ticket, target, low - 1, ready, sent=sent)

    def restore_entry(self, entry: JournalEntry, details: EntryDetails) -> None:
        """Recover from an entry of the log: note again the event for the departing sessions."""
        for name, mark, _, _ in details.to if not is_handed_over(entry) else ():
            departure, session = self.get(name), self._core.sessions.get(name)
            mine = session is not None and session.mark == mark
            if departure is not None and mine and entry.position > departure.since:
                key = entry.publisher, details.by
                departure.last_events[key] = max(departure.last_events.get(key, -1), entry.sequence)
