"""`Runner`: joins a bridge to a node, for as long as the node runs.

The bridge `plant` has the session `bridge:plant`. An incoming event is published by this session, and acknowledged to
the other system when it is stored here. An outgoing event waits in this session, and is acknowledged here when it is
stored there. A crash of either side loses no event; events on their way may come twice. Numbered messages come
in once: see `sources`.

An event that came in does not go out again by the same bridge: its publisher is the session itself, or the session of a
source. The publisher travels with an event from node to node, so the same holds across a network: bridges of the same
name are one bridge.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, Final

import msgspec

from fieldfare.core.inputs import ChangeFilters
from fieldfare.core.state import NEVER, Publication, RequestRefused
from fieldfare.node.bridges.interface import (
    Batch,
    Bridge,
    BridgeConnection,
    BridgeError,
    IncomingEvent,
    LogConnection,
    OutgoingEvent,
    Rejection,
)
from fieldfare.node.bridges.sources import Sources
from fieldfare.node.internal_session import Delivered, InternalSession
from fieldfare.node.node import Node, NodeStopped
from fieldfare.protocol import messages as m
from fieldfare.retry import Backoff

BACKOFF: Final = Backoff(0.2, 30.0, (0.5, 1.0))
"""before the next attempt to connect"""
WINDOW: Final = 10_000
"""ids of the other system that are remembered, to recognise a message that comes twice"""
CHUNK: Final = 100
"""events in one call of `outgoing`"""

MOMENT: Final = 1.0
"""seconds in which the node has surely stored a published event"""
OWNER: Final = "~bridge"
"""owner of the sessions; no client can have this name, so no client can use them"""

logger = logging.getLogger("fieldfare.node.bridge")


class Status(msgspec.Struct, frozen=True):
    """The state and the counters of a bridge since the start of the node."""

    name: str
    kind: str
    up: bool
    incoming: int
    """events published here"""
    outgoing: int
    """events that the other system has accepted"""
    duplicates: int
    """messages that came twice, and were published once"""
    bad: int
    """rejected messages and events"""
    waiting: int
    """events that wait to go out"""
    problem: str
    """reason of the last rejection"""
    error: str
    """reason why the last connection ended; empty while a connection is up"""


class Runner:
    """A bridge at work: connects, reconnects after failures, and moves events both ways."""

    def __init__(self, node: Node, name: str, bridge: Bridge, kind: str = "") -> None:
        self.name = name
        self.session = f"bridge:{name}"
        self._node, self._bridge, self._kind = node, bridge, kind
        self._up = False
        self._in = self._out = self._duplicates = self._bad = 0
        self._problem = self._error = ""
        self._seen: dict[str, None] = {}

    def status(self) -> Status:
        """Return the state and the counters."""
        session = self._node.core.sessions.get(self.session)
        waiting = len(session.pending) if session is not None else 0
        return Status(
            self.name, self._kind, self._up, self._in, self._out, self._duplicates, self._bad, waiting,
            self._problem, self._error,
        )  # fmt: skip

    async def run(self) -> None:
        """Keep the bridge connected until the node stops; no error of a bridge stops the node."""
        delays, delay = BACKOFF.delays(), BACKOFF.first
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._connect()
            except NodeStopped:
                return
            except (BridgeError, OSError, RequestRefused) as error:
                self._fail(str(error) or type(error).__name__)
            except Exception as error:  # a bug in a bridge must not end the bridge
                logger.exception("the bridge %s failed", self.name)
                self._fail(f"{type(error).__name__}: {error}")
            finally:
                self._up = False
            # After a connection that lasted, the delays begin anew; a connection that breaks at once will do so again.
            lasted = asyncio.get_running_loop().time() - began
            if lasted > 2 * delay:
                delays = BACKOFF.delays()
            delay = next(delays)
            await asyncio.sleep(delay)

    async def _connect(self) -> None:
        """Serve one connection to its end. The session begins first: events it has not acknowledged come again."""
        async with InternalSession(self._node, self.session, owner=OWNER) as session:
            await self._subscribe(session)
            async with self._bridge.connect() as connection:
                self._up, self._error = True, ""
                logger.info("the bridge %s is up", self.name)
                async with contextlib.AsyncExitStack() as stack:
                    sources = Sources(self._node, self.session, OWNER, stack, self._advertise)
                    await first_of(self._receive_all(connection, sources), self._send_all(connection, session))

    def _fail(self, error: str) -> None:
        if error != self._error:
            logger.warning("the bridge %s is down: %s", self.name, error)
        self._error = error

    async def _subscribe(self, session: InternalSession) -> None:
        """Subscribe and advertise as the bridge says, and end the subscription of earlier settings."""
        subscription = self._bridge.subscription
        if subscription is not None:
            await session.subscribe("out", subscription)
        elif self._has("subscriptions", "out", self.session):
            await session.unsubscribe("out")
        await self._advertise(self.session)

    async def _advertise(self, session: str) -> None:
        """Advertise the incoming events for a session, and end the advertisement of earlier settings."""
        if self._node.core.broker.strategy.advertisements is None:
            return
        advertisement = self._bridge.advertisement
        message: m.Message | None = None
        if advertisement is not None:
            message = m.Advertise("in", advertisement)
        elif self._has("advertisements", "in", session):
            message = m.Unadvertise("in")
        if message is not None:
            await self._node.submit(ChangeFilters(session, message))

    def _has(self, about: str, id: str, session: str) -> bool:
        client = self._node.core.broker.clients.all.get(session)
        return client is not None and id in getattr(client, about)

    # In

    async def _receive_all(self, connection: BridgeConnection | LogConnection, sources: Sources) -> None:
        if isinstance(connection, LogConnection):
            batches = connection.incoming_from(sources.position)
        else:
            batches = connection.incoming()
        async for batch in batches:
            await self._receive(batch, sources)
        raise BridgeError("the other side closed the connection")

    async def _receive(self, batch: Batch, sources: Sources) -> None:
        incoming: list[IncomingEvent] = []
        ids: dict[str, None] = {}
        for one in batch.messages:
            if isinstance(one, Rejection):
                self._reject(one)
            elif one.id and (one.id in self._seen or one.id in ids):
                self._duplicates += 1
            else:
                incoming.append(one)
                if one.id:
                    ids[one.id] = None
        await self._node.wait_for_capacity()
        publications = list(self._publications(batch.source, incoming, sources))
        publishing = asyncio.create_task(self._publish(publications, ids))
        try:
            await asyncio.shield(publishing)
        finally:
            # If the connection ends now, the publishing goes on: its ids must be known when the messages come again.
            await asyncio.wait([publishing], timeout=MOMENT)
        self._duplicates += len(incoming) - sum(len(one.events) for one in publications)
        await batch.done()

    def _publications(self, source: str, incoming: Sequence[IncomingEvent], sources: Sources) -> Iterator[Publication]:
        now = self._node.clock()
        if source:
            yield from sources.publications(source, incoming, now)
            return
        for ttl, group in groupby(incoming, key=lambda one: one.ttl):
            expires = 0.0 if ttl is None else now + ttl
            yield Publication(self.session, 0, [one.event for one in group], expires=expires)

    async def _publish(self, publications: Sequence[Publication], ids: Mapping[str, None]) -> None:
        if self._node.core.judges_events:  # after a refusal no later number may be published: the source would go on
            for one in publications:
                await self._node.publish(one)
        else:
            await asyncio.gather(*map(self._node.publish, publications))
        self._in += sum(len(one.events) for one in publications)
        self._seen |= ids  # not earlier: an id is known only after its event was published
        for id in list(islice(self._seen, max(0, len(self._seen) - WINDOW))):
            del self._seen[id]

    def _reject(self, rejection: Rejection) -> None:
        self._bad += 1
        self._problem = rejection.reason
        logger.warning("the bridge %s: %s", self.name, rejection.reason)

    # Out

    async def _send_all(self, connection: BridgeConnection | LogConnection, session: InternalSession) -> None:
        if self._bridge.subscription is None:
            await asyncio.Event().wait()
        async for delivered in session.deliveries(CHUNK):
            outgoing = self._outgoing(delivered)
            rejections = await connection.outgoing(outgoing) if outgoing else ()
            for rejection in rejections:
                self._reject(rejection)
            self._out += len(outgoing) - len(rejections)
            if delivered:
                await session.acknowledge(delivered[-1].number)

    def _outgoing(self, delivered: Sequence[Delivered]) -> Sequence[OutgoingEvent]:
        session = self._node.core.sessions[self.session]
        outgoing = []
        for one in delivered:
            if one.publisher != self.session and not one.publisher.startswith(f"{self.session}/"):
                expires = session.pending[one.number].expires if one.number in session.pending else NEVER
                id = f"{session.identity}/{one.number}"
                outgoing.append(OutgoingEvent(one.event, id, None if expires == NEVER else expires))
        return outgoing


async def first_of(*works: Coroutine[Any, Any, None]) -> None:
    """Run coroutines until the first ends or fails, then cancel the others; the first failure is raised."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()
