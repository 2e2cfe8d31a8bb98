"""`MobileBroker`: a broker with parts that know of moving clients. The broker itself knows only clients and neighbours.

A `Part` handles the messages of some kinds, and may transform the messages which the broker sends. A part acts like a
client (`Base.submit`), and sends messages to other brokers over the links (`Base.envelope`) or, where brokers reach
each other directly, by a plain `Send` with the other's name. Moving subscribers are a part, moving publishers another;
each protocol is a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from fieldfare.mobility.messages import MobileEnvelope
from fieldfare.protocol.messages import Forward, Message, Send
from fieldfare.routing.broker import Broker

NextHop = Callable[[str], str]
"""returns the neighbour through which another broker is reached: an overlay address"""


class Part:
    """A feature of a broker beside routing."""

    handles: ClassVar[tuple[type[Message], ...]] = ()

    def join(self, base: Base) -> None:
        """Attach the part to a broker."""
        self.base = base

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process a message of a handled kind, from a client, a neighbour or any broker."""
        raise NotImplementedError

    def transform(self, send: Send, now: float) -> list[Send]:
        """Return the messages to send in place of a message of the broker; by default the message itself."""
        return [send]

    @property
    def wakes(self) -> float | None:
        """The time at which `tick` must be called; None if no work is planned."""
        return None

    def tick(self, now: float) -> list[Send]:
        """Do the work that is due by now."""
        return []


class Base:
    """The common base of the parts of a broker: the broker, and the ways to other brokers."""

    def __init__(self, broker: Broker, parts: Iterable[Part], next_hop: NextHop) -> None:
        self.broker = broker
        self.parts = tuple(parts)
        self.next_hop = next_hop
        self.place = ""
        """the broker at which the event was published that clients get right now"""
        for part in self.parts:
            part.join(self)

    @property
    def name(self) -> str:
        """The name of the broker."""
        return self.broker.name

    def submit(self, message: Message, sender: str, now: float) -> list[Send]:
        """Let the broker process a message of a client or a neighbour; parts transform the resulting messages."""
        before, self.place = self.place, message.source if isinstance(message, Forward) else self.name
        sends = self.transformed(self.broker.receive(message, sender, now), now)
        self.place = before
        return sends

    def transformed(self, sends: list[Send], now: float) -> list[Send]:
        """Pass messages of the broker through all parts."""
        for part in self.parts:
            sends = [other for send in sends for other in part.transform(send, now)]
        return sends

    def envelope(self, to: str, content: Message) -> Send:
        """Return a message to another broker, addressed to the next hop."""
        return Send(self.next_hop(to), MobileEnvelope(to, self.name, content))


class MobileBroker:
    """A broker and its parts, as a single function of messages."""

    def __init__(self, broker: Broker, *parts: Part, next_hop: NextHop) -> None:
        self.base = Base(broker, parts, next_hop)
        self._handlers: dict[type[Message], list[Part]] = {}
        for part in parts:
            for kind in part.handles:
                self._handlers.setdefault(kind, []).append(part)

    @property
    def name(self) -> str:
        """The name of the broker."""
        return self.base.name

    @property
    def entries(self) -> int:
        """The size of the routing tables."""
        return self.base.broker.entries

    @property
    def wakes(self) -> float | None:
        """The earliest time at which the broker or a part needs a tick."""
        times = [self.base.broker.wakes, *(part.wakes for part in self.base.parts)]
        return min((time for time in times if time is not None), default=None)

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Process a message and return the messages to send; an envelope for another broker is passed on."""
        if isinstance(message, MobileEnvelope):
            if message.to != self.name:
                return [Send(self.base.next_hop(message.to), message)]
            return self.receive(message.content, message.origin, now)
        handling = self._handlers.get(type(message))
        if handling is None:
            return self.base.submit(message, sender, now)
        return [send for part in handling for send in part.receive(message, sender, now)]

    def tick(self, now: float) -> list[Send]:
        """Do the work that is due, of the broker and of all parts."""
        sends = self.base.transformed(self.base.broker.tick(now), now)
        return sends + [send for part in self.base.parts for send in part.tick(now)]

    def snapshot(self) -> bytes:
        """Return the broker's durable state. Sessions are left out: their durability is a node's task."""
        return self.base.broker.snapshot()
