"""What brokers say to each other about trees. Words travel as events of a small Fieldfare of their own, see `bus`.

| word | is said by | to |
|---|---|---|
| `Beat` | the optimizer in charge, now and then | all |
| `News` | the same, when the tree has changed | all |
| `Report` | a broker, when its clients want something else, or an optimizer is outdated | the optimizer in charge |
| `Ask` | a broker that has missed something | the same |
| `Whole` | the optimizer in charge | the broker that asked |

Any of them may get lost. A beat says which tree there is and which reports were heard, so that all can be said again.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import msgspec

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.routing import wire
from fieldfare.routing.prefix.tree import Term, Version
from fieldfare.routing.prefix.updates import Update

PIECE: Final = 200_000
"""bytes: a tree may be larger than what a link bears at once"""


class Word(msgspec.Struct, frozen=True, tag=True, array_like=True):
    """Anything about one of the trees."""

    part: int


class Beat(Word, frozen=True):
    """I am in charge."""

    term: Term
    version: Version
    heard: dict[str, tuple[int, int]]
    """by broker: its life, and the number of its last report"""


class News(Word, frozen=True):
    """The tree has changed."""

    update: Update


class Report(Word, frozen=True):
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


class Ask(Word, frozen=True):
    """Let me have the whole tree."""

    broker: str


class Whole(Word, frozen=True):
    """Here it is."""

    to: str
    update: Update


AnyWord: TypeAlias = Beat | News | Report | Ask | Whole

_encode: Final = msgspec.msgpack.Encoder(enc_hook=wire.to_wire).encode
_decode: Final = msgspec.msgpack.Decoder(AnyWord, dec_hook=wire.from_wire).decode


def events_of(word: AnyWord, by: str) -> list[Event]:
    """A word as events: one, or pieces of it."""
    data = _encode(word)
    pieces = range(0, len(data), PIECE)
    about = {"word": type(word).__name__, "part": word.part, "to": word.to if isinstance(word, Whole) else "", "by": by}
    return [
        Event({**about, "piece": number, "pieces": len(pieces), "data": data[start : start + PIECE]})
        for number, start in enumerate(pieces)
    ]


class Reader:
    """Puts the pieces together. Those of one broker come in order; if some are missing, the word is dropped."""

    def __init__(self) -> None:
        """Nothing was heard yet."""
        self._pieces: dict[str, list[bytes]] = {}

    def read(self, event: Event) -> AnyWord | None:
        """The word that an event completes; ValueError if it makes none."""
        by, data = event["by"], event["data"]
        if not isinstance(by, str) or not isinstance(data, bytes):
            raise ValueError("a word has a sender and data")
        if event["piece"] == 0:
            self._pieces[by] = []
        pieces = self._pieces.get(by, [])
        if len(pieces) != event["piece"]:
            return None
        pieces.append(data)
        if len(pieces) != event["pieces"]:
            return None
        del self._pieces[by]
        word: AnyWord = _decode(b"".join(pieces))
        return word
