"""`DurableClient`: a client with a session, which repeats unaccepted events and follows the session from node to node.

The rules are the rules of `client.engine`: a delivery counts once by number, and once by event after a take-over of the
session by a replica holder, which may also repeat nothing that a channel has passed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.protocol import frames as f
from fieldfare.protocol import messages as m
from fieldfare.protocol.channels import identity_of, type_of
from fieldfare.protocol.lineage import Lineage
from fieldfare.simulation import trace as records
from fieldfare.simulation.core_connections import (
    Batch,
    ChangeFilter,
    ClientConnection,
    DeliveredEvent,
    PublishEvents,
    StateValues,
)
from fieldfare.simulation.detections import Detections, Detector, traced_name
from fieldfare.simulation.filling import Dynamic
from fieldfare.simulation.pipes import Pipe

if TYPE_CHECKING:
    from fieldfare.simulation.core_host import CoreHost
    from fieldfare.simulation.core_network import CoreNetwork

RETRY = 0.1
"""seconds between two attempts to connect"""
SHORTEST_TTL = 0.001
"""seconds; the time to live of events that were too late before they were sent"""
Subscription: TypeAlias = m.Subscribe | Dynamic | Detections
Change: TypeAlias = Subscription | m.Unsubscribe | m.Advertise | m.Unadvertise

_event = lru_cache(maxsize=10_000)(msgpack.decode)


class Line:
    """The client's side of a connection to a node."""

    def __init__(self, client: DurableClient, node: str, out: Pipe) -> None:
        self.client, self.node, self.out = client, node, out
        self.open = True
        self.welcomed = False
        self.peer: ClientConnection | None = None

    def receive(self, frame: Any) -> None:
        """Take a frame of the node; None is the end of the connection."""
        if self.open:
            self.client.receive(self, frame)

    def end(self) -> None:
        """End the connection on the side of the client."""
        if self.open:
            self.open = False
            self.out.send(None)


