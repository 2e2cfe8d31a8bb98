"""Moving subscribers: the common part of all handover protocols, which differ in the proof that the new path exists.

A client that arrives at a broker begins a new *visit*. The broker subscribes for the client and buffers its events; the
broker of the previous visit goes on unchanged. Only when the previous broker knows that the new subscriptions are in
force (`confirm_path`), it hands the session over, directly, and unsubscribes. The new broker merges the session and the
buffer. A client that will move sends `MoveIn` already at its first broker: only then does a broker keep events for the
client.

A client may move on before its session arrives: then the session follows from visit to visit. A broker without the
session hands over as soon as it can. A client that returns to the broker with its session waits just the same: every
session goes the whole way of its client, so nothing has to be called back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import ClassVar

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.mobility.broker import Part
from fieldfare.mobility.messages import Acknowledge, MoveIn, MoveOut
from fieldfare.mobility.sessions import MobileSession, deliveries_due, merged
from fieldfare.mobility.subscriber_messages import MoveUpdate, PrepareSubscriber, SubscriberTransfer
from fieldfare.protocol.messages import Deliver, Leave, Message, Send, Subscribe, Unsubscribe
from fieldfare.routing.clients import Client


class SubscriberVisit(msgspec.Struct):
    """A client at a broker, from its arrival until its session goes elsewhere."""

    number: int
    """the client's number of moves at arrival"""
    announced: int
    """the number of moves at the client's last `MoveIn`: the client may have left and returned"""
    source: str = ""
    """the broker from which the session comes"""
    session: MobileSession | None = None
    buffered: list[tuple[Deliver, str]] = []
    """deliveries before the session's arrival, each with its place of publication"""
    received: int = 0
    """the last delivery which the client had received at arrival"""
    successor: MoveUpdate | None = None
    """the update of the broker to which the session goes as soon as it is here"""


