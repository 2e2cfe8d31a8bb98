"""`InternalSession`: a session for a part of the node, such as server-sent events, webhooks and bridges."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from fieldfare.core import losses
from fieldfare.core.core import Core
from fieldfare.core.inputs import Acknowledge, AcknowledgeEarlier, ChangeFilters, Detach, EndSession, Withhold
from fieldfare.core.state import NEVER, RequestRefused, Session
from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.node import replay, security
from fieldfare.node.node import Node
from fieldfare.node.security import AccessDenied, Principal, rights
from fieldfare.protocol import messages as m
from fieldfare.protocol.journal import channel_number_of

logger = logging.getLogger("fieldfare.node")


class Delivered(NamedTuple):
    """A delivery of an internal session, with the decoded event."""

    number: int
    position: int
    time: float
    publisher: str
    event: Event
    subscriptions: tuple[str, ...]
    expires: float = NEVER
    """Time after which the event is delivered to nobody."""
    channel_number: int = 0


class InternalSession:
    """A session attached for the time of an `async with` block."""

    def __init__(
        self, node: Node, name: str = "", *, owner: str = "", principal: Principal | None = None, numbered: bool = False
    ) -> None:
        """Use a durable session under a name, or without a name a session for the block only.

        With a principal, filters end if the principal has lost the permission. With `numbered`, another system numbers
        the published events: a number means the same event for ever, so the session goes on counting after a restart.
        """
        self._node = node
        self._durable = bool(name)
        self._numbered = numbered
        self._principal = principal if node.security is not None else None
        self._may_read = None if self._principal is None else rights.may_read(self._principal)
        self._owner = owner if principal is None else principal.name
        self.name = name or f"~{node.fresh_name()}"
        self.acknowledged = 0
        self.gone = 0
        """Position where the log begins, if `since` asked for older events; else 0."""
        self.lost = 0
        """Number of dropped deliveries; the user of the session reports them and resets the number."""
        self._told_dropped = 0
        self._wake = asyncio.Event()
        self._closed = ""
        self._unwatch: Callable[[], None] = lambda: None

    async def __aenter__(self) -> InternalSession:
        session = await self._node.submit(self._attached)
        if self._principal is not None:
            who = self._principal
            await self._node.submit(lambda core, now: rights.recheck(core, self.name, who, now))
        self._node.use_session(self.name, self._close, self._wake.set)
        self.acknowledged, self._told_dropped = session.acknowledged, session.warned
        if self._principal is not None:
            self._unwatch = security.watch(
                self._principal, self._node.security, lambda: self._close("the token is void")
            )
        self._wake.set()
        return self

    def _attached(self, core: Core, now: float) -> Session:
        known = core.sessions.get(self.name)  # its owner may have changed since the caller looked
        if known is not None and self._node.security is not None and known.owner != self._owner:
            raise AccessDenied(f"the session {self.name} belongs to somebody else")
        core.presence.check_unshared(self.name)
        mine = known.identity if known is not None and self._numbered else ""
        return core.presence.attach(
            self.name, self._node.fresh_name(), now, durable=self._durable, owner=self._owner, known=mine
        )

    async def __aexit__(self, *_: object) -> None:
        self._unwatch()
        if self._node.closers.get(self.name) != self._close:
            return
        del self._node.closers[self.name], self._node.wakers[self.name]
        if self._node.ready and self.name in self._node.core.sessions:
            await self._node.submit(Detach(self.name))

    def _close(self, reason: str, *, again: bool = False, to: str = "", follow: bool = False) -> None:
        self._closed = reason
        self._wake.set()

    async def subscribe(self, id: str, filter: Filter, since: float | str | None = None) -> None:
        """Subscribe to a filter, perhaps from a position or a time on."""
        if since is not None:
            self.gone = await replay.subscribe(self._node, self.name, id, filter, since)
        else:
            await self._node.submit(ChangeFilters(self.name, m.Subscribe(id, filter)))

    async def unsubscribe(self, id: str) -> None:
        """End a subscription; an unknown id has no effect."""
        await self._node.submit(ChangeFilters(self.name, m.Unsubscribe(id)))

    async def acknowledge(self, number: int) -> None:
        """Acknowledge all deliveries up to a number."""
        await self._node.submit(Acknowledge(self.name, number))
        self.acknowledged = number

    @property
    def life(self) -> str:
        """The life in which deliveries are numbered; for a session without a name, the life of the log."""
        session = self._node.core.sessions.get(self.name)
        return session.lives[-1][0] if session is not None and self._durable else self._node.core.life

    async def resume(self, number: int, position: int, life: str = "") -> None:
        """Acknowledge all deliveries up to a number of an earlier connection, if it still means the same event."""
        await self._node.submit(AcknowledgeEarlier(self.name, number, position, life))

    def _note_dropped(self, session: Session, number: int) -> None:
        count, self._told_dropped = session.dropped - self._told_dropped, session.dropped
        if count > 0:
            self.lost += count
            losses.warn(session, number)
            logger.warning("the session %s: %s", self.name, losses.reason(count, self._node.name))

    async def end(self) -> None:
        """End the session, and drop the waiting deliveries."""
        await self._node.submit(EndSession(self.name))

    async def deliveries(self, chunk: int = 100) -> AsyncIterator[list[Delivered]]:
        """Yield new deliveries, some at a time; `RequestRefused` when another connection uses the session."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while True:
                if self._closed:
                    raise RequestRefused(self._closed)
                if self.name not in self._node.core.sessions:
                    raise RequestRefused("the session is over")
                session = self._node.core.sessions[self.name]
                taken = self._node.core.deliveries.next(self.name, chunk, self._node.clock())
                if not taken:
                    break
                entries = await self._node.entries([pending.position for _, pending in taken])
                session.dropped += sum(pending.position not in entries for _, pending in taken)
                self._note_dropped(session, taken[0][0])
                found = [
                    Delivered(
                        number, entry.position, entry.time, entry.publisher, msgpack.decode(entry.event),
                        pending.subscriptions, pending.expires, channel_number_of(entry),
                    )
                    for number, pending in taken
                    if (entry := entries.get(pending.position)) is not None
                ]  # fmt: skip
                allowed = self._allowed(found)
                self._node.counters.deliveries += len(allowed)
                yield allowed

    def _allowed(self, found: list[Delivered]) -> list[Delivered]:
        """Return the deliveries within the principal's present rights; the others are withheld for good."""
        may_read = self._may_read
        if may_read is None:
            return found
        withheld = [one.number for one in found if not may_read(one.event)]
        if withheld:
            self._node.submit_detached(Withhold(self.name, withheld))
        return [one for one in found if one.number not in withheld]
