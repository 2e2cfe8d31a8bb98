"""Channel messages: how nodes agree that the home of a channel numbers the events of a type.

    publisher's node                          home of the channel
      | ---- JoinChannel --------------------> |   I have clients that may publish events of this type
      | <--- ChannelOpen --------------------- |   send me those events (or `ChannelClosed`, with the reason)
      | ==== Forward ========================> |   an event without a channel number, in an envelope

A channel that gets another home goes from neighbour to neighbour; `core.channel_moves` shows the messages of a move.

A message is the content of an envelope, so nodes on the way need not know channels. A node of an earlier version gets
no `JoinChannel`, and so gets no event in an envelope either.

`stream` names the events of a publisher in a channel. An event without a channel may overtake such events on the detour
over the home; therefore handovers, replicas and clients, which rely on the order of a publisher, see two publishers.
"""

from __future__ import annotations

from typing import Final, TypeAlias, get_args

import msgspec

MARK: Final = "#"
"""Between the identity of a session and the type, in the name of a stream."""


class ChannelMessage(msgspec.Struct, frozen=True, tag=True, tag_field="is", omit_defaults=True):
    """Base class of the messages about the channel of a type."""

    type: str


class JoinChannel(ChannelMessage, frozen=True):
    """Request to the home of a channel: may the sender send events of the type?"""


class ChannelOpen(ChannelMessage, frozen=True):
    """Answer of the home: events of the type are numbered here."""


class ChannelClosed(ChannelMessage, frozen=True):
    """Answer of a node that is not the home: the settings of both nodes differ."""

    reason: str


class MoveChannel(ChannelMessage, frozen=True):
    """Request to the home: let the channel go to a node. A node that is no longer the home passes the request on."""

    target: str


class ChannelHandover(ChannelMessage, frozen=True):
    """The sender was the home, and the receiver, a neighbour, is the home from now on."""

    epoch: int
    """How often the channel has gone to another node."""
    last: int
    """Number of the last event."""
    target: str
    """Node to which the channel goes on."""


class ChannelTaken(ChannelMessage, frozen=True):
    """Answer to the former home: the advertisement of the new home, and all events that went too far, came before."""


class ChannelDrained(ChannelMessage, frozen=True):
    """Last answer of the former home: all that went too far has come back, and subscriptions with it."""


class ChannelHome(ChannelMessage, frozen=True):
    """Statement to a neighbour, or answer to `JoinChannel`: the home of a channel that has moved."""

    node: str
    epoch: int


AnyChannelMessage: TypeAlias = (
    JoinChannel
    | ChannelOpen
    | ChannelClosed
    | MoveChannel
    | ChannelHandover
    | ChannelTaken
    | ChannelDrained
    | ChannelHome
)
encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(AnyChannelMessage).decode
_NAMES: Final = tuple(kind.__name__.encode() for kind in get_args(AnyChannelMessage))


def is_channel_message(content: bytes) -> bool:
    """Tell from the first bytes whether the content of an envelope is about a channel.

    >>> is_channel_message(encode(JoinChannel("quote")))
    True
    """
    return content[5:24].startswith(_NAMES)


def decode(content: bytes) -> AnyChannelMessage:
    """Return the message in the content of an envelope; ValueError if there is none."""
    try:
        message: AnyChannelMessage = _decode(content)
    except msgspec.DecodeError as error:
        raise ValueError(f"no channel message: {error}") from None
    return message


def stream(identity: str, type: str) -> str:
    """Return the name under which a session publishes in the channel of a type.

    >>> stream("a1b2", "quote")
    'a1b2#quote'
    """
    return f"{identity}{MARK}{type}"


def identity_of(by: str) -> str:
    """Return the identity of the publishing session.

    >>> identity_of("a1b2#quote"), identity_of("a1b2")
    ('a1b2', 'a1b2')
    """
    return by.partition(MARK)[0]


def type_of(by: str) -> str:
    """Return the type of the channel of a stream; empty if the name is no stream.

    >>> type_of("a1b2#quote"), type_of("a1b2")
    ('quote', '')
    """
    return by.partition(MARK)[2]
