"""What is said when clients move, beside what brokers say anyway (`protocol.messages`)."""

from __future__ import annotations

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import Message

# From clients


class MoveIn(Message, frozen=True):
    """Here I am, with all that I want and promise; I was somewhere else before."""

    source: str = ""
    """the broker where I was; nowhere, if it is empty"""
    subscriptions: dict[str, Filter] = msgspec.field(default_factory=dict)
    advertisements: dict[str, Filter] = msgspec.field(default_factory=dict)
    received: int = 0
    """the number of the last delivery that I have got"""
    moves: int = 0
    """how often I have moved: the highest is the latest"""


class MoveOut(Message, frozen=True):
    """I go, and come back here or elsewhere: keep what is for me."""

    target: str = ""
    """the broker where I shall be, if I know it"""
    moves: int = 0
    """how often I have moved then: as I shall say it there"""


class Acknowledge(Message, frozen=True):
    """I am done with all deliveries up to a number."""

    number: int


# Between brokers


class MobileEnvelope(Message, frozen=True):
    """Something for a broker that is no neighbour. It goes from link to link, behind all that was said there before."""

    to: str
    origin: str
    content: Message
