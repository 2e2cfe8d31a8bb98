"""`ClientConnection`: a client on a WebSocket. One task reads what it says, another sends it what it may have.

The reader never waits for what it submits, but for room in the node; so a client may say much before the first of it is
answered. The sender takes from the session what the client has credit for, as fast as the client reads: a slow one
makes nobody wait but itself.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

import msgspec

from fieldfare.events import json, msgpack
from fieldfare.events.limits import EventError
from fieldfare.node import losses, replay, security
from fieldfare.node.durable_broker import DurableBroker
from fieldfare.node.handover import NotYet, Unsettled
from fieldfare.node.interest import Interests
from fieldfare.node.node import Node, NodeStopped
from fieldfare.node.replicas import LEAP
from fieldfare.node.security import AccessDenied, Principal, names, rights, tickets
from fieldfare.node.security.filter_admission import admitted, permitted
from fieldfare.node.security.quotas import check_new_session
from fieldfare.node.state import Pending, Publication, RequestRefused, Session, Step
from fieldfare.protocol import frames as f
from fieldfare.protocol import messages as m
from fieldfare.protocol.codec import JSON_CODEC, Codec, FrameError
from fieldfare.protocol.frames import Frame
from fieldfare.protocol.journal import JournalEntry, event_id
from fieldfare.protocol.messages import About
from fieldfare.protocol.numbers import NUMBER_LIMIT

CHUNK: Final = 500
"""deliveries in a frame at most"""
CHUNK_BYTES: Final = 256 << 10
MOST_REPLIES: Final = 1000
"""answers that may wait for a client to read them"""
MOST_CREDIT: Final = 1_000_000
LONGEST_ID: Final = 200
"""characters"""
PATIENCE: Final = 10.0
"""seconds in which a client must have read why it is disconnected"""
REASSURE: Final = 2.0
"""seconds between two words to a client whose session is on its way"""


class Socket(Protocol):
    """What is needed of a WebSocket."""

    async def receive(self) -> bytes | str | None:
        """The next message; None when it is closed."""

    async def send(self, data: bytes | str) -> None:
        """Send a message, as fast as the other side reads."""

    async def close(self, code: int, reason: str) -> None:
        """Hang up."""


class ClientConnection:
    """A client that is there."""

    def __init__(self, node: Node, wishes: Interests, socket: Socket, codec: Codec[Any], token: str | None) -> None:
        """The socket is open, and nothing was said yet."""
        self._node = node
        self._wishes = wishes
        self._socket = socket
        self._codec = codec
        self._token = token
        self._principal: Principal | None = None
        self._ticket = ""
        """for the next time that the client comes, if it came with one"""
        self._name = ""
        self._identity = ""
        """of the session: after it has ended, somebody else may have one of the same name"""
        self._credit = 0
        self._accepted = 0
        self._accepts = False
        """whether that is to be said"""
        self._replies: deque[Frame] = deque()
        self._wake = asyncio.Event()
        self._farewell: f.Bye | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._unwatch: Callable[[], None] = lambda: None
        self._may_read: rights.MayRead | None = None
        """asked of what has waited since another token or another role was here, and of dead letters; None: all of it
        may be had"""
        self._waited = 0
        """the number of the last delivery that has"""
        self._answered = asyncio.Event()
        self._void = 0
        """from which number on deliveries that the client has had mean others now"""
        self._told = 0
        """how many deliveries were dropped, as far as was said"""

    async def serve(self) -> None:
        """Stay until either side goes."""
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

    # Coming and going

    async def _begin(self) -> bool:
        try:
            async with asyncio.timeout(self._node.config.limits.hello_seconds):
                data = await self._socket.receive()
            if data is None:
                return False
            hello = self._codec.from_client(data)
            if not isinstance(hello, f.Hello):
                raise FrameError("the first frame must be Hello")
            if hello.version != f.VERSION:
                raise FrameError(f"this node speaks version {f.VERSION} of the protocol, not {hello.version}")
            if hello.session:
                names.check_session(hello.session)
            if hello.ticket and self._node.security is not None:
                self._principal = await self._ticketed(hello)
            else:
                token = hello.token or self._token
                self._principal = security.principal_of(token, self._node.security, self._node.clock())
            if self._node.security is not None:
                self._may_read = rights.may_read(self._principal)
            await self._attach(hello)
        except TimeoutError:
            await self._hang_up("say Hello first")
            return False
        except ValueError as error:  # no frame, no access, no session
            await self._hang_up(str(error), again=isinstance(error, NotYet))
            return False
        return True

    async def _ticketed(self, hello: f.Hello) -> Principal:
        """Who comes with a ticket, for one session only; word of it may still be on its way here."""
        node, name = self._node, hello.session
        passes, news = node.broker.moving.passes, asyncio.Event()

        def watch(_: Step) -> None:
            news.set()

        node.watchers.add(watch)
        try:
            async with asyncio.timeout(PATIENCE / 2):
                while name not in passes and node.broker.moving.where(name) == "coming":
                    await news.wait()
                    news.clear()
        except TimeoutError:
            pass
        finally:
            node.watchers.discard(watch)
        known = passes.get(name)
        if known is None or not tickets.opens(known, hello.ticket, node.clock()):
            raise security.Unauthenticated("this ticket is not good here: come with your token")
        principal = tickets.principal_of(known, node.security, node.clock())
        passes[name], self._ticket = tickets.renewed(known, hello.ticket)
        return principal

    async def _attach(self, hello: f.Hello) -> None:
        """Take up a session; Refusal or AccessDenied if that cannot be."""
        node, fresh = self._node, self._node.fresh()
        name = hello.session or f"~{fresh}"
        owner, limits = self._known().name, node.config.limits

        def attach(broker: DurableBroker, now: float) -> Session | None:
            session = broker.sessions.get(name)
            if session is None:
                check_new_session(node, broker, owner)
            if session is not None and node.security is not None and session.owner != owner:
                raise AccessDenied(f"the session {name} belongs to somebody else")
            if not hello.session:
                return broker.attach(name, fresh, now, durable=False, owner=owner)
            return self._claimed(hello, broker, fresh, now)

        session = await node.submit(attach)
        asked = deque((*hello.replicas, hello.at))
        while session is None:
            if not await self._wait(name) and hello.replicas:
                asked.rotate(-1)
                await node.submit(lambda broker, now: broker.moving.take_over(name, asked[-1], node.fresh(), now))
            session = await node.submit(attach)
        self._name, self._identity = name, session.identity
        node.occupy(name, self._close, self._wake.set)
        self._credit = min(max(hello.credit, 0), MOST_CREDIT)
        self._accepted = session.sequence
        self._told = session.warned
        await self._send(
            f.Welcome(
                node.name,
                name,
                session.identity,
                session.sequence,
                session.done,
                max_frame=limits.frame_bytes,
                max_batch=limits.batch,
                replicas=tuple(node.broker.keeping.copies.get(name, ())),
                moves=session.moves,
                may_repeat=session.doubt,
                lives=session.lives,
                void_from=self._void,
                life=node.broker.life,
                warned=session.warned,
                ticket=self._ticket,
            )
        )
        self._unwatch = security.watch(self._known(), node.security, lambda: self._close("your token is void"))
        until = self._known().until
        if until is not None:
            loop = asyncio.get_running_loop()
            self._expiry = loop.call_later(max(0.0, until - node.clock()), self._close, "your token has expired")
        self._wake.set()

    def _claimed(self, hello: f.Hello, broker: DurableBroker, fresh: str, now: float) -> Session | None:
        """A session with a name; None while it is on its way here. What its owner no longer may ends."""
        name, principal = hello.session, self._known()
        found = broker.moving.claim(
            name, fresh, now, at=hello.at, identity=hello.identity, moves=hello.moves, owner=principal.name
        )
        if found is not None and hello.identity == found.identity:
            self._void = broker.void_for(name, hello.seen, hello.lives)
        if found is not None and found.doubt and not hello.identity:
            found.sequence += LEAP  # a program that does not know how far it was: the keeper may not either
            broker.note_session(name)
        if found is not None and self._node.security is not None:
            self._waited = found.count
            for one in rights.recheck(broker, name, principal, now):
                self._replies.append(f.Refused(one, code="denied"))
        return found

    async def _wait(self, name: str) -> bool:
        """Wait until it may have changed where a session is, or for too long; says which."""
        node, moving = self._node, self._node.broker.moving
        before, changed = moving.where(name), asyncio.Event()

        def watch(_: Step) -> None:
            if moving.where(name) != before:
                changed.set()

        node.watchers.add(watch)
        until = asyncio.get_running_loop().time() + node.config.sessions.patience_seconds
        try:
            while not changed.is_set() and moving.where(name) == before:
                if asyncio.get_running_loop().time() > until:
                    return False
                await self._send(f.Waiting(moving.source(name)))
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(REASSURE, node.config.sessions.patience_seconds)):
                        await changed.wait()
            return True
        except BaseException:
            if node.ready:
                node.submit(lambda broker, _: broker.moving.give_up(name))
            raise
        finally:
            node.watchers.discard(watch)

    def _close(self, reason: str, *, again: bool = False, to: str = "", follow: bool = False) -> None:
        """Hang up as soon as possible."""
        self._farewell = f.Bye(reason, again, to, self._vouched() if to and follow else "")
        self._wake.set()

    def _vouched(self) -> str:
        """A ticket for the node where the session goes; that node hears who comes with it, before it has the session.

        Empty: the client has shown no token here, and needs none there.
        """
        departure, principal = self._node.broker.moving.departures.get(self._name), self._known()
        if departure is None or self._node.security is None or not principal.name:
            return ""
        ticket = tickets.new_ticket()
        vouch = tickets.vouch_for(principal, self._name, departure.ticket, ticket)
        self._node.soon(lambda broker, _: broker.moving.vouch(vouch))
        return ticket

    async def _end(self) -> None:
        node = self._node
        if self._expiry is not None:
            self._expiry.cancel()
        self._unwatch()
        if node.closers.get(self._name) != self._close:
            return  # another connection has taken over the session
        self._wishes.forget(self._name)
        del node.closers[self._name], node.wakers[self._name]
        if node.ready:
            await node.submit(self._detach)

    def _detach(self, broker: DurableBroker, now: float) -> None:
        if self._name not in self._node.closers and self._is_mine():  # else another connection has come meanwhile
            broker.detach(self._name, now)

    async def _hang_up(self, reason: str, *, again: bool = False) -> None:
        with contextlib.suppress(ConnectionError, RuntimeError):
            await self._send(f.Bye(reason, again))
            await self._socket.close(1008, reason[:100])

    # Sending

    async def _send(self, frame: Frame) -> None:
        data = self._codec.encode(frame)
        traffic = self._node.traffic
        traffic.frames_out += 1
        traffic.bytes_out += len(data)
        await self._socket.send(data)

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
        """Send what there is; says whether there may be more."""
        while self._replies:
            await self._send(self._replies.popleft())
        self._answered.set()
        if self._accepts:
            self._accepts = False
            await self._send(f.Accepted(self._accepted))
        if self._credit <= 0 or not self._is_mine() or self._farewell is not None:
            return False
        limit = min(CHUNK, self._credit)
        session = self._node.broker.sessions[self._name]
        taken = self._node.broker.take(self._name, limit, self._node.clock())
        parts = await self._deliveries(taken, session) if taken else []
        if session.dropped > self._told:
            self._told = session.dropped
            losses.said(session, parts[0][0].number if parts else session.taken)
            parts = parts or [[]]
        for part in parts:
            self._credit -= len(part)
            self._node.traffic.deliveries += len(part)
            await self._send(f.Deliveries(part, self._told))
        return len(taken) == limit

    async def _deliveries(self, taken: list[tuple[int, Pending]], of: Session) -> list[list[f.Delivery]]:
        """Deliveries in frames of a good size."""
        entries = await self._node.entries([pending.position for _, pending in taken])
        parts: list[list[f.Delivery]] = [[]]
        withheld: list[int] = []
        size = 0
        plain = self._codec is JSON_CODEC
        session = self._node.broker.sessions.get(self._name)
        keyed = self._name in self._node.broker.keeping.copies or (session is not None and session.doubt > 0)
        for number, pending in taken:
            entry = entries.get(pending.position)
            if entry is None:
                of.dropped += 1  # the log no longer has it
                continue
            if (number <= self._waited or rights.is_letter(entry.event)) and not self._may_have(entry):
                withheld.append(number)
                continue
            event = json.encode(msgpack.decode(entry.event)) if plain else entry.event
            weight = len(event) + sum(map(len, pending.subscriptions))
            if size + weight > CHUNK_BYTES and parts[-1]:
                parts.append([])
                size = 0
            size += weight
            raw = msgspec.Raw(event)
            about = event_id(entry)[1:] if keyed and not pending.old else ()
            parts[-1].append(
                f.Delivery(number, entry.position, entry.time, entry.publisher, raw, pending.subscriptions, *about)
            )
        if withheld:
            self._node.soon(lambda broker, _: rights.withhold(broker, self._name, withheld))
        return [part for part in parts if part]

    def _may_have(self, entry: JournalEntry) -> bool:
        return self._may_read is None or self._may_read(msgpack.decode(entry.event))

    def _reply(self, frame: Frame) -> None:
        self._replies.append(frame)
        self._wake.set()

    # Reading

    async def _read_all(self) -> None:
        traffic = self._node.traffic
        while True:
            data = await self._socket.receive()
            if data is None:
                return
            traffic.frames_in += 1
            traffic.bytes_in += len(data)
            while len(self._replies) > MOST_REPLIES:  # whoever asks and does not read must wait
                self._answered.clear()
                await self._answered.wait()
            try:
                if len(data) > self._node.config.limits.frame_bytes:
                    raise FrameError(f"a frame has at most {self._node.config.limits.frame_bytes} bytes")
                frame = self._codec.from_client(data)
            except FrameError as error:
                self._farewell = f.Bye(str(error), retry=False)
                self._wake.set()
                await asyncio.sleep(PATIENCE)
                return
            try:
                await self._take(frame)
            except NodeStopped as error:
                self._refuse(error, 0)

    async def _take(self, frame: f.FromClient) -> None:
        match frame:
            case f.Publish():
                await self._node.room()
                self._publish(frame)
            case f.Acknowledge(number=number):
                self._submit(lambda broker, _: self._acknowledge(broker, number), 0, silent=True)
            case f.Credit(more=more):
                self._credit = min(self._credit + max(more, 0), MOST_CREDIT)
                self._wake.set()
            case f.Subscribe(request=request):
                await self._subscribe(frame, request)
            case f.Unsubscribe(request=request, id=id):
                self._submit(lambda broker, now: broker.change(m.Unsubscribe(id), self._name, now), request)
            case f.Advertise(request=request, id=id):
                try:
                    _check_id(id)
                    permitted(self._known(), "advertise")
                    self._expect_room("advertisements", id)
                    filter = await admitted(frame.filter, self._node.config.limits)
                    security.may_advertise(self._known(), filter)
                except ValueError as error:
                    self._refuse(error, request)
                else:
                    self._submit(lambda broker, now: broker.change(m.Advertise(id, filter), self._name, now), request)
            case f.Unadvertise(request=request, id=id):
                self._submit(lambda broker, now: broker.change(m.Unadvertise(id), self._name, now), request)
            case f.WatchInterest(request=request):
                self._ask(request)
            case f.Leave(request=request):
                self._submit(lambda broker, now: broker.leave(self._name, now), request)
            case f.Hello():
                self._refuse(RequestRefused("you said Hello before"), 0)

    def _acknowledge(self, broker: DurableBroker, number: int) -> None:
        if self._is_mine():  # else it has just gone to another node, where this is said again
            broker.acknowledge(self._name, number)

    def _is_mine(self) -> bool:
        session = self._node.broker.sessions.get(self._name)
        return session is not None and session.identity == self._identity

    def _publish(self, frame: f.Publish) -> None:
        node, number = self._node, frame.number
        try:
            if len(frame.events) > node.config.limits.batch:
                raise RequestRefused(
                    f"{len(frame.events)} events in a frame, more than the limit of {node.config.limits.batch}"
                )
            if not 1 <= number < NUMBER_LIMIT - len(frame.events):
                raise RequestRefused(f"{number} is no number of an event: they begin with 1")
            if not frame.events:
                raise RequestRefused("a Publish has at least one event")
            _check_id(frame.replaces)
            events = []
            for place, raw in enumerate(frame.events):
                try:
                    events.append(self._codec.event(bytes(raw)))
                    if self._codec is JSON_CODEC:
                        msgpack.decode(msgpack.encode(events[-1]))  # it may be larger there
                except EventError as error:
                    raise RequestRefused(f"event {place}: {error}") from None
            for event in events if node.security is not None else ():
                security.may_publish(self._known(), event)
            if frame.ttl is not None and not frame.ttl > 0:
                raise RequestRefused("a time to live is more than 0 seconds")
        except ValueError as error:
            self._refuse(error, 0, number)
            return
        expires = None if frame.ttl is None else node.clock() + frame.ttl
        future = node.publish(Publication(self._name, number, events, expires, frame.replaces, self._identity))
        future.add_done_callback(lambda done: self._published(done, number))

    def _published(self, done: asyncio.Future[int], number: int) -> None:
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            self._refuse(error, 0, number)
        else:
            self._accepted = max(self._accepted, done.result())
            self._accepts = True
            self._wake.set()

    async def _subscribe(self, frame: f.Subscribe, request: int) -> None:
        node = self._node
        try:
            _check_id(frame.id)
            permitted(self._known(), "subscribe")
            self._expect_room("subscriptions", frame.id)
            wanted = security.subscribable(self._known(), await admitted(frame.filter, node.config.limits))
            if frame.since is None:
                self._submit(lambda broker, now: broker.change(m.Subscribe(frame.id, wanted), self._name, now), request)
            else:
                gone = await replay.subscribe(
                    node,
                    self._name,
                    frame.id,
                    wanted,
                    frame.since,
                    life=frame.life,
                    complete=frame.complete,
                    identity=self._identity,
                )
                self._reply(f.Done(request, gone))
        except ValueError as error:
            self._refuse(error, request)

    def _ask(self, request: int) -> None:
        try:
            security.may_ask(self._known())
        except AccessDenied as error:
            self._refuse(error, request)
            return
        self._reply(f.Done(request))
        self._wishes.tell(self._name, lambda texts: self._reply(f.Interest(texts)), self._known().permissions.publish)

    def _expect_room(self, about: About, id: str) -> None:
        """Refuse what would be one too many for a session; under an id in use, another filter takes its place."""
        mine, most = self._node.broker.broker.clients.all.get(self._name), self._node.config.limits.subscriptions
        had = getattr(mine, about) if mine is not None else {}
        if len(had) >= most and id not in had:
            raise RequestRefused(f"a session has at most {most} {about}")

    def _known(self) -> Principal:
        assert self._principal is not None
        return self._principal

    def _submit(self, job: Callable[[DurableBroker, float], object], request: int, *, silent: bool = False) -> None:
        def answer(done: asyncio.Future[object]) -> None:
            if done.cancelled():
                return
            error = done.exception()
            if error is not None:
                self._refuse(error, request)
            elif not silent:
                self._reply(f.Done(request))

        def checked(broker: DurableBroker, now: float) -> object:
            if not silent:
                broker.check_same(self._name, self._identity)
            return job(broker, now)

        self._node.submit(checked).add_done_callback(answer)

    def _refuse(self, error: BaseException, request: int, number: int = 0) -> None:
        if isinstance(error, Unsettled):
            return  # the connection ends, and the client says it again where the session will be
        if isinstance(error, NodeStopped):  # it may be in the log all the same: the client says it again
            self._close("the node stops", again=True)
            return
        self._node.traffic.refused += 1
        code = "denied" if isinstance(error, AccessDenied) else "bad"
        reason = str(error) if isinstance(error, ValueError) else "something went wrong in the node: see its log"
        self._reply(f.Refused(reason, request, number, code))


def _check_id(id: str) -> None:
    """An id stands in the log beside every event that is for it."""
    if len(id) > LONGEST_ID:
        raise RequestRefused(f"an id has at most {LONGEST_ID} characters")
