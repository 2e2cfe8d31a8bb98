"""Messages between brokers about moving publishers; see `publishers`."""

from __future__ import annotations

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import Message


class PreparePublisher(Message, frozen=True):
    """A publisher will come, or may come: the recipient advertises in advance."""

    client: str
    advertisements: dict[str, Filter] = msgspec.field(default_factory=dict)


class ForgetPublisher(Message, frozen=True):
    """A publisher has left for good."""

    client: str


class PublisherArrival(Message, frozen=True):
    """A publisher has arrived at the sender, which has advertised.

    The recipient, the broker before, must release the publisher.
    """

    client: str
    moves: int


class PublisherRelease(Message, frozen=True):
    """The recipient may serve a publisher.

    If the visit was complete, its subscriptions have come before this message.
    """

    client: str
    moves: int
    complete: bool


class BarrierRequest(Message, frozen=True):
    """A request to reply after all earlier messages have arrived, at the recipient and beyond."""

    origin: str
    number: int


class BarrierReply(Message, frozen=True):
    """All earlier messages have arrived; the resulting subscriptions came before this reply."""

    origin: str
    number: int
