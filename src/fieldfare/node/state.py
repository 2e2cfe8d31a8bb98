"""What a node keeps: entries of the log and rows of the store, and the sessions and links that they are about."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple, TypeAlias

import msgspec

from fieldfare.events.event import Event
from fieldfare.protocol.journal import JournalEntry, Row
from fieldfare.protocol.lineage import Lineage
from fieldfare.protocol.messages import About, Role

Policy: TypeAlias = Literal["buffer", "drop-oldest", "disconnect"]


class Step(NamedTuple):
    """What must be written, all of it or nothing, and whom that concerns then."""

    entries: list[JournalEntry]
    rows: list[Row]
    sessions: dict[str, int]
    """the number of the last delivery that each may take then"""
    neighbours: dict[str, int]
    overflowing: set[str]
    """sessions that must go, since more waits for them than may"""
    closing: dict[str, str]
    """sessions whose connections end, and the node where they go on, if it is another one"""


class RequestRefused(ValueError):
    """What a client says has no effect; it says why."""


class Publication(NamedTuple):
    """Events of a publisher, taken all or none."""

    session: str
    number: int
    """of the first one; 0: the broker counts"""
    events: Sequence[Event]
    expires: float | None = None
    """when nobody is to get them any more"""
    replaces: str = ""
    identity: str = ""
    """of the session that is meant, if there may be another one of that name by now"""


class Pending(NamedTuple):
    """An event that waits for a session."""

    position: int
    subscriptions: tuple[str, ...]
    expires: float
    replayed: bool = False
    """it stands in a row, since the log does not say that it is for the session"""
    old: bool = False
    """it had happened before the session asked for it"""
    replaces: tuple[str, str] | None = None
    """the publisher and the name under which it replaces others that wait, and is replaced"""


def pending_row(pending: Pending) -> list[Any]:
    """The value of a row for an event of which the log does not say that it is for a session."""
    return [pending.position, list(pending.subscriptions), pending.expires, pending.old, pending.replaces]


def pending_of_row(row: Sequence[Any]) -> Pending:
    """What such a row says; an earlier version wrote fewer values."""
    lacking: list[Any] = [NEVER, True, None]
    position, ids, expires, old, replaces = [*row, *lacking[len(row) - 2 :]]
    key = None if replaces is None else (replaces[0], replaces[1])
    return Pending(position, tuple(ids), expires, replayed=True, old=old, replaces=key)


class Origin(NamedTuple):
    """Where an event came from."""

    number: int = 0
    after: int = 0
    first: int = 0
    last: int = 0


class Session(msgspec.Struct):
    """A client, as far as its events and deliveries go."""

    identity: str
    durable: bool
    here: bool = True
    seen: float = 0.0
    """when it came or went"""
    sequence: int = 0
    """of the last event that it published"""
    count: int = 0
    """of its deliveries"""
    released: int = 0
    """up to which it may take them"""
    taken: int = 0
    """up to which the present connection took them"""
    done: int = 0
    """up to which it has acknowledged them"""
    dropped: int = 0
    owner: str = ""
    """who made it; nobody else may use it"""
    oldest: int = 1
    """no number below it is pending"""
    pending: dict[int, Pending] = {}
    replays: int = 0
    """how many of them stand in rows, since the log does not say that they are for this session"""
    replaceable: dict[tuple[str, str], list[int]] = {}
    """numbers that a later event replaces; several, if one of them was replayed"""
    moved: str = ""
    """the mark of one that came from another node: what the log says under another one is void"""
    doubt: int = 0
    """deliveries up to this number may be some that the client has had under other numbers"""
    moves: int = 0
    """how often it has come to another node: of two of the same identity the higher counts"""
    lives: Lineage = ()
    """in which lives of which logs its deliveries were numbered"""
    restored: bool = False
    """its identity was taken up from the disk, with a number of events that may be too low"""
    sent: int = 0
    """up to which deliveries may have been sent on an earlier connection"""
    low: int = 0
    """the log has nothing for it before this position, but for what was dropped; known after a restart"""
    warned: int = 0
    """of how many dropped deliveries the client was told; and what it is being told, with which delivery"""
    warning: tuple[int, int] = 0, 0

    @property
    def mark(self) -> str:
        """By which the log knows it."""
        return self.moved or self.identity


class Link(msgspec.Struct):
    """A neighbour, as far as messages go."""

    role: Role
    said: int = 0
    released: int = 0
    safe: int = 0
    """up to which the neighbour has all that we said"""
    heard: int = 0
    """up to which we have all that the neighbour said, and it is written"""
    taken: int = 0
    """the same, written or not"""
    changed: int = 0
    """the last of that which was not an event"""
    mine: str = ""
    """a name for this link, as it has been since it was new: here, and at the neighbour's"""
    theirs: str = ""
    low: int = 0
    """no event before this position is in the outbox"""
    born: int = 0
    """the position at which the link was new: what the log says before that is about an earlier one"""
    lives: Lineage = ()
    """in which lives of our log our messages were numbered"""
    known: Lineage = ()
    """the same of the neighbour's, as it said when we met last"""
    since: int = 0
    """the position at which the neighbour's numbers had gone back: what the log says of them before that is void"""
    id: str = ""
    """the neighbour's folder, by its random name; empty if it has none"""
    already: dict[int, int] = {}
    """what it said that is in the log, though something said before is not, and where: see `_restore_entry`"""
    outbox: dict[int, bytes | int] = {}
    """messages, or the positions of events"""
    told: dict[About, dict[str, None]] = {}
    """what it wants and promises, as texts; there may be more than counts: see `_note_told`"""


class Greeting(NamedTuple):
    """What a neighbour says of a link that it knows from before."""

    heard: int
    """up to where it has heard us"""
    knows: Lineage
    """in which lives of our log that was, as far as it knows"""
    lives: Lineage
    """in which lives of its log its messages to us were numbered"""
    first: int
    """the number of the first of them that it can still say"""
    said: int
    """and of the last"""


INTERNAL: Final = ("~", "webhook:", "bridge:")
"""how the names of sessions begin that are a node's own, and do not move"""
NEVER: Final = float("inf")


def pending_numbers(session: Session, first: int, last: int) -> Iterator[int]:
    """The numbers of a range under which something is pending, in order.

    Where there are few gaps that is faster than to sort. A session that came from elsewhere may have gaps of any size:
    whoever has looked at more numbers than there are to find looks at what there is instead.
    """
    pending, missed = session.pending, 0
    number = first
    while number <= last:
        if number in pending:
            missed = 0
            yield number
        else:
            missed += 1
            if missed > len(pending) + 1000:
                missed, number = 0, min((one for one in pending if one > number), default=last + 1)
                continue
        number += 1
