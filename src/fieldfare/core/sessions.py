"""`SessionTable`: the sessions of a broker with all their filters; clients come to them and go in `presence`."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from fieldfare.core import losses
from fieldfare.core.base import Base
from fieldfare.core.handover_states import HandoverStates
from fieldfare.core.handover_table import HandoverInput
from fieldfare.core.state import RequestRefused, Session
from fieldfare.core.state_rows import filter_rows, session_row, subscription_row
from fieldfare.core.watchers import SessionWatcher
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import Row
from fieldfare.protocol.lineage import Lineage, still_valid
from fieldfare.protocol.messages import Message, Send
from fieldfare.routing.clients import Told

logger = logging.getLogger("fieldfare.node")


class SessionTable(dict[str, Session]):
    """All sessions of a broker by name, including replicas and arriving or departing sessions."""

    def __init__(self, base: Base) -> None:
        """Begin without any session, for a broker."""
        super().__init__()
        self._base = base
        self.states = HandoverStates(self)
        self.watchers: tuple[SessionWatcher, ...] = ()
        self.changes = 0
        """How often the interest of sessions may have changed."""

    def known(self, name: str) -> Session:
        """Return a session, or refuse the request."""
        if name not in self:
            raise RequestRefused(f"there is no session {name}")
        return self[name]

    def check_identity(self, name: str, identity: str) -> None:
        """Refuse a request for an ended session, although a later session has the same name."""
        self.states.check(name, HandoverInput.USE)
        if identity and self.known(name).identity != identity:
            raise RequestRefused(f"the session {name} is over, and there is another one")

    def store(self, name: str) -> None:
        """Write the row of a session."""
        self._base.buffer.store(session_row(name, self[name], self._base.journal.position))

    def life_of(self, session: Session) -> str:
        """Return the life in which deliveries are numbered now; each stay at a node is a separate life."""
        return f"{self._base.journal.life}.{session.moves}" if session.moves else self._base.journal.life

    def first_void(self, name: str, seen: int, known: Lineage) -> int:
        """Return the first number up to `seen` with another meaning by now; 0 if there is none.

        A number beyond the last delivery counts as void too: a client may have more than the disk of the node
        remembers, even without a restart in between.
        """
        session, here = self.known(name), self._base.broker.name
        valid = min(still_valid(seen, known, session.lives), session.count)
        if valid >= seen or session.acknowledged >= seen:  # acknowledged deliveries never come again
            return 0
        logger.error("%s went back in time: it has forgotten %d deliveries that %s has had", here, seen - valid, name)
        return valid + 1

    def end(self, name: str, now: float) -> None:
        """Remove a session from the node, with all filters, deliveries and replicas."""
        session, step = self.known(name), self._base.buffer
        self.drop_filters(name, now)
        if session.durable:
            if session.warned:
                step.store(Row(losses.WARNED, (name,)))
            in_rows = [number for number, pending in session.pending.items() if pending.in_row]
            step.store(Row("session", (name,)), *(Row("replayed", (name, number)) for number in in_rows))
        del self[name]
        for watcher in self.watchers:
            watcher.session_ended(name)

    # Filters

    def apply_change(self, message: Message, name: str, now: float) -> None:
        """Change the filters of a session, on behalf of the client, a handover or a replica."""
        base, session = self._base, self.known(name)
        sends = base.broker.receive(message, name, now)
        for send in sends:
            if isinstance(send.message, m.Refuse):
                raise RequestRefused(send.message.reason)
        if isinstance(message, m.Subscribe | m.Unsubscribe):
            for watcher in self.watchers:
                watcher.filter_replaced(name, message.id)
        if session.durable:
            base.buffer.store(*filter_rows(message, name))
        self._changed(name, sends)

    def set_subscriptions(self, name: str, changes: Mapping[str, Told], now: float) -> None:
        """Set several subscriptions of a session at once, on behalf of its dynamic filters."""
        base, session = self._base, self.known(name)
        sends = base.broker.set_subscriptions(name, changes, now)
        if session.durable:
            base.buffer.store(*(subscription_row(name, id, told.filter) for id, told in changes.items()))
        self._changed(name, sends)

    def _changed(self, name: str, sends: list[Send]) -> None:
        self.changes += 1
        self.note_changed(name)
        self._base.links.send_all(sends)

    def note_changed(self, name: str) -> None:
        """Tell the watchers that other nodes must know something new of a session."""
        for watcher in self.watchers:
            watcher.session_changed(name)

    def drop_filters(self, name: str, now: float) -> None:
        """Remove all subscriptions and advertisements of a session."""
        base, client = self._base, self._base.broker.clients.all.get(name)
        for about in ("subscriptions", "advertisements") if client is not None and self[name].durable else ():
            base.buffer.store(*(Row(about, (name, id)) for id in getattr(client, about)))
        for watcher in self.watchers:
            watcher.filters_dropped(name)
        sends = base.broker.receive(m.Leave(), name, now)
        self.changes += 1
        base.links.send_all(sends)
