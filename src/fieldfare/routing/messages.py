"""What brokers and clients say to each other, and how it is written on a wire.

A client talks to its broker in `Publish`, `Subscribe`, `Unsubscribe`, `Advertise`, `Unadvertise` and `Leave`, and hears
`Deliver` and `Refuse`. Brokers talk to each other in `Forward` and `Tell`: an event, and a change of what the sender
wants or will publish. All are plain values: a broker takes them and gives them, and never looks at a wire.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from typing import Any, Final, Literal, TypeAlias

import msgspec

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.routing.named import NamedFilter

VERSION: Final = 1
"""of the wire form; nodes say it when they meet, and refuse another one"""


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

    @property
    def opposite(self) -> Role:
        """What the broker is to that neighbour."""
        return {Role.PARENT: Role.CHILD, Role.CHILD: Role.PARENT}.get(self, Role.PEER)


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


class Tell(Message, frozen=True):
    """First forget the removed filters, then note the added ones; both at once, lest events be lost in between."""

    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()
    about: Literal["subscriptions", "advertisements"] = "subscriptions"


class Links(Message, frozen=True):
    """What a broker's links are, passed on by all to all. Only cyclic overlays need it."""

    origin: str
    number: tuple[int, int]
    """the origin's life and its count of changes: the highest is the latest"""
    neighbours: tuple[str, ...]


class Wants(Message, frozen=True):
    """What the clients of a broker want, passed on by all to all. Only routing by trees of sources needs it."""

    origin: str
    number: tuple[int, int]
    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()
    all: bool = False
    """nothing but the added filters is wanted any more"""


class Batch(Message, frozen=True):
    """Several changes, one after the other, in one message."""

    messages: tuple[Tell | Links | Wants, ...]


Change: TypeAlias = Tell | Links | Wants
"""what brokers tell each other of themselves"""
ClientMessage: TypeAlias = Publish | Subscribe | Unsubscribe | Advertise | Unadvertise | Leave
BrokerMessage: TypeAlias = Connect | Disconnect | Forward | Tell | Batch | Links | Wants
_All: TypeAlias = ClientMessage | BrokerMessage | Deliver | Refuse


class Send(msgspec.Struct, frozen=True):
    """The effect of a message: another one, to a neighbour or a client."""

    to: str
    message: Message


def encode(message: Message) -> bytes:
    """A message as MessagePack.

    >>> decode(encode(Subscribe("cheap", parse("price < 10"))))
    Subscribe(id='cheap', filter=parse('price < 10'))
    """
    return _ENCODER.encode(message)


def decode(data: bytes) -> Message:
    """The message that was encoded; ValueError if there is none in the data."""
    try:
        return _DECODER.decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(f"no message: {error}") from None


def to_wire(value: object) -> object:
    """How msgspec is to write events and filters."""
    match value:
        case Event():
            return msgpack.encode(value)
        case NamedFilter():
            return [value.name, str(value)]
        case Filter():
            return str(value)
    raise TypeError(f"{type(value).__name__} has no place in a message")


def from_wire(type: type, value: Any) -> object:
    """How it is to read them."""
    if type is Event:
        return msgpack.decode(value)
    if isinstance(value, list):
        return NamedFilter(value[0], _filter(value[1]))
    return _filter(value)


@lru_cache(maxsize=10_000)
def _filter(text: str) -> Filter:
    """Neighbours often say the same filter again."""
    return parse(text)


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=to_wire)
_DECODER: Final[msgspec.msgpack.Decoder[Message]] = msgspec.msgpack.Decoder(_All, dec_hook=from_wire)
