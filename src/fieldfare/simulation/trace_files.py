"""Traces as Arrow tables and Parquet files: a row for each record, a column for each field of any kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from fieldfare.events import msgpack
from fieldfare.filters import parse
from fieldfare.simulation.trace import KINDS, Record

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

    >>> from fieldfare.simulation.trace import Quiet
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
