"""`SessionTable`: the sessions of a broker, from the first `attach` to the end, with all subscriptions."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

from fieldfare.core import losses
from fieldfare.core.dynamic_filters import encode_values
from fieldfare.core.handover_table import HandoverInput
from fieldfare.core.state import RequestRefused, Session
from fieldfare.core.state_rows import filter_rows, session_row, subscription_row
from fieldfare.protocol import messages as m
from fieldfare.protocol.handover import DevicePlace, SessionDescription
from fieldfare.protocol.journal import Row
from fieldfare.protocol.lineage import Lineage, extend, still_valid
from fieldfare.protocol.messages import Message, Send
from fieldfare.routing.clients import Told

if TYPE_CHECKING:
    from fieldfare.core.core import Core

logger = logging.getLogger("fieldfare.node")


class SessionTable(dict[str, Session]):
    """All sessions of a broker by name, including replicas and arriving or departing sessions."""

    def __init__(self, core: Core) -> None:
        """Begin without any session, for a broker."""
        super().__init__()
        self._core = core

    def known(self, name: str) -> Session:
        """Return a session, or refuse the request."""
        if name not in self:
            raise RequestRefused(f"there is no session {name}")
        return self[name]

    def check_identity(self, name: str, identity: str) -> None:
        """Refuse a request for an ended session, although a later session has the same name."""
        self._core.handovers.states.check(name, HandoverInput.USE)
        if identity and self.known(name).identity != identity:
            raise RequestRefused(f"the session {name} is over, and there is another one")

    def store(self, name: str) -> None:
        """Write the row of a session."""
        self._core.buffer.store(session_row(name, self[name], self._core.position))

    def life_of(self, session: Session) -> str:
        """Return the life in which deliveries are numbered now; each stay at a node is a separate life."""
        return f"{self._core.life}.{session.moves}" if session.moves else self._core.life

    # Clients that come and go

    def attach(
        self, name: str, identity: str, now: float, *, durable: bool = True, owner: str = "", known: str = ""
    ) -> Session:
        """Connect a client to a session; a new session gets the given identity.

        A returning client says which identity is `known`.
        """
        with self._core.handovers.states.transition(name, HandoverInput.ATTACH):
            self._core.handovers.cancel_departure(name)
            return self._attach(name, identity, now, durable=durable, owner=owner, known=known)

    def _attach(self, name: str, identity: str, now: float, *, durable: bool, owner: str, known: str) -> Session:
        session = self.get(name)
        if session is None:
            session = self[name] = Session(identity, durable, owner=owner)
        elif session.restored and known != session.identity and not self._has_members(name):
            self._rename(name, session, identity)
        session.connected, session.last_seen = True, now
        self._core.members.restart(name)
        session.durable |= durable
        session.lives = extend(session.lives, self.life_of(session), session.count + 1)
        if session.durable:
            self.store(name)
        return session

    def _has_members(self, name: str) -> bool:
        """Tell whether a session has workers or devices, which do not publish under its name."""
        return self._core.members.of(name) is not None or bool(self._core.devices.of(name))

    def _rename(self, name: str, session: Session, identity: str) -> None:
        """Give a restored session another identity, for a program without memory of the last sequence number.

        The disk may not know the number either: after a power failure the program would reuse the numbers of earlier
        events, and neighbours would drop the new events as duplicates.
        """
        session.handover_mark, session.identity, session.restored = session.mark, identity, False
        session.sequence = 0  # a client that hears another identity begins with 1
        self._core.replicas.renew(name)

    def first_void(self, name: str, seen: int, known: Lineage) -> int:
        """Return the first number up to `seen` with another meaning by now; 0 if there is none.

        A number beyond the last delivery counts as void too: a client may have more than the disk of the node
        remembers, even without a restart in between.
        """
        session, here = self.known(name), self._core.broker.name
        valid = min(still_valid(seen, known, session.lives), session.count)
        if valid >= seen or session.acknowledged >= seen:  # acknowledged deliveries never come again
            return 0
        logger.error("%s went back in time: it has forgotten %d deliveries that %s has had", here, seen - valid, name)
        return valid + 1

    def detach(self, name: str, now: float) -> None:
        """Note the departure of a client; a session without a name ends."""
        with self._core.handovers.states.transition(name, HandoverInput.DETACH):
            session = self.get(name)
            if session is not None:
                session.connected, session.last_seen = False, now
                if not session.durable:
                    self._core.patterns.users.left(name, now)
                    self.end(name, now)

    def leave(self, name: str, now: float) -> None:
        """End a session on the request of the client."""
        with self._core.handovers.states.transition(name, HandoverInput.LEAVE):
            self._core.handovers.cancel_departure(name)
            self._end_for_good(name, now)

    def _end_for_good(self, name: str, now: float) -> None:
        session = self.known(name)
        self._core.patterns.users.left(name, now)
        self.end(name, now)
        self._core.stand_ins.ended(name, session.identity, session.moves)

    def end(self, name: str, now: float) -> None:
        """Remove a session from the node, with all filters, deliveries and replicas."""
        session, step = self.known(name), self._core.buffer
        self.drop_filters(name, now)
        self._core.dynamic.end(name)
        if session.durable:
            if session.warned:
                step.store(Row(losses.WARNED, (name,)))
            in_rows = [number for number, pending in session.pending.items() if pending.in_row]
            step.store(Row("session", (name,)), *(Row("replayed", (name, number)) for number in in_rows))
        del self[name]
        self._core.handovers.ended(name)
        self._core.replicas.end(name)
        self._core.members.ended(name)
        self._core.devices.ended(name)

    def expire(self, now: float, life: float) -> list[str]:
        """End the sessions without a client for more than `life` seconds; return the names."""
        handovers = self._core.handovers
        moving = {*handovers.arrivals, *handovers.departures}
        away = {name for name, one in self.items() if not one.connected and now - one.last_seen > life}
        gone = sorted(away - moving - self._core.replicas.held.keys())
        for name in gone:
            with handovers.states.transition(name, HandoverInput.EXPIRE):
                self._end_for_good(name, now)
        return gone

    # Filters

    def describe(self, name: str, ticket: str, *, replica: bool = False) -> SessionDescription:
        """Return the identity and the filters of a session for another node."""
        core, session, client = self._core, self[name], self._core.broker.clients.get(name)
        return SessionDescription(
            name,
            ticket,
            session.identity,
            session.owner,
            {id: str(filter) for id, filter in client.subscriptions.items() if not filter.is_empty},
            {id: str(filter) for id, filter in client.advertisements.items()},
            replica,
            session.moves if replica else 0,
            core.dynamic.texts_of(name),
            encode_values(core.dynamic.values.get(name, {})),
            tuple(sorted(core.devices.of(name))) if replica else (),
        )

    def places_of_devices(self, name: str) -> dict[str, DevicePlace]:
        """Return the places of a session's devices, for the target of a handover."""
        return self._core.devices.places(name)

    def change_filters(self, message: Message, name: str, now: float) -> None:
        """Subscribe, unsubscribe, advertise or unadvertise on the request of a client."""
        with self._core.handovers.states.transition(name, HandoverInput.CHANGE_FILTERS):
            # A target of a handover has subscribed to the filters before this change, so the handover begins again.
            self._core.handovers.cancel_departure(name)
            self.apply_change(message, name, now)
            if isinstance(message, m.Advertise | m.Unadvertise):
                self._core.stand_ins.changed(name)

    def apply_change(self, message: Message, name: str, now: float) -> None:
        """Change the filters of a session, on behalf of the client, a handover or a replica."""
        core, session = self._core, self.known(name)
        sends = core.broker.receive(message, name, now)
        for send in sends:
            if isinstance(send.message, m.Refuse):
                raise RequestRefused(send.message.reason)
        if isinstance(message, m.Subscribe | m.Unsubscribe):
            core.dynamic.forget(name, message.id)
        if session.durable:
            core.buffer.store(*filter_rows(message, name))
        self._changed(name, sends)
        if isinstance(message, m.Subscribe | m.Unsubscribe):
            core.patterns.users.subscribed(name, message.id, getattr(message, "filter", None), now)

    def set_subscriptions(self, name: str, changes: Mapping[str, Told], now: float) -> None:
        """Set several subscriptions of a session at once, on behalf of its dynamic filters."""
        core, session = self._core, self.known(name)
        sends = core.broker.set_subscriptions(name, changes, now)
        for id in changes:
            core.patterns.users.subscribed(name, id, None, now)
        if session.durable:
            core.buffer.store(*(subscription_row(name, id, told.filter) for id, told in changes.items()))
        self._changed(name, sends)

    def _changed(self, name: str, sends: list[Send]) -> None:
        self._core.changes += 1
        self._core.replicas.mark_changed(name)
        self._core.links.send_all(sends)

    def drop_filters(self, name: str, now: float) -> None:
        """Remove all subscriptions and advertisements of a session."""
        core, client = self._core, self._core.broker.clients.all.get(name)
        for about in ("subscriptions", "advertisements") if client is not None and self[name].durable else ():
            core.buffer.store(*(Row(about, (name, id)) for id in getattr(client, about)))
        core.dynamic.drop_filters(name)
        core.patterns.users.released(name)
        sends = core.broker.receive(m.Leave(), name, now)
        core.changes += 1
        core.links.send_all(sends)
