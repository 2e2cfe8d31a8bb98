"""`Deliveries`: numbered events, which wait for sessions until the clients acknowledge."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from fieldfare.core import losses
from fieldfare.core.base import Base
from fieldfare.core.device_places import Device, DevicePlaces
from fieldfare.core.handover_table import HandoverInput
from fieldfare.core.sessions import SessionTable
from fieldfare.core.state import NEVER, Pending, Policy, RequestRefused, Session, oldest_pending, pending_numbers
from fieldfare.core.state_rows import pending_row
from fieldfare.core.watchers import DeliveryWatcher
from fieldfare.protocol.journal import Receiver, Row, replacement_key
from fieldfare.protocol.lineage import extend
from fieldfare.protocol.messages import Forward
from fieldfare.routing.clients import Recipients


class Deliveries:
    """The waiting deliveries of all sessions of a broker.

    The journal entry of an event names the receiving sessions, so an ordinary delivery needs no row. Any other delivery
    (a replay, a handover, a take-over) gets a row.
    """

    def __init__(
        self, base: Base, sessions: SessionTable, places: DevicePlaces, *, limit: int, queue: int, policy: Policy
    ) -> None:
        """Serve the sessions of a broker; see `Core` for the limits and the policy."""
        self._buffer = base.buffer
        self._sessions = sessions
        self._places = places
        self._policy = policy
        self.watchers: tuple[DeliveryWatcher, ...] = ()
        self.most = {True: limit, False: limit if policy == "buffer" else queue}
        """How many events may wait for a durable session, and for another one."""

    # New deliveries

    def add_event(self, event: Forward, position: int, recipients: Recipients) -> list[Receiver]:
        """Give a routed event the next number of each receiving session; return the receivers for the journal entry.

        This is the busiest loop of a node. Whatever is rare (a new life of the log, too many waiting events, an event
        that replaces others) is left to `_check_added`.
        """
        sessions, most = self._sessions, self.most
        receivers: list[Receiver] = []
        key, expires = replacement_key(event.publisher, event.replaces), event.expires or NEVER
        pending: Pending | None = None
        for name, ids in recipients.items():
            if pending is None or ids is not pending.subscriptions:  # equal ids are one object
                pending = Pending(position, ids, expires, False, False, key)
            session = sessions[name]
            waiting = session.pending
            session.count = number = session.count + 1
            waiting[number] = pending
            durable = session.durable
            if key is not None or len(waiting) > most[durable] or not session.is_numbering:
                self._check_added(name, session, number)
            if durable:
                receivers.append((name, session.handover_mark or session.identity, number, ids))
        self._buffer.wake(*recipients)
        return receivers

    def add(self, name: str, session: Session, pending: Pending) -> None:
        """Give an event the next number of a session."""
        session.count += 1
        session.pending[session.count] = pending
        self._check_added(name, session, session.count)
        self._buffer.wake(name)

    def _check_added(self, name: str, session: Session, number: int) -> None:
        """Note the life of the log in which the number is given, and drop the oldest delivery if too many wait."""
        life = self._sessions.life_of(session)
        begins = not session.lives or session.lives[-1][0] != life
        session.lives, session.is_numbering = extend(session.lives, life, number), True
        if begins and session.durable:  # not before: the row says from which position on the log is for the session
            self._sessions.store(name)
        self.replace_earlier(name, session, number)
        if len(session.pending) > self.most[session.durable]:
            self._lose(name, session, oldest_pending(session))
            if self._policy == "disconnect":
                self._buffer.overflowing.add(name)

    def replay(self, name: str, found: Iterable[Pending]) -> None:
        """Deliver events from before the subscription to a session."""
        self._sessions.states.check(name, HandoverInput.USE)
        for pending in found:
            self.deliver_stored(name, msgspec.structs.replace(pending, replayed=True))

    def deliver_stored(self, name: str, pending: Pending, number: int = 0) -> None:
        """Deliver a logged event whose entry does not name the session: under the next number, or a given number."""
        session = self._sessions.known(name)
        session.rows += 1
        if number:
            session.pending[number] = msgspec.structs.replace(pending, in_row=True)
            self.replace_earlier(name, session, number)
        else:
            self.add(name, session, msgspec.structs.replace(pending, in_row=True))
            number = session.count
        if session.durable:
            self._buffer.store(pending_row(name, number, pending))

    def replace_earlier(self, name: str, session: Session, number: int) -> None:
        """Drop the earlier events replaced by a delivery, unless sent already.

        A replayed event replaces nothing: another subscription of the session may wait for the earlier event.
        """
        pending = session.pending[number]
        if pending.replaces is None:
            return
        before = [other for other in session.replaceable.get(pending.replaces, ()) if other in session.pending]
        for other in before if not pending.replayed else ():
            if other < number and not self._is_sent(name, session, other):
                self.drop(name, session, other)
        session.replaceable[pending.replaces] = [*(one for one in before if one in session.pending), number]
        if len(session.replaceable) > 2 * len(session.pending) + 100:  # forget keys of which nothing waits
            known = session.replaceable.items()
            session.replaceable = {key: some for key, some in known if any(one in session.pending for one in some)}

    def _is_sent(self, name: str, session: Session, number: int) -> bool:
        return self._places.is_on_the_way(name, number) if self._places.of(name) else number <= session.sent

    # Sending

    @staticmethod
    def restart(session: Session) -> None:
        """Send everything without an acknowledgement again, to a new connection.

        The connection may acknowledge deliveries of an earlier connection.
        """
        session.sent_before = max(session.sent_before, session.sent)
        session.sent = session.acknowledged

    def next(self, name: str, limit: int, now: float, device: Device | None = None) -> list[tuple[int, Pending]]:
        """Return the next unexpired deliveries to send to a session, or to a device of the session; at most `limit`."""
        session = self._sessions[name]
        place = session if device is None else device
        first, last, waiting = place.sent + 1, session.released, session.pending
        first = max(first, session.oldest)
        if last - first < limit:
            place.sent = max(place.sent, last)
            get = waiting.get
            numbers = range(first, last + 1)
            return [(number, one) for number in numbers if (one := get(number)) is not None and one.expires > now]
        found: list[tuple[int, Pending]] = []
        for number in pending_numbers(session, first, last):
            if len(found) == limit:
                return found
            place.sent = number
            if waiting[number].expires > now:
                found.append((number, waiting[number]))
        place.sent = max(place.sent, session.released)
        return found

    # The end of deliveries

    def acknowledge(self, name: str, number: int) -> None:
        """Forget all deliveries of a session up to a number, on the acknowledgement of the client."""
        self._sessions.states.check(name, HandoverInput.USE)
        session = self._sessions.known(name)
        last = max(session.sent, session.sent_before)
        if number > last:
            raise RequestRefused(f"delivery {number} was not sent: the last was {last}")
        if number > session.acknowledged:
            session.sent = max(session.sent, number)  # an earlier connection has sent it
            self.forget(name, session, number)
            for watcher in self.watchers:
                watcher.acknowledged(name, number)
            session.check()

    def forget(self, name: str, session: Session, number: int) -> None:
        """Forget all deliveries of a session, or of a replica, up to a number."""
        session.acknowledged = number
        session.sent = max(session.sent, number)  # of an earlier connection: this one must not send them again
        if losses.confirm(session, number) and session.durable:
            self._buffer.store(losses.row(name, session))
        waiting = session.pending
        if session.rows:
            for other in pending_numbers(session, session.oldest, number):
                self.drop(name, session, other)
        elif number >= session.count:
            waiting.clear()
        elif number - session.oldest < len(waiting):
            for other in range(session.oldest, number + 1):
                waiting.pop(other, None)
        else:
            for other in pending_numbers(session, session.oldest, number):
                del waiting[other]
        session.oldest = max(session.oldest, number + 1)
        if session.durable:
            self._sessions.store(name)

    def withhold(self, name: str, numbers: Iterable[int]) -> None:
        """Drop deliveries without the owner's right to read; the client hears nothing of the loss."""
        session = self._sessions.known(name)
        for number in numbers:
            self.drop(name, session, number)

    def expire(self, now: float) -> None:
        """Drop the deliveries with a time to live before a time of the wall clock."""
        for name, session in self._sessions.items():
            for number in [number for number, pending in session.pending.items() if pending.expires <= now]:
                self.drop(name, session, number)

    def rewind(self, position: int) -> None:
        """Drop the deliveries of events behind a position: the log has lost the events, and others will stand there."""
        for name, session in self._sessions.items():
            for number in [number for number, pending in session.pending.items() if pending.position > position]:
                self._lose(name, session, number)

    def _lose(self, name: str, session: Session, number: int) -> None:
        """Drop a delivery, and count the loss."""
        self.drop(name, session, number)
        session.dropped += 1
        self._places.miss(name, number)

    def drop(self, name: str, session: Session, number: int) -> None:
        """Remove a delivery, and any row of the delivery."""
        pending = session.pending.pop(number, None)
        if pending is not None and pending.in_row:
            session.rows -= 1
            if session.durable:
                self._buffer.store(Row("replayed", (name, number)))
