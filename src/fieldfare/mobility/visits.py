"""`RelocationVisit`: a client at a border broker, until all events that came for the client have gone elsewhere.

A client's visits are numbered. A visit is *blocked* until there is a replay of each earlier visit; events are buffered
meanwhile. A client that moves on early leaves a blocked visit behind: then its replays go on as they come, each by
itself, and the latest visit puts them together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from fieldfare.mobility.relocation_messages import Replay, Resubscribe
from fieldfare.mobility.sessions import MobileSession, Publisher
from fieldfare.protocol.messages import Deliver


class RelocationVisit(msgspec.Struct):
    """A client's visit to a border broker."""

    client: str
    number: int
    since: float
    received: int = 0
    """the last delivery which the client had received at arrival"""
    session: MobileSession | None = None
    """None while the visit is blocked"""
    buffered: list[Deliver] = []
    pieces: dict[int, Replay] = {}
    """replays of earlier visits, by the first of them"""
    had: dict[Publisher, int] = {}
    """the highest count of each publisher which the client has received"""
    successor: Resubscribe | None = None
    """the client's present place; later events for this visit are sent on"""
    lost: int = 0

    @property
    def missing(self) -> list[int]:
        """The earlier visits without a replay."""
        known = {number for piece in self.pieces.values() for number in range(piece.first, piece.last + 1)}
        return [number for number in range(self.number) if number not in known]

    @property
    def complete(self) -> bool:
        """Whether no more replays are to come."""
        return self.session is not None or not self.missing

    def accept(self, delivery: Deliver, limit: int | None) -> Deliver | None:
        """Keep a delivery, numbered unless the visit is blocked; beyond the limit the oldest deliveries are dropped."""
        numbered = None if self.session is None else self.session.accept(delivery)
        if self.session is None:
            self.buffered.append(delivery)
        kept = self.buffered if self.session is None else self.session.pending
        if limit is not None and len(kept) > limit:
            self.lost += len(kept) - limit
            del kept[:-limit]
        return numbered

    def acknowledge(self, number: int) -> None:
        """Drop the deliveries up to a number, which the client has received."""
        if self.session is not None:
            _raise(self.had, (one for one in self.session.pending if one.number <= number))
            self.session.acknowledge(number)

    def unblock(self) -> None:
        """Put the events of all visits together, each once and those of a publisher in order."""
        pieces = [self.pieces[first] for first in sorted(self.pieces)]
        for piece in pieces:
            for publisher, sequence in piece.had:
                self.had[publisher] = max(sequence, self.had.get(publisher, -1))
        kept = [*(one for piece in pieces for one in piece.deliveries), *self.buffered]
        self.session = MobileSession(last=self.received)
        for delivery in in_publisher_order(
            one for one in kept if one.sequence > self.had.get((one.publisher, one.by), -1)
        ):
            self.session.accept(delivery)
        self.lost += sum(piece.lost for piece in pieces)
        self.buffered, self.pieces = [], {}

    def replays_for(self, successor: Resubscribe, border: str) -> list[Replay]:
        """Return all events here as replays for the client's present place."""
        self.acknowledge(successor.received)
        complete = self.complete
        kept, first = (self.buffered, self.number) if self.session is None else (self.session.pending, 0)
        before = [replace(piece, moves=successor.moves) for piece in self.pieces.values()]
        mine = Replay(
            self.client, successor.moves, first, self.number, tuple(kept), tuple(self.had.items()), self.lost,
            "" if complete else border,
        )  # fmt: skip
        self.successor, self.buffered, self.pieces = successor, [], {}
        return [*before, mine]


def in_publisher_order(deliveries: Iterable[Deliver]) -> list[Deliver]:
    """Return each delivery once, those of a publisher in order, and otherwise in the given order.

    For a fast client a later event of a publisher may be at an earlier visit: the earlier event had passed a broker
    that already knew of the later visit. And events for other clients take several ways, of which two may lead here.

    >>> from fieldfare import Event
    >>> one, two = (Deliver(Event({}), "p", number, ()) for number in (1, 2))
    >>> [delivery.sequence for delivery in in_publisher_order([two, one, two])]
    [1, 2]
    """
    each = {(delivery.publisher, delivery.by, delivery.sequence): delivery for delivery in deliveries}
    turns: defaultdict[Publisher, list[Deliver]] = defaultdict(list)
    for delivery in each.values():
        turns[delivery.publisher, delivery.by].append(delivery)
    queues = {publisher: iter(sorted(mine, key=lambda one: one.sequence)) for publisher, mine in turns.items()}
    return [next(queues[delivery.publisher, delivery.by]) for delivery in each.values()]


def _raise(had: dict[Publisher, int], deliveries: Iterable[Deliver]) -> None:
    for one in deliveries:
        publisher = one.publisher, one.by
        had[publisher] = max(one.sequence, had.get(publisher, -1))
