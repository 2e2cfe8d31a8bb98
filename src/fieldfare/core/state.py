"""State of a core, as plain values: sessions with waiting deliveries, and links with outboxes.

`state_rows` defines the rows of sessions and links; `step` collects the changes of a step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.filters.named_filter import NamedFilter
from fieldfare.protocol.event_options import EventOptions, WithOptions
from fieldfare.protocol.journal import replacement_key
from fieldfare.protocol.lineage import Lineage
from fieldfare.protocol.messages import About, Forward, Role
from fieldfare.protocol.versions import OLDEST

Policy: TypeAlias = Literal["buffer", "drop-oldest", "disconnect"]
"""Reaction to a session without a durable name that is too slow."""

INTERNAL: Final = ("~", "webhook:", "bridge:")
"""Prefixes of the names of a node's own sessions, which are never handed over to another node."""
NEVER: Final = float("inf")
"""Expiry time of an event without a time to live."""


class RequestRefused(ValueError):
    """A request of a client has no effect; the message gives the reason."""


class PeerTooOld(RequestRefused):
    """A request needs what the version of a node does not have."""


class Publication(EventOptions, frozen=True):
    """Events of a publisher, accepted together or not at all, with the options of all of them."""

    session: str
    number: int
    """Sequence number of the first event; 0: the broker counts."""
    events: Sequence[Event]
    identity: str = ""
    """Identity of the intended session, since a later session may have the same name; empty: any."""


class Pending(msgspec.Struct, frozen=True):
    """An event on the way to a session, until the acknowledgement; sessions with equal ids share the value."""

    position: int
    subscriptions: tuple[str, ...]
    expires: float
    in_row: bool = False
    """Whether a row holds this delivery, because the journal entry does not name the session."""
    replayed: bool = False
    """Whether the event happened before the session subscribed."""
    replaces: tuple[str, str] | None = None
    """Publisher and name; a later event with the same pair replaces this one while both wait."""


def pending_event(
    position: int, ids: Sequence[str], publisher: str, options: WithOptions, *, replayed: bool = False
) -> Pending:
    """Return an event of the log as it waits for a session; the ids are those of the matching subscriptions."""
    key = replacement_key(publisher, options.replaces)
    return Pending(position, tuple(ids), options.expires or NEVER, replayed=replayed, replaces=key)


class Origin(NamedTuple):
    """Where an event entered this node: the message of a neighbour, or the publication of a client."""

    number: int = 0
    """Number of the neighbour's message."""
    after: int = 0
    """Number of the neighbour's last message before it that changed rows."""
    first: int = 0
    """First sequence number of the client's publication."""
    last: int = 0
    numbered: bool = False
    """Whether the event gets its number in a channel here."""


Route: TypeAlias = Callable[[Sequence[tuple[Forward, Origin]], str, float], None]
"""The way of accepted events into the node, with the neighbour that sent the events, and the time; see `Core.route`."""


class Session(msgspec.Struct):
    """A client's durable presence: counts of events and deliveries, and the waiting deliveries.

    Numbers of deliveries obey `acknowledged <= sent <= released <= count`; `sent` restarts at
    `acknowledged` with each connection.
    """

    identity: str
    """Random name, which tells this session from an earlier or later one of the same name."""
    durable: bool
    connected: bool = True
    last_seen: float = 0.0
    """Time at which the client last came or went."""
    sequence: int = 0
    """Sequence number of the last accepted event of this publisher."""
    count: int = 0
    """Number of the last delivery."""
    released: int = 0
    """Number of the last delivery that is on disk and may be sent."""
    sent: int = 0
    """Number of the last delivery that the present connection has sent."""
    acknowledged: int = 0
    dropped: int = 0
    """How many deliveries were dropped in all."""
    owner: str = ""
    """Principal that created the session; no other principal may use it."""
    oldest: int = 1
    """Lower bound of the pending numbers."""
    pending: dict[int, Pending] = {}
    rows: int = 0
    """How many of the pending deliveries are in rows."""
    replaceable: dict[tuple[str, str], list[int]] = {}
    """Pending numbers by replacement key; a key has several if one of them was replayed."""
    handover_mark: str = ""
    """Mark of a session that came from another node; journal entries under other marks are void for the session."""
    doubt: int = 0
    """Deliveries up to this number may be events that the client has had under other numbers."""
    moves: int = 0
    """How often the session has changed its node: of two copies with one identity, the higher count is valid."""
    lives: Lineage = ()
    """Lives of the logs in which deliveries were numbered."""
    is_numbering: bool = False
    """Whether the present life is the last one in `lives`; not stored, as each start begins a life."""
    restored: bool = False
    """Whether the identity comes from disk, where the count of published events may be too low."""
    sent_before: int = 0
    """Number of the last delivery that an earlier connection may have sent."""
    low: int = 0
    """Position before which the log holds nothing for the session but dropped events; known after a restart."""
    warned: int = 0
    """Number of dropped deliveries that the client has confirmed to know."""
    warning: tuple[int, int] = 0, 0
    """Number of dropped deliveries that the client is being told, and the delivery that carries the warning."""

    @property
    def mark(self) -> str:
        """The name of the session in journal entries."""
        return self.handover_mark or self.identity

    def check(self) -> None:
        """Assert the order of the counts, and that nothing waits outside of them."""
        assert self.acknowledged <= self.sent <= max(self.released, self.acknowledged) <= self.count, self
        assert len(self.pending) <= self.count - self.acknowledged, self
        assert not self.pending or self.oldest > self.acknowledged, self


