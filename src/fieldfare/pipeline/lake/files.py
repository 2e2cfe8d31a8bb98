"""Parquet files of a table: written by Spark's Python workers, or by any other program with Arrow.

    files = [write_file("s3://bucket/lake", {"kind": "trade", "day": "2026-11-15"}, batches)]
    commit("s3://bucket/lake", files, schema, batch)        # on the driver, see `delta`

A file belongs to the table only after a commit, so a task killed, or run twice, leaves at worst files for
`clean` to delete. The partition is in the name of the file and in the commit, and not in the rows.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import chain
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from fieldfare.objects import Objects

_LONG: Final = 64
"""characters of a text in the statistics at most"""
_MILLISECOND: Final = timedelta(milliseconds=1)


class File(msgspec.Struct, frozen=True):
    """A Parquet file in the folder of a table, for a commit."""

    path: str
    """relative to the table"""
    rows: int
    bytes: int
    partition: dict[str, str]
    stats: str
    """the number of rows, least and largest values and counts of nulls, as JSON in the form of Delta's log"""


def write_file(place: str, partition: Mapping[str, str], batches: Iterable[pa.RecordBatch]) -> File | None:
    """Write rows of a partition to a new file of a table; None without any row.

    The values of the partition must be the same in a URL: letters, digits, `.`, `_` and `-`.
    """
    rest = iter(batches)
    first = next((batch for batch in rest if batch.num_rows), None)
    if first is None:
        return None
    folder = "/".join(f"{name}={value}" for name, value in partition.items())
    path = f"{folder}/{uuid.uuid4().hex}.parquet".lstrip("/")
    about: list[Any] = []
    with (
        Objects(place).writing(path) as file,
        pq.ParquetWriter(file, first.schema, metadata_collector=about, **_options(first.schema)) as writer,
    ):
        for batch in chain([first], rest):
            writer.write_batch(batch)
        writer.close()
        size = file.size
    return File(path, about[0].num_rows, size, dict(partition), statistics(about[0]))


def _options(schema: Any) -> dict[str, Any]:
    """Return how to write dictionaries: as plain columns. Repeated texts have no statistics, which would cost most."""
    coded = [field for field in schema if pa.types.is_dictionary(field.type)]
    texts = {field.name for field in coded if pa.types.is_string(field.type.value_type)}
    told = [".".join(path) for path in _leaves(schema) if path is not None and path[0] not in texts]
    return {"store_schema": False, "write_statistics": told} if coded else {}


def statistics(about: Any) -> str:
    """Return the statistics of a file from its metadata, as JSON: of columns and fields of structs, not of lists.

    Floats have none: for readers of Delta, NaN is the largest number, and Parquet leaves NaN out.
    """
    least: dict[str, Any] = {}
    largest: dict[str, Any] = {}
    nulls: dict[str, Any] = {}
    for number, path in enumerate(_leaves(about.schema.to_arrow_schema())):
        groups = [about.row_group(group).column(number).statistics for group in range(about.num_row_groups)]
        if path is None or not all(groups):
            continue
        if all(group.has_null_count for group in groups):
            _put(nulls, path, sum(group.null_count for group in groups))
        full = [group for group in groups if group.num_values]
        if full and all(group.has_min_max for group in full):
            low, high = _bounds([group.min for group in full], [group.max for group in full])
            if low is not None and high is not None:
                _put(least, path, low)
                _put(largest, path, high)
    found = {"numRecords": about.num_rows, "minValues": least, "maxValues": largest, "nullCount": nulls}
    return msgspec.json.encode(found).decode()


def _leaves(fields: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...] | None]:
    """Yield the path of each column of Parquet, in order; None for a column inside of a list."""
    for field in fields:
        match field.type:
            case pa.StructType() as inner:
                yield from _leaves([inner.field(number) for number in range(inner.num_fields)], (*above, field.name))
            case kind if pa.types.is_nested(kind):
                inner = [kind.field(number) for number in range(kind.num_fields)]
                yield from (None for _ in _leaves(inner))
            case _:
                yield (*above, field.name)


def _bounds(lows: list[Any], highs: list[Any]) -> tuple[Any, Any]:
    """Return the least and the largest value as JSON has them; None for a type without a form in Delta's log."""
    match lows[0]:
        case bool() | bytes() | Decimal():
            return None, None
        case int():
            return min(lows), max(highs)
        case str():
            low, high = min(lows)[:_LONG], max(highs)
            return low, high if len(high) <= _LONG else None
        case datetime():
            return _time(min(lows)), _time(max(highs) + _MILLISECOND if max(highs).year < 9999 else max(highs))
        case date():
            return min(lows).isoformat(), max(highs).isoformat()
        case _:
            return None, None


def _time(when: datetime) -> str:
    """Return a time in milliseconds, rounded down, as readers of Delta expect."""
    known = when.replace(tzinfo=UTC) if when.tzinfo is None else when.astimezone(UTC)
    return known.strftime("%Y-%m-%dT%H:%M:%S.") + f"{known.microsecond // 1000:03d}Z"


def _put(tree: dict[str, Any], path: tuple[str, ...], value: object) -> None:
    for step in path[:-1]:
        tree = tree.setdefault(step, {})
    tree[path[-1]] = value
