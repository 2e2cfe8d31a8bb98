"""`Visit`: a client at a border broker, from when it says so until all that came for it there has gone elsewhere.

A client's stays have numbers. A stay is *blocked* until there is a replay of each stay before it; what comes meanwhile
is put aside. A client that moves on before that leaves a blocked stay behind: then its pieces go on as they come, each
for itself, and the latest stay puts them together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from fieldfare.mobility.relocation_messages import Replay, Resub
from fieldfare.mobility.sessions import Publisher, Session
from fieldfare.protocol.messages import Deliver


class Visit(msgspec.Struct):
    """One of them."""

    client: str
    number: int
    since: float
    taken: int = 0
    """the last delivery that the client had got when it came"""
    session: Session | None = None
    """none while it is blocked"""
    aside: list[Deliver] = []
    pieces: dict[int, Replay] = {}
    """of stays before, by the first of them"""
    had: dict[Publisher, int] = {}
    """the highest count of each publisher that the client has got"""
    heir: Resub | None = None
    """where the client is now; what still comes for this stay is sent on"""
    lost: int = 0

    @property
    def missing(self) -> list[int]:
        """The stays before of which nothing is known."""
        known = {number for piece in self.pieces.values() for number in range(piece.first, piece.last + 1)}
        return [number for number in range(self.number) if number not in known]

    @property
    def complete(self) -> bool:
        """Whether there is no more to come."""
        return self.session is not None or not self.missing

    def take(self, delivery: Deliver, limit: int | None) -> Deliver | None:
        """Keep a delivery, the oldest ones at the expense of which there is no room; numbered, unless blocked."""
        numbered = None if self.session is None else self.session.take(delivery)
        if self.session is None:
            self.aside.append(delivery)
        kept = self.aside if self.session is None else self.session.kept
        if limit is not None and len(kept) > limit:
            self.lost += len(kept) - limit
            del kept[:-limit]
        return numbered

    def acknowledge(self, number: int) -> None:
        """The client has got all deliveries up to a number."""
        if self.session is not None:
            _raise(self.had, (one for one in self.session.kept if one.number <= number))
            self.session.acknowledge(number)

    def unblock(self) -> None:
        """Put together what was kept in all stays, each event once and those of a publisher in order."""
        pieces = [self.pieces[first] for first in sorted(self.pieces)]
        for piece in pieces:
            for publisher, sequence in piece.had:
                self.had[publisher] = max(sequence, self.had.get(publisher, -1))
        kept = [*(one for piece in pieces for one in piece.deliveries), *self.aside]
        self.session = Session(last=self.taken)
        for delivery in in_turn(one for one in kept if one.sequence > self.had.get((one.publisher, one.by), -1)):
            self.session.take(delivery)
        self.lost += sum(piece.lost for piece in pieces)
        self.aside, self.pieces = [], {}

    def estate(self, heir: Resub, border: str) -> list[Replay]:
        """All that is here, for where the client is now."""
        self.acknowledge(heir.taken)
        complete = self.complete
        kept, first = (self.aside, self.number) if self.session is None else (self.session.kept, 0)
        before = [replace(piece, moves=heir.moves) for piece in self.pieces.values()]
        mine = Replay(
            self.client, heir.moves, first, self.number, tuple(kept), tuple(self.had.items()), self.lost,
            "" if complete else border,
        )  # fmt: skip
        self.heir, self.aside, self.pieces = heir, [], {}
        return [*before, mine]


def in_turn(deliveries: Iterable[Deliver]) -> list[Deliver]:
    """Each once, those of a publisher in order, and otherwise as they are.

    For a client that moves fast a later event of a publisher may be at an earlier stay: the earlier one had passed a
    broker that knew of the later stay already. And what others want goes several ways, of which two may lead to it.

    >>> from fieldfare import Event
    >>> one, two = (Deliver(Event({}), "p", number, ()) for number in (1, 2))
    >>> [delivery.sequence for delivery in in_turn([two, one, two])]
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
