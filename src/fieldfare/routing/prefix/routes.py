"""`Prefixed`: routing by tags. An event meets filters once, where it enters, and later brokers read its tag.

Beneath it is routing with covering: the same tables say what neighbours are told, and who wants an event if its tag
cannot be read (`TableRoutes`). Beside it brokers keep a tree in common, one for each part: see `member`, `seat`, `bus`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.protocol.messages import Change, ControlMessage, Forward
from fieldfare.routing.prefix.control_overlay import ControlOverlay, Heard
from fieldfare.routing.prefix.election import Election
from fieldfare.routing.prefix.follower import Follower
from fieldfare.routing.prefix.messages import AnyWord, Ask, Beat, InterestReport, News, Whole
from fieldfare.routing.prefix.options import Prefix
from fieldfare.routing.prefix.tree import Version
from fieldfare.routing.routes import LOCAL, To
from fieldfare.routing.table_routes import TableRoutes
from fieldfare.tables.base import MakeIndex
from fieldfare.tables.indexed import IndexedTable

if TYPE_CHECKING:
    from fieldfare.routing.strategies import Strategy

SAMPLE: Final = 200
"""events that are kept to find out which attributes are selective"""

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(tuple[bytes, ...]).decode


class Standing(NamedTuple):
    """How things stand with a tree, for people."""

    part: int
    optimizer: str
    """the name of the broker in charge, as far as we know, with a mark of this life of it"""
    version: Version
    nodes: int
    loose: int
    """boxes that wait for nodes of their own"""


class Prefixed(TableRoutes):
    """Routes by tags, and by filters where there are none."""

    def __init__(self, name: str, strategy: Strategy, life: int = 0, index: MakeIndex = Index) -> None:
        """No neighbours, no filters, and a tree that is a root."""
        options = self.options = strategy.prefix or Prefix()
        super().__init__(replace(strategy, table=partial(IndexedTable, watch=self._watched)), index)
        self.members = [Follower(part, name, life, options) for part in range(options.parts)]
        self.seats = [Election(member, name, life, options) for member in self.members]
        self.by_tag = self.by_content = 0
        """events that were forwarded so"""
        self._bus = ControlOverlay(name, life)
        self._sample: deque[Mapping[str, object]] = deque(maxlen=SAMPLE)

    def _watched(self, filter: Filter, interface: str, wanted: bool) -> None:
        for member in self.members:
            member.note(filter, interface, wanted)

    # Events

    def mark(self, event: Forward) -> Forward:
        """Let the event meet the trees: what it selects is its tag."""
        if self.options.layout == "selectivity":
            self._sample.append(event.event)
        tags = [member.places.write(event.event, self.options.depth) for member in self.members]
        return msgspec.structs.replace(event, tag=_encode(tags))

    def match(self, event: Forward, sender: str) -> set[str]:
        """Those at the nodes that the tag names; if it cannot be read, those that want the event."""
        found = self._read(event.tag)
        if found is not None:
            self.by_tag += 1
        else:
            self.by_content += 1
            if not self.options.blind:
                return super().match(event, sender)
            found = {one for member in self.members for one in member.places.interfaces}
        found |= self._parents
        if sender != LOCAL:
            found.discard(sender)
        return found

    def _read(self, tag: bytes) -> set[str] | None:
        found: set[str] = set()
        try:
            tags = _decode(tag)
            if len(tags) != len(self.members):
                return None
            for member, one in zip(self.members, tags, strict=True):
                interfaces = member.places.read_bytes(one)
                if interfaces is None:
                    return None
                found |= interfaces
        except ValueError:
            return None
        return found

    # Other brokers

    def reached(self, neighbour: str) -> list[To]:
        """Talk to it of trees, too."""
        return self._bus.connect(neighbour)

    def lost(self, neighbour: str) -> list[To]:
        """No more of that for now."""
        return self._bus.disconnect(neighbour)

    def hear(self, change: Change, sender: str, now: float) -> list[To]:
        """Something is said of trees."""
        if not isinstance(change, ControlMessage):
            return super().hear(change, sender, now)
        return self._follow(self._bus.hear(change.message, sender, now), now)

    @property
    def wakes(self) -> float | None:
        """When somebody has something to say."""
        times = [member.wakes for member in self.members] + [seat.wakes for seat in self.seats]
        return min((time for time in times if time is not None), default=None)

    def tick(self, now: float) -> list[To]:
        """Let everybody say it."""
        sends: list[To] = []
        for member, seat in zip(self.members, self.seats, strict=True):
            words = member.tick(now)
            was = seat.leading
            words += seat.tick(now, tuple(self._sample))
            if seat.leading and not was:
                sends += self._bus.lead(member.part, True)
            sends += self._say(words, now)
        return sends

    def _say(self, words: list[AnyWord], now: float) -> list[To]:
        return [to for word in words for to in self._follow(self._bus.say(word, now), now)]

    def _follow(self, heard: Heard, now: float) -> list[To]:
        """What there is to send, and what follows from the words."""
        sends = list(heard.sends)
        for word in heard.words:
            sends += self._take(word, now)
        return sends

    def _take(self, word: AnyWord, now: float) -> list[To]:
        if word.part >= len(self.members):
            return []
        member, seat = self.members[word.part], self.seats[word.part]
        was = seat.leading
        words: list[AnyWord] = []
        match word:
            case Beat():
                seat.hear_of(word.term, now)
                words = member.hear_beat(word, now)
            case News() | Whole():
                seat.hear_of(word.update.version.term, now)
                words = member.hear_update(word.update, now)
            case InterestReport():
                words = seat.hear_report(word, now)
            case Ask():
                words = seat.hear_ask(word, now)
        sends = self._bus.lead(word.part, False) if was and not seat.leading else []
        return sends + self._say(words, now)

    @property
    def standing(self) -> list[Standing]:
        """How things stand with the trees."""
        return [
            Standing(
                member.part, seat.term.by, member.places.tree.version, member.places.tree.size, member.places.loose
            )
            for member, seat in zip(self.members, self.seats, strict=True)
        ]
