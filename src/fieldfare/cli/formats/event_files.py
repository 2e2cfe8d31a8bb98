"""Events from JSON lines, CSV and Parquet, one at a time.

A bad event does not end the reading: the reader yields a `BadEvent`, and the caller decides. JSON lines may be
CloudEvents, which have a `specversion`. A CSV file has no types, so the text of a cell gives the type: 12, 1.5, true,
an RFC 3339 timestamp, or else a string; an empty cell is a missing field, and 007 is a string.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import IO, Any, Final

from fieldfare.cli.errors import InputError
from fieldfare.cli.formats.inputs import Source, as_text
from fieldfare.events import Event, EventError, cloudevents
from fieldfare.events.cells import typed
from fieldfare.events.cloudevents import decode_any

BATCH: Final = 1024


class EventsFormat(StrEnum):
    """The format of a file of events."""

    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"


@dataclass(frozen=True, slots=True)
class BadEvent:
    """An event that cannot be decoded, with its place in the file."""

    place: str
    error: Exception

    def __str__(self) -> str:
        return f"{self.place}: {self.error}"


def format_of(source: Source, forced: EventsFormat | None = None) -> EventsFormat:
    """Return the forced format, or the format by the name of the file, or JSON lines."""
    if forced is not None:
        return forced
    by_suffix = {"csv": EventsFormat.CSV, "parquet": EventsFormat.PARQUET, "pq": EventsFormat.PARQUET}
    return by_suffix.get(source.suffix, EventsFormat.JSONL)


def read_events(source: Source, format: EventsFormat) -> Iterator[Event | BadEvent]:  # noqa: A002
    """Yield the events of a file in their order."""
    readers = {EventsFormat.JSONL: _jsonl, EventsFormat.CSV: _csv, EventsFormat.PARQUET: _parquet}
    with source.open() as stream:
        yield from readers[format](stream, source.name)


def count_events(source: Source, format: EventsFormat) -> int | None:  # noqa: A002
    """Return about how many events a file has, for a progress bar; None for a stream."""
    if not source.again:
        return None
    with source.open() as stream:
        if format is EventsFormat.PARQUET:
            return int(_opened(stream, source.name).metadata.num_rows)
        lines = sum(block.count(b"\n") for block in iter(lambda: stream.read(1 << 20), b""))
    return lines - 1 if format is EventsFormat.CSV else lines


def _jsonl(stream: IO[bytes], name: str) -> Iterator[Event | BadEvent]:
    for number, line in enumerate(stream, 1):
        if number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")  # noqa: PLW2901 - a byte order mark says nothing here
            if line.lstrip().startswith(b"["):
                yield from _batch(line + stream.read(), name)
                return
        if not line.isspace():
            try:
                yield decode_any(line.rstrip(b"\r\n"))
            except EventError as error:
                yield BadEvent(f"{name}:{number}", _in_a_line(error, line))


def _batch(text: bytes, name: str) -> Iterator[Event | BadEvent]:
    """Yield the events of a file with a single JSON array, which is a batch of CloudEvents."""
    try:
        yield from cloudevents.decode_batch(text)
    except EventError as error:
        yield BadEvent(name, error)


def _in_a_line(error: EventError, line: bytes) -> EventError:
    """Return an error without the number of the line, which the place of the error has already."""
    if not error.field and line.lstrip().startswith(b"["):
        return EventError("", "an event is a JSON object, one a line, and this is an array")
    return EventError(error.field, error.problem.replace("(line 1, column ", "(column "))


def _csv(stream: IO[bytes], name: str) -> Iterator[Event | BadEvent]:
    with as_text(stream) as text:
        lines = csv.reader(text, strict=True)
        try:
            header = next(lines, [])
        except csv.Error as error:
            raise InputError(f"{name}:1", error) from None
        if len(set(header)) < len(header):
            raise InputError(f"{name}:1", "two columns have the same name")
        while True:
            try:
                row = next(lines, None)
                if row is None:
                    return
                if len(row) > len(header):
                    raise EventError("", f"{len(row)} cells, but the header names {len(header)}")
                if row:
                    yield Event({field: typed(cell) for field, cell in zip(header, row, strict=False) if cell})
            except EventError as error:
                undecoded = any(_UNDECODED.search(cell) for cell in row or ())
                yield BadEvent(f"{name}:{lines.line_num}", EventError(error.field, "not UTF-8") if undecoded else error)
            except csv.Error as error:
                yield BadEvent(f"{name}:{lines.line_num}", error)


def _parquet(stream: IO[bytes], name: str) -> Iterator[Event | BadEvent]:
    from fieldfare.events import arrow

    row = 0
    for batch in _batches(stream, name):
        try:
            yield from arrow.from_batch(batch)
        except EventError:  # once more, row by row, to know the good ones from the bad
            for offset in range(batch.num_rows):
                try:
                    yield from arrow.from_batch(batch.slice(offset, 1))
                except EventError as error:
                    problem = EventError(error.field, error.problem.removesuffix(" (row 1)"))
                    yield BadEvent(f"{name}:row {row + offset + 1}", problem)
        row += batch.num_rows


def _batches(stream: IO[bytes], name: str) -> Iterator[Any]:
    import pyarrow as pa

    file = _opened(stream, name)
    try:
        yield from file.iter_batches(BATCH)
    except (pa.ArrowException, OSError) as error:
        raise InputError(name, f"the Parquet file is damaged: {error}") from None


def _opened(stream: IO[bytes], name: str) -> Any:
    import pyarrow as pa
    from pyarrow import parquet

    try:
        return parquet.ParquetFile(stream if stream.seekable() else io.BytesIO(stream.read()))
    except (pa.ArrowException, OSError) as error:
        raise InputError(name, f"not a Parquet file: {error}") from None


_UNDECODED: Final = re.compile("[\udc80-\udcff]")
"""bytes that were not UTF-8, see `as_text`"""
