"""What brokers and clients say to each other. How that is written on a wire stands in `wire`.

A client talks to its broker in `Publish`, `Subscribe`, `Unsubscribe`, `Advertise`, `Unadvertise` and `Leave`, and hears
`Deliver` and `Refuse`. Brokers talk to each other in `Forward` and `FilterUpdate`: an event, and a change of what the
sender wants or will publish. All are plain values: a broker takes them and gives them, and never looks at a wire.
"""

from __future__ import annotations

from enum import Enum
from typing import Literal, TypeAlias

import msgspec

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter

About: TypeAlias = Literal["subscriptions", "advertisements"]


class Message(msgspec.Struct, frozen=True, tag=True, tag_field="is", omit_defaults=True):
    """Anything that is said on an interface."""


# From clients


class Publish(Message, frozen=True):
    """Something happened."""

    event: Event
    sequence: int | None = None
    """counts the publisher's events, so that one said twice is told once; None: the broker counts"""


class Subscribe(Message, frozen=True):
    """Tell me of such events from now on; under an id that is in use, instead of what it asked for."""

    id: str
    filter: Filter


class Unsubscribe(Message, frozen=True):
    """No more of that."""

    id: str


class Advertise(Message, frozen=True):
    """I shall publish such events."""

    id: str
    filter: Filter


class Unadvertise(Message, frozen=True):
    """No more of those."""

    id: str


class Leave(Message, frozen=True):
    """Goodbye: forget all that I asked for and promised."""


# To clients


class Deliver(Message, frozen=True):
    """An event that you asked for."""

    event: Event
    publisher: str
    sequence: int
    subscriptions: tuple[str, ...]
    """the ids of all subscriptions that it matches"""
    by: str = ""
    """the broker that counted, if the publisher did not: the three together tell events apart"""
    number: int = 0
    """counts a session's deliveries, for a client that acknowledges them; see `mobility.sessions`"""


class Refuse(Message, frozen=True):
    """What you said has no effect."""

    reason: str
    about: str = ""
    """the id of a subscription or advertisement"""


# Between brokers


class Role(Enum):
    """What a neighbour is to a broker. All peers, all parents and children, or some of each (*hybrid*)."""

    PEER = "peer"
    """is told what others want, and gets the events that it wants"""
    PARENT = "parent"
    """is told what others want, and gets every event"""
    CHILD = "child"
    """is told nothing, and gets the events that it wants"""
    RESTING = "resting"
    """the same, but it is not expected to want any: there is another way to it"""

    @property
    def opposite(self) -> Role:
        """What the broker is to that neighbour."""
        return {Role.PARENT: Role.CHILD, Role.CHILD: Role.PARENT}.get(self, self)


class Connect(Message, frozen=True):
    """The link to a neighbour is up. Said by whoever runs the broker, not by the neighbour."""

    role: Role = Role.PEER


class Disconnect(Message, frozen=True):
    """The link to a neighbour is down, planned or not. Said by whoever runs the broker."""


class Forward(Message, frozen=True):
    """An event on its way."""

    event: Event
    publisher: str
    sequence: int
    by: str = ""
    """the broker that counted, if the publisher did not"""
    source: str = ""
    """the broker where it was published"""
    expires: float = 0.0
    """when nobody is to get it any more, if ever"""
    replaces: str = ""
    """events of a publisher under such a name replace each other, as long as they wait for somebody"""
    tag: bytes = b""
    """by which others may know where it goes without looking at the event; see `prefix`"""


class FilterUpdate(Message, frozen=True):
    """First forget the removed filters, then note the added ones; both at once, lest events be lost in between."""

    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()
    about: About = "subscriptions"
    all: bool = False
    """nothing but the added filters counts any more"""
    topic: str = ""
    """the class of events that it is about, where each has a tree of its own"""


class Envelope(Message, frozen=True):
    """Something for a broker that need not be a neighbour. It goes from link to link, unread."""

    to: str
    origin: str
    content: bytes


class TopicCheck(Message, frozen=True):
    """Are you still below me on the tree of a topic? Tell me all that you want of me, be it nothing."""

    topic: str


class TableCopy(Message, frozen=True):
    """Keep for me what a neighbour has told me, should I fail."""

    neighbour: str
    update: FilterUpdate


class FlushRequest(Message, frozen=True):
    """Say so when all that came before this on the tree of a topic has arrived, with you and beyond; see `turns`."""

    topic: str
    origin: str
    number: int


class FlushReply(Message, frozen=True):
    """All has arrived."""

    request: FlushRequest


class LinkUpdate(Message, frozen=True):
    """What a broker's links are, passed on by all to all. Only cyclic overlays need it."""

    origin: str
    number: tuple[int, int]
    """the origin's life and its count of changes: the highest is the latest"""
    neighbours: tuple[str, ...]


class InterestUpdate(Message, frozen=True):
    """What the clients of a broker want, passed on by all to all. Only routing by trees of sources needs it."""

    origin: str
    number: tuple[int, int]
    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()
    all: bool = False
    """nothing but the added filters is wanted any more"""


class Overlay(Message, frozen=True):
    """What nodes of a DHT say to each other to find their places; see `pastry`."""


class ControlMessage(Message, frozen=True):
    """What brokers say in a small network of their own, over the same links. It may get lost; see `prefix`."""

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
"""what brokers tell each other of themselves"""


class Send(msgspec.Struct, frozen=True):
    """The effect of a message: another one, to a neighbour or a client."""

    to: str
    message: Message
