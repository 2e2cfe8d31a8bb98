"""`Requests`: the frames of a client after `Hello`, turned into inputs for the core and answered.

A request is never awaited: the client may send many before the first answer, and answers come in order.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from fieldfare.core.handover_state import SessionMoving
from fieldfare.core.inputs import Acknowledge, ChangeFilters, ExpectMove, Input, Leave
from fieldfare.core.member_inputs import AcknowledgeByDevice, AcknowledgeByMember, RemoveDevice
from fieldfare.core.open_publication import OpenPublication
from fieldfare.core.state import PeerTooOld, Publication, RequestRefused
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.node import parameters, patterns, replay, security
from fieldfare.node.interest import Interests
from fieldfare.node.node import Node, NodeStopped
from fieldfare.node.security import AccessDenied, Principal
from fieldfare.node.security.filter_admission import admitted, filling, permitted
from fieldfare.protocol import frames as f
from fieldfare.protocol import messages as m
from fieldfare.protocol.codec import Codec
from fieldfare.protocol.event_options import options_of
from fieldfare.protocol.messages import About
from fieldfare.protocol.numbers import NUMBER_LIMIT

LONGEST_ID: Final = 200
"""Largest length of an id in characters."""


class Client(NamedTuple):
    """The session and the principal of requests."""

    name: str
    identity: str
    """Identity of the session: after its end, another principal may have a session of the same name."""
    principal: Principal
    member: str = ""
    """Name of a member of a shared session, and of the session under which the member publishes."""
    device: str = ""
    """Name of the device that the member is."""


class Requests:
    """Handles the requests of a connection, and refuses by answers."""

    def __init__(
        self,
        node: Node,
        interests: Interests,
        codec: Codec[Any],
        client: Client,
        *,
        reply: Callable[[f.Frame], None],
        accepted: Callable[[int], None],
        stopped: Callable[[], None],
    ) -> None:
        """Answer with `reply`; `accepted` gets the sequence numbers of accepted events, `stopped` the node's end."""
        self._node = node
        self._interests = interests
        self._codec = codec
        self._name, self._identity, self._principal, self._member, self._device = client
        fill = filling(self._principal, node.config.limits)
        self._parameters = parameters.Parameters(node, self._name, self._identity, fill)
        self._reply = reply
        self._accepted = accepted
        self._stopped = stopped
        self._open: OpenPublication | None = None

    def begin(self, frame: f.FromClient) -> Coroutine[Any, Any, None] | None:
        """Begin the input of a frame; a returned coroutine does the rest. `Credit` is no request.

        Events may wait for the next `flush`, so that those of several frames become a single input.
        """
        if isinstance(frame, f.Publish):
            if not self._node.has_capacity:
                return self._publish_later(frame)
            self._publish(frame)
            return None
        self.flush()
        if isinstance(frame, f.Acknowledge):
            self._acknowledge(frame)
            return None
        self._node.acknowledgements.flush(self._name)
        match frame:
            case f.Subscribe(request=request):
                return self._subscribe(frame, request)
            case f.SubscribePattern(request=request):
                return self._subscribe_pattern(frame, request)
            case f.SetParameters(request=request):
                return self._set_parameters(frame, request)
            case f.Unsubscribe(request=request, id=id):
                self._change(m.Unsubscribe(id), request)
            case f.Advertise(request=request):
                return self._advertise(frame, request)
            case f.Unadvertise(request=request, id=id):
                self._change(m.Unadvertise(id), request)
            case f.WatchInterest(request=request):
                self._watch_interest(request)
            case f.LeaveFor(request=request, node=node):
                self._submit(ExpectMove(self._name, node, self._identity), request)
            case f.Leave(request=request) if self._device:
                self._submit(RemoveDevice(self._name, self._device, self._identity), request)
            case f.Leave(request=request):
                self._submit(Leave(self._name, self._identity), request)
            case f.Hello():
                self.refuse(RequestRefused("you said Hello before"), 0)
        return None

    def refuse(self, error: BaseException, request: int, number: int = 0) -> None:
        """Answer a refused request, or a refused `Publish` with a number."""
        if isinstance(error, SessionMoving):
            return  # the connection ends, and the client repeats the request where the session will be
        if isinstance(error, NodeStopped):  # the effect may be in the log all the same: the client repeats the request
            self._stopped()
            return
        self._node.counters.refused += 1
        code = "denied" if isinstance(error, AccessDenied) else "version" if isinstance(error, PeerTooOld) else "bad"
        reason = str(error) if isinstance(error, ValueError) else "something went wrong in the node: see its log"
        self._reply(f.Refused(reason, request, number, code))

    # Inputs

    def _submit(self, what: Input, request: int) -> None:
        self._node.submit_then(what, partial(self._answer, request))

    def _answer(self, request: int, answer: object) -> None:
        if isinstance(answer, Exception):
            self.refuse(answer, request)
        else:
            self._reply(f.Done(request))

    def _acknowledge(self, frame: f.Acknowledge) -> None:
        node, name, identity = self._node, self._name, self._identity
        if self._device:
            node.submit_then(AcknowledgeByDevice(name, self._device, frame.number, identity), self._acknowledged)
        elif self._member:
            node.submit_then(AcknowledgeByMember(name, self._member, frame.numbers, identity), self._acknowledged)
        else:
            node.acknowledgements.add(Acknowledge(name, frame.number, identity), self._acknowledged)

    def _acknowledged(self, answer: object) -> None:
        if isinstance(answer, Exception):
            self.refuse(answer, 0)

    def _change(self, message: m.Message, request: int) -> None:
        name, identity = self._of(message)
        self._submit(ChangeFilters(name, message, identity), request)

    def _of(self, message: m.Message | f.Publish) -> tuple[str, str]:
        """Return name and identity of the session that a request is about: a member publishes under its own."""
        if self._member and isinstance(message, f.Publish | m.Advertise | m.Unadvertise):
            return self._member, ""
        return self._name, self._identity

    # Events

    async def _publish_later(self, frame: f.Publish) -> None:
        self.flush()
        await self._node.wait_for_capacity()
        self._publish(frame)
        self.flush()

    def _publish(self, frame: f.Publish) -> None:
        """Add the events of a frame to those that wait for the next `flush`."""
        try:
            events = self._events_of(frame)
        except ValueError as error:
            self.refuse(error, 0, frame.number)
            return
        if self._open is not None and not self._open.take(frame, events):
            self.flush()
        if self._open is None:
            self._open = OpenPublication(frame, events, alone=self._node.core.judges_events)

    def flush(self) -> None:
        """Give the events that wait to the core, if there are any."""
        if self._open is None:
            return
        node, (frame, numbers, events) = self._node, self._open.closed()
        self._open = None
        expires = 0.0 if frame.ttl is None else node.clock() + frame.ttl
        name, identity = self._of(frame)
        options = {**options_of(frame, Publication), "expires": expires} if frame.has_options else {}
        what = Publication(name, frame.number, events, identity, **options)
        node.acknowledgements.flush(self._name)
        node.submit_then(what, partial(self._published, numbers))

    def _events_of(self, frame: f.Publish) -> list[Event]:
        """Return the events of a frame; ValueError if an event or the frame is refused."""
        node, number = self._node, frame.number
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
                events.append(self._codec.event_to_log(bytes(raw)))
            except EventError as error:
                raise RequestRefused(f"event {place}: {error}") from None
        for event in events if node.security is not None else ():
            security.may_publish(self._principal, event)
        if frame.ttl is not None and not frame.ttl > 0:
            raise RequestRefused("a time to live is more than 0 seconds")
        return events

    def _published(self, numbers: Sequence[int], answer: int | Exception) -> None:
        if isinstance(answer, Exception):
            for number in numbers:
                self.refuse(answer, 0, number)
        else:
            self._accepted(answer)

    # Filters

    async def _subscribe(self, frame: f.Subscribe, request: int) -> None:
        node = self._node
        try:
            _check_id(frame.id)
            permitted(self._principal, "subscribe")
            self._check_count("subscriptions", frame.id)
            dynamic = await parameters.read(frame.filter, node)
            if dynamic is not None:
                self._reply(f.Done(request, await self._parameters.subscribe(frame, dynamic)))
                return
            wanted = security.subscribable(self._principal, await admitted(frame.filter, node.config.limits))
            if frame.since is None:
                self._change(m.Subscribe(frame.id, wanted), request)
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
            self.refuse(error, request)

    async def _subscribe_pattern(self, frame: f.SubscribePattern, request: int) -> None:
        try:
            _check_id(frame.id)
            permitted(self._principal, "subscribe")
            self._check_count("subscriptions", frame.id)
            about = self._node, self._name, frame.id, frame.pattern, self._principal
            more = {"since": frame.since, "life": frame.life, "identity": self._identity}
            self._reply(f.Done(request, await patterns.subscribe(*about, **more)))  # type: ignore[arg-type]
        except ValueError as error:
            self.refuse(error, request)

    async def _advertise(self, frame: f.Advertise, request: int) -> None:
        try:
            _check_id(frame.id)
            permitted(self._principal, "advertise")
            self._check_count("advertisements", frame.id)
            filter = await admitted(frame.filter, self._node.config.limits)
            security.may_advertise(self._principal, filter)
        except ValueError as error:
            self.refuse(error, request)
        else:
            self._change(m.Advertise(frame.id, filter), request)

    async def _set_parameters(self, frame: f.SetParameters, request: int) -> None:
        try:
            permitted(self._principal, "subscribe")
            self._submit(await self._parameters.set(self._codec.event(bytes(frame.values))), request)
        except ValueError as error:
            self.refuse(error, request)

    def _check_count(self, about: About, id: str) -> None:
        """Refuse a filter beyond the limit of a session; under an id in use, the new filter replaces the old."""
        name = self._member if self._member and about == "advertisements" else self._name
        mine, most = self._node.core.broker.clients.all.get(name), self._node.config.limits.subscriptions
        had = getattr(mine, about) if mine is not None else {}
        if len(had) >= most and id not in had:
            raise RequestRefused(f"a session has at most {most} {about}")

    def _watch_interest(self, request: int) -> None:
        try:
            security.may_ask(self._principal)
        except AccessDenied as error:
            self.refuse(error, request)
            return
        self._reply(f.Done(request))
        publish = self._principal.permissions.publish
        self._interests.watch(self._member or self._name, lambda texts: self._reply(f.Interest(texts)), publish)


def _check_id(id: str) -> None:
    """Refuse a long id, since the log repeats the id beside every match."""
    if len(id) > LONGEST_ID:
        raise RequestRefused(f"an id has at most {LONGEST_ID} characters")
