"""`Publishers`: the part of a broker for moving publishers.

The `PublisherPolicy` determines how advertisements follow a publisher. All policies but one lose events that are
published before the subscriptions have come to the new broker, and no broker can know when they have. SAFE finds out.

The new broker advertises, and a `PublisherArrival` follows over the links to the old broker. So each broker on the way
has received the advertisement before, and has sent subscriptions back. The old broker's `PublisherRelease` comes behind
these subscriptions, and behind all events published there: from now on events lose no subscriber and overtake no event.
Only then the advertisements end at the old broker. If the old broker waits for a release itself, because the publisher
moves fast, it answers after its own release.

The first arrival of a publisher, or an arrival from a broker that has forgotten the publisher, is complete after a
`BarrierRequest` has visited every broker and the `BarrierReply` has come back. All this needs an overlay without cycles
whose links keep order. If a release or a reply does not come in time, because a link is down, events leave all the
same: in order and once, as far as the new broker knows, but some may miss subscribers, and some that still wait at the
old broker come late.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from math import inf
from typing import ClassVar

from fieldfare.filters.filter import Filter
from fieldfare.mobility.broker import Base, Part
from fieldfare.mobility.flush_barrier import FlushBarriers
from fieldfare.mobility.messages import MoveIn, MoveOut
from fieldfare.mobility.predictors import Nowhere, Predictor
from fieldfare.mobility.publisher_messages import (
    BarrierReply,
    BarrierRequest,
    ForgetPublisher,
    PreparePublisher,
    PublisherArrival,
    PublisherRelease,
)
from fieldfare.protocol.messages import Advertise, Leave, Message, Publish, Refuse, Send, Unadvertise
from fieldfare.routing.publisher_policies import SAFE, PublisherPolicy


@dataclass(slots=True)
class PublisherVisit:
    """A publisher's time at a broker. The visit ends when the next broker has taken over."""

    number: int
    """the publisher's number of moves at arrival"""
    source: str
    """the broker before"""
    complete: bool = True
    """whether events from here reach all subscribers"""
    until: float = inf
    """time at which the visit counts as complete in any case"""
    held: list[Message] = field(default_factory=list)
    asked: list[tuple[str, int]] = field(default_factory=list)
    """brokers that want to take over, with the number of the visit there"""


