"""Messages between brokers about trees, as events of a small network of their own; see `control_overlay`.

| message | sender | recipient |
|---|---|---|
| `Heartbeat` | the leading optimizer, periodically | all brokers |
| `TreeNews` | the leading optimizer, after a change of the tree | all brokers |
| `InterestReport` | a broker, after a change of its filters, or for an outdated optimizer | the leading optimizer |
| `TreeRequest` | a broker that has missed an update | the leading optimizer |
| `WholeTree` | the leading optimizer | the broker with the request |

Any message may get lost. A heartbeat has the version of the tree and the numbers of the received reports, so that
brokers can send the missing parts again.
"""

from __future__ import annotations

from typing import Final, TypeAlias
from zlib import crc32

import msgspec

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.protocol import wire
from fieldfare.routing.prefix.tree import Term, TreeVersion
from fieldfare.routing.prefix.updates import TreeUpdate

PIECE: Final = 200_000
"""bytes of a piece of a message: a tree may exceed the largest frame of a link"""


class TreeMessage(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """A message about the tree of a part."""

    part: int


class Heartbeat(TreeMessage, frozen=True):
    """A sign of life of the leading optimizer."""

    term: Term
    version: TreeVersion
    reports: dict[str, tuple[int, int]]
    """by broker: its life, and the number of its last report"""


class TreeNews(TreeMessage, frozen=True):
    """An update after a change of the tree."""

    update: TreeUpdate


class InterestReport(TreeMessage, frozen=True):
    """The filters of a broker's clients; an empty report is a sign of life."""

    broker: str
    life: int
    term: Term
    """the latest term which the broker knows"""
    number: int
    after: int | None
    """the number of the previous report; None: the report replaces all earlier reports"""
    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


class TreeRequest(TreeMessage, frozen=True):
    """A request for the whole tree."""

    broker: str


class WholeTree(TreeMessage, frozen=True):
    """The whole tree, for the broker that requested the tree."""

    to: str
    update: TreeUpdate


AnyTreeMessage: TypeAlias = Heartbeat | TreeNews | InterestReport | TreeRequest | WholeTree

_encode: Final = msgspec.msgpack.Encoder(enc_hook=wire.to_wire).encode
_decode: Final = msgspec.msgpack.Decoder(AnyTreeMessage, dec_hook=wire.from_wire).decode


def events_of(message: AnyTreeMessage, by: str) -> list[Event]:
    """Return a message as events: a single event, or several pieces."""
    data = _encode(message)
    pieces = range(0, len(data), PIECE)
    to = message.to if isinstance(message, WholeTree) else ""
    about = {"message": type(message).__name__, "part": message.part, "to": to, "by": by, "check": crc32(data)}
    return [
        Event({**about, "last": start + PIECE >= len(data), "start": start, "data": data[start : start + PIECE]})
        for start in pieces
    ]


class MessageReader:
    """Reassembles messages from pieces.

    The pieces of a broker come in order; a message with missing pieces is dropped.
    """

    def __init__(self) -> None:
        self._begun: dict[str, bytearray] = {}
        """by broker: the first pieces of an incomplete message"""

    def read(self, event: Event) -> AnyTreeMessage | None:
        """Return the message that an event completes; a ValueError for an event without a message."""
        by, data = event.get("by"), event.get("data")
        if not isinstance(by, str) or not isinstance(data, bytes):
            raise ValueError("a word has a sender and data")
        begun = self._begun.pop(by, bytearray())
        whole = begun if event.get("start") else bytearray()
        if len(whole) != event.get("start"):
            return None  # something is missing
        whole += data
        if not event.get("last"):
            self._begun[by] = whole
            return None
        if crc32(whole) != event.get("check"):
            return None  # the beginning of a message and the end of another
        message: AnyTreeMessage = _decode(whole)
        return message
