"""`Sealed`: a segment of the event log as Parquet, which Spark and others can read.

The columns hold everything that the log needs, and for other readers the event as JSON and its type. An event that
cannot be decoded keeps its bytes; its JSON is null.
"""

from __future__ import annotations

import os
import struct
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple
from zlib import crc32

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from fieldfare.events import EventError, Limits, json, msgpack
from fieldfare.node.storage import private
from fieldfare.node.storage.raw_format import LogError, advice
from fieldfare.protocol.journal import JournalEntry

SCHEMA: Final = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("time", pa.timestamp("us", "UTC"), nullable=False),
        pa.field("publisher", pa.string(), nullable=False),
        pa.field("sequence", pa.int64(), nullable=False),
        pa.field("type", pa.string()),
        pa.field("event", pa.string()),
        pa.field("record", pa.binary(), nullable=False),
        pa.field("rest", pa.binary(), nullable=False),
    ]
)
_NEEDED: Final = ["position", "time", "publisher", "sequence", "record", "rest"]
_ROWS: Final = 10_000
_BYTES: Final = 16 << 20
"""a row group is done with so many rows, or so many bytes of events"""
ANY_SIZE: Final = Limits(bytes=1 << 30, fields=1 << 30, depth=128, string=1 << 30)
"""whoever accepted the event had limits of its own"""


_GROUPS: Final = "fieldfare.groups"
_CHECK: Final = "fieldfare.check"
_FOOTERS: Final = "fieldfare.footers"
"""how often the footer stands at the end"""
_TAIL: Final = struct.Struct("<I4s")
"""the length of the footer, and what every Parquet file ends with"""
_TAIL_MAGIC: Final = b"PAR1"
_SUM: Final = struct.Struct("<I")


class _Group(NamedTuple):
    """A row group. A list of them is in the footer, with a checksum: the statistics there have none."""

    first: int
    newest: float


class Sealed(msgspec.Struct, eq=False):
    """A segment that changes no more."""

    path: Path
    first: int
    last: int
    size: int
    groups: tuple[_Group, ...] = ()
    """empty until they are needed"""

    @property
    def newest(self) -> float:
        """The time of its last entry."""
        return self._groups()[-1].newest

    def check(self) -> None:
        """Raise an error if it is not all there."""
        self._groups()

    def read(self, position: int, end: int) -> Iterator[list[JournalEntry]]:
        """The entries from a position to an end that it has."""
        number = bisect_right(self._groups(), position, key=attrgetter("first")) - 1
        with _opened(self.path) as file:
            while position <= end:
                with _blamed(self.path):
                    entries = _entries(file.read_row_group(number, _NEEDED, use_threads=False))
                if not entries or entries[0].position != self.groups[number].first:
                    raise LogError(f"{self.path} is damaged in row group {number}. {advice(self.path.parent)}")
                begin = entries[0].position
                yield entries[position - begin : end - begin + 1]
                position = begin + len(entries)
                number += 1

    def position_at(self, time: float) -> int:
        """The position of the first entry that is not earlier; one more than the last if there is none."""
        groups = self._groups()
        number = bisect_left(groups, time, key=attrgetter("newest"))
        if number == len(groups):
            return self.last + 1
        with _opened(self.path) as file, _blamed(self.path):
            times = _times(file.read_row_group(number, ["time"], use_threads=False))
        return groups[number].first + bisect_left(times, time)

    def _groups(self) -> tuple[_Group, ...]:
        if not self.groups:
            with _opened(self.path) as file, _blamed(self.path):
                groups, rows = groups_in(file.metadata.metadata), file.metadata.num_rows
                if file.schema_arrow != SCHEMA:
                    raise ValueError("it has other columns")
                if _FOOTERS.encode() in file.metadata.metadata:  # an earlier version wrote only one
                    _compare_footers(self.path)
            if rows != self.last - self.first + 1:
                raise LogError(
                    f"{self.path} has {rows} entries, and by its name should have those up to {self.last}."
                    f" {advice(self.path.parent)}"
                )
            self.groups = groups
        return self.groups


def write(path: Path, entries: Iterable[JournalEntry]) -> int:
    """Write entries as a file that survives a power loss; gives how many. If that fails, there is no file."""
    count = 0
    try:
        private.create(path)
        with pq.ParquetWriter(
            path,
            SCHEMA,
            compression="zstd",
            use_dictionary=["publisher", "type"],
            write_statistics=["position", "time", "publisher", "sequence", "type"],
            write_page_checksum=True,
        ) as writer:
            groups = []
            for rows in _grouped(entries):
                writer.write_table(table_of(rows), row_group_size=len(rows))
                groups.append(_Group(rows[0].position, rows[-1].time))
                count += len(rows)
            about = msgspec.json.encode(groups)
            writer.add_key_value_metadata({_GROUPS: about, _CHECK: str(crc32(about)), _FOOTERS: "2"})
        _repeat_footer(path)
        sync(path)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return count


