"""Messages of brokers about trees. They travel as events of a small network of its own; see `control_overlay`.

| word | is said by | to |
|---|---|---|
| `Heartbeat` | the optimizer in charge, now and then | all |
| `TreeNews` | the same, when the tree has changed | all |
| `InterestReport` | a broker, when its filters change, or an optimizer is outdated | the optimizer in charge |
| `TreeRequest` | a broker that has missed something | the same |
| `WholeTree` | the optimizer in charge | the broker that asked |

Any of them may get lost. A beat says which tree there is and which reports were heard, so that all can be said again.
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
"""bytes: a tree may be larger than what a link bears at once"""


class TreeMessage(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Anything about one of the trees."""

    part: int


class Heartbeat(TreeMessage, frozen=True):
    """I am in charge."""

    term: Term
    version: TreeVersion
    reports: dict[str, tuple[int, int]]
    """by broker: its life, and the number of its last report"""


class TreeNews(TreeMessage, frozen=True):
    """The tree has changed."""

    update: TreeUpdate


class InterestReport(TreeMessage, frozen=True):
    """What a broker's clients want; nothing new is a sign of life."""

    broker: str
    life: int
    term: Term
    """the latest that it has heard of"""
    number: int
    after: int | None
    """the number that it follows; None: all that was said before is void"""
    added: tuple[Filter, ...] = ()
    removed: tuple[Filter, ...] = ()


class TreeRequest(TreeMessage, frozen=True):
    """Let me have the whole tree."""

    broker: str


class WholeTree(TreeMessage, frozen=True):
    """Here it is."""

    to: str
    update: TreeUpdate


AnyTreeMessage: TypeAlias = Heartbeat | TreeNews | InterestReport | TreeRequest | WholeTree

_encode: Final = msgspec.msgpack.Encoder(enc_hook=wire.to_wire).encode
_decode: Final = msgspec.msgpack.Decoder(AnyTreeMessage, dec_hook=wire.from_wire).decode


def events_of(message: AnyTreeMessage, by: str) -> list[Event]:
    """A word as events: one, or pieces of it."""
    data = _encode(message)
    pieces = range(0, len(data), PIECE)
    to = message.to if isinstance(message, WholeTree) else ""
    about = {"message": type(message).__name__, "part": message.part, "to": to, "by": by, "check": crc32(data)}
    return [
        Event({**about, "last": start + PIECE >= len(data), "start": start, "data": data[start : start + PIECE]})
        for start in pieces
    ]


class MessageReader:
    """Puts the pieces together. Those of one broker come in order; if some are missing, the word is dropped."""

    def __init__(self) -> None:
        """Nothing was heard yet."""
        self._begun: dict[str, bytearray] = {}
        """by broker: what was heard of the word that it is saying"""

    def read(self, event: Event) -> AnyTreeMessage | None:
        """The word that an event completes; ValueError if it makes none."""
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
            return None  # the beginning of one word and the end of another
        message: AnyTreeMessage = _decode(whole)
        return message
