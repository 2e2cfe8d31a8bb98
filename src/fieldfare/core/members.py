"""`Members`: sessions shared by several workers. Each event goes to a single attached member at a time.

A session is shared as long as members are attached; without members the session is like any other. Deliveries are
acknowledged separately, in any order. `Session.pending` always has the deliveries without an acknowledgement, so every
other part of the core works as before. Only two things are new: `Sharing` says which member holds a delivery, and the
row `acknowledged` names the acknowledged deliveries beyond `Session.acknowledged`, the last number without a gap
before, lest the log delivers the events again after a restart.

All members of a session are at one node: as long as members are attached, no other node gets the session.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Final, NamedTuple

from fieldfare.core.base import Base
from fieldfare.core.deliveries import Deliveries
from fieldfare.core.handover_table import HandoverInput
from fieldfare.core.number_ranges import NumberRanges
from fieldfare.core.sessions import SessionTable
from fieldfare.core.sharing import Sharing
from fieldfare.core.state import INTERNAL, Pending, RequestRefused, Session, oldest_pending
from fieldfare.core.watchers import DeliveryWatcher, SessionWatcher
from fieldfare.protocol.journal import Row, StoredRows

ACKNOWLEDGED: Final = "acknowledged"
"""Kind of the rows with the numbers that were acknowledged out of order."""
MOST_CREDIT: Final = 1_000_000


class MemberDelivery(NamedTuple):
    """A pending delivery, about to be sent."""

    number: int
    pending: Pending
    redelivered: bool
    """Whether a client may have had the delivery before."""


class Members(SessionWatcher, DeliveryWatcher):
    """The members of all shared sessions of a node."""

    def __init__(self, base: Base, sessions: SessionTable, deliveries: Deliveries) -> None:
        """Serve the sessions of a broker."""
        self._name = base.name
        self._buffer = base.buffer
        self._sessions = sessions
        self._deliveries = deliveries
        self._shared: dict[str, Sharing] = {}
        self._done: dict[str, NumberRanges] = {}
        """By session: the acknowledged numbers beyond a gap."""
        self._changed: set[str] = set()

    # Members that come and go

    def of(self, name: str) -> Sharing | None:
        """Return the members of a session; None for a session without members."""
        return self._shared.get(name)

    def check_alone(self, name: str) -> None:
        """Refuse the end of a session with several members."""
        if name in self._shared and len(self._shared[name].members) > 1:
            raise RequestRefused(f"{self.description(name)}: the last of them can end it")

    def description(self, name: str) -> str:
        """Return a sentence about the members of a session, for people."""
        count = len(self._shared[name].members)
        return f"the session {name} is shared by {count} member{'s' * (count > 1)} at {self._name}"

    def check(self, name: str, key: str) -> None:
        """Refuse a member with another key than the present members."""
        if name.startswith(INTERNAL):
            raise RequestRefused(f"the session {name} cannot be shared")
        sharing = self._shared.get(name)
        if sharing is not None and sharing.key != key:
            raise RequestRefused(f"{self.description(name)} with the key {sharing.key!r}, not {key!r}")

    def attach(self, name: str, member: str, label: str, key: str) -> None:
        """Add a member to a session of this node; the first member chooses the key."""
        sharing = self._shared.setdefault(name, Sharing(key))
        sharing.attach(member, label)

    def restart(self, name: str) -> None:
        """Send everything without an acknowledgement again, unless members hold or await a part."""
        sharing = self._shared.get(name)
        if sharing is None or not sharing.begun:
            self._deliveries.restart(self._sessions[name])

    def detach(self, name: str, member: str) -> bool:
        """Let the deliveries of a member wait for the others; tell whether the member was the last.

        Without members the session is not shared.
        """
        sharing = self._shared.get(name)
        if sharing is None or member not in sharing.members:
            return False
        sharing.detach(member)
        self._buffer.wake(name)
        if sharing.members:
            return False
        del self._shared[name]
        self._deliveries.restart(self._sessions[name])
        return True

    def session_ended(self, name: str) -> None:
        """Forget and disconnect the members of an ended session."""
        if self._shared.pop(name, None) is not None:
            self._buffer.closing.setdefault(name, "")
        if self._done.pop(name, None) is not None:
            self._buffer.store(Row(ACKNOWLEDGED, (name,)))

    # Deliveries

    def grant(self, name: str, member: str, more: int) -> None:
        """Let a member take more deliveries."""
        sharing = self._shared.get(name)
        if sharing is not None and member in sharing.members:
            sharing.grant(member, max(0, more), MOST_CREDIT)

    def without_key(self, name: str, now: float) -> list[tuple[int, Pending]]:
        """Let the next deliveries wait for members, and return the deliveries without a known key."""
        sharing, session = self._shared.get(name), self._sessions.get(name)
        if sharing is None or session is None:
            return []
        room = sharing.room()
        if room:
            sharing.add(number for number, _ in self._deliveries.next(name, room, now))
        return [(number, session.pending[number]) for number in sharing.without_key() if number in session.pending]

    def give(self, name: str, now: float, keys: Mapping[int, Hashable] | None = None) -> set[str]:
        """Give waiting deliveries to members with credit; return the members with something to take."""
        sharing, session = self._shared.get(name), self._sessions.get(name)
        if sharing is None or session is None:
            return set()
        sharing.note_keys(keys or {})
        pending = session.pending
        return sharing.give(lambda number: number in pending and pending[number].expires > now)

    def take(self, name: str, member: str, limit: int) -> list[MemberDelivery]:
        """Return the next deliveries to send to a member."""
        sharing, session = self._shared.get(name), self._sessions.get(name)
        if sharing is None or session is None or member not in sharing.members:
            return []
        before = max(session.sent_before, session.doubt)
        taken = sharing.take(member, limit, session.pending)
        return [
            MemberDelivery(one.number, session.pending[one.number], one.again or one.number <= before) for one in taken
        ]

    def acknowledge(self, name: str, member: str, numbers: Collection[int]) -> None:
        """Forget deliveries of a member. A delivery at another member by now stays there."""
        sharing = self._shared.get(name)
        self._sessions.states.check(name, HandoverInput.USE)
        session = self._sessions.known(name)
        if max(numbers, default=0) > session.sent:
            raise RequestRefused(f"delivery {max(numbers)} was not sent: the last was {session.sent}")
        for number in numbers:
            if sharing is not None and sharing.release(member, number):
                self._buffer.freed.append((name, number))
                self._finish(name, session, number)
        self._advance(name, session)
        self._wake(name)

    def free(self, acknowledged: Iterable[tuple[str, int]]) -> None:
        """Let other members have deliveries of the keys of acknowledged ones: the acknowledgements are written."""
        for name, number in acknowledged:
            if name in self._shared:
                self._shared[name].free(number)

    def _wake(self, name: str) -> None:
        """Let members look for deliveries after a key may have become free."""
        sharing = self._shared.get(name)
        if sharing is not None and sharing.waiting:
            self._buffer.wake(name)

    def lose(self, name: str, member: str, numbers: Iterable[int]) -> None:
        """Forget unsent deliveries: the log no longer has the events, or the owner no right."""
        session, sharing = self._sessions.get(name), self._shared.get(name)
        if session is None or sharing is None:
            return
        for number in numbers:
            if sharing.give_back(member, number):
                self._finish(name, session, number)
        self._advance(name, session)
        self._wake(name)

    def _finish(self, name: str, session: Session, number: int) -> None:
        self._deliveries.drop(name, session, number)
        if number > session.acknowledged:
            self._done.setdefault(name, NumberRanges()).add(number)
            self._changed.add(name)

    def _advance(self, name: str, session: Session) -> None:
        """Acknowledge up to the first delivery that is pending or was not sent."""
        first = oldest_pending(session) if session.pending else session.count + 1
        number = min(session.sent, first - 1)
        if number > session.acknowledged:
            self._deliveries.acknowledge(name, number)

    def expire(self) -> None:
        """Acknowledge up to the first pending delivery, after others before have passed their time to live."""
        for name in list(self._done):
            if self._sessions.states.status(name) == "here":
                self._advance(name, self._sessions[name])

    # Rows and recovery

    def acknowledged(self, name: str, number: int) -> None:
        """Forget the acknowledged numbers up to the given one, which need no row any more."""
        done = self._done.get(name)
        if done is not None:
            done.cut(number)
            self._changed.add(name)

    def store_changed(self) -> None:
        """At the end of a step: write the rows of changed sessions, once for all acknowledgements of the step."""
        changed, self._changed = self._changed, set()
        for name in sorted(changed & self._done.keys()):
            done = self._done[name]
            self._buffer.store(Row(ACKNOWLEDGED, (name,), [list(one) for one in done] or None))
            if not done:
                del self._done[name]

    def restore(self, stored: StoredRows) -> None:
        """Recover from stored rows; the log may have lost its end, and the numbers must not be given again."""
        for (name,), ranges in stored.get(ACKNOWLEDGED, {}).items():
            done = self._done[str(name)] = NumberRanges((first, last) for first, last in ranges)
            session = self._sessions[str(name)]
            session.count = max(session.count, done.last)

    def is_done(self, name: str, number: int) -> bool:
        """Tell whether a delivery beyond the last acknowledged number was acknowledged."""
        return name in self._done and number in self._done[name]
