"""`MobileBroker`: a broker with parts that know of moving. The broker itself does not: it has clients and neighbours.

A `Part` hears the messages that it is about, and has the broker's answers to clients pass by. It acts as a client would
(`Base.say`), writes to other brokers over the links (`Base.post`) or, where brokers reach each other directly, by
a plain `Send` with the other's name. Subscribers that move are one part, publishers another; each protocol is a part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from fieldfare.mobility.messages import MobileEnvelope
from fieldfare.protocol.messages import Forward, Message, Send
from fieldfare.routing.broker import Broker

NextHop = Callable[[str], str]
"""the neighbour through which another broker is reached: an overlay address"""


class Part:
    """One thing that a broker can do beside routing."""

    handles: ClassVar[tuple[type[Message], ...]] = ()

    def join(self, base: Base) -> None:
        """Become part of a broker."""
        self.base = base

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Take a message of a kind that it hears, of a client, a neighbour or any broker."""
        raise NotImplementedError

    def transform(self, send: Send, now: float) -> list[Send]:
        """What the broker tells a client or a neighbour: let it pass, or send something else."""
        return [send]

    @property
    def wakes(self) -> float | None:
        """When it wants a tick, if at all."""
        return None

    def tick(self, now: float) -> list[Send]:
        """Do what is due by now."""
        return []


class Base:
    """What parts share: the broker, and how to reach others."""

    def __init__(self, broker: Broker, parts: Iterable[Part], next_hop: NextHop) -> None:
        """A broker and its parts, none of which has done anything."""
        self.broker = broker
        self.parts = tuple(parts)
        self.next_hop = next_hop
        self.place = ""
        """the broker where the event was published that is handed to clients right now"""
        for part in self.parts:
            part.join(self)

    @property
    def name(self) -> str:
        """The name of the broker."""
        return self.broker.name

    def submit(self, message: Message, sender: str, now: float) -> list[Send]:
        """Let the broker take a message, as of a client or a neighbour; parts transform what it answers."""
        before, self.place = self.place, message.source if isinstance(message, Forward) else self.name
        sends = self.transformed(self.broker.receive(message, sender, now), now)
        self.place = before
        return sends

    def transformed(self, sends: list[Send], now: float) -> list[Send]:
        """What parts make of what the broker says."""
        for part in self.parts:
            sends = [other for send in sends for other in part.transform(send, now)]
        return sends

    def envelope(self, to: str, content: Message) -> Send:
        """A letter to another broker."""
        return Send(self.next_hop(to), MobileEnvelope(to, self.name, content))


class MobileBroker:
    """A broker and its parts, as one machine."""

    def __init__(self, broker: Broker, *parts: Part, next_hop: NextHop) -> None:
        """Nothing has happened yet."""
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
        """When it wants a tick, if at all."""
        times = [self.base.broker.wakes, *(part.wakes for part in self.base.parts)]
        return min((time for time in times if time is not None), default=None)

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        """Take a message; gives what is to be sent."""
        if isinstance(message, MobileEnvelope):
            if message.to != self.name:
                return [Send(self.base.next_hop(message.to), message)]
            return self.receive(message.content, message.origin, now)
        handling = self._handlers.get(type(message))
        if handling is None:
            return self.base.submit(message, sender, now)
        return [send for part in handling for send in part.receive(message, sender, now)]

    def tick(self, now: float) -> list[Send]:
        """Let time pass."""
        sends = self.base.transformed(self.base.broker.tick(now), now)
        return sends + [send for part in self.base.parts for send in part.tick(now)]

    def snapshot(self) -> bytes:
        """All that the broker must not lose. Sessions are not in it: what survives a crash is a node's business."""
        return self.base.broker.snapshot()