def _repeat_footer(path: Path) -> None:
    """Write the footer of a file once more, with a checksum in between.

    Parquet has no checksum of the footer, and without its footer no file can be read. Readers use the last footer.
    """
    with path.open("r+b") as file:
        file.seek(-_TAIL.size, os.SEEK_END)
        length = _TAIL.size + _TAIL.unpack(file.read())[0]
        file.seek(-length, os.SEEK_END)
        footer = file.read()
        file.write(_SUM.pack(crc32(footer)) + footer)


def _compare_footers(path: Path) -> None:
    with path.open("rb") as file:
        file.seek(-_TAIL.size, os.SEEK_END)
        length = _TAIL.size + _TAIL.unpack(file.read())[0]
        file.seek(-2 * length - _SUM.size, os.SEEK_END)
        first, check, last = file.read(length), file.read(_SUM.size), file.read()
    if first != last or check != _SUM.pack(crc32(first)):
        raise ValueError("its two footers are not the same, or not as they were written")


def images(data: bytes) -> Iterator[bytes]:
    """Yield a damaged file, cut behind each of its footers; cuts behind a footer with a right checksum come first."""
    found: list[tuple[bool, bytes]] = []
    end = len(data)
    while len(found) < 4 and (place := data.rfind(_TAIL_MAGIC, _TAIL.size, end)) >= 0:
        end, stop = place, place + len(_TAIL_MAGIC)
        begin = stop - _TAIL.size - _TAIL.unpack_from(data, stop - _TAIL.size)[0]
        check = _SUM.pack(crc32(data[max(begin, 0) : stop]))
        is_right = begin > 0 and check in (data[stop : stop + _SUM.size], data[max(begin - _SUM.size, 0) : begin])
        found.append((is_right, data[:stop]))
    yield from (image for _, image in sorted(found, key=lambda one: not one[0]))


def sync(path: Path) -> None:
    """Flush a file, or the entries of a folder, to the disk, so that they survive a power loss."""
    if os.name == "nt":
        return  # a folder cannot be opened there, nor a file synced that was not opened for writing
    file = os.open(path, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)


def _grouped(entries: Iterable[JournalEntry]) -> Iterator[list[JournalEntry]]:
    rows: list[JournalEntry] = []
    size = 0
    for entry in entries:
        rows.append(entry)
        size += len(entry.event) + len(entry.details)
        if len(rows) >= _ROWS or size >= _BYTES:
            yield rows
            rows, size = [], 0
    if rows:
        yield rows


def table_of(entries: list[JournalEntry]) -> pa.Table:
    """Return entries as a table with the columns of a sealed segment."""
    positions, times, publishers, sequences, events, rests = zip(*entries, strict=True)
    types, texts = zip(*map(_shown, events), strict=True)
    moments = pa.array([round(time * 1e6) for time in times], pa.int64())
    columns = (positions, moments.cast(SCHEMA.field("time").type), publishers, sequences, types, texts, events, rests)
    return pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, SCHEMA, strict=True)], schema=SCHEMA
    )


def _shown(data: bytes) -> tuple[str | None, bytes | None]:
    """Return the type and the JSON of an encoded event; None for an event that cannot be decoded."""
    try:
        event = msgpack.decode(data, limits=ANY_SIZE)
        text = json.encode(event)
    except (EventError, RecursionError):
        return None, None
    type = event.tree.get("type")
    return type if isinstance(type, str) else None, text


def _entries(table: pa.Table) -> list[JournalEntry]:
    position, _, publisher, sequence, record, rest = (table.column(name) for name in _NEEDED)
    return list(
        map(
            JournalEntry,
            position.to_numpy().tolist(),
            _times(table),
            publisher.to_pylist(),
            sequence.to_numpy().tolist(),
            record.to_pylist(),
            rest.to_pylist(),
        )
    )


def _times(table: pa.Table) -> list[float]:
    times: list[float] = (table.column("time").cast(pa.int64()).to_numpy() / 1e6).tolist()
    return times


def groups_in(metadata: dict[bytes, bytes]) -> tuple[_Group, ...]:
    """Return the row groups, as listed in the footer; ValueError if the list is damaged."""
    about = metadata[_GROUPS.encode()]
    if crc32(about) != int(metadata[_CHECK.encode()]):
        raise ValueError("the list of row groups has a wrong checksum")
    return msgspec.json.decode(about, type=tuple[_Group, ...])


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    with _blamed(path):
        file = pq.ParquetFile(path, page_checksum_verification=True)
    with file:
        yield file


ANYTHING: Final = (OSError, pa.ArrowException, ValueError, LookupError, AttributeError, TypeError)
"""Exceptions that a damaged footer may cause; pages have checksums, the footer of Parquet has none."""


@contextmanager
def _blamed(path: Path) -> Iterator[None]:
    """Turn errors of Arrow into `LogError`; a missing file is left to the caller: it may have been deleted."""
    try:
        yield
    except FileNotFoundError:
        raise
    except ANYTHING as error:
        raise LogError(f"{path} is damaged: {error}. {advice(path.parent)}") from error
