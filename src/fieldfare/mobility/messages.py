"""Messages about moving clients, beside those of `protocol.messages`."""

from __future__ import annotations

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import Message

# From clients


class MoveIn(Message, frozen=True):
    """A client arrives at a broker, with all its subscriptions and advertisements."""

    source: str = ""
    """the broker before; empty if there was none"""
    subscriptions: dict[str, Filter] = msgspec.field(default_factory=dict)
    advertisements: dict[str, Filter] = msgspec.field(default_factory=dict)
    received: int = 0
    """number of the last received delivery"""
    moves: int = 0
    """number of moves so far: the highest is the latest"""


class MoveOut(Message, frozen=True):
    """A client leaves for a while: the broker keeps its events."""

    target: str = ""
    """the next broker, if known"""
    moves: int = 0
    """number of moves at arrival, as in the next `MoveIn`"""


class Acknowledge(Message, frozen=True):
    """A client has processed all deliveries up to a number."""

    number: int


# Between brokers


class MobileEnvelope(Message, frozen=True):
    """A message to a broker that is no neighbour, behind all earlier messages on each link."""

    to: str
    origin: str
    content: Message
