"""`Presence`: clients come to the sessions of a node, change their filters, and go."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fieldfare.core.departures import Departures
from fieldfare.core.handover_table import HandoverInput
from fieldfare.core.replicas import Replicas
from fieldfare.core.session_parts import SessionParts
from fieldfare.core.stand_ins import StandIns
from fieldfare.core.state import RequestRefused, Session
from fieldfare.protocol import messages as m
from fieldfare.protocol.lineage import extend
from fieldfare.protocol.messages import Message


class Presence:
    """The requests of clients about whole sessions; each is an input in the table of handovers."""

    def __init__(self, parts: SessionParts, replicas: Replicas, departures: Departures, stand_ins: StandIns) -> None:
        """Serve the clients of a node."""
        self._sessions = parts.sessions
        self._members = parts.members
        self._devices = parts.devices
        self._replicas = replicas
        self._departures = departures
        self._stand_ins = stand_ins

    def attach(
        self, name: str, identity: str, now: float, *, durable: bool = True, owner: str = "", known: str = ""
    ) -> Session:
        """Connect a client to a session; a new session gets the given identity.

        A returning client says which identity is `known`.
        """
        with self._sessions.states.transition(name, HandoverInput.ATTACH):
            self._departures.cancel(name)
            return self._attach(name, identity, now, durable=durable, owner=owner, known=known)

    def _attach(self, name: str, identity: str, now: float, *, durable: bool, owner: str, known: str) -> Session:
        sessions, session = self._sessions, self._sessions.get(name)
        if session is None:
            session = sessions[name] = Session(identity, durable, owner=owner)
        elif session.restored and known != session.identity and not self._is_shared(name):
            self._rename(name, session, identity)
        session.connected, session.last_seen = True, now
        if not self._devices.of(name):
            self._members.restart(name)
        session.durable |= durable
        session.lives = extend(session.lives, sessions.life_of(session), session.count + 1)
        if session.durable:
            sessions.store(name)
        return session

    def _is_shared(self, name: str) -> bool:
        """Tell whether a session has workers or devices, which do not publish under its name."""
        return self._members.of(name) is not None or bool(self._devices.of(name))

    def _rename(self, name: str, session: Session, identity: str) -> None:
        """Give a restored session another identity, for a program without memory of the last sequence number.

        The disk may not know the number either: after a power failure the program would reuse the numbers of earlier
        events, and neighbours would drop the new events as duplicates.
        """
        session.handover_mark, session.identity, session.restored = session.mark, identity, False
        session.sequence = 0  # a client that hears another identity begins with 1
        self._replicas.renew(name)

    def check_unshared(self, name: str) -> None:
        """Refuse a client without the wish to share a session with the present members or devices."""
        if self._devices.of(name):
            raise RequestRefused(f"{self._devices.description(name)}: attach as a device, too")
        if self._members.of(name) is not None:
            raise RequestRefused(f"{self._members.description(name)}: attach as a member, too")

    def check_worker(self, name: str, key: str) -> None:
        """Refuse a worker with another key than the present ones, or of a session with devices."""
        self._members.check(name, key)
        if self._devices.of(name):
            raise RequestRefused(f"{self._devices.description(name)}, and a worker cannot join them")

    def check_device(self, name: str, device: str) -> None:
        """Refuse a device with a bad name, or of a session with workers."""
        self._devices.check(name, device)
        if self._members.of(name) is not None:
            raise RequestRefused(f"{self._members.description(name)}, and a device cannot join workers")

    def detach(self, name: str, now: float) -> None:
        """Note the departure of a client; a session without a name ends."""
        with self._sessions.states.transition(name, HandoverInput.DETACH):
            session = self._sessions.get(name)
            if session is not None:
                session.connected, session.last_seen = False, now
                if not session.durable:
                    self._sessions.end(name, now)
                    self._note_left(name)

    def detach_member(self, name: str, member: str, now: float) -> None:
        """Note the departure of a worker or device; after the last one, the session is away."""
        was_last_device = self._devices.detach(name, member, now)
        if self._members.detach(name, member) or was_last_device:
            self.detach(name, now)

    def leave(self, name: str, now: float) -> None:
        """End a session on the request of the client."""
        with self._sessions.states.transition(name, HandoverInput.LEAVE):
            self._departures.cancel(name)
            self._end_for_good(name, now)

    def _end_for_good(self, name: str, now: float) -> None:
        session = self._sessions.known(name)
        self._sessions.end(name, now)
        self._note_left(name)
        self._stand_ins.ended(name, session.identity, session.moves)

    def _note_left(self, name: str) -> None:
        for watcher in self._sessions.watchers:
            watcher.session_left(name)

    def expire(self, now: float, life: float) -> list[str]:
        """End the sessions without a client for more than `life` seconds; return the names."""
        states = self._sessions.states
        moving = {*states.arrivals, *states.departures}
        away = {name for name, one in self._sessions.items() if not one.connected and now - one.last_seen > life}
        gone = sorted(away - moving - states.held.keys())
        for name in gone:
            with states.transition(name, HandoverInput.EXPIRE):
                self._end_for_good(name, now)
        return gone

    # Filters

    @contextmanager
    def changing_filters(self, name: str) -> Iterator[None]:
        """Let a client change filters: a target of a handover has subscribed to those of before, so it begins again."""
        with self._sessions.states.transition(name, HandoverInput.CHANGE_FILTERS):
            self._departures.cancel(name)
            yield

    def change_filters(self, message: Message, name: str, now: float) -> None:
        """Subscribe, unsubscribe, advertise or unadvertise on the request of a client."""
        with self.changing_filters(name):
            self._sessions.apply_change(message, name, now)
            if isinstance(message, m.Advertise | m.Unadvertise):
                self._stand_ins.changed(name)

    def remove_device(self, name: str, device: str, now: float) -> bool:
        """Remove a device; the last one ends its session. Tell whether the session is over."""
        self._devices.remove(name, device)
        self._departures.cancel(name)
        is_over = not self._devices.of(name)
        if is_over:
            self.leave(name, now)
        return is_over
