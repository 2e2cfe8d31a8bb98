"""`Runner`: brings a bridge and a node together, for as long as the node runs.

The bridge `plant` has the session `bridge:plant`. What comes in is published by it, and acknowledged to the other
system when it is safe here. What goes out waits for it, and is acknowledged here when it is safe there. Whichever side
is killed, nothing is lost; what was on its way may come twice.

An event that came in does not go out again by the same bridge: its publisher is the session itself. The publisher goes
with an event from node to node, so this holds across a network: bridges of the same name are the same bridge.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Coroutine, Mapping, Sequence
from itertools import groupby, islice
from typing import Any, Final

import msgspec

from fieldfare.node.bridges.interface import Arrived, Batch, Bridge, BridgeConnection, BridgeError, Leaving, Problem
from fieldfare.node.internal_session import Delivered, InternalSession
from fieldfare.node.node import Node, NodeStopped
from fieldfare.node.state import NEVER, Publication, RequestRefused
from fieldfare.protocol import messages as m

FIRST_PAUSE: Final = 0.2
LONGEST_PAUSE: Final = 30.0
"""seconds before the next attempt to connect"""
WINDOW: Final = 10_000
"""foreign ids that are remembered"""
CHUNK: Final = 100
"""events that go out at once"""

MOMENT: Final = 1.0
"""seconds in which the node has written what was published, surely"""
OWNER: Final = "~bridge"
"""of the sessions: nobody who comes from outside may use them"""

logger = logging.getLogger("fieldfare.node.bridge")


class Status(msgspec.Struct, frozen=True):
    """How a bridge is doing."""

    name: str
    kind: str
    up: bool
    incoming: int
    """events that came in"""
    outgoing: int
    """events that went out"""
    duplicates: int
    """messages that came again, and were not published twice"""
    bad: int
    """messages and events that nothing could be made of"""
    waiting: int
    """events that have not gone out yet"""
    problem: str
    """the last of those"""
    error: str
    """why the last connection ended, if it did"""


class Runner:
    """A bridge at work."""

    def __init__(self, node: Node, name: str, bridge: Bridge, kind: str = "") -> None:
        self.name = name
        self.session = f"bridge:{name}"
        self._node, self._bridge, self._kind = node, bridge, kind
        self._up = False
        self._in = self._out = self._duplicates = self._bad = 0
        self._problem = self._error = ""
        self._seen: dict[str, None] = {}

    def status(self) -> Status:
        """How it is doing."""
        session = self._node.broker.sessions.get(self.session)
        waiting = len(session.pending) if session is not None else 0
        return Status(
            self.name, self._kind, self._up, self._in, self._out, self._duplicates, self._bad, waiting,
            self._problem, self._error,
        )  # fmt: skip

    async def run(self) -> None:
        """Go on for ever; the node goes on without it, too."""
        pause = FIRST_PAUSE
        while True:
            began = asyncio.get_running_loop().time()
            try:
                await self._connect()
            except NodeStopped:
                return
            except (BridgeError, OSError, RequestRefused) as error:
                self._fail(str(error) or type(error).__name__)
            except Exception as error:  # a mistake in a bridge is no reason to end it
                logger.exception("the bridge %s failed", self.name)
                self._fail(f"{type(error).__name__}: {error}")
            finally:
                self._up = False
            # A connection that lasted was a good one; one that broke at once will do so again.
            lasted = asyncio.get_running_loop().time() - began
            pause = FIRST_PAUSE if lasted > 2 * pause else min(2 * pause, LONGEST_PAUSE)
            await asyncio.sleep(pause * random.uniform(0.5, 1.0))

    async def _connect(self) -> None:
        """Be there as long as the other side is. The session first: what it took and did not pass on comes again."""
        async with InternalSession(self._node, self.session, owner=OWNER) as session:
            await self._ask(session)
            async with self._bridge.connect() as connection:
                self._up, self._error = True, ""
                logger.info("the bridge %s is up", self.name)
                await first(self._take_all(connection), self._give_all(connection, session))

    def _fail(self, error: str) -> None:
        if error != self._error:
            logger.warning("the bridge %s is down: %s", self.name, error)
        self._error = error

    async def _ask(self, session: InternalSession) -> None:
        """One subscription for all that goes out. What an earlier configuration asked for is no more."""
        wanted, promised = self._bridge.wants, self._bridge.promises
        if wanted is not None:
            await session.subscribe("out", wanted)
        elif self._has("subscriptions", "out"):
            await session.unsubscribe("out")
        if self._node.broker.broker.strategy.advertisements is None:
            return
        message: m.Message | None = None
        if promised is not None:
            message = m.Advertise("in", promised)
        elif self._has("advertisements", "in"):
            message = m.Unadvertise("in")
        if message is not None:
            change = message
            await self._node.submit(lambda broker, now: broker.sessions.change_filters(change, self.session, now))

    def _has(self, about: str, id: str) -> bool:
        client = self._node.broker.broker.clients.all.get(self.session)
        return client is not None and id in getattr(client, about)

    # In

    async def _take_all(self, connection: BridgeConnection) -> None:
        async for batch in connection.incoming():
            await self._take(batch)
        raise BridgeError("the other side hung up")

    async def _take(self, batch: Batch) -> None:
        arrived: list[Arrived] = []
        ids: dict[str, None] = {}
        for one in batch.messages:
            if isinstance(one, Problem):
                self._complain(one)
            elif one.id and (one.id in self._seen or one.id in ids):
                self._duplicates += 1
            else:
                arrived.append(one)
                if one.id:
                    ids[one.id] = None
        await self._node.wait_for_capacity()
        publishing = asyncio.create_task(self._publish(arrived, ids))
        try:
            await asyncio.shield(publishing)
        finally:
            # If the connection ends now: what is being published will be, and must be known when it comes again.
            await asyncio.wait([publishing], timeout=MOMENT)
        await batch.done()

    async def _publish(self, arrived: Sequence[Arrived], ids: Mapping[str, None]) -> None:
        now = self._node.clock()
        futures = [
            self._node.publish(
                Publication(self.session, 0, [one.event for one in group], None if ttl is None else now + ttl)
            )
            for ttl, group in groupby(arrived, key=lambda one: one.ttl)
        ]
        await asyncio.gather(*futures)
        self._in += len(arrived)
        self._seen |= ids  # not before: what was not published is not known
        for id in list(islice(self._seen, max(0, len(self._seen) - WINDOW))):
            del self._seen[id]

    def _complain(self, problem: Problem) -> None:
        self._bad += 1
        self._problem = problem.text
        logger.warning("the bridge %s: %s", self.name, problem.text)

    # Out

    async def _give_all(self, connection: BridgeConnection, session: InternalSession) -> None:
        if self._bridge.wants is None:
            await asyncio.Event().wait()
        async for delivered in session.deliveries(CHUNK):
            leaving = self._leaving(delivered)
            problems = await connection.outgoing(leaving) if leaving else ()
            for problem in problems:
                self._complain(problem)
            self._out += len(leaving) - len(problems)
            if delivered:
                await session.acknowledge(delivered[-1].number)

    def _leaving(self, delivered: Sequence[Delivered]) -> Sequence[Leaving]:
        session = self._node.broker.sessions[self.session]
        leaving = []
        for one in delivered:
            if one.publisher != self.session:
                expires = session.pending[one.number].expires if one.number in session.pending else NEVER
                id = f"{session.identity}/{one.number}"
                leaving.append(Leaving(one.event, id, None if expires == NEVER else expires))
        return leaving


async def first(*works: Coroutine[Any, Any, None]) -> None:
    """Do all of it until one ends or fails; then the others are cancelled."""
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