class Publishers(Part):
    """The part of a broker that lets publishers move."""

    handles: ClassVar = (
        MoveIn, MoveOut, Publish, Advertise, Unadvertise, Leave, PreparePublisher, ForgetPublisher, PublisherArrival,
        PublisherRelease, BarrierRequest, BarrierReply,
    )  # fmt: skip

    def __init__(
        self,
        policy: PublisherPolicy = SAFE,
        *,
        hints: Mapping[str, PublisherPolicy] | None = None,
        predictor: Predictor = Nowhere(),  # noqa: B008 - a value
        proxies: Callable[[str], Collection[str]] = lambda _: (),
        patience: float = 60.0,
        capacity: int = 1000,
    ) -> None:
        """Make the part.

        Args:
            policy: how advertisements follow a publisher.
            hints: the policies of some clients, where they differ.
            predictor: guesses the next broker of a client without a known target.
            proxies: returns the brokers that advertise all the time for a client.
            patience: seconds for which events wait, and for which advertisements of an expected client last.
            capacity: number of waiting events of a client; more events are refused.
        """
        self.policy = policy
        self.hints = hints or {}
        self.predictor = predictor
        self.proxies = proxies
        self.patience = patience
        self.capacity = capacity
        self._visits: dict[str, list[PublisherVisit]] = {}
        """several for a client that returns before other brokers have taken over"""
        self._ends: dict[str, float] = {}
        """times at which the advertisements of absent clients end"""

    def join(self, base: Base) -> None:
        """Attach the part to a broker, with barriers of its own."""
        super().join(base)
        self._barriers = FlushBarriers(base.broker, self.patience)

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process a message of a client or a broker about moving publishers."""
        match message:
            case MoveIn():
                return self._move_in(message, sender, now)
            case MoveOut():
                return self._move_out(message, sender, now)
            case PreparePublisher():
                return self._prepare(message, now)
            case ForgetPublisher():
                return self._end(message.client, now)
            case PublisherArrival():
                return self._arrival(message, sender, now)
            case PublisherRelease():
                return self._release(message, now)
            case BarrierRequest():
                return self._barriers.receive_request(message, sender, now)
            case BarrierReply():
                sends, done = self._barriers.receive_reply(message, sender)
                return sends + (self._completed(*done, now) if done is not None else [])
        return self._request(message, sender, now)

    @property
    def wakes(self) -> float | None:
        """The time at which advertisements end, or a wait is over."""
        waits = (visit.until for visits in self._visits.values() for visit in visits if not visit.complete)
        return min((*self._ends.values(), *waits), default=None)

    def tick(self, now: float) -> list[Send]:
        """End overdue waits and expired advertisements."""
        sends: list[Send] = []
        for client, visits in list(self._visits.items()):
            for visit in [visit for visit in visits if not visit.complete and visit.until <= now]:
                sends += self._completed(client, visit.number, now)
        for client in [client for client, end in self._ends.items() if end <= now]:
            sends += self._end(client, now)
        return sends

    def waiting(self, client: str) -> int:
        """Return the number of waiting events of a client."""
        return sum(isinstance(m, Publish) for visit in self._visits.get(client, ()) for m in visit.held)

    # Clients

    def _request(self, message: Message, client: str, now: float) -> list[Send]:
        """Process a request of a client, behind its requests that already wait."""
        visit = next(reversed(self._visits.get(client, ())), None)
        if visit is None or visit.complete:
            return self._say(message, client, now)
        if isinstance(message, Publish):
            if sum(isinstance(other, Publish) for other in visit.held) >= self.capacity:
                return [Send(client, Refuse("too many events wait until the move is done"))]
            unchanged = all(isinstance(other, Publish) for other in visit.held)
            if unchanged and not self.base.broker.clients.may_publish(client, message.event):
                return self._say(message, client, now)  # which is refused
        visit.held.append(message)
        return []

    def _say(self, message: Message, client: str, now: float) -> list[Send]:
        sends = self.base.submit(message, client, now)
        if isinstance(message, Leave):
            self._visits.pop(client, None)
            self._ends.pop(client, None)
            others = self.proxies(client) if self._policy(client).proxies else ()
            sends += [self.base.envelope(other, ForgetPublisher(client)) for other in others if other != self.base.name]
        return sends

    def _move_in(self, message: MoveIn, client: str, now: float) -> list[Send]:
        visits = self._known(client)
        if visits and message.moves < visits[-1].number:
            return []  # the client has arrived again since
        for visit in visits:  # the client is back, with its present advertisements in the message
            visit.held = [other for other in visit.held if not isinstance(other, Leave | Unadvertise)]
        self._ends.pop(client, None)
        advertised = self._advertisements(client)
        new = {id: filter for id, filter in message.advertisements.items() if id not in advertised}
        sends = self._advertise(client, new, now)
        policy = self._policy(client)
        if not (policy.holds and self.base.broker.strategy.advertisements is not None):
            self._visits[client] = [PublisherVisit(message.moves, message.source)]
        elif visits and (message.moves == visits[-1].number or message.source == self.base.name):
            pass  # the client returns, and no other broker was involved
        elif message.advertisements or advertised:
            visit = PublisherVisit(message.moves, message.source, complete=False, until=now + self.patience)
            self._visits.setdefault(client, []).append(visit)
            sends += self._ask(client, visit, now)
        if policy.proxies and not message.source:
            others = [other for other in self.proxies(client) if other != self.base.name]
            sends += [self.base.envelope(other, PreparePublisher(client, message.advertisements)) for other in others]
        for id, filter in advertised.items():  # behind the waiting events, which need the old advertisements
            if id not in message.advertisements:
                sends += self._request(Unadvertise(id), client, now)
            elif message.advertisements[id] != filter:
                sends += self._request(Advertise(id, message.advertisements[id]), client, now)
        return sends

    def _move_out(self, message: MoveOut, client: str, now: float) -> list[Send]:
        visits, advertisements, policy = self._known(client), self._advertisements(client), self._policy(client)
        if not advertisements or (policy.proxies and self.base.name in self.proxies(client)):
            return []
        target = message.target
        if policy.ahead and not target:
            target = self.predictor.predict(visits[-1].source if visits else "", self.base.name)
        sends: list[Send] = []
        if policy.linger:
            self._ends[client] = now + policy.linger
        else:
            sends += self._end(client, now)
        if policy.ahead and target not in ("", self.base.name):
            sends.append(self.base.envelope(target, PreparePublisher(client, advertisements)))
        return sends

    # Other brokers

    def _prepare(self, message: PreparePublisher, now: float) -> list[Send]:
        client = message.client
        if self.base.name not in self.proxies(client) and (client in self._ends or client not in self._visits):
            self._ends[client] = max(self._ends.get(client, now), now + self.patience)
        return self._advertise(client, message.advertisements, now)

    def _arrival(self, message: PublisherArrival, sender: str, now: float) -> list[Send]:
        before = [visit for visit in self._known(message.client) if visit.number < message.moves]
        if not before:
            return [self.base.envelope(sender, PublisherRelease(message.client, message.moves, complete=False))]
        before[-1].asked.append((sender, message.moves))
        return self._answers(message.client, before[-1], now) if before[-1].complete else []

    def _release(self, message: PublisherRelease, now: float) -> list[Send]:
        if message.complete:
            return self._completed(message.client, message.moves, now)
        visit = self._visit(message.client, message.moves)
        return [] if visit is None or visit.complete else self._request_barrier(message.client, visit, now)

    def _ask(self, client: str, visit: PublisherVisit, now: float) -> list[Send]:
        """Find out when events published here reach all subscribers."""
        if visit.source in ("", self.base.name):
            return self._request_barrier(client, visit, now)
        return [self.base.envelope(visit.source, PublisherArrival(client, visit.number))]

    def _request_barrier(self, client: str, visit: PublisherVisit, now: float) -> list[Send]:
        sends = self._barriers.begin((client, visit.number), now)
        return sends or self._completed(client, visit.number, now)

    def _completed(self, client: str, number: int, now: float) -> list[Send]:
        """Release waiting requests after a visit is complete, and answer the brokers that want to take over."""
        visit = self._visit(client, number)
        if visit is None or visit.complete:
            return []
        visit.complete = True
        held, visit.held = visit.held, []
        sends = [send for message in held for send in self._say(message, client, now)]
        return sends + self._answers(client, visit, now)

    def _answers(self, client: str, visit: PublisherVisit, now: float) -> list[Send]:
        """Release a publisher to the waiting brokers; after its last visit here, its advertisements end."""
        if not visit.asked:
            return []
        sends = [self.base.envelope(to, PublisherRelease(client, number, complete=True)) for to, number in visit.asked]
        rest = [other for other in self._visits.get(client, ()) if other.number > visit.number or not other.complete]
        if rest:
            self._visits[client] = rest
            return sends
        return sends + self._end(client, now)

    # Advertisements

    def _policy(self, client: str) -> PublisherPolicy:
        return self.hints.get(client, self.policy)

    def _advertisements(self, client: str) -> dict[str, Filter]:
        known = self.base.broker.clients.all.get(client)
        return {} if known is None else dict(known.advertisements)

    def _known(self, client: str) -> list[PublisherVisit]:
        """Return the visits of a client; a client that never moved has always been here."""
        if client not in self._visits and client not in self._ends and self._advertisements(client):
            self._visits[client] = [PublisherVisit(-1, "")]
        return self._visits.get(client, [])

    def _visit(self, client: str, number: int) -> PublisherVisit | None:
        return next((visit for visit in self._visits.get(client, ()) if visit.number == number), None)

    def _advertise(self, client: str, advertisements: Mapping[str, Filter], now: float) -> list[Send]:
        return [
            send
            for id, filter in advertisements.items()
            for send in self.base.submit(Advertise(id, filter), client, now)
        ]

    def _end(self, client: str, now: float) -> list[Send]:
        """End the advertisements of a client, and forget a client without subscriptions."""
        sends: list[Send] = []
        for visit in [visit for visit in self._visits.pop(client, ()) if not visit.complete]:
            sends += [send for message in visit.held for send in self.base.submit(message, client, now)]
            sends += [
                self.base.envelope(to, PublisherRelease(client, number, complete=False)) for to, number in visit.asked
            ]
        self._ends.pop(client, None)
        for id in self._advertisements(client):
            sends += self.base.submit(Unadvertise(id), client, now)
        known = self.base.broker.clients.all.get(client)
        if known is not None and not known.subscriptions:
            sends += self.base.submit(Leave(), client, now)
        return sends
