"""What brokers say to each other about publishers that move; see `publishers`."""

from __future__ import annotations

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import Message


class PreparePublisher(Message, frozen=True):
    """A publisher will come to you, or may: promise already what it promises."""

    client: str
    advertisements: dict[str, Filter] = msgspec.field(default_factory=dict)


class ForgetPublisher(Message, frozen=True):
    """A publisher has left for good."""

    client: str


class PublisherArrival(Message, frozen=True):
    """A publisher that was with you is here, and I have promised what it promises. Let go of it, and tell me then."""

    client: str
    moves: int


class PublisherRelease(Message, frozen=True):
    """It is yours. If it was complete here, all subscriptions that it had here have come to you before this."""

    client: str
    moves: int
    complete: bool


class BarrierRequest(Message, frozen=True):
    """Say so when all that came before this has arrived, with you and beyond."""

    origin: str
    number: int


class BarrierReply(Message, frozen=True):
    """It has; and all subscriptions that go your way because of it have come before this."""

    origin: str
    number: int
