"""`ClientConnection`: a client on a WebSocket. A task reads requests, another sends answers and deliveries.

The reader never waits for a submitted job, only for capacity in the node; so a client may send much before the
first answer. The sender fetches deliveries as fast as the client gives credit and reads: a slow client makes nobody
else wait.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from fieldfare.core import losses
from fieldfare.core.core import Core
from fieldfare.core.handover_state import TemporarilyRefused
from fieldfare.core.inputs import SendVoucher, Withhold
from fieldfare.core.session_names import check_session
from fieldfare.core.state import Pending, Session
from fieldfare.events import msgpack
from fieldfare.node import attachment, security
from fieldfare.node.attachment import Attached
from fieldfare.node.delivery_frames import delivery_parts
from fieldfare.node.interest import Interests
from fieldfare.node.node import Node, NodeStopped
from fieldfare.node.requests import Client, Requests
from fieldfare.node.security import Principal, rights, tickets
from fieldfare.node.sockets import Socket
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import JSON_CODEC, Codec, FrameError
from fieldfare.protocol.frames import Frame
from fieldfare.protocol.journal import JournalEntry
from fieldfare.protocol.versions import NEWEST, lacking

CHUNK: Final = 500
"""Largest number of deliveries in a frame."""
MOST_REPLIES: Final = 1000
"""Answers that may wait for a client to read them; beyond that, its requests wait."""
MOST_CREDIT: Final = 1_000_000
PATIENCE: Final = 10.0
"""Seconds in which a client must have read why it is disconnected."""


class ClientConnection:
    """A connection of a client, from `Hello` to `Bye`."""

    def __init__(
        self,
        node: Node,
        interests: Interests,
        socket: Socket,
        codec: Codec[Any],
        token: str | None,
        *,
        version: int = NEWEST,
    ) -> None:
        """Take an open socket on which no frame was sent, with the token of the HTTP header."""
        self._node = node
        self._interests = interests
        self._socket = socket
        self._codec = codec
        self._version = version
        self._token = token
        self._principal: Principal | None = None
        self._requests: Requests | None = None
        self._ticket = ""
        """Ticket for the next connection, if the client came with one."""
        self._name = ""
        self._credit = 0
        self._accepted = 0
        """Sequence number of the last accepted event."""
        self._accepts = False
        """Whether an `Accepted` frame is due."""
        self._replies: deque[Frame] = deque()
        self._wake = asyncio.Event()
        self._farewell: f.Bye | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._unwatch: Callable[[], None] = lambda: None
        self._may_read: rights.MayRead | None = None
        """Check for deliveries that waited since another token or role was here, and for dead letters; None: no check
        is needed."""
        self._waited = 0
        """Number of the last delivery that has waited."""
        self._answered = asyncio.Event()
        self._told_dropped = 0
        """Number of dropped deliveries, as last sent to the client."""

    async def serve(self) -> None:
        """Attach the client to a session, and serve the client until either side ends the connection."""
        if not await self._begin():
            return
        sender = asyncio.create_task(self._send_all())
        reader = asyncio.create_task(self._read_all())
        try:
            await asyncio.wait({sender, reader}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sender, reader):
                task.cancel()
            results = await asyncio.gather(sender, reader, return_exceptions=True)
            await self._end()
        for result in results:
            if isinstance(result, Exception) and not isinstance(result, ConnectionError):
                raise result

    # Beginning and end

    async def _begin(self) -> bool:
        try:
            async with asyncio.timeout(self._node.config.limits.hello_seconds):
                data = await self._socket.receive()
            if data is None:
                return False
            hello = self._codec.from_client(data)
            if not isinstance(hello, f.Hello):
                raise FrameError("the first frame must be Hello")
            if hello.version not in (0, self._version):
                raise FrameError(f"the subprotocol has version {self._version}, and Hello {hello.version}")
            if hello.session:
                check_session(hello.session)
            if hello.ticket and self._node.security is not None:
                self._principal, self._ticket = await attachment.ticket_holder(self._node, hello)
            else:
                token = hello.token or self._token
                self._principal = security.principal_of(token, self._node.security, self._node.clock())
            if self._node.security is not None:
                self._may_read = rights.may_read(self._principal)
            attached = await attachment.attach(self._node, hello, self._principal, self._send)
            await self._welcome(hello, attached)
        except TimeoutError:
            await self._hang_up("say Hello first")
            return False
        except ValueError as error:  # no frame, no access, no session
            await self._hang_up(str(error), again=isinstance(error, TemporarilyRefused))
            return False
        return True

    async def _welcome(self, hello: f.Hello, attached: Attached) -> None:
        node, limits, principal = self._node, self._node.config.limits, self._known()
        name, session = attached.name, attached.session
        self._name = name
        self._requests = Requests(
            node,
            self._interests,
            self._codec,
            Client(name, session.identity, principal),
            reply=self._reply,
            accepted=self._accept,
            stopped=lambda: self._close("the node stops", again=True),
        )
        self._waited = attached.waited
        self._replies.extend(f.Refused(one, code="denied") for one in attached.ended)
        node.use_session(name, self._close, self._wake.set)
        self._credit = min(max(hello.credit, 0), MOST_CREDIT)
        self._accepted = session.sequence
        self._told_dropped = session.warned
        await self._send(
            f.Welcome(
                node.name,
                name,
                session.identity,
                session.sequence,
                session.acknowledged,
                self._version,
                max_frame=limits.frame_bytes,
                max_batch=limits.batch,
                replicas=tuple(node.core.replicas.holders.get(name, ())),
                moves=session.moves,
                may_repeat=session.doubt,
                lives=session.lives,
                void_from=attached.void,
                life=node.core.life,
                warned=session.warned,
                ticket=self._ticket,
            )
        )
        self._unwatch = security.watch(principal, node.security, lambda: self._close("your token is void"))
        if principal.until is not None:
            loop = asyncio.get_running_loop()
            rest = max(0.0, principal.until - node.clock())
            self._expiry = loop.call_later(rest, self._close, "your token has expired")
        self._wake.set()

    def _known(self) -> Principal:
        assert self._principal is not None
        return self._principal

    def _close(self, reason: str, *, again: bool = False, to: str = "", follow: bool = False) -> None:
        """End the connection as soon as possible; see `Closer`."""
        self._farewell = f.Bye(reason, again, to, self._voucher_ticket() if to and follow else "")
        self._wake.set()

    def _voucher_ticket(self) -> str:
        """Return a ticket for the next node of the session, and send a voucher for the client there.

        Empty: the client has shown no token here, and needs none there.
        """
        departure, principal = self._node.core.handovers.departures.get(self._name), self._known()
        if departure is None or self._node.security is None or not principal.name:
            return ""
        ticket = tickets.new_ticket()
        voucher = tickets.vouch_for(principal, self._name, departure.ticket, ticket)
        self._node.submit_detached(SendVoucher(voucher))
        return ticket

    async def _end(self) -> None:
        node = self._node
        if self._expiry is not None:
            self._expiry.cancel()
        self._unwatch()
        if node.closers.get(self._name) != self._close:
            return  # another connection uses the session now
        self._interests.forget(self._name)
        del node.closers[self._name], node.wakers[self._name]
        if node.ready:
            await node.submit(self._detach)

    def _detach(self, core: Core, now: float) -> None:
        if self._name not in self._node.closers and self._is_current():  # else another connection has come meanwhile
            core.sessions.detach(self._name, now)

    def _is_current(self) -> bool:
        return self._requests is not None and self._requests.is_current()

    async def _hang_up(self, reason: str, *, again: bool = False) -> None:
        with contextlib.suppress(ConnectionError, RuntimeError):
            await self._send(f.Bye(reason, again))
            await self._socket.close(1008, reason[:100])

    # Sending

    async def _send(self, frame: Frame) -> None:
        if lacking(self._version, frame):
            return
        data = self._codec.encode(frame)
        counters = self._node.counters
        counters.frames_out += 1
        counters.bytes_out += len(data)
        await self._socket.send(data)

    def _reply(self, frame: Frame) -> None:
        self._replies.append(frame)
        self._wake.set()

    def _accept(self, number: int) -> None:
        self._accepted = max(self._accepted, number)
        self._accepts = True
        self._wake.set()

    async def _send_all(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while await self._send_some():
                pass
            if self._farewell is not None:
                await self._send(self._farewell)
                await self._socket.close(1008, self._farewell.reason[:100])
                return

    async def _send_some(self) -> bool:
        """Send answers, and deliveries within the credit; tell whether there may be more."""
        while self._replies:
            await self._send(self._replies.popleft())
        self._answered.set()
        if self._accepts:
            self._accepts = False
            await self._send(f.Accepted(self._accepted))
        if self._credit <= 0 or not self._is_current() or self._farewell is not None:
            return False
        limit = min(CHUNK, self._credit)
        session = self._node.core.sessions[self._name]
        taken = self._node.core.deliveries.next(self._name, limit, self._node.clock())
        parts = await self._parts(taken, session) if taken else []
        if session.dropped > self._told_dropped:
            self._told_dropped = session.dropped
            losses.warn(session, parts[0][0].number if parts else session.sent)
            parts = parts or [[]]
        for part in parts:
            self._credit -= len(part)
            self._node.counters.deliveries += len(part)
            await self._send(f.Deliveries(part, self._told_dropped))
        return len(taken) == limit

    async def _parts(self, taken: list[tuple[int, Pending]], of: Session) -> list[list[f.Delivery]]:
        core = self._node.core
        entries = await self._node.entries([pending.position for _, pending in taken])
        session = core.sessions.get(self._name)
        identified = self._name in core.replicas.holders or (session is not None and session.doubt > 0)
        found = delivery_parts(taken, entries, self._may_have, as_json=self._codec is JSON_CODEC, identified=identified)
        of.dropped += found.missing
        if found.withheld:
            self._node.submit_detached(Withhold(self._name, found.withheld))
        return found.parts

    def _may_have(self, number: int, entry: JournalEntry) -> bool:
        if self._may_read is None or not (number <= self._waited or rights.is_letter(entry.event)):
            return True
        return self._may_read(msgpack.decode(entry.event))

    # Reading

    async def _read_all(self) -> None:
        counters, limits = self._node.counters, self._node.config.limits
        while True:
            data = await self._socket.receive()
            if data is None:
                return
            counters.frames_in += 1
            counters.bytes_in += len(data)
            while len(self._replies) > MOST_REPLIES:  # a client that does not read its answers must wait
                self._answered.clear()
                await self._answered.wait()
            try:
                if len(data) > limits.frame_bytes:
                    raise FrameError(f"a frame has at most {limits.frame_bytes} bytes")
                frame = self._codec.from_client(data)
            except FrameError as error:
                self._farewell = f.Bye(str(error), retry=False)
                self._wake.set()
                await asyncio.sleep(PATIENCE)
                return
            await self._handle(frame)

    async def _handle(self, frame: f.FromClient) -> None:
        assert self._requests is not None
        if isinstance(frame, f.Credit):
            self._credit = min(self._credit + max(frame.more, 0), MOST_CREDIT)
            self._wake.set()
            return
        try:
            await self._requests.handle(frame)
        except NodeStopped as error:
            self._requests.refuse(error, 0)
