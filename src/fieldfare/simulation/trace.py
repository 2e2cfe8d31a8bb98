"""A trace: the records of a run, in a total order.

A record is made in the very step of the broker, so that the order of records is the order of states in the
specification. Publisher and count together name an event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter

# At the interface between clients and brokers


class Published(NamedTuple):
    """A client published an event."""

    time: float
    order: int
    broker: str
    client: str
    sequence: int
    event: Event
    ttl: float = 0.0
    """seconds for which the event is of use; 0: for ever"""


class Delivered(NamedTuple):
    """A client was given an event."""

    time: float
    order: int
    broker: str
    client: str
    publisher: str
    sequence: int
    event: Event
    subscriptions: tuple[str, ...]
    channel_number: int = 0


class Subscribed(NamedTuple):
    """A client asked for events."""

    time: float
    order: int
    broker: str
    client: str
    id: str
    filter: Filter


class Unsubscribed(NamedTuple):
    """A client asks no more."""

    time: float
    order: int
    broker: str
    client: str
    id: str


class Advertised(NamedTuple):
    """A client advertised a filter under an id."""

    time: float
    order: int
    broker: str
    client: str
    id: str
    filter: Filter


class Unadvertised(NamedTuple):
    """A client took a promise back."""

    time: float
    order: int
    broker: str
    client: str
    id: str


class Left(NamedTuple):
    """A client ended all subscriptions and advertisements."""

    time: float
    order: int
    broker: str
    client: str


class Departed(NamedTuple):
    """A client went away, which the broker need not notice."""

    time: float
    order: int
    broker: str
    client: str


class Arrived(NamedTuple):
    """A client is back at a broker, after being away."""

    time: float
    order: int
    broker: str
    client: str


class Refused(NamedTuple):
    """A broker refused a client's message."""

    time: float
    order: int
    broker: str
    client: str
    about: str
    reason: str


# Members of shared sessions: the client is the session


class DeliveredToMember(NamedTuple):
    """A member of a session was given an event."""

    time: float
    order: int
    broker: str
    client: str
    publisher: str
    sequence: int
    event: Event
    subscriptions: tuple[str, ...]
    member: str
    redelivered: bool


class DeliveredToDevice(NamedTuple):
    """A device of a session was given its copy of an event."""

    time: float
    order: int
    broker: str
    client: str
    publisher: str
    sequence: int
    event: Event
    subscriptions: tuple[str, ...]
    channel_number: int
    member: str


class DeviceAdded(NamedTuple):
    """A node has welcomed a device for the first time, after others."""

    time: float
    order: int
    broker: str
    client: str
    member: str


class DeviceRemoved(NamedTuple):
    """A node was told to remove a device."""

    time: float
    order: int
    broker: str
    client: str
    member: str


class AcknowledgedByMember(NamedTuple):
    """The acknowledgement of a member is on the disk of the node."""

    time: float
    order: int
    broker: str
    client: str
    member: str
    publisher: str
    sequence: int


class MemberGone(NamedTuple):
    """The connection of a member has ended, as seen from either side."""

    time: float
    order: int
    broker: str
    client: str
    member: str


# Between brokers


class Forwarded(NamedTuple):
    """A broker sent an event to a neighbour."""

    time: float
    order: int
    broker: str
    neighbour: str
    publisher: str
    sequence: int


class Told(NamedTuple):
    """A broker told a neighbour of filters: how many are new, and how many gone."""

    time: float
    order: int
    broker: str
    neighbour: str
    about: str
    added: int
    removed: int


# About the network


class Up(NamedTuple):
    """A link between two brokers came up."""

    time: float
    order: int
    broker: str
    neighbour: str


class Down(NamedTuple):
    """A link went down, and messages on the link are lost."""

    time: float
    order: int
    broker: str
    neighbour: str


class Crashed(NamedTuple):
    """A broker stopped, and cut off all clients."""

    time: float
    order: int
    broker: str


class Restarted(NamedTuple):
    """A broker restarted: with the state before the crash, or empty."""

    time: float
    order: int
    broker: str
    kept: bool


