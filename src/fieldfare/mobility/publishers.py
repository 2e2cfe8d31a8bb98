"""`Publishers`: what a broker does for publishers that move.

How promises follow a publisher its `PublisherPolicy` says. All but one lose events that are published before the
subscriptions have come to the new broker, and nobody can know when they have. SAFE finds out.

The new broker promises, and an `Arrival` follows on the links to the old one. Each broker on the way
has thus heard the promise before, and sent subscriptions back. The old broker's `Yield` comes behind them, and behind
all events that were published there: so now events lose nobody and overtake none. Only then promises end at the old
broker. If it waits for a release itself, because the publisher moves on fast, it answers when it has got its own.

A publisher that comes from nowhere, or from a broker that knows it no more, is heard by all when a `Survey` has been at
every broker and its `Echo` came back. All this needs an overlay without cycles whose links keep their order. If
a release or an echo does not come in time, because a link is down, events go out nevertheless: in order and
once, as far as the new broker knows, but some may not be heard everywhere, and some that still wait at the old broker
come late.
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
from fieldfare.mobility.publisher_messages import Arrival, Echo, Forget, Prepare, Survey, Yield
from fieldfare.mobility.publisher_policies import SAFE, PublisherPolicy
from fieldfare.protocol.messages import Advertise, Leave, Message, Publish, Refuse, Send, Unadvertise


@dataclass(slots=True)
class PublisherVisit:
    """A publisher's time at a broker. It ends when the next broker has taken over."""

    number: int
    """how often the publisher had moved when it came"""
    source: str
    """the broker before"""
    complete: bool = True
    """whether all hear what is published here"""
    until: float = inf
    """when it counts as complete in any case"""
    held: list[Message] = field(default_factory=list)
    asked: list[tuple[str, int]] = field(default_factory=list)
    """brokers that want to take over, with the number of the stay there"""


