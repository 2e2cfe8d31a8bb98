"""`InternalSession`: a session used from within the node, as by server-sent events, webhooks and bridges."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from typing import NamedTuple

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.node import losses, replay, security
from fieldfare.node.durable_broker import DurableBroker
from fieldfare.node.node import Node
from fieldfare.node.security import AccessDenied, Principal, rights
from fieldfare.node.state import NEVER, RequestRefused, Session
from fieldfare.protocol import messages as m
from fieldfare.protocol.lineage import still_valid

logger = logging.getLogger("fieldfare.node")


class Delivered(NamedTuple):
    """An event for a session."""

    number: int
    position: int
    time: float
    publisher: str
    event: Event
    subscriptions: tuple[str, ...]
    expires: float = NEVER
    """when nobody is to get it any more"""


class InternalSession:
    """A session that is there, as long as it is used with `async with`."""

    def __init__(self, node: Node, name: str = "", *, owner: str = "", principal: Principal | None = None) -> None:
        """With a name the session survives; without one it is forgotten afterwards.

        If it is used for somebody, all that the session asked for earlier and they no longer may ends.
        """
        self._node = node
        self._durable = bool(name)
        self._principal = principal if node.security is not None else None
        self._may_read = None if self._principal is None else rights.may_read(self._principal)
        self._owner = owner if principal is None else principal.name
        self.name = name or f"~{node.fresh()}"
        self.acknowledged = 0
        self.gone = 0
        """where the log begins, if older events were wanted"""
        self.lost = 0
        """deliveries that were dropped; for whoever says so, and sets it back"""
        self._told = 0
        self._wake = asyncio.Event()
        self._closed = ""
        self._unwatch: Callable[[], None] = lambda: None

    async def __aenter__(self) -> InternalSession:
        session = await self._node.submit(self._attached)
        if self._principal is not None:
            who = self._principal
            await self._node.submit(lambda broker, now: rights.recheck(broker, self.name, who, now))
        self._node.occupy(self.name, self._close, self._wake.set)
        self.acknowledged, self._told = session.done, session.warned
        if self._principal is not None:
            self._unwatch = security.watch(
                self._principal, self._node.security, lambda: self._close("the token is void")
            )
        self._wake.set()
        return self

    def _attached(self, broker: DurableBroker, now: float) -> Session:
        known = broker.sessions.get(self.name)  # it may be another one's since somebody has looked
        if known is not None and self._node.security is not None and known.owner != self._owner:
            raise AccessDenied(f"the session {self.name} belongs to somebody else")
        return broker.attach(self.name, self._node.fresh(), now, durable=self._durable, owner=self._owner)

    async def __aexit__(self, *_: object) -> None:
        self._unwatch()
        if self._node.closers.get(self.name) != self._close:
            return
        del self._node.closers[self.name], self._node.wakers[self.name]
        if self._node.ready and self.name in self._node.broker.sessions:
            await self._node.submit(lambda broker, now: broker.detach(self.name, now))

    def _close(self, reason: str, *, again: bool = False, to: str = "", follow: bool = False) -> None:
        self._closed = reason
        self._wake.set()

    async def subscribe(self, id: str, filter: Filter, since: float | str | None = None) -> None:
        """Ask for events, perhaps from a position or a time on."""
        if since is not None:
            self.gone = await replay.subscribe(self._node, self.name, id, filter, since)
        else:
            await self._node.submit(lambda broker, now: broker.change(m.Subscribe(id, filter), self.name, now))

    async def unsubscribe(self, id: str) -> None:
        """Ask no more."""
        await self._node.submit(lambda broker, now: broker.change(m.Unsubscribe(id), self.name, now))

    async def acknowledge(self, number: int) -> None:
        """Be done with all deliveries up to a number."""
        await self._node.submit(lambda broker, _: broker.acknowledge(self.name, number))
        self.acknowledged = number

    @property
    def life(self) -> str:
        """The life in which deliveries are numbered; for a session that does not survive, that of the log."""
        session = self._node.broker.sessions.get(self.name)
        return session.lives[-1][0] if session is not None and self._durable else self._node.broker.life

    async def resume(self, number: int, position: int, life: str = "") -> None:
        """Be done with all up to a delivery that an earlier connection took, if it is that of the same event.

        A session of the same name may be another one by now, and count anew; and a node that went back in time gives
        numbers and positions again: in another life, if that is known. What comes twice is the lesser evil.
        """

        def job(broker: DurableBroker, _: float) -> None:
            session = broker.sessions[self.name]
            known = ((life, 1),) if life else ()
            if still_valid(number, known, session.lives) < number:
                logger.warning("the session %s: delivery %d is another one by now", self.name, number)
                return
            pending = session.pending.get(number)
            if pending is not None and pending.position == position and number <= session.released:
                session.taken = max(session.taken, number)
                broker.acknowledge(self.name, number)

        await self._node.submit(job)

    def _note_dropped(self, session: Session, number: int) -> None:
        count, self._told = session.dropped - self._told, session.dropped
        if count > 0:
            self.lost += count
            losses.said(session, number)
            logger.warning("the session %s: %s", self.name, losses.reason(count, self._node.name))

    async def end(self) -> None:
        """End the session, with all that waits for it."""
        await self._node.submit(lambda broker, now: broker.end(self.name, now))

    async def deliveries(self, chunk: int = 100) -> AsyncIterator[list[Delivered]]:
        """Events as they come, some at a time; Refusal when another connection takes over the session."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while True:
                if self._closed:
                    raise RequestRefused(self._closed)
                if self.name not in self._node.broker.sessions:
                    raise RequestRefused("the session is over")
                session = self._node.broker.sessions[self.name]
                taken = self._node.broker.take(self.name, chunk, self._node.clock())
                if not taken:
                    break
                entries = await self._node.entries([pending.position for _, pending in taken])
                session.dropped += sum(pending.position not in entries for _, pending in taken)
                self._note_dropped(session, taken[0][0])
                found = [
                    Delivered(
                        number, entry.position, entry.time, entry.publisher, msgpack.decode(entry.event),
                        pending.subscriptions, pending.expires,
                    )
                    for number, pending in taken
                    if (entry := entries.get(pending.position)) is not None
                ]  # fmt: skip
                allowed = self._allowed(found)
                self._node.traffic.deliveries += len(allowed)
                yield allowed

    def _allowed(self, found: list[Delivered]) -> list[Delivered]:
        """Without what those for whom the session is used may not read any more."""
        may_read = self._may_read
        if may_read is None:
            return found
        withheld = [one.number for one in found if not may_read(one.event)]
        if withheld:
            self._node.soon(lambda broker, _: rights.withhold(broker, self.name, withheld))
        return [one for one in found if one.number not in withheld]