class Subscribers(Part):
    """The sessions of moving subscribers at a broker."""

    handles: ClassVar[tuple[type[Message], ...]] = (
        MoveIn,
        MoveOut,
        Acknowledge,
        Leave,
        PrepareSubscriber,
        MoveUpdate,
        SubscriberTransfer,
    )

    def __init__(self) -> None:
        self.visits: dict[str, dict[int, SubscriberVisit]] = {}
        """by client and number"""
        self._early: dict[str, list[MoveUpdate]] = {}
        """updates for visits that have not begun here yet"""
        self._over: dict[str, deque[int]] = {}
        """the last visits of clients that have moved on: messages about them are late"""

    # What a protocol is

    def confirm_path(self, client: str, visit: SubscriberVisit, *, told: bool, now: float) -> list[Send]:
        """Tell the source when the client's subscriptions are in force; `told`: neighbours got filter updates."""
        raise NotImplementedError

    def visit_begun(self, client: str, visit: SubscriberVisit, now: float) -> list[Send]:
        """Do a protocol's work at the beginning of a visit."""
        return []

    def session_arrived(self, client: str, visit: SubscriberVisit, now: float) -> list[Send]:
        """Do a protocol's work at the arrival of a session."""
        return []

    def visit_abandoned(self, client: str, visit: SubscriberVisit, now: float) -> list[Send]:
        """Do a protocol's work when a client leaves for good before its session arrives."""
        return self.session_arrived(client, visit, now)

    def visit_ended(self, client: str, now: float) -> list[Send]:
        """Do a protocol's work at the end of a client's last visit."""
        return []

    # Messages

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process a message of a client about itself, or of a broker about a client."""
        match message:
            case MoveIn():
                return self._move_in(message, sender, now)
            case MoveOut():
                return self._move_out(message, sender)
            case Acknowledge():
                for visit in self.visits.get(sender, {}).values():
                    if visit.session is not None:
                        visit.session.acknowledge(message.number)
                return []
            case Leave():
                return self._leave(sender, now)
            case PrepareSubscriber():
                known = (*self.visits.get(message.client, ()), *self._over.get(message.client, ()))
                if message.moves in known:
                    return []  # the client was faster than the message
                visit = SubscriberVisit(message.moves, message.moves, sender)
                return self._await(message.client, visit, message.subscriptions, now)
            case MoveUpdate():
                return self.receive_update(message, sender, now)
            case SubscriberTransfer():
                return self._transfer(message, now)
        raise AssertionError(message)

    def transform(self, send: Send, now: float) -> list[Send]:
        """Number and keep a delivery to a client; without a session, buffer the delivery."""
        visits = self.visits.get(send.to) if isinstance(send.message, Deliver) else None
        if not visits:
            return [send]
        assert isinstance(send.message, Deliver)
        latest: Deliver | None = None
        for _, visit in sorted(visits.items()):
            if visit.session is None:
                visit.buffered.append((send.message, self.base.place))
                latest = None
            else:
                latest = visit.session.accept(send.message, self.base.place)
        return [] if latest is None else [Send(send.to, latest)]

    # Coming

    def _move_in(self, message: MoveIn, client: str, now: float) -> list[Send]:
        visits = self.visits.get(client, {})
        visit = visits.get(message.moves)
        if visit is None and message.source in ("", self.base.name):
            visit = visits[max(visits)] if visits else None
            if visit is None:
                visit = SubscriberVisit(
                    message.moves,
                    message.moves,
                    session=MobileSession(last=message.received),
                    received=message.received,
                )
                return self._begin(client, visit, message.subscriptions, now)
        elif visit is None:
            visit = SubscriberVisit(message.moves, message.moves, message.source, received=message.received)
            return self._await(client, visit, message.subscriptions, now)
        visit.announced, visit.received = message.moves, max(visit.received, message.received)
        return self._want(client, message.subscriptions, now) + self._resume(client, visit)

    def _await(self, client: str, visit: SubscriberVisit, wanted: Mapping[str, Filter], now: float) -> list[Send]:
        sends = self._begin(client, visit, wanted, now)
        told = any(send.to in self.base.broker.routes.neighbours for send in sends)
        return sends + self.confirm_path(client, visit, told=told, now=now)

    def _begin(self, client: str, visit: SubscriberVisit, wanted: Mapping[str, Filter], now: float) -> list[Send]:
        visits = self.visits.setdefault(client, {})
        visits[visit.number] = visit
        sends = self._want(client, wanted, now) if visit.number == max(visits) else []  # the latest filters count
        sends += self.visit_begun(client, visit, now)
        return sends + [send for early in self._early.pop(client, []) for send in self._ask(early, now)]

    def _want(self, client: str, wanted: Mapping[str, Filter], now: float) -> list[Send]:
        """Give a client exactly these subscriptions."""
        had = dict(self._client(client).subscriptions)
        news: list[Message] = [Subscribe(id, filter) for id, filter in wanted.items() if had.get(id) != filter]
        news += [Unsubscribe(id) for id in had if id not in wanted]
        return [send for message in news for send in self.base.submit(message, client, now)]

    def _resume(self, client: str, visit: SubscriberVisit) -> list[Send]:
        """Send all deliveries which the client has not received."""
        if visit.session is None:
            return []
        visit.session.acknowledge(visit.received)
        return [
            Send(client, delivery) for delivery in deliveries_due(visit.session, self._client(client).subscriptions)
        ]

    def _transfer(self, message: SubscriberTransfer, now: float) -> list[Send]:
        visits = self.visits.get(message.client, {})
        visit = visits.get(message.moves)
        if visit is None or visit.session is not None:
            return []  # the client has left for good, or the source was asked twice
        visit.session = merged(message.session, visit.buffered)
        visit.session.last = max(visit.session.last, visit.received)
        visit.buffered = []
        sends = self.session_arrived(message.client, visit, now)
        if visit.successor is not None:
            return sends + self._hand_over(visit, visit.successor, now)
        return sends + (self._resume(message.client, visit) if visit.number == max(visits) else [])

    # Going

    def _move_out(self, message: MoveOut, client: str) -> list[Send]:
        """Let the next broker prepare, if known; events are kept here as before."""
        if message.target in ("", self.base.name) or not self.visits.get(client):
            return []
        wanted = dict(self._client(client).subscriptions)
        return [Send(message.target, PrepareSubscriber(client, message.moves, wanted))]

    def receive_update(self, message: MoveUpdate, sender: str, now: float) -> list[Send]:
        """Process the news that another broker is ready for a session."""
        return self._ask(message, now)

    def _ask(self, update: MoveUpdate, now: float) -> list[Send]:
        visits = self.visits.get(update.client, {})
        if not visits and self._client(update.client).subscriptions:  # a client without an earlier MoveIn
            visits = self.visits[update.client] = {-1: SubscriberVisit(-1, update.moves - 1, session=MobileSession())}
        visit = next((visit for visit in visits.values() if visit.announced == update.moves - 1), None)
        if visit is None:  # the client's own message is slower, or the update comes again
            self._early.setdefault(update.client, []).append(update)
            return []
        visit.successor = update
        return [] if visit.session is None else self._hand_over(visit, update, now)

    def _hand_over(self, visit: SubscriberVisit, successor: MoveUpdate, now: float) -> list[Send]:
        """Send a session to its client's broker, and forget the session."""
        assert visit.session is not None
        client, known = successor.client, self._client(successor.client)
        session = msgspec.structs.replace(
            visit.session, subscriptions=dict(known.subscriptions), advertisements=dict(known.advertisements)
        )
        sends = [Send(successor.target, SubscriberTransfer(client, successor.moves, session))]
        del self.visits[client][visit.number]
        self._over.setdefault(client, deque(maxlen=4)).append(visit.number)
        if self.visits[client]:
            return sends  # the client has come back in the meantime
        del self.visits[client]
        sends += self._want(client, {}, now)
        if not known.advertisements:  # advertisements have a protocol of their own
            sends += self.base.submit(Leave(), client, now)
        return sends + self.visit_ended(client, now)

    def _leave(self, client: str, now: float) -> list[Send]:
        visits = self.visits.pop(client, {})
        sends = self.base.submit(Leave(), client, now)
        sends += [
            send
            for visit in visits.values()
            if visit.session is None
            for send in self.visit_abandoned(client, visit, now)
        ]
        return sends + (self.visit_ended(client, now) if visits else [])

    # Looking

    def _client(self, client: str) -> Client:
        return self.base.broker.clients.all.get(client, Client())
