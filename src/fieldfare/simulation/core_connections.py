"""`ClientConnection`: the connection of a client at a simulated node, as `node.connection` and `node.attachment`."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from fieldfare.core.claims import ClaimSession
from fieldfare.core.handover_state import SessionMoving, SharedElsewhere
from fieldfare.core.inputs import Acknowledge, CancelArrival, ChangeFilters, Detach, ExpectMove, Input, Leave, TakeOver
from fieldfare.core.parameter_inputs import SetParameters, SubscribeDynamic
from fieldfare.core.pattern_inputs import SubscribePattern
from fieldfare.core.state import Pending, Publication, Session
from fieldfare.events.event import Event
from fieldfare.filters.named_filter import unnamed
from fieldfare.protocol import frames as f
from fieldfare.protocol.journal import channel_number_of, details_of, event_id
from fieldfare.protocol.messages import Message
from fieldfare.simulation.detections import Detections, Detector
from fieldfare.simulation.filling import Dynamic
from fieldfare.simulation.pipes import Pipe
from fieldfare.simulation.processes import Inbox, Work

if TYPE_CHECKING:
    from fieldfare.simulation.core_host import CoreHost

PATIENCE = 2.0
"""seconds of silence after which a replica holder is asked for a session"""


class PublishEvents(NamedTuple):
    """Events of a client, with the number of the first."""

    number: int
    events: Sequence[Event]
    ttl: float = 0.0
    """seconds from now; 0: for ever"""


class Batch(NamedTuple):
    """Events that a client publishes together, until all are accepted."""

    number: int
    """of the first"""
    events: tuple[Event, ...]
    deadline: float = 0.0
    """virtual time after which the events are of no use; 0: never"""


class ChangeFilter(NamedTuple):
    """A numbered request of a client: subscribe, unsubscribe, advertise or unadvertise."""

    request: int
    message: Message | Dynamic | Detections


class StateValues(NamedTuple):
    """A numbered request of a client: the values of parameters."""

    request: int
    values: Mapping[str, object]


class EndSession(NamedTuple):
    """A numbered request of a client to end the session."""

    request: int


class DeliveredEvent(NamedTuple):
    """A numbered event for a client."""

    number: int
    publisher: str
    by: str
    sequence: int
    event: bytes
    subscriptions: tuple[str, ...]
    identified: bool
    """whether the client may see publisher and sequence number, as with a replicated session"""
    channel_number: int = 0


class ClientConnection:
    """The side of the node: claims the session, sends deliveries, and turns requests into inputs."""

    def __init__(self, host: CoreHost, session: str, out: Pipe) -> None:
        self.host, self.session, self.out = host, session, out
        self.inbox = Inbox()
        self.open = True
        self._identity = ""
        self._attached = self._waits = False
        self._claiming = self._gone = False
        self._changed = False
        self._before = ""
        self._process = host.spawn(self._serve())

    def receive(self, frame: object) -> None:
        """Take a frame of the client; None is the end of the connection."""
        if not self.open or not self.host.up:
            return
        if frame is None and self._claiming:
            self._gone = True  # a node reads nothing meanwhile
        elif frame is None:
            self.end()
        else:
            self.inbox.put(frame)

    def close(self, reason: str, to: str = "", *, retry: bool = True) -> None:
        """Say farewell, and end the connection."""
        if self.open:
            self.out.send(f.Bye(reason, retry, to))
            self.end()

    def end(self) -> None:
        """End the connection; the session stays."""
        if not self.open:
            return
        self.open = False
        self._process.end()
        host = self.host
        host.watchers.discard(self._watch)
        if self._waits:
            host.submit(CancelArrival(self.session))
        self._ended()

    def _ended(self) -> None:
        """Leave the session, unless another connection uses it now."""
        host = self.host
        if host.connections.get(self.session) is self:
            del host.connections[self.session]
            session = host.core.sessions.get(self.session)
            if session is not None and session.identity == self._identity:
                host.submit(self._detach)

    def _detach(self, core: Any, now: float) -> None:
        session = core.sessions.get(self.session)
        current = session is not None and session.identity == self._identity
        if current and self.session not in self.host.connections:  # else another connection has come meanwhile
            Detach(self.session)(core, now)

    # The session

    def _serve(self) -> Work:
        hello: f.Hello = yield self.inbox
        host = self.host
        candidates = deque((*hello.replicas, hello.at))
        try:
            claimed = yield from self._claim(self._attempt(hello))
            while claimed is None:
                yield from self._wait()
                # The silence of a node that comes back gives the session two nodes for a while.
                lost = host.network.lost & {hello.at, host.core.handovers.source_of(self.session)}
                if not self._changed and hello.replicas and (lost or host.network.options.impatient):
                    candidates.rotate(-1)
                    host.network.note(host.name, f"asks {candidates[-1]} to take over {self.session}")
                    yield from self._claim(TakeOver(self.session, candidates[-1], host.network.fresh("take-over")))
                claimed = yield from self._claim(self._attempt(hello))
        except ValueError as error:
            self.close(str(error), error.node if isinstance(error, SharedElsewhere) else "")
            return
        self._waits = False
        self._welcome(hello, claimed.session, claimed.void)
        if self._gone:
            self.end()
        while True:
            frame = yield self.inbox
            self._handle(frame)

    def _attempt(self, hello: f.Hello) -> ClaimSession:
        """Return a claim under a new name: an answer to an earlier attempt must not count for this one."""
        fresh = self.host.network.fresh("claim" if hello.identity else hello.session)
        about = hello.at, hello.identity, hello.moves, "", hello.seen, hello.lives
        return ClaimSession(hello.session, fresh, *about)

    def _claim(self, claim: ClaimSession | TakeOver) -> Generator[Any, Any, Any]:
        self._claiming = True
        answer = yield claim
        self._claiming = False
        if self._gone and answer is None:
            self._waits = True
            self.end()
        return answer

    def _wait(self) -> Work:
        """Wait until the status of the session changes, or the patience ends."""
        handovers, until = self.host.core.handovers, self.host.clock.now + PATIENCE
        self._waits, self._changed = True, False
        self._before = handovers.status(self.session)
        self.host.watchers.add(self._watch)
        while not self._changed and self.host.clock.now < until:
            yield 0.05
        self.host.watchers.discard(self._watch)

    def _watch(self) -> None:
        if self.host.core.handovers.status(self.session) != self._before:
            self._changed = True

    def _use(self, session: Session, hello: f.Hello) -> None:
        """Take the place of an earlier connection."""
        del session, hello
        host, name, core = self.host, self.session, self.host.core
        former = host.connections.get(name)
        if former is not None:
            host.connections.pop(name)
            former.close("the session is used by another connection")
        host.connections[name] = self
        if name in core.sessions:
            core.sessions[name].connected = True
            core.members.restart(name)

    def _welcome(self, hello: f.Hello, session: Session, void: int) -> None:
        host, name, core = self.host, self.session, self.host.core
        self._use(session, hello)
        self._identity, self._attached = session.identity, True
        self.out.send(
            f.Welcome(
                host.name,
                name,
                session.identity,
                session.sequence,
                self._acknowledged_by(session),
                replicas=tuple(core.replicas.holders.get(name, ())),
                moves=session.moves,
                may_repeat=session.doubt,
                lives=session.lives,
                void_from=void,
                life=core.life,
            )
        )
        self.pump()

    def _acknowledged_by(self, session: Session) -> int:
        """Return the number of the client's last acknowledged delivery."""
        return session.acknowledged

    def _take(self, now: float) -> list[tuple[int, Pending]]:
        """Return the next deliveries for the client."""
        return self.host.core.deliveries.next(self.session, 1000, now)

    def pump(self) -> None:
        """Send the client all deliveries on disk."""
        self._send_next()

    def _send_next(self) -> None:
        host, core, name = self.host, self.host.core, self.session
        session = core.sessions.get(name)
        if not self._attached or session is None or session.identity != self._identity:
            return
        now = host.network.wall(host.name)
        taken = self._take(now)
        if not taken:
            return
        entries = host.disk.entries(pending.position for _, pending in taken)
        identified = name in core.replicas.holders or session.doubt > 0
        items = []
        for number, pending in taken:
            if pending.position not in entries:
                host.network.lost_event(host.name, pending.position, name)
                continue
            entry = entries[pending.position]
            if 0 < details_of(entry).expires <= now:
                host.network.problem(f"{host.name} sends {name} event {pending.position}, which has expired")
            about = *event_id(entry), entry.event, tuple(pending.subscriptions)
            items.append(DeliveredEvent(number, *about, identified, channel_number_of(entry)))
        self.out.send(items)

    # Requests

    def _handle(self, frame: Any) -> None:
        host, name, identity = self.host, self.session, self._identity
        match frame:
            case PublishEvents(number=number, events=events, ttl=ttl):
                expires = host.network.wall(host.name) + ttl if ttl else 0.0
                publication = Publication(name, number, events, identity, expires=expires)
                host.submit(publication, self._accepted)
            case StateValues(request=request, values=values):
                host.submit(SetParameters(name, values, identity), lambda answer: self._done(request, answer))
            case ChangeFilter(request=request, message=message):
                if isinstance(message, Detections):
                    pattern = SubscribePattern(name, message.id, message.text, identity)
                    host.submit(pattern, lambda answer: self._detecting(request, message, answer))
                    return
                if isinstance(message, Dynamic):
                    change: Input = SubscribeDynamic(name, message.id, message.text, identity)
                else:
                    change = ChangeFilters(name, message, identity)
                host.submit(change, lambda answer: self._done(request, answer))
            case EndSession(request=request):
                host.submit(Leave(name, identity), lambda answer: self._done(request, answer))
            case f.LeaveFor(request=request, node=node):
                host.submit(ExpectMove(name, node, identity), lambda answer: self._done(request, answer))
            case f.Acknowledge(number=number):
                host.submit(Acknowledge(name, number, identity), self._note_refusal)

    def _accepted(self, answer: Any) -> None:
        if not self._refused(answer):
            self.out.send(f.Accepted(answer))

    def _done(self, request: int, answer: Any) -> None:
        if not self._refused(answer):
            self.out.send(f.Done(request))

    def _detecting(self, request: int, about: Detections, answer: Any) -> None:
        """Tell the client which detector serves the subscription, unless another request has replaced it."""
        client = self.host.core.broker.clients.all.get(self.session)
        filter = client.subscriptions.get(about.id) if client is not None else None
        if filter is not None and about.filter.covers(filter):
            self.out.send(Detector(about, unnamed(filter)))
        self._done(request, answer)

    def _note_refusal(self, answer: Any) -> None:
        self._refused(answer)

    def _refused(self, answer: Any) -> bool:
        """Tell whether a request was refused; the client of a moving session repeats the request elsewhere."""
        if isinstance(answer, Exception) and not isinstance(answer, SessionMoving):
            self.host.network.refused(self.host.name, self.session, str(answer))
        return isinstance(answer, Exception)
