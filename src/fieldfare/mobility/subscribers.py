"""Subscribers that move: what all protocols share. They differ in how the old broker learns that the new path is there.

A client that shows up somewhere is a new *stay*. The broker asks for all that the client wants and puts its events
aside; the broker of the stay before goes on as if nothing had happened. When that one knows that the new subscriptions
are in force (`prove`), and not before, it hands the session over, directly, and asks no more. The new broker merges the
two. A client that will move says `MoveIn` already at its first broker: only then is anything kept for it.

A client may go on while it is still waiting for its session: then the session follows from stay to stay. A broker that
waits itself hands over as soon as it can. A client that returns to where its session still is waits for it just the
same: every session goes the whole way that its client went, so nothing has to be called back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.mobility.broker import Part
from fieldfare.mobility.messages import Acknowledge, MoveIn, MoveOut
from fieldfare.mobility.sessions import Session, due, merged
from fieldfare.mobility.subscriber_messages import Expect, MoveUpdate, Transfer
from fieldfare.protocol.messages import Deliver, Leave, Message, Send, Subscribe, Unsubscribe
from fieldfare.routing.clients import Client


class SubscriberVisit(msgspec.Struct):
    """A client at a broker, from when it says so until its session goes elsewhere."""

    number: int
    """how often the client had moved"""
    said: int
    """the same, when it last said so: it may have gone and come back"""
    source: str = ""
    """from where the session comes"""
    session: Session | None = None
    aside: list[tuple[Deliver, str]] = []
    """what came while the session is awaited, and where it was published"""
    taken: int = 0
    """the last delivery that the client had got when it came"""
    heir: MoveUpdate | None = None
    """to whom the session goes as soon as it is here"""


class Subscribers(Part):
    """The sessions at one broker."""

    hears: ClassVar[tuple[type[Message], ...]] = (MoveIn, MoveOut, Acknowledge, Leave, Expect, MoveUpdate, Transfer)

    def __init__(self) -> None:
        """Nobody is here."""
        self.stays: dict[str, dict[int, SubscriberVisit]] = {}
        """by client and number"""
        self._early: dict[str, list[MoveUpdate]] = {}
        """for stays that have not begun here yet"""
        self._over: dict[str, deque[int]] = {}
        """the last stays of clients that have gone on: what is heard of them now is late"""

    # What a protocol is

    def prove(self, client: str, stay: SubscriberVisit, *, told: bool, now: float) -> list[Send]:
        """Let the source know when what the client wants is in force; `told` says whether neighbours had to be told."""
        raise NotImplementedError

    def begun(self, client: str, stay: SubscriberVisit, now: float) -> list[Send]:
        """A stay has begun here."""
        return []

    def proven(self, client: str, stay: SubscriberVisit, now: float) -> list[Send]:
        """The session of a stay is here."""
        return []

    def abandoned(self, client: str, stay: SubscriberVisit, now: float) -> list[Send]:
        """The client has left for good before its session was here."""
        return self.proven(client, stay, now)

    def ended(self, client: str, now: float) -> list[Send]:
        """A client's last stay here is over."""
        return []

    # Messages

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Take what clients say about themselves, and other brokers about their clients."""
        match message:
            case MoveIn():
                return self._move_in(message, sender, now)
            case MoveOut():
                return self._move_out(message, sender)
            case Acknowledge():
                for stay in self.stays.get(sender, {}).values():
                    if stay.session is not None:
                        stay.session.acknowledge(message.number)
                return []
            case Leave():
                return self._leave(sender, now)
            case Expect():
                known = (*self.stays.get(message.client, ()), *self._over.get(message.client, ()))
                if message.moves in known:
                    return []  # the client was faster
                stay = SubscriberVisit(message.moves, message.moves, sender)
                return self._await(message.client, stay, message.subscriptions, now)
            case MoveUpdate():
                return self.updated(message, sender, now)
            case Transfer():
                return self._transfer(message, now)
        raise AssertionError(message)

    def overhear(self, send: Send, now: float) -> list[Send]:
        """Number what goes to a client, and keep it; put it aside if the session is not here yet."""
        stays = self.stays.get(send.to) if isinstance(send.message, Deliver) else None
        if not stays:
            return [send]
        assert isinstance(send.message, Deliver)
        latest: Deliver | None = None
        for _, stay in sorted(stays.items()):
            if stay.session is None:
                stay.aside.append((send.message, self.base.place))
                latest = None
            else:
                latest = stay.session.take(send.message, self.base.place)
        return [] if latest is None else [Send(send.to, latest)]

    # Coming

    def _move_in(self, message: MoveIn, client: str, now: float) -> list[Send]:
        stays = self.stays.get(client, {})
        stay = stays.get(message.moves)
        if stay is None and message.source in ("", self.base.name):
            stay = stays[max(stays)] if stays else None
            if stay is None:
                stay = SubscriberVisit(
                    message.moves, message.moves, session=Session(last=message.taken), taken=message.taken
                )
                return self._begin(client, stay, message.subscriptions, now)
        elif stay is None:
            stay = SubscriberVisit(message.moves, message.moves, message.source, taken=message.taken)
            return self._await(client, stay, message.subscriptions, now)
        stay.said, stay.taken = message.moves, max(stay.taken, message.taken)
        return self._want(client, message.subscriptions, now) + self._resume(client, stay)

    def _await(self, client: str, stay: SubscriberVisit, wanted: Mapping[str, Filter], now: float) -> list[Send]:
        sends = self._begin(client, stay, wanted, now)
        told = any(send.to in self.base.broker.routes.neighbours for send in sends)
        return sends + self.prove(client, stay, told=told, now=now)

    def _begin(self, client: str, stay: SubscriberVisit, wanted: Mapping[str, Filter], now: float) -> list[Send]:
        stays = self.stays.setdefault(client, {})
        stays[stay.number] = stay
        sends = self._want(client, wanted, now) if stay.number == max(stays) else []  # what it said last counts
        sends += self.begun(client, stay, now)
        return sends + [send for early in self._early.pop(client, []) for send in self._ask(early, now)]

    def _want(self, client: str, wanted: Mapping[str, Filter], now: float) -> list[Send]:
        """Let a client have these subscriptions and no others."""
        had = dict(self._client(client).subscriptions)
        news: list[Message] = [Subscribe(id, filter) for id, filter in wanted.items() if had.get(id) != filter]
        news += [Unsubscribe(id) for id in had if id not in wanted]
        return [send for message in news for send in self.base.say(message, client, now)]

    def _resume(self, client: str, stay: SubscriberVisit) -> list[Send]:
        """Send all that the client has not got."""
        if stay.session is None:
            return []
        stay.session.acknowledge(stay.taken)
        return [Send(client, delivery) for delivery in due(stay.session, self._client(client).subscriptions)]

    def _transfer(self, message: Transfer, now: float) -> list[Send]:
        stays = self.stays.get(message.client, {})
        stay = stays.get(message.moves)
        if stay is None or stay.session is not None:
            return []  # the client has left for good, or the source was asked twice
        stay.session = merged(message.session, stay.aside)
        stay.session.last = max(stay.session.last, stay.taken)
        stay.aside = []
        sends = self.proven(message.client, stay, now)
        if stay.heir is not None:
            return sends + self._hand_over(stay, stay.heir, now)
        return sends + (self._resume(message.client, stay) if stay.number == max(stays) else [])

    # Going

    def _move_out(self, message: MoveOut, client: str) -> list[Send]:
        """Let the broker prepare where the client goes, if it is known; what comes is kept here as ever."""
        if message.target in ("", self.base.name) or not self.stays.get(client):
            return []
        wanted = dict(self._client(client).subscriptions)
        return [Send(message.target, Expect(client, message.moves, wanted))]

    def updated(self, message: MoveUpdate, sender: str, now: float) -> list[Send]:
        """Hear that another broker is ready for a session that is here."""
        return self._ask(message, now)

    def _ask(self, update: MoveUpdate, now: float) -> list[Send]:
        stays = self.stays.get(update.client, {})
        if not stays and self._client(update.client).subscriptions:  # who has not said before that it moves
            stays = self.stays[update.client] = {-1: SubscriberVisit(-1, update.moves - 1, session=Session())}
        stay = next((stay for stay in stays.values() if stay.said == update.moves - 1), None)
        if stay is None:  # word of the client is slower, or this comes again
            self._early.setdefault(update.client, []).append(update)
            return []
        stay.heir = update
        return [] if stay.session is None else self._hand_over(stay, update, now)

    def _hand_over(self, stay: SubscriberVisit, heir: MoveUpdate, now: float) -> list[Send]:
        """Send a session to where its client is, and forget it."""
        assert stay.session is not None
        client, known = heir.client, self._client(heir.client)
        session = msgspec.structs.replace(
            stay.session, subscriptions=dict(known.subscriptions), advertisements=dict(known.advertisements)
        )
        sends = [Send(heir.target, Transfer(client, heir.moves, session))]
        del self.stays[client][stay.number]
        self._over.setdefault(client, deque(maxlen=4)).append(stay.number)
        if self.stays[client]:
            return sends  # it has come back in the meantime
        del self.stays[client]
        sends += self._want(client, {}, now)
        if not known.advertisements:  # those go their own way
            sends += self.base.say(Leave(), client, now)
        return sends + self.ended(client, now)

    def _leave(self, client: str, now: float) -> list[Send]:
        stays = self.stays.pop(client, {})
        sends = self.base.say(Leave(), client, now)
        sends += [send for stay in stays.values() if stay.session is None for send in self.abandoned(client, stay, now)]
        return sends + (self.ended(client, now) if stays else [])

    # Looking

    def _client(self, client: str) -> Client:
        return self.base.broker.clients.all.get(client, Client())
