"""`LinkConnection`: a link to a neighbour over a WebSocket. Either side may dial; the frames are the same.

Both nodes first send `LinkHello`. If both know the link from before (`LinkResume`), each continues
behind the last message at the other end; otherwise both begin anew (see `LinkTable.connect`). Then numbered messages
flow both ways, and `Received` acknowledges messages on disk.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

import msgspec

from fieldfare.core.domains import address_of, seen_from_outside
from fieldfare.core.inputs import (
    AcknowledgeMessages,
    ConnectLink,
    EndLink,
    LinkDown,
    LinkUp,
    LivesOfLink,
    ReceiveMessages,
    ReceiveUnnumbered,
    ResumeLink,
    SetReachable,
)
from fieldfare.core.state import Link
from fieldfare.node.counters import LinkCounters
from fieldfare.node.link_checks import LinkError, check_cycle, check_hello, check_stranger, name_of, other_domain
from fieldfare.node.neighbourhood import Neighbourhood
from fieldfare.node.sockets import Socket
from fieldfare.protocol import link_frames, wire
from fieldfare.protocol.journal import JournalEntry
from fieldfare.protocol.lineage import extend
from fieldfare.protocol.link_frames import (
    AnyLinkFrame,
    LinkEnd,
    LinkFrame,
    LinkHello,
    LinkResume,
    Messages,
    OverviewReply,
    OverviewRequest,
    ReachableNodes,
    Received,
    UnnumberedMessage,
)
from fieldfare.protocol.messages import Role
from fieldfare.protocol.versions import NEWEST, lacking
from fieldfare.retry import Backoff

CHUNK: Final = 500
"""Largest number of messages in a frame."""
CHUNK_BYTES: Final = 256 << 10
"""Size in bytes from which on a frame is not filled further."""
PATIENCE: Final = 10.0
"""Seconds in which both nodes must have introduced themselves."""
MOST_OVERVIEWS: Final = 1000
"""Requests and replies about overviews that may wait for a slow neighbour; the oldest are dropped."""
BACKOFF: Final = Backoff(0.2, 15.0, (0.7, 1.3))
"""Pauses between attempts to dial a neighbour."""

F = TypeVar("F", bound=LinkFrame)

logger = logging.getLogger("fieldfare.node")


async def keep_linked(
    hood: Neighbourhood, url: str, open_socket: Callable[[str], Awaitable[tuple[Socket, int]]], domain: str = ""
) -> None:
    """Dial a node again and again, for ever, perhaps of another domain; pauses grow with each failure, and vary."""
    delays, before = BACKOFF.delays(), ""
    while True:
        began = hood.node.steady()
        try:
            socket, version = await open_socket(url)
            await LinkConnection(hood, socket, version, dialled=True, domain=domain).serve()
            problem = "the link is down"
        except Exception as error:  # noqa: BLE001 - whatever it is, it may be better next time
            problem = str(error) or type(error).__name__
        if hood.node.steady() - began > BACKOFF.longest:
            delays = BACKOFF.delays()
        delay = next(delays)
        log = logger.info if problem == before else logger.warning
        log("link to %s: %s; again in %.1f s", url, problem, delay)
        before = problem
        await asyncio.sleep(delay)


class LinkConnection:
    """A WebSocket of a link, from the first frame to the last."""

    def __init__(
        self,
        hood: Neighbourhood,
        socket: Socket,
        version: int = NEWEST,
        *,
        dialled: bool,
        met: Callable[[], None] = lambda: None,
        subject: str | None = None,
        domain: str = "",
    ) -> None:
        """Take an open socket, with the version of its subprotocol, on which no frame was sent.

        `met` is called when the other side is known to be a node.

        A neighbour with a token must have the name of the token's `subject`. None: there is no security, or
        this node has dialled, and trusts the URL in the settings. The other side must be of the `domain`, if one is
        given.
        """
        self._domain = domain
        self._hood = hood
        self._subject = subject
        self._node = hood.node
        self._socket = socket
        self.version = version
        self.dialled = dialled
        self._met = met
        self.neighbour = ""
        self.url = ""
        self.life = ""
        """Random name of the neighbour's process."""
        self._sent = 0
        """Number of the last message that was sent on this connection, or before it."""
        self._acknowledged = 0
        """Number of the neighbour's last message that was acknowledged."""
        self._reachable: ReachableNodes | None = None
        """Reachable nodes, as last announced."""
        self._wake = asyncio.Event()
        self._ended = asyncio.Event()
        self._answers = False
        self._overviews: deque[OverviewRequest | OverviewReply] = deque(maxlen=MOST_OVERVIEWS)
        self.counters = LinkCounters()

    async def serve(self) -> None:
        """Introduce both nodes, and exchange messages until either side ends the connection."""
        try:
            async with asyncio.timeout(PATIENCE):  # `wait_for` may swallow a cancellation in Python 3.11
                await self._meet()
        except (LinkError, msgspec.DecodeError) as error:
            self._leave()
            problem = error if isinstance(error, LinkError) else LinkError(str(error))
            await self._hang_up(str(problem), forever=problem.forever)
            raise problem from None
        except BaseException:
            self._leave()
            with contextlib.suppress(ConnectionError, RuntimeError):  # else the neighbour would take it for linked
                await self._socket.close(1001, "")
            raise
        logger.info("linked to %s", self.neighbour)
        self._hood.announce_reachable()
        tasks = [asyncio.create_task(job()) for job in (self._read_all, self._send_all, self._ended.wait)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            results = await asyncio.gather(*tasks, return_exceptions=True)
            self._leave()
            with contextlib.suppress(ConnectionError, RuntimeError):
                await self._socket.close(1000, "")
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, ConnectionError):
                raise LinkError(f"{self.neighbour}: {result}") from result

    # Introduction

    async def _meet(self) -> None:
        node, hood = self._node, self._hood
        role = node.config.role if self.dialled else "peer"
        waits = bool(hood.domain) and not self.dialled  # whoever dials may be of another domain: what we say depends
        if not waits:
            await self._send(self._hello(role))
        hello = await self._receive(LinkHello)
        domain = self._domain = other_domain(hello, hood, self._domain, dialled=self.dialled)
        if waits:
            await self._send(self._hello(role))
        check_hello(hello, hood, self.version, self._subject, domain)
        other = self.neighbour = name_of(hello, domain)
        self.url, self.life, self._answers = hello.url, hello.life, hello.answers and not domain
        wanted = Role(role) if self.dialled else Role(hello.role).opposite
        self._take_place(other)
        known = node.core.links.get(other)
        if known is not None and known.role is not wanted:
            known = None
        mine = await self._resume_frame(known)
        self._met()  # before the neighbour hears our frame: its next frame, with all its filters, may be large
        await self._send(mine)
        theirs = await self._receive(LinkResume)
        check_cycle(hello, hood, domain)  # once more, and without a pause before it counts: another link may be new
        behind = hello.others(node.name) | ({address_of(domain): ""} if domain else {})
        names = list(hood.note(other, behind, hello.url))
        if known is not None and (theirs.local_name, theirs.remote_name) == (mine.remote_name, mine.local_name):
            self._sent = await node.submit(ResumeLink(other, theirs, hello.id, self.version))
        else:
            check_stranger(hello, node, other)
            named = mine.local_name, theirs.local_name
            await node.submit(ConnectLink(other, wanted, *named, theirs.lives, hello.id, self.version))
        await node.submit(SetReachable(other, names))
        await node.submit(LinkUp(other))
        self._acknowledged = node.core.links[other].written
        node.counters.links[other] = self.counters = node.counters.links.get(other, self.counters)
        node.link_wakers[other] = self._wake.set
        self._wake.set()

    def _hello(self, role: str) -> LinkHello:
        node, hood = self._node, self._hood
        if self._domain:
            reaches, url = {"": hood.domains(without=self._domain)}, ""
        else:  # all neighbours, whether they are up or not
            reaches, url = {name: hood.behind.get(name, {name: ""}) for name in node.core.links}, hood.url
        named = node.name, url, node.config.strategy, self.version, role, reaches
        return LinkHello(*named, node.id, node.core.life, answers=not self._domain, domain=hood.domain)

    async def _resume_frame(self, known: Link | None) -> LinkResume:
        node, other = self._node, self.neighbour
        if known is None:
            return LinkResume(node.fresh_name(), "", 0, lives=extend((), node.core.life, 1))
        lives = await node.submit(LivesOfLink(other))
        return LinkResume(
            known.local_name,
            known.remote_name,
            known.written,
            known.remote_lives,
            lives,
            known.acknowledged + 1,
            known.last,
            known.incomplete,
        )

    def _take_place(self, other: str) -> None:
        """Of two connections to a neighbour keep the later, or the one dialled by the first node by name.

        A connection to another process of the same name stays as long as it is up. If the process has ended without a
        word, the connection ends when pings stay unanswered.
        """
        former = self._hood.up.get(other)
        if former is not None:
            if former.life != self.life:
                raise LinkError(
                    f"a node called {other} is linked to {self._node.name} already: give one of them another --name"
                )
            mine = seen_from_outside(self._node.name, self._hood.domain) if self._domain else self._node.name
            if former.dialled != self.dialled and former.dialled == (mine < other):
                raise LinkError(f"{other} is linked already")
            former._ended.set()
        self._hood.up[other] = self

    def _leave(self) -> None:
        if self._hood.up.get(self.neighbour) is self:
            del self._hood.up[self.neighbour]
            self._node.link_wakers.pop(self.neighbour, None)
            self._node.submit_detached(LinkDown(self.neighbour))

    # Sending

    async def end(self, reason: str, *, forever: bool) -> None:
        """Send the neighbour a `LinkEnd`, and close the connection."""
        await self._hang_up(reason, forever=forever)
        self._ended.set()

    def stop(self) -> None:
        """Close the connection without a word: the neighbour may not be there any more."""
        self._ended.set()

    def wake(self) -> None:
        """Look for something to send, such as changed reachable nodes."""
        self._wake.set()

    def send_overview(self, frame: OverviewRequest | OverviewReply) -> None:
        """Send a request or reply about an overview, unless the neighbour's version is too old."""
        if self._answers:
            self._overviews.append(frame)
            self._wake.set()

    async def _hang_up(self, reason: str, *, forever: bool = False) -> None:
        with contextlib.suppress(ConnectionError, RuntimeError):
            await self._send(LinkEnd(reason, forever=forever))
            await self._socket.close(1008, reason[:100])

    async def _send(self, frame: AnyLinkFrame) -> None:
        if lacking(self.version, frame):
            return
        data = link_frames.encode(frame)
        self.counters.bytes_out += len(data)
        await self._socket.send(data)

    async def _send_all(self) -> None:
        links, other = self._node.core.links, self.neighbour
        while True:
            await self._wake.wait()
            self._wake.clear()
            nodes = self._hood.reachable(without=other)
            reachable = ReachableNodes(nodes, self._node.core.versions.newer(nodes))
            if reachable != self._reachable:
                self._reachable = reachable
                await self._send(reachable)
            while self._overviews:
                await self._send(self._overviews.popleft())
            while other in links:
                for message in links.take_unnumbered(other) if self._hood.up.get(other) is self else ():
                    await self._send(UnnumberedMessage(message))
                written = links[other].written
                if written > self._acknowledged:
                    self._acknowledged = written
                    await self._send(Received(written))
                outgoing = links.outgoing(other, self._sent, CHUNK)
                if not outgoing:
                    break
                messages = await self._encoded([what for _, what in outgoing])
                self._sent = outgoing[len(messages) - 1][0]
                await self._send(Messages(outgoing[0][0], messages))

    async def _encoded(self, outgoing: list[bytes | int]) -> list[bytes]:
        """Return messages up to a good size of a frame, never none; events come from the log."""
        entries = await self._node.entries([what for what in outgoing if isinstance(what, int)])
        messages: list[bytes] = []
        size = 0
        for what in outgoing:
            if size > CHUNK_BYTES:
                break
            if isinstance(what, bytes):
                self.counters.tells_out += 1
                messages.append(what)
            else:
                messages.append(self._encoded_event(what, entries))
            size += len(messages[-1])
        return messages

    def _encoded_event(self, position: int, entries: Mapping[int, JournalEntry]) -> bytes:
        entry = entries.get(position)
        if entry is None:  # numbers leave nothing out, so an empty message must stand for the event
            logger.error("%s misses event %d, which the log no longer has", self.neighbour, position)
            return wire.NOTHING
        self.counters.events_out += 1
        return wire.encode_forward(entry)

    # Receiving

    async def _receive(self, kind: type[F]) -> F:
        data = await self._socket.receive()
        if not isinstance(data, bytes):
            raise LinkError("hung up" if data is None else "links have binary frames")
        self.counters.bytes_in += len(data)
        frame: AnyLinkFrame = link_frames.decode(data)
        if isinstance(frame, LinkEnd):
            raise LinkError(frame.reason)
        if not isinstance(frame, kind):
            raise LinkError(f"{type(frame).__name__} where {kind.__name__} was expected")
        return frame

    async def _read_all(self) -> None:
        while True:
            data = await self._socket.receive()
            if data is None:
                return
            if not isinstance(data, bytes):
                raise LinkError("links have binary frames")
            self.counters.bytes_in += len(data)
            await self._accept(link_frames.decode(data))

    async def _accept(self, frame: AnyLinkFrame) -> None:
        node, other = self._node, self.neighbour
        match frame:
            case Messages(first=first, messages=messages):
                await node.wait_for_capacity()
                updates = [message for message in messages if not wire.is_event(message)]
                if updates:  # to parse filters may take seconds, in which everybody else would wait
                    await asyncio.to_thread(wire.prepare, updates)
                events = await node.submit(ReceiveMessages(other, first, messages))
                self.counters.events_in += events
                self.counters.tells_in += len(messages) - events
            case UnnumberedMessage(message=message):
                await node.submit(ReceiveUnnumbered(other, message))
            case Received(number=number):
                await node.submit(AcknowledgeMessages(other, number))
            case ReachableNodes(nodes=nodes, versions=versions):
                names = self._hood.note(other, nodes, self.url)
                await node.submit(SetReachable(other, list(names), versions))
                self._hood.announce_reachable()
            case OverviewRequest() | OverviewReply():
                if not self._domain:
                    self._hood.overviews.receive(frame)
            case LinkEnd(reason=reason, forever=forever):
                if forever:
                    await node.submit(EndLink(other))
                    self._hood.behind.pop(other, None)
                raise LinkError(f"{other} hung up: {reason}")
            case _:
                raise LinkError(f"{type(frame).__name__} was not expected")