class Forgot(NamedTuple):
    """A broker went back in time: the disk has lost the latest changes."""

    time: float
    order: int
    broker: str


class Quiet(NamedTuple):
    """No message is on a link or waits at a broker."""

    time: float
    order: int


Record: TypeAlias = (
    Published
    | Delivered
    | DeliveredToMember
    | DeliveredToDevice
    | DeviceAdded
    | DeviceRemoved
    | AcknowledgedByMember
    | MemberGone
    | Subscribed
    | Unsubscribed
    | Advertised
    | Unadvertised
    | Left
    | Departed
    | Arrived
    | Refused
    | Forwarded
    | Told
    | Up
    | Down
    | Crashed
    | Restarted
    | Forgot
    | Quiet
)
Trace: TypeAlias = Sequence[Record]

KINDS: Final[dict[str, type[Any]]] = {
    kind.__name__: kind
    for kind in (
        Published,
        Delivered,
        DeliveredToMember,
        DeliveredToDevice,
        DeviceAdded,
        DeviceRemoved,
        AcknowledgedByMember,
        MemberGone,
        Subscribed,
        Unsubscribed,
        Advertised,
        Unadvertised,
        Left,
        Departed,
        Arrived,
        Refused,
        Forwarded,
        Told,
        Up,
        Down,
        Crashed,
        Restarted,
        Forgot,
        Quiet,
    )
}

# In files

SCHEMA: Final = pa.schema(
    {
        "kind": pa.dictionary(pa.int8(), pa.string()),
        "time": pa.float64(),
        "order": pa.int64(),
        "broker": pa.string(),
        "client": pa.string(),
        "neighbour": pa.string(),
        "publisher": pa.string(),
        "sequence": pa.int64(),
        "id": pa.string(),
        "about": pa.string(),
        "reason": pa.string(),
        "event": pa.binary(),  # MessagePack
        "filter": pa.string(),  # in the language of filters
        "subscriptions": pa.list_(pa.string()),
        "channel_number": pa.int64(),
        "added": pa.int64(),
        "removed": pa.int64(),
        "kept": pa.bool_(),
        "member": pa.string(),
        "redelivered": pa.bool_(),
        "ttl": pa.float64(),
    }
)
"""a column for each name that a field has in some kind of record"""


def to_arrow(trace: Iterable[Record]) -> Any:
    """The trace as an Arrow table, a row per record.

    >>> to_arrow([Quiet(1.5, 0)]).select(["kind", "time"]).to_pylist()
    [{'kind': 'Quiet', 'time': 1.5}]
    """
    rows = [{"kind": type(record).__name__, **record._asdict()} for record in trace]
    columns: dict[str, list[object]] = {name: [row.get(name) for row in rows] for name in SCHEMA.names}
    for name, write in _WRITERS.items():
        columns[name] = [None if value is None else write(value) for value in columns[name]]
    return pa.table(columns, schema=SCHEMA)


def from_arrow(table: Any) -> list[Record]:
    """The trace in an Arrow table."""
    trace: list[Record] = []
    for row in table.to_pylist():
        kind = KINDS[row["kind"]]
        # A trace of an earlier version lacks some columns.
        known = {name: _READERS.get(name, _same)(row[name]) for name in kind._fields if name in row}
        trace.append(kind(**known))
    return trace


def write(trace: Iterable[Record], path: str) -> None:
    """Write a trace to a Parquet file."""
    pq.write_table(to_arrow(trace), path)


def read(path: str) -> list[Record]:
    """Read a trace from a Parquet file."""
    return from_arrow(pq.read_table(path))


def _same(value: object) -> object:
    return value


_WRITERS: Final[dict[str, Callable[[Any], object]]] = {"event": msgpack.encode, "filter": str}
_READERS: Final[dict[str, Callable[[Any], object]]] = {
    "event": lru_cache(maxsize=10_000)(msgpack.decode),  # it is there once for its publication and for each delivery
    "filter": lru_cache(maxsize=10_000)(parse),
    "subscriptions": tuple,
}
