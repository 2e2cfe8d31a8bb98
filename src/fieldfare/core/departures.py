"""`Departures`: sessions on the way to other nodes, seen from the source of the handover."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from fieldfare.core.base import Base
from fieldfare.core.departed import Departed
from fieldfare.core.handover_state import Departure
from fieldfare.core.handover_table import IGNORED, HandoverInput
from fieldfare.core.session_parts import SessionParts
from fieldfare.core.stand_ins import StandIns
from fieldfare.core.state import Pending, Session, pending_numbers
from fieldfare.core.stored_deliveries import stored_deliveries
from fieldfare.protocol import handover as h
from fieldfare.protocol.journal import EntryDetails, JournalEntry, Row, StoredRows, is_handed_over
from fieldfare.routing.deduplication import EventId


class Departures(Mapping[str, Departure]):
    """The departing sessions by name.

    A departure can be cancelled until the target is ready. Then the session is frozen, the waiting deliveries are sent
    in parts, and with the last part the session ends here.
    """

    def __init__(self, base: Base, parts: SessionParts, stand_ins: StandIns, departed: Departed) -> None:
        """Serve the departing sessions of a node."""
        self._envelopes = base.envelopes
        self._buffer = base.buffer
        self._journal = base.journal
        self._sessions = parts.sessions
        self._states = parts.sessions.states
        self._descriptions = parts.descriptions
        self._device_places = parts.device_places
        self._stand_ins = stand_ins
        self._departed = departed

    def __getitem__(self, name: str) -> Departure:
        """Return the departure of a session."""
        return self._states.departures[name]

    def __iter__(self) -> Iterator[str]:
        """Yield the names of the departing sessions."""
        return iter(self._states.departures)

    def __len__(self) -> int:
        """Return the number of departing sessions."""
        return len(self._states.departures)

    def begin(self, name: str, session: Session, ticket: str, target: str) -> None:
        """Describe a session to a target, and note from now on which events the session gets.

        A repeated request of an impatient target changes nothing: the target could not tell the second description from
        the first, and would take the cancellation between them for the end of both.
        """
        if name in self and (self[name].ticket, self[name].target) == (ticket, target):
            return
        self.cancel(name)
        self._states.departures[name] = Departure(ticket, target, self._journal.position)
        self._store(name)
        self._send(target, self._descriptions.of(name, ticket))

    def cancel(self, name: str) -> None:
        """Keep a session here, and tell the target; nothing happens if the session does not depart."""
        departure = self.get(name)
        if departure is None:
            return
        self.remove(name)
        self._send(departure.target, h.CancelHandover(name, departure.ticket))

    def remove(self, name: str) -> None:
        """Forget a departure, and delete the row."""
        del self._states.departures[name]
        self._buffer.store(Row("departure", (name,)))

    def target_ready(self, name: str) -> None:
        """Let a session go: the target has subscribed to all filters."""
        departure = self[name]
        departure.ready = True
        self._store(name)
        self._buffer.closing[name] = departure.target

    def freeze(self, name: str, now: float) -> None:
        """Remove the filters of a departing session.

        Never in the same step as `target_ready`: the row of the departure must be on disk before.
        """
        with self._states.transition(name, HandoverInput.FREEZE) as next_states:
            if next_states is not IGNORED:
                self[name].frozen = True
                self._stand_ins.departing(name, now)
                self._sessions.drop_filters(name, now)

    def next_deliveries(self, name: str, limit: int) -> list[tuple[int, Pending]]:
        """Return the deliveries of a frozen session to send next; `send_deliveries` needs the journal entries, too."""
        departure, session = self[name], self._sessions[name]
        numbers = pending_numbers(session, max(departure.sent + 1, session.oldest), session.count)
        return [(number, session.pending[number]) for number in islice(numbers, limit)]

    def send_deliveries(
        self, name: str, waiting: Sequence[tuple[int, Pending]], entries: Mapping[int, JournalEntry], now: float
    ) -> bool:
        """Send deliveries to the target, as far as the log has the events; tell whether no more are left.

        With the last part the session ends here.
        """
        with self._states.transition(name, HandoverInput.SEND_PART):
            return self._send_part(name, waiting, entries, now)

    def _send_part(
        self, name: str, waiting: Sequence[tuple[int, Pending]], entries: Mapping[int, JournalEntry], now: float
    ) -> bool:
        departure, session = self[name], self._sessions[name]
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
        places = {device: one.place for device, one in self._device_places.of(name).items()}
        self._send(
            departure.target, h.SessionTransferred(name, departure.ticket, *counts, last_events, *more, devices=places)
        )
        self.remove(name)
        self._sessions.end(name, now)
        self._departed.note(name, departure.target, now)
        return True

    def send_voucher(self, voucher: h.ClientVoucher) -> None:
        """Send the target a voucher for the client of a session."""
        with self._states.transition(voucher.session, HandoverInput.VOUCH) as next_states:
            if next_states is not IGNORED and self[voucher.session].ticket == voucher.ticket:
                self._send(self[voucher.session].target, voucher)

    def delivered(self, name: str, event: EventId) -> None:
        """Note a delivered event, so as to keep the target from another delivery."""
        departure = self._states.departures.get(name)
        if departure is not None:
            departure.last_events[event[:2]] = event[2]

    def _send(self, to: str, message: h.AnyHandoverMessage) -> None:
        self._envelopes.send(to, message)

    def _store(self, name: str) -> None:
        one = self[name]
        value = [one.since + 1, one.ticket, one.target, one.ready, one.sent]
        self._buffer.store(Row("departure", (name,), value))

    def rewind(self, position: int) -> None:
        """Note the events behind a position as new: the end of the log is lost."""
        for name, departure in self.items():
            departure.since = min(departure.since, position)
            self._store(name)

    def restore(self, stored: StoredRows) -> None:
        """Recover from stored rows; the entries of the log follow."""
        for (name,), (low, ticket, target, ready, sent) in stored.get("departure", {}).items():
            self._states.departures[str(name)] = Departure(ticket, target, low - 1, ready, sent=sent)

    def restore_entry(self, entry: JournalEntry, details: EntryDetails) -> None:
        """Recover from an entry of the log: note again the event for the departing sessions."""
        for name, mark, _, _ in details.to if not is_handed_over(entry) else ():
            departure, session = self.get(name), self._sessions.get(name)
            mine = session is not None and session.mark == mark
            if departure is not None and mine and entry.position > departure.since:
                key = entry.publisher, details.by
                departure.last_events[key] = max(departure.last_events.get(key, -1), entry.sequence)
