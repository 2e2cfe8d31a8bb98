"""Messages between brokers, and between a bare broker and clients. `wire` writes messages as bytes.

A client sends `Publish`, `Subscribe`, `Unsubscribe`, `Advertise`, `Unadvertise` and `Leave` to a broker, and gets
`Deliver` and `Refuse`. Brokers send each other `Forward` (an event) and `FilterUpdate` (a change of the filters of the
sender). All messages are plain values: a broker takes and returns messages, and never looks at a wire.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias

import msgspec

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.protocol.event_options import EventOptions

About: TypeAlias = Literal["subscriptions", "advertisements"]


class Message(msgspec.Struct, frozen=True, tag=True, tag_field="is", omit_defaults=True):
    """Base class of all messages on an interface of a broker."""


# From clients


class Publish(Message, frozen=True):
    """An event of a client, to be routed."""

    event: Event
    sequence: int | None = None
    """The publisher's count of its events, so that a repeated event is routed once; None: the broker counts."""


class Subscribe(Message, frozen=True):
    """Request for the events of a filter. An id in use gets the new filter."""

    id: str
    filter: Filter


class Unsubscribe(Message, frozen=True):
    """Request to end a subscription."""

    id: str


class Advertise(Message, frozen=True):
    """Announcement of the client's future events, as a filter."""

    id: str
    filter: Filter


class Unadvertise(Message, frozen=True):
    """Request to end an advertisement."""

    id: str


class Leave(Message, frozen=True):
    """Request to forget the client, with all subscriptions and advertisements."""


# To clients


class Deliver(Message, frozen=True):
    """An event for a client, with the matching subscriptions."""

    event: Event
    publisher: str
    sequence: int
    subscriptions: tuple[str, ...]
    """Ids of all subscriptions of the client that the event matches."""
    by: str = ""
    """Broker that counted, if the publisher did not; with publisher and sequence, the identity of the event."""
    number: int = 0
    """Number of the delivery in the session, for a client that acknowledges; see `mobility.sessions`."""


class Refuse(Message, frozen=True):
    """Answer to a message of the client without effect."""

    reason: str
    about: str = ""
    """Id of the subscription or advertisement."""


# Between brokers


class Role(Enum):
    """Role of a neighbour for a broker. All neighbours may be peers, or parents and children, or a mix (*hybrid*)."""

    PEER = "peer"
    """gets filter updates, and the events that match its filters"""
    PARENT = "parent"
    """gets filter updates, and every event"""
    CHILD = "child"
    """gets no filter updates, and the events that match its filters"""
    RESTING = "resting"
    """as a child, but is not expected to have filters: another way leads there"""

    @property
    def opposite(self) -> Role:
        """The role of the broker for the neighbour."""
        return {Role.PARENT: Role.CHILD, Role.CHILD: Role.PARENT}.get(self, self)


class Connect(Message, frozen=True):
    """The link to a neighbour is up. Sent by the host of the broker, not by the neighbour."""

    role: Role = Role.PEER


class Disconnect(Message, frozen=True):
    """The link to a neighbour is down, planned or not. Sent by the host of the broker."""


class Forward(Message, EventOptions, frozen=True):
    """An event on its way, with its identity and its options: the record that core, routing and links share."""

    event: Event
    publisher: str
    sequence: int
    by: str = ""
    """Broker that counted, if the publisher did not."""
    source: str = ""
    """Broker where the event was published."""


class FilterUpdate(Message, frozen=True):
    """A change of the sender's filters: first remove, then add, in a single step, lest events be lost in between."""

    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()
    about: About = "subscriptions"
    all: bool = False
    """Whether the added filters replace all earlier ones."""
    topic: str = ""
    """Class of events of this update, in overlays with a tree for each class."""


class Envelope(Message, frozen=True):
    """A message for a broker anywhere in the overlay; brokers on the way pass the content on unread."""

    to: str
    origin: str
    content: bytes


class TopicCheck(Message, frozen=True):
    """Question to a child on the tree of a topic: the child answers with all filters, even if there are none."""

    topic: str


class TableCopy(Message, frozen=True):
    """Filters of a neighbour of the sender, for the broker to take over should the sender fail."""

    neighbour: str
    update: FilterUpdate


class FlushRequest(Message, frozen=True):
    """Request to answer when everything sent before on the tree of a topic has arrived; see `publisher_order`."""

    topic: str
    origin: str
    number: int


class FlushReply(Message, frozen=True):
    """Everything sent before the request has arrived, at the sender and beyond."""

    request: FlushRequest


class LinkUpdate(Message, frozen=True):
    """The links of a broker, passed on by all brokers to all. Only overlays with cycles use link updates."""

    origin: str
    number: tuple[int, int]
    """Life of the origin and its count of changes: the highest number is the latest."""
    neighbours: tuple[str, ...]


class InterestUpdate(Message, frozen=True):
    """A change of the filters of a broker's clients, passed on by all brokers to all; for trees of sources only."""

    origin: str
    number: tuple[int, int]
    """Life of the origin and its count of changes: the highest number is the latest."""
    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()
    all: bool = False
    """Whether the added filters replace all earlier ones."""


class Overlay(Message, frozen=True):
    """Base class of the messages by which the nodes of a DHT find a place; see `overlay_messages`."""


class ControlMessage(Message, frozen=True):
    """A message of the brokers' control overlay, over the same links, which may get lost; see `routing.prefix`."""

    content: FilterUpdate | Forward


RoutingMessage: TypeAlias = (
    FilterUpdate
    | TopicCheck
    | TableCopy
    | FlushRequest
    | FlushReply
    | LinkUpdate
    | InterestUpdate
    | Overlay
    | ControlMessage
)
"""All messages by which brokers keep their routes; all but `Forward` and `Envelope`."""


class Send(msgspec.Struct, frozen=True):
    """A message to a neighbour or a client: an effect of a received message."""

    to: str
    message: Message
