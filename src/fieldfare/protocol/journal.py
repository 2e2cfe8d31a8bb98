"""The stored forms of a node's state: journal entries and rows.

Every accepted event is a `JournalEntry` of the log; its `EntryDetails` say for which sessions and neighbours the event
is, each with a number. All other state (sessions, filters, links, progress) is in rows of a store, by kind and key. How
entries and rows lie in files is the concern of `node.storage`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

VERSION: Final = 1
"""Version of the details of an entry; a later version may add fields at the end, with defaults."""

RowKey: TypeAlias = tuple[str | int, ...]
StoredRows: TypeAlias = Mapping[str, Mapping[RowKey, Any]]
"""All rows of a store, by kind and key."""


Receiver: TypeAlias = tuple[str, str, int, Sequence[str]]
"""Receiving session of an event: name, mark, number of the delivery, ids of the matching subscriptions."""


class JournalEntry(NamedTuple):
    """One event in the log."""

    position: int
    """1, 2, 3, ... without gaps"""
    time: float
    """Seconds since the epoch at which the event was logged; never decreasing."""
    publisher: str
    sequence: int
    """The publisher's count of its events; negative for an event that this node does not route, see `handed_over`."""
    event: bytes
    """Event in the form of `fieldfare.events.msgpack`."""
    details: bytes
    """Encoded `EntryDetails`; the log itself does not look inside."""


class EntryDetails(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """Everything that the log holds about an event besides the event itself.

    Fields are encoded by their order, so a new field goes to the end and has a default.
    """

    by: str
    """Identity of the publishing session, which tells sessions of one name apart."""
    source: str
    """Node where the event was published."""
    via: str = ""
    """Neighbour that sent the event; empty for an event of a client here."""
    number: int = 0
    """Number of the message in which the neighbour sent the event."""
    after: int = 0
    """Number of the neighbour's last message before this event that changed rows."""
    to: list[Receiver] = []
    """Receiving sessions."""
    out: list[tuple[str, int]] = []
    """Receiving neighbours, with the numbers of the messages."""
    expires: float = 0.0
    """Time after which the event is delivered to nobody; 0: never."""
    replaces: str = ""
    first: int = 0
    """First sequence number of the publication that the event belongs to; a publication is accepted whole or not."""
    last: int = 0
    """Last sequence number of that publication."""
    tag: bytes = b""
    """Tag of `routing.prefix`."""
    channel_number: int = 0
    """Number of the event in the channel of its type; 0: none, or none yet."""
    channel_home: str = ""
    """Node to which the event went for its number; the entry is for the publisher's count alone."""


class Row(NamedTuple):
    """A change of the store: the value of a key, or None to delete the key."""

    kind: str
    key: RowKey
    value: Any = None


_encoder: Final = msgspec.msgpack.Encoder()
_decoder: Final = msgspec.msgpack.Decoder(EntryDetails)


_FIRST: Final = EntryDetails.__struct_fields__.index("channel_number")
_LATER: Final = EntryDetails.__struct_fields__[_FIRST:]
"""Fields that the first version did not have."""
_later_of: Final = attrgetter(*_LATER)
_DEFAULTS: Final = _later_of(EntryDetails("", ""))
_DEFAULT_BYTES: Final = sum(len(_encoder.encode(value)) for value in _DEFAULTS)
_PLAIN: Final = 0x90 + _FIRST
"""First byte of details without the later fields: the number of members."""


def encode_details(details: EntryDetails) -> bytes:
    """Return details as the bytes of a journal entry; without later fields, in the form of the first version.

    >>> len(encode_details(EntryDetails("b", "s"))) + 2 == len(encode_details(EntryDetails("b", "s", channel_number=1)))
    True
    """
    data = _encoder.encode(details)
    if _later_of(details) != _DEFAULTS:
        return data
    return bytes((_PLAIN,)) + data[1:-_DEFAULT_BYTES]


def details_of(entry: JournalEntry) -> EntryDetails:
    """Decode the details of an entry."""
    return _decoder.decode(entry.details)


def channel_number_of(entry: JournalEntry) -> int:
    """Return the number of an event in its channel, without decoding the details of an event without a channel."""
    return details_of(entry).channel_number if entry.details[0] > _PLAIN else 0


def replacement_key(publisher: str, replaces: str) -> tuple[str, str] | None:
    """Return the key under which an event replaces waiting ones, or None; a publisher replaces only its own events."""
    return (publisher, replaces) if replaces else None


def handed_over(sequence: int) -> int:
    """Return the sequence number under which the log holds an event that this node does not route; the inverse as well.

    Such an event came with a handover, or has left for the home of its channel. The result is negative, because the
    same event reaches all receivers on another way and must not count twice.

    >>> handed_over(7), handed_over(handed_over(7))
    (-8, 7)
    """
    return -1 - sequence


def is_handed_over(entry: JournalEntry) -> bool:
    """Tell whether the event of an entry came with a session, or has left for the home of its channel."""
    return entry.sequence < 0


def event_id(entry: JournalEntry) -> tuple[str, str, int]:
    """Return the publisher, the publisher's identity and the sequence number, which together identify an event."""
    sequence = handed_over(entry.sequence) if is_handed_over(entry) else entry.sequence
    return entry.publisher, details_of(entry).by, sequence


def last_complete_position(entry: JournalEntry) -> int:
    """Return the last position that counts in a log that ends with the given entry.

    A kill may cut a publication short; then the position before its first event counts, since a publication is
    accepted whole or not at all.
    """
    details = details_of(entry)
    sequence = handed_over(entry.sequence) if details.channel_home else entry.sequence
    if sequence < 0 or sequence >= details.last:
        return entry.position
    return entry.position - 1 - (sequence - details.first)


def low_water(stored: StoredRows) -> int:
    """Return the first position of the log that a broker needs to recover from the given rows."""
    checkpoint: int = stored.get("checkpoint", {}).get((), 0) + 1
    return max(1, min([checkpoint, *_lows(stored)]))


def high_water(stored: StoredRows) -> int:
    """Return the last position of the log that the given rows know of; a log may have lost its end."""
    checkpoint: int = stored.get("checkpoint", {}).get((), 0)
    waiting: list[int] = [row[0] for row in stored.get("replayed", {}).values()]
    return max([checkpoint, *waiting, *(low - 1 for low in _lows(stored))])


def _lows(stored: StoredRows) -> list[int]:
    """Return the first position that each row needs: at most one behind the last when the row was written."""
    places = {"session": 5, "neighbour": 1, "arrival": 0, "departure": 0, "kept": 0}
    return [row[place] for kind, place in places.items() for row in stored.get(kind, {}).values()]
