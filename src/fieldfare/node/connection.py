"""`ClientConnection`: a client on a WebSocket, from `Hello` to `Bye`.

Requests are handled in the call that reads them, and never wait for a submitted job, only for capacity in the node; so
a client may send much before the first answer. The `ClientSender` sends answers and deliveries.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any

from fieldfare.core.core import Core
from fieldfare.core.handover_state import SharedElsewhere, TemporarilyRefused
from fieldfare.core.member_inputs import DetachMember
from fieldfare.core.session_names import check_session
from fieldfare.node import attachment, security
from fieldfare.node.accepted_socket import AcceptedSocket
from fieldfare.node.attachment import Attached
from fieldfare.node.client_sender import ClientSender, encoded
from fieldfare.node.device_sender import DeviceSender
from fieldfare.node.interest import Interests
from fieldfare.node.member_sender import MemberSender
from fieldfare.node.members import Connected
from fieldfare.node.node import Node, NodeStopped
from fieldfare.node.requests import Client, Requests
from fieldfare.node.security import Principal
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import Codec, FrameError
from fieldfare.protocol.frames import Frame
from fieldfare.protocol.versions import NEWEST


class ClientConnection:
    """A connection of a client; the `Listener` of its socket."""

    def __init__(
        self,
        node: Node,
        interests: Interests,
        socket: AcceptedSocket,
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
        self._ticket = ""
        """Ticket for the next connection, if the client came with one."""
        self._name = self._member = ""
        """The session, and for a member of a shared session the name by which the node knows the connection."""
        self._sender: ClientSender
        self._requests: Requests
        self._expiry: asyncio.TimerHandle | None = None
        self._unwatch: Callable[[], None] = lambda: None

    async def serve(self) -> None:
        """Attach the client to a session, and serve the client until either side ends the connection."""
        try:
            if await self._begin():
                self._socket.listen(self)
                await self._sender.ended
        finally:
            if self._name:
                await self._end()

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
                principal, self._ticket = await attachment.ticket_holder(self._node, hello)
            else:
                token = hello.token or self._token
                principal = security.principal_of(token, self._node.security, self._node.clock())
            attached = await attachment.attach(self._node, hello, principal, self._send)
            await self._welcome(hello, principal, attached)
        except TimeoutError:
            await self._hang_up("say Hello first")
            return False
        except ValueError as error:  # no frame, no access, no session
            to = self._node.address(error.node) if isinstance(error, SharedElsewhere) else ""
            await self._hang_up(str(error), again=isinstance(error, TemporarilyRefused), to=to)
            return False
        return True

    async def _welcome(self, hello: f.Hello, principal: Principal, attached: Attached) -> None:
        node, limits = self._node, self._node.config.limits
        name, session = attached.name, attached.session
        self._name, self._member = name, attached.member
        kind = DeviceSender if attached.device else MemberSender if attached.member else ClientSender
        sender = self._sender = kind(
            node, self._socket, self._codec, principal, attached, credit=hello.credit, version=self._version
        )
        self._requests = Requests(
            node,
            self._interests,
            self._codec,
            Client(name, session.identity, principal, attached.member, attached.device),
            reply=sender.reply,
            accepted=sender.accept,
            stopped=lambda: sender.close("the node stops", again=True),
        )
        node.use_session(attached.member or name, sender.close, sender.wake)
        if attached.member:
            label = attached.device or hello.member
            node.shared.join(name, attached.member, Connected(label, sender.close, sender.wake))
        place = node.core.devices.of(name)[attached.device] if attached.device else session
        await self._send(
            f.Welcome(
                node.name,
                name,
                session.identity,
                0 if attached.member else session.sequence,
                place.acknowledged,
                self._version,
                max_frame=limits.frame_bytes,
                max_batch=limits.batch,
                replicas=tuple(node.core.replicas.holders.get(name, ())),
                moves=session.moves,
                may_repeat=session.doubt,
                lives=session.lives,
                void_from=attached.void,
                life=node.core.life,
                warned=place.warned,
                ticket=self._ticket,
                shared=bool(attached.member) and not attached.device,
                device=attached.device,
            )
        )
        self._unwatch = security.watch(principal, node.security, lambda: sender.close("your token is void"))
        if principal.until is not None:
            loop = asyncio.get_running_loop()
            rest = max(0.0, principal.until - node.clock())
            self._expiry = loop.call_later(rest, sender.close, "your token has expired")
        sender.wake()

    async def _end(self) -> None:
        node = self._node
        if self._expiry is not None:
            self._expiry.cancel()
        self._unwatch()
        own = self._member or self._name
        if node.closers.get(own) != self._sender.close:
            return  # another connection uses the session now
        self._interests.forget(own)
        del node.closers[own], node.wakers[own]
        if self._member:
            node.shared.leave(self._name, self._member)
        if node.ready:
            node.acknowledgements.flush(self._name)
            await node.submit(self._detach)

    def _detach(self, core: Core, now: float) -> None:
        if self._member:
            DetachMember(self._name, self._member)(core, now)
            core.presence.detach(self._member, now)
        elif self._name not in self._node.closers and self._sender.is_current():  # else another connection has come
            core.presence.detach(self._name, now)

    async def _hang_up(self, reason: str, *, again: bool = False, to: str = "") -> None:
        with contextlib.suppress(ConnectionError):
            await self._send(f.Bye(reason, again, to))
            await self._socket.close(1008, reason[:100])

    async def _send(self, frame: Frame) -> None:
        for data in encoded([frame], self._codec, self._version, self._node.counters):
            await self._socket.send(data)

    # The listener of the socket

    def receive(self, messages: deque[bytes | str]) -> Coroutine[Any, Any, None] | None:
        """Handle frames at once, unless the node or the client is behind with earlier ones."""
        counters, sender = self._node.counters, self._sender
        try:
            while messages:
                message = messages.popleft()
                counters.frames_in += 1
                counters.bytes_in += len(message)
                work = self._receive_later(message) if sender.is_behind else self._handle(message)
                if work is not None:
                    return work
        except Exception as error:  # noqa: BLE001 - `serve` raises it
            sender.fail(error)
        finally:
            self._requests.flush()
        return None

    def resume(self) -> None:
        """Send due frames: the client has read enough of the earlier ones."""
        self._sender.wake()

    def lost(self) -> None:
        """End the service: the other side has gone, and all received frames are handled."""
        if not self._sender.ended.done():
            self._sender.ended.set_result(None)

    async def _receive_later(self, message: bytes | str) -> None:
        await self._sender.caught_up()
        work = self._handle(message)
        self._requests.flush()
        await self._finish(work)

    async def _finish(self, work: Coroutine[Any, Any, None] | None) -> None:
        """Do the rest of a request."""
        if work is None:
            return
        try:
            await work
        except NodeStopped as error:
            self._requests.refuse(error, 0)
        except Exception as error:  # noqa: BLE001 - `serve` raises it
            self._sender.fail(error)

    def _handle(self, message: bytes | str) -> Coroutine[Any, Any, None] | None:
        if self._sender.has_said_farewell:
            return None
        most = self._node.config.limits.frame_bytes
        try:
            if len(message) > most:
                raise FrameError(f"a frame has at most {most} bytes")
            frame = self._codec.from_client(message)
        except FrameError as error:
            self._sender.close(str(error))
            return None
        if isinstance(frame, f.Credit):
            self._sender.add_credit(frame.more)
            return None
        work = self._requests.begin(frame)
        return None if work is None else self._finish(work)