class DurableClient:
    """A client; `home` is the node where the client wants to be."""

    def __init__(self, network: CoreNetwork, name: str, home: str, *, lag: float = 0.0) -> None:
        """Acknowledge deliveries after at most `lag` seconds."""
        self.network, self.name, self.home, self.lag = network, name, home, lag
        self.random = network.random_of(name)
        self.away = False
        self.line: Line | None = None
        """the connection that is used, or will be"""
        self.former: Line | None = None
        """a connection to the node before, which still delivers"""
        self.node, self.identity, self.moves, self.life = "", "", 0, ""
        self.lives: Lineage = ()
        self.replicas: tuple[str, ...] = ()
        self.may_repeat = 0
        self.seen = self.acknowledged = 0
        self.count = 0
        self.unaccepted: dict[int, Batch] = {}
        self.changes: dict[int, Change | frozenset[str]] = {}
        """requests without an answer: changes of filters, or the names of stated values"""
        self.filters: dict[tuple[bool, str], Subscription | m.Advertise] = {}
        """subscriptions and advertisements, as far as requested"""
        self.values: dict[str, Any] = {}
        """stated values; None for a forgotten one"""
        self.detectors: dict[str, Filter] = {}
        """by id of a subscription to a pattern: the filter of the detections, as the node has said"""
        self._superseding: set[int] = set()
        """requests that replace or end a dynamic filter"""
        self._requests = 0
        self._last: dict[tuple[str, str], int] = {}
        self._known: set[tuple[str, str, int]] = set()
        self._latest: Batch | None = None
        self._earlier = 0
        """events that were published under earlier identities of the session"""
        self._dials = 0

    @property
    def connected(self) -> bool:
        """Whether a node serves the client."""
        return self.line is not None and self.line.open and self.line.welcomed

    @property
    def satisfied(self) -> bool:
        """Whether the client waits for nothing."""
        return self.connected and not self.unaccepted and not self.changes

    def may_change(self, id: str) -> bool:
        """Tell whether a program may request another filter for an id, or the end; as it waits for some answers.

        Unanswered requests are repeated in an order of their own, values first, so a dynamic filter that was replaced
        before would get the values for a moment.
        """
        dynamic = isinstance(self.filters.get((True, id)), Dynamic)
        ids = {getattr(one, "id", "") for one in self.changes.values()}
        return id not in ids and not (dynamic and any(isinstance(one, frozenset) for one in self.changes.values()))

    @property
    def may_state(self) -> bool:
        """Whether a program may state values, for the same reason."""
        return self._superseding.isdisjoint(self.changes)

    # What a program does

    def publish(self, events: Sequence[Event], ttl: float = 0.0) -> None:
        """Publish events, perhaps with a time to live; the client repeats unaccepted events."""
        deadline = self.network.clock.now + ttl if ttl else 0.0
        batch = Batch(self.count + 1, tuple(events), deadline)
        for number, event in enumerate(events, batch.number):
            self.network.record(records.Published, self.home, self.name, number, event, ttl)
        self.count += len(events)
        self.unaccepted[batch.number] = self._latest = batch
        self._send_events(batch)

    def change(self, message: Change) -> None:
        """Subscribe, unsubscribe, advertise or unadvertise; the client repeats the request until the answer."""
        if isinstance(self.filters.get((True, message.id)), Dynamic):
            self._superseding.add(self._requests + 1)
        if isinstance(message, Subscription | m.Unsubscribe):
            self.detectors.pop(message.id, None)
        if isinstance(message, Subscription):
            self.filters[True, message.id] = message
            self._subscribed(message)
        elif isinstance(message, m.Advertise):
            self.filters[False, message.id] = message
            self.network.record(records.Advertised, self.home, self.name, message.id, message.filter)
        else:
            self.filters.pop((isinstance(message, m.Unsubscribe), message.id), None)
        self._requests += 1
        self.changes[self._requests] = message
        self._send(ChangeFilter(self._requests, message))

    def leave_for(self, node: str) -> None:
        """Say where the client goes next; nobody repeats the hint if it gets lost."""
        self._send(f.LeaveFor(0, node))

    def _subscribed(self, message: Subscription) -> None:
        if isinstance(message, Dynamic):
            filter = message.filled(self.values, self.network.options.places)
        else:
            filter = message.filter
        self.network.record(records.Subscribed, self.home, self.name, message.id, filter)

    def state(self, values: Mapping[str, Any]) -> None:
        """State places or other values, which change the filters of dynamic subscriptions; None forgets a value."""
        self.values.update(values)
        for one in self.filters.values():
            if isinstance(one, Dynamic):
                self._subscribed(one)
        self._requests += 1
        self.changes[self._requests] = frozenset(values)
        self._state(self._requests, values)

    def _state(self, request: int, names: Iterable[str]) -> None:
        """Send the present values of names: a repeated request must not bring back older values."""
        self._send(StateValues(request, {name: self.values[name] for name in sorted(names)}))

    def acknowledge(self) -> None:
        """Send the number of the last delivery, unless the node knows the number."""
        if self.seen > self.acknowledged and self.connected:
            self.acknowledged = self.seen
            self._send(f.Acknowledge(self.seen))

    def detach(self) -> None:
        """Go away for a while."""
        if not self.away:
            self.away = True
            self.network.record(records.Departed, self.home, self.name)
            self._hang_up()

    def attach(self, node: str = "", *, make_before_break: bool = False) -> None:
        """Come to a node; with `make_before_break` the former connection goes on until the new one is served."""
        if node:
            self.home = node
        if self.away:
            self.away = False
            self.network.record(records.Arrived, self.home, self.name)
        elif self.line is not None and self.line.open and self.line.node == self.home:
            return
        if make_before_break and self.connected:
            self.former = self.line
        else:
            self._hang_up()
        self.network.note(self.name, f"goes to {self.home}")
        self._dial()

    def _hang_up(self) -> None:
        for line in (self.line, self.former):
            if line is not None:
                line.end()
        self.line = self.former = None

    # Connections

    def _dial(self) -> None:
        self._dials += 1
        self.line = self.network.dial(self, self.home)
        if self.line is None:
            self._retry()
            return
        self.line.out.send(self.hello())

    def connection_at(self, host: CoreHost, out: Pipe) -> ClientConnection:
        """Return the node's side of a new connection."""
        return ClientConnection(host, self.name, out)

    def hello(self) -> f.Hello:
        """Return the first frame of a connection."""
        return f.Hello(
            session=self.name,
            at=self.node,
            identity=self.identity,
            replicas=self.replicas,
            moves=self.moves,
            lives=self.lives,
            seen=self.seen,
        )

    def _retry(self) -> None:
        clock = self.network.clock
        clock.schedule_background(clock.now + RETRY * (0.5 + self.random.random()), self._dial_again, self._dials)

    def _dial_again(self, dials: int) -> None:
        if dials == self._dials and not self.away:
            self._dial()

    def lost(self, line: Line) -> None:
        """Note the end of a connection; the client comes back."""
        line.open = False
        if line is self.former:
            self.former = None
        elif line is self.line:
            self.line = None
            self._retry()

    def receive(self, line: Line, frame: Any) -> None:
        """Take a frame of a node."""
        if isinstance(frame, list | tuple):
            self._deliver(frame, line.node)
        elif isinstance(frame, f.Accepted):
            self._accept(frame.number)
        elif isinstance(frame, f.Done):
            self._done(frame.request)
        elif isinstance(frame, Detector):
            self._detected(frame)
        elif isinstance(frame, f.Welcome):
            self._begin(line, frame)
        elif isinstance(frame, f.Bye):
            if frame.to and line is self.line:  # the session goes on there
                self.home = frame.to
            self.lost(line)
        else:
            self.lost(line)

    def _begin(self, line: Line, welcome: f.Welcome) -> None:
        if self.former is not None:
            self.former.end()
            self.former = None
        if self.identity and welcome.identity != self.identity:
            self._begin_anew(welcome)
        line.welcomed = True
        self.network.note(self.name, f"is served by {welcome.node}")
        from_replica = welcome.may_repeat > 0 and welcome.moves != self.moves
        self.node, self.identity, self.moves = welcome.node, welcome.identity, welcome.moves
        self.lives, self.replicas, self.may_repeat = welcome.lives, welcome.replicas, welcome.may_repeat
        if 0 < welcome.void_from <= self.seen:
            self.seen = welcome.void_from - 1
        self.acknowledged = min(self.seen, welcome.acknowledged)
        unanswered = {request: one for request, one in self.changes.items() if isinstance(one, frozenset)}
        # The client library repeats values in each life of a log, and dynamic filters always. A program that begins
        # anew does not, so rows must be enough as long as the disks keep them.
        lost = self.network.forgot and welcome.life != self.life
        forgetful = from_replica or welcome.void_from > 0 or lost
        self.life = welcome.life
        if forgetful and self.values:
            self._requests += 1  # all of the values, until the answer
            self.changes[self._requests] = unanswered[self._requests] = frozenset(self.values)
        for request, names in unanswered.items():
            self._state(request, names)
        for filter in self.filters.values():  # most of them in vain; a replica holder may not know all of them
            if forgetful or self.network.forgot or not isinstance(filter, Dynamic):
                self._send(ChangeFilter(0, filter))
        for request, message in self.changes.items():
            if not isinstance(message, frozenset):
                self._send(ChangeFilter(request, message))
        self._accept(welcome.accepted)
        latest = self._latest
        accepted = welcome.accepted + self._earlier
        if latest is not None and latest.number not in self.unaccepted and latest.number <= accepted:
            self._send_events(latest)  # in vain: the node must not count it twice
        for batch in self.unaccepted.values():
            self._send_events(batch)

    def _send_events(self, batch: Batch) -> None:
        # Events that are too late are of no use to anybody, but need their numbers.
        ttl = max(batch.deadline - self.network.clock.now, SHORTEST_TTL) if batch.deadline else 0.0
        self._send(PublishEvents(batch.number - self._earlier, batch.events, ttl))

    def _begin_anew(self, welcome: f.Welcome) -> None:
        """Count from the beginning again: only a disk with a loss may forget a session."""
        if not self.network.forgot:
            self.network.problem(f"{welcome.node} has forgotten the session of {self.name}")
        first = min(self.unaccepted, default=self.count + 1)
        self.network.numbers[self.name, welcome.identity] = self._earlier = first - 1 - welcome.accepted
        self.seen = 0
        self._latest = None

    def _send(self, frame: object) -> None:
        if self.line is not None and self.line.open and self.line.welcomed:
            self.line.out.send(frame)

    # Answers

    def _accept(self, number: int) -> None:
        for first, batch in list(self.unaccepted.items()):
            if first + len(batch.events) - 1 <= number + self._earlier:
                del self.unaccepted[first]

    def _done(self, request: int) -> None:
        match self.changes.pop(request, None):
            case m.Unsubscribe(id=id):
                self.network.record(records.Unsubscribed, self.node, self.name, id)
            case m.Unadvertise(id=id):
                self.network.record(records.Unadvertised, self.node, self.name, id)

    def _detected(self, detector: Detector) -> None:
        """Note the detector of a subscription to a pattern, which only a loss replaces."""
        id, filter = detector.about.id, detector.filter
        if self.filters.get((True, id)) == detector.about and self.detectors.get(id) != filter:
            if id in self.detectors and not self.network.forgot:
                self.network.problem(f"the pattern {id} of {self.name} begins anew: {filter}, not {self.detectors[id]}")
            self.detectors[id] = filter
            self.network.record(records.Subscribed, self.node, self.name, id, filter)

    def _record(self, one: DeliveredEvent, node: str) -> None:
        network, ids = self.network, one.subscriptions
        if network.forgot:  # the node may have forgotten that a subscription has ended
            ids = tuple(id for id in ids if (True, id) in self.filters)
        if ids:
            sequence = one.sequence + network.numbers.get((one.publisher, identity_of(one.by)), 0)
            about = traced_name(one.publisher, one.by), sequence, _event(one.event), ids, one.channel_number
            self._record_delivered(node, *about)

    def _record_delivered(self, node: str, *about: Any) -> None:
        self.network.record(records.Delivered, node, self.name, *about)

    def _note(self, origin: tuple[str, str], number: int) -> bool:
        last = self._last.get(origin, -1)
        self._last[origin] = max(last, number)
        return number <= last

    def _deliver(self, items: Any, node: str) -> None:
        for one in items:
            if one.number <= self.seen:
                continue
            self.seen = one.number
            if one.identified:
                passed = self._note((one.publisher, one.by), one.sequence)
                if one.channel_number:
                    passed |= self._note(("", type_of(one.by)), one.channel_number)
                # A client of the library always leaves out what it knows; here nodes must not rely on that.
                known = self.network.options.impatient and (one.publisher, one.by, one.sequence) in self._known
                self._known.add((one.publisher, one.by, one.sequence))
                if known or (passed and one.number <= self.may_repeat):
                    continue
            self._record(one, node)
        if self.lag:
            clock = self.network.clock
            clock.schedule_background(clock.now + self.lag * self.random.random(), self.acknowledge)
        else:
            self.acknowledge()
