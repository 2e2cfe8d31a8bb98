"""Links: neighbours of a node, over WebSockets. Either side may dial; what is said is the same.

Two nodes that meet first say who they are. If both know the link from before, they go on where they were: each says up
to where it has heard the other, and hears the rest. If one of them has forgotten, both begin anew (see
`DurableBroker.connect`). Then messages flow, numbered; `Received` says how far they are safe.

The overlay must not have cycles. Nodes tell each other whom they reach (`ReachableNodes`), and a node does not become a
neighbour of one that it reaches already by another way.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final, TypeVar

import msgspec

from fieldfare.node.config import is_name
from fieldfare.node.connection import Socket
from fieldfare.node.counters import LinkTraffic
from fieldfare.node.durable_broker import DurableBroker
from fieldfare.node.node import Node
from fieldfare.node.overviews import Overviews
from fieldfare.node.state import Greeting, Link
from fieldfare.protocol import link_frames, wire
from fieldfare.protocol.journal import details_of
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
from fieldfare.protocol.messages import FilterUpdate, Role
from fieldfare.retry import Backoff

CHUNK: Final = 500
CHUNK_BYTES: Final = 256 << 10
PATIENCE: Final = 10.0
QUESTIONS: Final = 1000
"""questions and answers that may wait for a neighbour to read them; more are dropped"""
BACKOFF: Final = Backoff(0.2, 15.0, (0.7, 1.3))
"""before an attempt to connect to a neighbour"""

logger = logging.getLogger("fieldfare.node")


F = TypeVar("F", bound=LinkFrame)


class LinkError(ValueError):
    """Why there is no link, perhaps for good."""

    def __init__(self, reason: str, *, forever: bool = False) -> None:
        super().__init__(reason)
        self.forever = forever


class Neighbourhood:
    """The links of a node: those that are up, and whom they lead to."""

    def __init__(self, node: Node) -> None:
        """None is up yet."""
        self.node = node
        self.url = ""
        self.up: dict[str, LinkConnection] = {}
        node.address = self._address
        self.behind: dict[str, dict[str, str]] = {}
        """the nodes that a neighbour reaches without us, and itself, with their addresses"""
        self.overviews = Overviews(self)

    def reaches(self, but: str = "") -> dict[str, str]:
        """The nodes that we reach without a neighbour, ourselves among them.

        Only a neighbour itself says where it is; of nodes behind neighbours, that counts which the one says that we
        have known for longest. Clients follow their sessions to these addresses, with tickets for those nodes.
        """
        links, found = self.node.broker.links, {self.node.name: self.url}
        for neighbour, nodes in self.behind.items():
            for name, url in nodes.items() if neighbour != but else ():
                if name == neighbour or name not in links:
                    found.setdefault(name, url)
        return {**{name: "" for name in links if name != but}, **found}

    def _address(self, name: str) -> str:
        """Where clients reach a node, if it has said something that is of use to them."""
        url = self.reaches().get(name, "")
        return "" if "//0.0.0.0:" in url or "//[::]:" in url else url

    def tell_reach(self) -> None:
        """Let all neighbours know whom we reach."""
        for link in self.up.values():
            link.tell_reach()

    async def part(self, name: str) -> None:
        """Be no neighbour of a node any more."""
        link = self.up.get(name)
        if link is not None:
            await link.part("it was told so", forever=True)
        await self.node.submit(lambda broker, now: broker.disconnect(name, now))
        self.behind.pop(name, None)
        self.node.traffic.links.pop(name, None)
        self.tell_reach()

    async def dial(self, url: str, open_socket: Callable[[str], Awaitable[Socket]]) -> None:
        """Keep a link up, for ever: after each failure a pause, longer each time, and a little random."""
        delays, before = BACKOFF.delays(), ""
        while True:
            began = self.node.steady()
            try:
                socket = await open_socket(url)
                await LinkConnection(self, socket, dialled=True).serve()
                problem = "the link is down"
            except Exception as error:  # noqa: BLE001 - whatever it is, it may be better next time
                problem = str(error) or type(error).__name__
            if self.node.steady() - began > BACKOFF.longest:
                delays = BACKOFF.delays()
            delay = next(delays)
            log = logger.info if problem == before else logger.warning
            log("link to %s: %s; again in %.1f s", url, problem, delay)
            before = problem
            await asyncio.sleep(delay)


class LinkConnection:
    """A link that is up."""

    def __init__(
        self,
        hood: Neighbourhood,
        socket: Socket,
        *,
        dialled: bool,
        met: Callable[[], None] = lambda: None,
        subject: str | None = None,
    ) -> None:
        """The socket is open, and nothing was said yet; `met` is called when the other side is known to be a node.

        A neighbour that came with a token is called as its `subject`. None: there is no security, or this node has
        dialled, and the URL in its settings says whom.
        """
        self._hood = hood
        self._subject = subject
        self._node = hood.node
        self._socket = socket
        self.dialled = dialled
        self._met = met
        self.neighbour = ""
        self.url = ""
        self.life = ""
        self._sent = 0
        self._said_received = 0
        self._reach: dict[str, str] | None = None
        self._wake = asyncio.Event()
        self._ended = asyncio.Event()
        self._answers = False
        self._questions: deque[OverviewRequest | OverviewReply] = deque(maxlen=QUESTIONS)
        self.traffic = LinkTraffic()

    async def serve(self) -> None:
        """Meet, and stay until either side goes."""
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
        self._hood.tell_reach()
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

    # Meeting

    async def _meet(self) -> None:
        node, hood = self._node, self._hood
        role = node.config.role if self.dialled else "peer"
        reaches = {name: hood.behind.get(name, {name: ""}) for name in node.broker.links}  # whether they are up or not
        strategy, life = node.config.strategy, node.broker.life
        await self._send(
            LinkHello(node.name, hood.url, strategy, role=role, reaches=reaches, id=node.id, life=life, answers=True)
        )
        meet = await self._receive(LinkHello)
        self._check(meet)
        other = self.neighbour = meet.node
        self.url, self.life, self._answers = meet.url, meet.life, meet.answers
        wanted = Role(role) if self.dialled else Role(meet.role).opposite
        self._take_place(other)
        known = node.broker.links.get(other)
        if known is not None and known.role is not wanted:
            known = None
        mine = await self._greeting(known)
        self._met()  # before it hears our greeting: what it says then, all that it wants perhaps, may be large
        await self._send(mine)
        greet = await self._receive(LinkResume)
        self._check_cycle(meet)  # once more, and without a pause before it counts: another link may be new
        hood.behind[other] = meet.others(node.name)
        names = list(hood.behind[other])
        if known is not None and (greet.local_name, greet.remote_name) == (mine.remote_name, mine.local_name):
            greeting = Greeting(greet.received, greet.received_lives, greet.lives, greet.first, greet.last)
            self._sent = await node.submit(lambda broker, _: broker.meet_again(other, greeting, meet.id))
        else:
            self._check_stranger(meet)
            await node.submit(
                lambda broker, now: broker.connect(
                    other, wanted, now, mine=mine.local_name, theirs=greet.local_name, known=greet.lives, id=meet.id
                )
            )
        await node.submit(lambda broker, _: broker.letters.reach(other, names))
        await node.submit(lambda broker, now: broker.regain(other, now))
        self._said_received = node.broker.links[other].heard
        node.traffic.links[other] = self.traffic = node.traffic.links.get(other, self.traffic)
        node.link_wakers[other] = self._wake.set
        self._wake.set()

    async def _greeting(self, known: Link | None) -> LinkResume:
        node, other = self._node, self.neighbour
        if known is None:
            return LinkResume(node.fresh(), "", 0, lives=extend((), node.broker.life, 1))
        lives = await node.submit(lambda broker, _: broker.lives_of(other))
        return LinkResume(known.mine, known.theirs, known.heard, known.known, lives, known.safe + 1, known.said)

    def _check_stranger(self, meet: LinkHello) -> None:
        """A node that does not know the link may be another one of the same name: it must not get what waits."""
        known = self._node.broker.links.get(meet.node)
        waiting = sum(isinstance(what, int) for what in known.outbox.values()) if known is not None else 0
        if known is not None and known.id and known.id != meet.id and waiting:
            raise LinkError(
                f"{waiting} events wait at {self._node.name} for another node called {meet.node}, which has another"
                f" folder: give this one another --name; or, if that folder is lost for good, let"
                f" {self._node.name} forget it: fieldfare admin links --remove {meet.node}"
            )

    def _check(self, meet: LinkHello) -> None:
        node = self._node
        if not is_name(meet.node):
            raise LinkError(f"{meet.node[:100]!r} is no name of a node")
        if meet.version != link_frames.VERSION:
            raise LinkError(
                f"{meet.node} speaks version {meet.version} of the link protocol, {node.name} {link_frames.VERSION}"
            )
        if meet.strategy != node.config.strategy:
            raise LinkError(f"{meet.node} routes by {meet.strategy}, {node.name} by {node.config.strategy}")
        if self._subject is not None and meet.node != self._subject:
            who = repr(self._subject) if self._subject else "nobody in particular"
            raise LinkError(f"the token of {meet.node} is for {who}: a node joins with a token for its own name")
        if meet.node == node.name:
            raise LinkError(f"both nodes are called {node.name}: give one of them another --name")
        self._check_cycle(meet)

    def _check_cycle(self, meet: LinkHello) -> None:
        node = self._node
        both = set(self._hood.reaches(but=meet.node)) & set(meet.others(node.name))
        if both:
            reason = f"{node.name} and {meet.node} both reach {', '.join(sorted(both))}: a link would close a cycle"
            raise LinkError(reason, forever=meet.node not in node.broker.links)

    def _take_place(self, other: str) -> None:
        """Of two links to the same neighbour one stays: the later one, or that which the first by name has dialled.

        A link to another process of that name stays as long as it is up. If that process has ended without a word, the
        link ends when no ping is answered any more.
        """
        former = self._hood.up.get(other)
        if former is not None:
            if former.life != self.life:
                raise LinkError(
                    f"a node called {other} is linked to {self._node.name} already: give one of them another --name"
                )
            if former.dialled != self.dialled and former.dialled == (self._node.name < other):
                raise LinkError(f"{other} is linked already")
            former._ended.set()
        self._hood.up[other] = self

    def _leave(self) -> None:
        if self._hood.up.get(self.neighbour) is self:
            del self._hood.up[self.neighbour]
            self._node.link_wakers.pop(self.neighbour, None)
            self._node.soon(partial(_lose, self.neighbour))

    # Talking

    async def part(self, reason: str, *, forever: bool) -> None:
        """Say goodbye."""
        await self._hang_up(reason, forever=forever)
        self._ended.set()

    def end(self) -> None:
        """Hang up: the neighbour may not be here any more."""
        self._ended.set()

    def tell_reach(self) -> None:
        """Let the neighbour know whom we reach without it, if that has changed."""
        self._wake.set()

    def pass_on(self, frame: OverviewRequest | OverviewReply) -> None:
        """Let the neighbour have a question or an answer, if it understands that."""
        if self._answers:
            self._questions.append(frame)
            self._wake.set()

    async def _hang_up(self, reason: str, *, forever: bool = False) -> None:
        with contextlib.suppress(ConnectionError, RuntimeError):
            await self._send(LinkEnd(reason, forever=forever))
            await self._socket.close(1008, reason[:100])

    async def _send(self, frame: AnyLinkFrame) -> None:
        data = link_frames.encode(frame)
        self.traffic.bytes_out += len(data)
        await self._socket.send(data)

    async def _receive(self, kind: type[F]) -> F:
        data = await self._socket.receive()
        if not isinstance(data, bytes):
            raise LinkError("hung up" if data is None else "links have binary frames")
        self.traffic.bytes_in += len(data)
        frame: AnyLinkFrame = link_frames.decode(data)
        if isinstance(frame, LinkEnd):
            raise LinkError(frame.reason)
        if not isinstance(frame, kind):
            raise LinkError(f"{type(frame).__name__} where {kind.__name__} was expected")
        return frame

    async def _send_all(self) -> None:
        node, other = self._node, self.neighbour
        while True:
            await self._wake.wait()
            self._wake.clear()
            reach = self._hood.reaches(but=other)
            if reach != self._reach:
                self._reach = reach
                await self._send(ReachableNodes(reach))
            while self._questions:
                await self._send(self._questions.popleft())
            while other in node.broker.links:
                for message in node.broker.asides(other) if self._hood.up.get(other) is self else ():
                    await self._send(UnnumberedMessage(message))
                heard = node.broker.links[other].heard
                if heard > self._said_received:
                    self._said_received = heard
                    await self._send(Received(heard))
                outgoing = node.broker.outgoing(other, self._sent, CHUNK)
                if not outgoing:
                    break
                written = await self._written([what for _, what in outgoing])
                self._sent = outgoing[len(written) - 1][0]
                await self._send(Messages(outgoing[0][0], written))

    async def _written(self, outgoing: list[bytes | int]) -> list[bytes]:
        """As many of them as make a frame of a good size, one at least."""
        entries = await self._node.entries([what for what in outgoing if isinstance(what, int)])
        written: list[bytes] = []
        size = 0
        for what in outgoing:
            if size > CHUNK_BYTES:
                break
            size += len(written[-1]) if written else 0
            entry = None if isinstance(what, bytes) else entries.get(what)
            if isinstance(what, bytes):
                self.traffic.tells_out += 1
                written.append(what)
                continue
            if entry is None:  # numbers leave nothing out, so something must stand for it
                logger.error("%s misses event %d, which the log no longer has", self.neighbour, what)
                written.append(wire.encode(FilterUpdate()))
                continue
            self.traffic.events_out += 1
            rest = details_of(entry)
            written.append(
                wire.encode_forward(
                    entry.event,
                    entry.publisher,
                    entry.sequence,
                    by=rest.by,
                    source=rest.source,
                    expires=rest.expires,
                    replaces=rest.replaces,
                    tag=rest.tag,
                )
            )
        return written

    async def _read_all(self) -> None:
        node, other = self._node, self.neighbour
        while True:
            data = await self._socket.receive()
            if data is None:
                return
            if not isinstance(data, bytes):
                raise LinkError("links have binary frames")
            self.traffic.bytes_in += len(data)
            match link_frames.decode(data):
                case Messages(first=first, messages=messages):
                    await node.room()
                    told = [message for message in messages if not wire.is_event(message)]
                    if told:  # to read filters may take seconds, in which everybody else would wait
                        await asyncio.to_thread(wire.prepare, told)
                    events = await node.submit(partial(_hear, other, first, messages))
                    self.traffic.events_in += events
                    self.traffic.tells_in += len(messages) - events
                case UnnumberedMessage(message=message):
                    await node.submit(partial(_hear_aside, other, message))
                case Received(number=number):
                    await node.submit(partial(_received, other, number))
                case ReachableNodes(nodes=nodes):
                    names = {name: url for name, url in nodes.items() if name != node.name}
                    self._hood.behind[other] = names
                    await node.submit(partial(_reach, other, list(names)))
                    self._hood.tell_reach()
                case OverviewRequest() | OverviewReply() as frame:
                    self._hood.overviews.hear(frame)
                case LinkEnd(reason=reason, forever=forever):
                    if forever:
                        await node.submit(lambda broker, now: broker.disconnect(other, now))
                        self._hood.behind.pop(other, None)
                    raise LinkError(f"{other} hung up: {reason}")
                case frame:
                    raise LinkError(f"{type(frame).__name__} was not expected")


def _hear(neighbour: str, first: int, messages: Sequence[bytes], broker: DurableBroker, now: float) -> int:
    return broker.hear(neighbour, first, messages, now)


def _hear_aside(neighbour: str, message: bytes, broker: DurableBroker, now: float) -> None:
    broker.hear_aside(neighbour, message, now)


def _lose(neighbour: str, broker: DurableBroker, now: float) -> None:
    broker.lose(neighbour, now)


def _reach(neighbour: str, names: Sequence[str], broker: DurableBroker, _: float) -> None:
    broker.letters.reach(neighbour, names)


def _received(neighbour: str, number: int, broker: DurableBroker, _: float) -> None:
    broker.received(neighbour, number)
