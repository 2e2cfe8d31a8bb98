"""`Raw`: the segment of the event log that is being written, record after record.

A write that was cut short leaves a torn *tail*, which was never reported as safe and may be cut off. Damage with good
records behind it, or in a complete record, means that a safe entry is lost. Then the log
is not opened, or a reader gets an error; a *salvage* keeps the rest.

Times are whole microseconds, as they will be in Parquet: an entry looks the same before and after it is sealed.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from fieldfare.node.storage import raw_format
from fieldfare.node.storage.raw_format import (
    BLOCK,
    HEADER_SIZE,
    Damaged,
    LogError,
    advice,
    blocks,
    good_after,
    is_complete,
    read_header,
)
from fieldfare.protocol.journal import JournalEntry

_INT64: Final = 1 << 63
_LATEST: Final = float(1 << 32)
"""Seconds up to 2106, for which a float holds microseconds exactly; a larger time is most likely in milliseconds."""


class Mark(NamedTuple):
    """Offset of a record, from which a reader can begin."""

    position: int
    offset: int
    time: float
    """A time between that of the record before and that of the record."""


class Batch(NamedTuple):
    """Encoded entries, with the marks among them."""

    data: bytes
    marks: list[Mark]
    oldest: float
    newest: float


class Raw(msgspec.Struct, eq=False):
    """A segment that is being written, or waits to be sealed."""

    path: Path
    first: int
    last: int
    size: int
    salt: int
    before: float
    """Time of the last entry before the segment."""
    newest: float
    """Time of the last entry; in an empty segment, of the last entry before."""
    oldest: float | None = None
    """Time of the first entry; None if unknown."""
    marks: list[Mark] = []
    """Marks in order; empty if the file was not read yet."""

    def read(self, position: int, end: int) -> Iterator[list[JournalEntry]]:
        """Yield the entries from a position to an end inside the segment."""
        mark = _before(self._marks(), position, "position")
        expected = mark.position
        for _, entries in blocks(self.path, self.salt, mark.offset, self.size):
            begin = entries[0].position
            if begin != expected:
                raise LogError(f"{self.path} has position {begin} where {expected} belongs. {advice(self.path.parent)}")
            expected += len(entries)
            if expected > position:
                yield entries[max(position - begin, 0) : end - begin + 1]
            if expected > end:
                return
        raise LogError(
            f"{self.path} ends before position {expected}, but should hold all up to {self.last}."
            f" {advice(self.path.parent)}"
        )

    def position_at(self, time: float) -> int:
        """Return the position of the first entry at or after a time; `last + 1` if there is none."""
        last = self.last
        mark = _before(self._marks(), time, "time")
        for entries in self.read(mark.position, last) if last >= self.first else ():
            if entries[-1].time >= time:
                return entries[bisect_left(entries, time, key=attrgetter("time"))].position
        return last + 1

    def offset(self, position: int) -> int:
        """Return the offset of the record of a position, also of the one behind the last."""
        mark = _before(self._marks(), position, "position")
        return raw_format.skip(self.path, mark.offset, position - mark.position)

    def take(self, batch: Batch, last: int) -> None:
        """Note that a batch was appended to the file."""
        self.marks += batch.marks
        self.oldest = batch.oldest if self.oldest is None else self.oldest
        self.newest = batch.newest
        self.size += len(batch.data)
        self.last = last  # at the end: a reader that sees the position may read it

    def _marks(self) -> list[Mark]:
        if not self.marks:
            marks = [Mark(self.first, HEADER_SIZE, self.before)]
            try:
                for offset, entries in blocks(self.path, self.salt, HEADER_SIZE, self.size):
                    marks.append(Mark(entries[0].position, offset, entries[0].time))
            except Damaged:
                pass  # the part before the damage can still be read
            self.marks = marks
        return self.marks


def quantise(time: float) -> float:
    """Round a time to whole microseconds."""
    return round(time * 1e6) / 1e6 if -_LATEST < time < _LATEST else time


def encode(entries: Sequence[JournalEntry], raw: Raw) -> Batch:
    """Encode entries that continue a segment; times before its newest entry are raised, since clocks may go back."""
    parts: list[bytes] = []
    marks: list[Mark] = []
    expected, newest, salt = raw.last, raw.newest, raw.salt
    offset, marked = raw.size, raw.marks[-1].offset
    oldest: float | None = None
    for position, given, publisher, sequence, event, rest in entries:
        expected += 1
        if position != expected:
            raise LogError(f"the entry at position {position} should have {expected}, which follows the last one")
        if not -_INT64 <= sequence < _INT64:
            raise LogError(f"the sequence number {sequence} does not fit in 64 bits")
        if not -_LATEST < given < _LATEST:
            raise LogError(
                f"the entry at position {position} has {given} for a time: it must be seconds since the epoch"
            )
        time = round(given * 1e6) / 1e6
        newest = max(newest, time)
        oldest = newest if oldest is None else oldest
        try:
            head, payload = raw_format.encode((position, newest, publisher, sequence, event, rest), salt)
        except (ValueError, TypeError) as error:  # a lone surrogate in a name, say
            raise LogError(f"the entry at position {position} cannot be written: {error}") from error
        if offset - marked >= BLOCK:
            marks.append(Mark(position, offset, newest))
            marked = offset
        parts += (head, payload)
        offset += len(head) + len(payload)
    return Batch(b"".join(parts), marks, newest if oldest is None else oldest, newest)


def create(path: Path, first: int, before: float) -> Raw:
    """Create a segment without entries; `before` is the time of the last entry before it."""
    return _empty(path, first, raw_format.write_header(path, first, before), before)


def is_torn(path: Path) -> bool:
    """Tell whether a file has no whole header, because its creation was cut short."""
    return path.stat().st_size < HEADER_SIZE


def closed(path: Path, first: int, last: int, newest: float | None) -> Raw:
    """Open a segment that has another one behind it; the file is read only if `newest` is None."""
    salt, before = read_header(path, first)
    raw = Raw(path, first, last, path.stat().st_size, salt, before, before if newest is None else newest)
    if newest is None:
        for entries in raw.read(first, last):
            raw.newest = entries[-1].time
    return raw


def recover(path: Path, first: int) -> Raw:
    """Open the last segment of a log. Its `size` is the offset of the next record: a torn tail is behind it.

    A tail that is complete, or has a good record behind it, is an error.
    """
    salt, before = read_header(path, first)
    size = path.stat().st_size
    raw = _empty(path, first, salt, before)
    try:
        for offset, entries in blocks(path, salt, HEADER_SIZE, size):
            if (last := entries[-1].position) != (expected := raw.last + len(entries)):
                wrong = f"{path} has position {last} where {expected} belongs, somewhere after byte {offset}"
                raise LogError(f"{wrong}. {advice(path.parent)}")
            raw.marks.append(Mark(entries[0].position, offset, entries[0].time))
            raw.oldest = entries[0].time if raw.oldest is None else raw.oldest
            raw.last, raw.newest = last, entries[-1].time
    except Damaged as damaged:
        size = damaged.offset
        if (good := good_after(path, salt, size)) is not None:
            raise damaged.because(f"this is no torn write, for there is a good record at byte {good}") from None
        if is_complete(path, salt, size):
            raise damaged.because(
                "this is no torn write, for the last record is there to its end, with a wrong checksum: an event that"
                " was accepted may be gone"
            ) from None
    raw.size = size
    return raw


def _empty(path: Path, first: int, salt: int, before: float) -> Raw:
    return Raw(path, first, first - 1, HEADER_SIZE, salt, before, before, marks=[Mark(first, HEADER_SIZE, before)])


def _before(marks: Sequence[Mark], value: float, by: str) -> Mark:
    """Return the last mark from which a reader finds the first record of a position or time."""
    bisect = bisect_right if by == "position" else bisect_left
    return marks[max(bisect(marks, value, key=attrgetter(by)) - 1, 0)]


def write(file: int, data: bytes) -> None:
    """Write all data to an open file, in one call unless the system takes less."""
    done = os.write(file, data)
    while done < len(data):
        done += os.write(file, memoryview(data)[done:])