FilterKey: TypeAlias = tuple[str, ...]
"""the text of a filter, and its name if the filter has one: simple routing has many filters of one text"""


def filter_key(filter: Filter) -> FilterKey:
    """Return the key of a filter in the rows.

    >>> from fieldfare.filters import parse
    >>> filter_key(parse("x = 1")), filter_key(NamedFilter("ana/1", parse("x = 1")))
    (('x = 1',), ('x = 1', 'ana/1'))
    """
    return (str(filter), filter.name) if isinstance(filter, NamedFilter) else (str(filter),)


class Link(msgspec.Struct):
    """A neighbour: counts of the messages in both directions, and the unacknowledged messages."""

    role: Role
    version: int = OLDEST
    """Version that both ends speak since they last met; no row has it."""
    last: int = 0
    """Number of the last message to the neighbour."""
    released: int = 0
    """Number of the last message that is on disk and may be sent."""
    acknowledged: int = 0
    """Number of the last message that is on disk at the neighbour."""
    written: int = 0
    """Number of the last message of the neighbour that is on disk here and can be acknowledged."""
    received: int = 0
    """Number of the last message of the neighbour, on disk or not."""
    last_change: int = 0
    """Number of the last received message that was not an event."""
    local_name: str = ""
    """Random name of the link at this node, given when the link was new."""
    remote_name: str = ""
    """Random name of the link at the neighbour."""
    low: int = 0
    """Position before which no event is in the outbox."""
    born: int = 0
    """Position at which the link was new; earlier journal entries are about an earlier link."""
    lives: Lineage = ()
    """Lives of this node's log in which messages to the neighbour were numbered."""
    remote_lives: Lineage = ()
    """Lives of the neighbour's log, as heard at the last meeting."""
    renumbered_at: int = 0
    """Position at which the neighbour's numbers went back; what earlier journal entries say of them is void."""
    id: str = ""
    """Random name of the neighbour's folder; empty without a folder."""
    already: dict[int, int] = {}
    """Numbers and positions of received events that are in the log although an earlier message is not on disk."""
    outbox: dict[int, bytes | int] = {}
    """Messages that the neighbour lacks, by number without gaps: encoded, or the position of an event."""
    filters: dict[About, dict[FilterKey, None]] = {}
    """Filters of the neighbour, as keys; possibly more than are in force, see `LinkTable`."""
    incomplete: bool = False
    """Whether some filters of the neighbour may be lost: a row says so, until the neighbour has announced all."""

    def check(self) -> None:
        """Assert the order of the counts, and that the outbox has no gaps."""
        assert self.acknowledged <= self.released <= self.last, self
        assert self.written <= self.received, self
        assert len(self.outbox) == self.last - self.acknowledged, self
        assert not self.outbox or self.acknowledged + 1 in self.outbox, self


def pending_numbers(session: Session, first: int, last: int) -> Iterator[int]:
    """Yield the pending numbers of a range, in order.

    Counting up is faster than sorting where gaps are few. A session from another node may have gaps of any size:
    after more misses than there are pending numbers, the search jumps to the next number.
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


def oldest_pending(session: Session) -> int:
    """Return the first pending number, and remember the result as a lower bound.

    `next(iter(session.pending))` would be quadratic: a dict walks over all entries removed at the front.
    """
    if session.oldest not in session.pending:
        session.oldest = next(pending_numbers(session, session.oldest, session.count), session.oldest)
    return session.oldest


def lowest_position(session: Session) -> int:
    """Return the lowest pending position; with replays, a later number may have the lowest position."""
    if session.rows:
        return min(pending.position for pending in session.pending.values())
    return session.pending[oldest_pending(session)].position
