"""`RelocationVisit`: a client at a border broker, until all events that came for the client have gone elsewhere.

A client's visits have numbers. A visit is *blocked* until there is a replay of each visit before it; what comes
meanwhile is put aside. A client that moves on before that leaves a blocked visit behind: then its pieces go on as they
come, each for itself, and the latest visit puts them together.
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
    """One of them."""

    client: str
    number: int
    since: float
    received: int = 0
    """the last delivery that the client had got when it came"""
    session: MobileSession | None = None
    """none while it is blocked"""
    buffered: list[Deliver] = []
    pieces: dict[int, Replay] = {}
    """of visits before, by the first of them"""
    had: dict[Publisher, int] = {}
    """the highest count of each publisher that the client has got"""
    successor: Resubscribe | None = None
    """where the client is now; what still comes for this visit is sent on"""
    lost: int = 0

    @property
    def missing(self) -> list[int]:
        """The visits before of which nothing is known."""
        known = {number for piece in self.pieces.values() for number in range(piece.first, piece.last + 1)}
        return [number for number in range(self.number) if number not in known]

    @property
    def complete(self) -> bool:
        """Whether there is no more to come."""
        return self.session is not None or not self.missing

    def accept(self, delivery: Deliver, limit: int | None) -> Deliver | None:
        """Keep a delivery, the oldest ones at the expense of which there is no room; numbered, unless blocked."""
        numbered = None if self.session is None else self.session.accept(delivery)
        if self.session is None:
            self.buffered.append(delivery)
        kept = self.buffered if self.session is None else self.session.pending
        if limit is not None and len(kept) > limit:
            self.lost += len(kept) - limit
            del kept[:-limit]
        return numbered

    def acknowledge(self, number: int) -> None:
        """The client has got all deliveries up to a number."""
        if self.session is not None:
            _raise(self.had, (one for one in self.session.pending if one.number <= number))
            self.session.acknowledge(number)

    def unblock(self) -> None:
        """Put together what was kept in all visits, each event once and those of a publisher in order."""
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
        """All that is here, for where the client is now."""
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
    """Each once, those of a publisher in order, and otherwise as they are.

    For a client that moves fast a later event of a publisher may be at an earlier visit: the earlier one had passed a
    broker that knew of the later visit already. And what others want goes several ways, of which two may lead to it.

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