class Publishers(Part):
    """The part of a broker that lets publishers move."""

    hears: ClassVar = (
        MoveIn, MoveOut, Publish, Advertise, Unadvertise, Leave, Prepare, Forget, Arrival, Yield, Survey, Echo,
    )  # fmt: skip

    def __init__(
        self,
        manner: PublisherPolicy = SAFE,
        *,
        hints: Mapping[str, PublisherPolicy] | None = None,
        predictor: Predictor = Nowhere(),  # noqa: B008 - a value
        proxies: Callable[[str], Collection[str]] = lambda _: (),
        patience: float = 60.0,
        room: int = 1000,
    ) -> None:
        """No publishers yet.

        Args:
            manner: how promises follow.
            hints: of some clients: how theirs do, if not like that of others.
            predictor: where a client is expected that does not say where it goes.
            proxies: of a client: the brokers that promise all the time what it promises.
            patience: for how many seconds events wait, and promises for a client that is expected.
            room: for how many events of a client, at most; more are refused.
        """
        self.manner = manner
        self.hints = hints or {}
        self.predictor = predictor
        self.proxies = proxies
        self.patience = patience
        self.room = room
        self._stays: dict[str, list[PublisherVisit]] = {}
        """of a client that comes back before others took over there are several"""
        self._ends: dict[str, float] = {}
        """when the promises of clients that are not here end"""

    def join(self, base: Base) -> None:
        """Become part of a broker."""
        super().join(base)
        self._surveys = FlushBarriers(base.broker, self.patience)

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Take a message of a client or a broker."""
        match message:
            case MoveIn():
                return self._move_in(message, sender, now)
            case MoveOut():
                return self._move_out(message, sender, now)
            case Prepare():
                return self._expect(message, now)
            case Forget():
                return self._end(message.client, now)
            case Arrival():
                return self._arrival(message, sender, now)
            case Yield():
                return self._release(message, now)
            case Survey():
                return self._surveys.survey(message, sender, now)
            case Echo():
                sends, done = self._surveys.echo(message, sender)
                return sends + (self._completed(*done, now) if done is not None else [])
        return self._said(message, sender, now)

    @property
    def wakes(self) -> float | None:
        """When promises end, or somebody has waited long enough."""
        waits = (stay.until for stays in self._stays.values() for stay in stays if not stay.complete)
        return min((*self._ends.values(), *waits), default=None)

    def tick(self, now: float) -> list[Send]:
        """Do what is due."""
        sends: list[Send] = []
        for client, stays in list(self._stays.items()):
            for stay in [stay for stay in stays if not stay.complete and stay.until <= now]:
                sends += self._completed(client, stay.number, now)
        for client in [client for client, end in self._ends.items() if end <= now]:
            sends += self._end(client, now)
        return sends

    def waiting(self, client: str) -> int:
        """How many events of a client wait here."""
        return sum(isinstance(m, Publish) for stay in self._stays.get(client, ()) for m in stay.held)

    # Clients

    def _said(self, message: Message, client: str, now: float) -> list[Send]:
        """A client publishes, or changes what it promises: both wait behind what waits already."""
        stay = next(reversed(self._stays.get(client, ())), None)
        if stay is None or stay.complete:
            return self._say(message, client, now)
        if isinstance(message, Publish):
            if sum(isinstance(other, Publish) for other in stay.held) >= self.room:
                return [Send(client, Refuse("too many events wait until the move is done"))]
            as_promised = all(isinstance(other, Publish) for other in stay.held)
            if as_promised and not self.base.broker.clients.may_publish(client, message.event):
                return self._say(message, client, now)  # which is refused
        stay.held.append(message)
        return []

    def _say(self, message: Message, client: str, now: float) -> list[Send]:
        sends = self.base.say(message, client, now)
        if isinstance(message, Leave):
            self._stays.pop(client, None)
            self._ends.pop(client, None)
            others = self.proxies(client) if self._manner(client).proxies else ()
            sends += [self.base.post(other, Forget(client)) for other in others if other != self.base.name]
        return sends

    def _move_in(self, message: MoveIn, client: str, now: float) -> list[Send]:
        stays = self._known(client)
        if stays and message.moves < stays[-1].number:
            return []  # it has been here since
        for stay in stays:  # it is back, and what it promises now is in the message
            stay.held = [other for other in stay.held if not isinstance(other, Leave | Unadvertise)]
        self._ends.pop(client, None)
        promised = self._promises(client)
        new = {id: filter for id, filter in message.advertisements.items() if id not in promised}
        sends = self._promise(client, new, now)
        manner = self._manner(client)
        if not (manner.holds and self.base.broker.strategy.advertisements is not None):
            self._stays[client] = [PublisherVisit(message.moves, message.source)]
        elif stays and (message.moves == stays[-1].number or message.source == self.base.name):
            pass  # it is here again, and nobody else had to do with it
        elif message.advertisements or promised:
            stay = PublisherVisit(message.moves, message.source, complete=False, until=now + self.patience)
            self._stays.setdefault(client, []).append(stay)
            sends += self._ask(client, stay, now)
        if manner.proxies and not message.source:
            others = [other for other in self.proxies(client) if other != self.base.name]
            sends += [self.base.post(other, Prepare(client, message.advertisements)) for other in others]
        for id, filter in promised.items():  # behind events that wait because they were promised so
            if id not in message.advertisements:
                sends += self._said(Unadvertise(id), client, now)
            elif message.advertisements[id] != filter:
                sends += self._said(Advertise(id, message.advertisements[id]), client, now)
        return sends

    def _move_out(self, message: MoveOut, client: str, now: float) -> list[Send]:
        stays, promises, manner = self._known(client), self._promises(client), self._manner(client)
        if not promises or (manner.proxies and self.base.name in self.proxies(client)):
            return []
        target = message.target
        if manner.ahead and not target:
            target = self.predictor.predict(stays[-1].source if stays else "", self.base.name)
        sends: list[Send] = []
        if manner.linger:
            self._ends[client] = now + manner.linger
        else:
            sends += self._end(client, now)
        if manner.ahead and target not in ("", self.base.name):
            sends.append(self.base.post(target, Prepare(client, promises)))
        return sends

    # Other brokers

    def _expect(self, message: Prepare, now: float) -> list[Send]:
        client = message.client
        if self.base.name not in self.proxies(client) and (client in self._ends or client not in self._stays):
            self._ends[client] = max(self._ends.get(client, now), now + self.patience)
        return self._promise(client, message.advertisements, now)

    def _arrival(self, message: Arrival, sender: str, now: float) -> list[Send]:
        before = [stay for stay in self._known(message.client) if stay.number < message.moves]
        if not before:
            return [self.base.post(sender, Yield(message.client, message.moves, complete=False))]
        before[-1].asked.append((sender, message.moves))
        return self._answers(message.client, before[-1], now) if before[-1].complete else []

    def _release(self, message: Yield, now: float) -> list[Send]:
        if message.complete:
            return self._completed(message.client, message.moves, now)
        stay = self._stay(message.client, message.moves)
        return [] if stay is None or stay.complete else self._survey(message.client, stay, now)

    def _ask(self, client: str, stay: PublisherVisit, now: float) -> list[Send]:
        """Find out when all hear what is published here."""
        if stay.source in ("", self.base.name):
            return self._survey(client, stay, now)
        return [self.base.post(stay.source, Arrival(client, stay.number))]

    def _survey(self, client: str, stay: PublisherVisit, now: float) -> list[Send]:
        sends = self._surveys.begin((client, stay.number), now)
        return sends or self._completed(client, stay.number, now)

    def _completed(self, client: str, number: int, now: float) -> list[Send]:
        """All hear what is published here: what was said goes out, and who wants to take over may."""
        stay = self._stay(client, number)
        if stay is None or stay.complete:
            return []
        stay.complete = True
        held, stay.held = stay.held, []
        sends = [send for message in held for send in self._say(message, client, now)]
        return sends + self._answers(client, stay, now)

    def _answers(self, client: str, stay: PublisherVisit, now: float) -> list[Send]:
        """Yield a publisher to those that wait for it; when it was here for the last time, its promises end."""
        if not stay.asked:
            return []
        sends = [self.base.post(to, Yield(client, number, complete=True)) for to, number in stay.asked]
        rest = [other for other in self._stays.get(client, ()) if other.number > stay.number or not other.complete]
        if rest:
            self._stays[client] = rest
            return sends
        return sends + self._end(client, now)

    # Promises

    def _manner(self, client: str) -> PublisherPolicy:
        return self.hints.get(client, self.manner)

    def _promises(self, client: str) -> dict[str, Filter]:
        known = self.base.broker.clients.all.get(client)
        return {} if known is None else dict(known.advertisements)

    def _known(self, client: str) -> list[PublisherVisit]:
        """The stays of a client; one that never moved has been here for ever."""
        if client not in self._stays and client not in self._ends and self._promises(client):
            self._stays[client] = [PublisherVisit(-1, "")]
        return self._stays.get(client, [])

    def _stay(self, client: str, number: int) -> PublisherVisit | None:
        return next((stay for stay in self._stays.get(client, ()) if stay.number == number), None)

    def _promise(self, client: str, promises: Mapping[str, Filter], now: float) -> list[Send]:
        return [send for id, filter in promises.items() for send in self.base.say(Advertise(id, filter), client, now)]

    def _end(self, client: str, now: float) -> list[Send]:
        """Promise no more, and forget the client if it wants nothing either."""
        sends: list[Send] = []
        for stay in [stay for stay in self._stays.pop(client, ()) if not stay.complete]:
            sends += [send for message in stay.held for send in self.base.say(message, client, now)]
            sends += [self.base.post(to, Yield(client, number, complete=False)) for to, number in stay.asked]
        self._ends.pop(client, None)
        for id in self._promises(client):
            sends += self.base.say(Unadvertise(id), client, now)
        known = self.base.broker.clients.all.get(client)
        if known is not None and not known.subscriptions:
            sends += self.base.say(Leave(), client, now)
        return sends
