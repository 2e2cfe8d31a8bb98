"""`Raw`: a segment of the event log as it is written, record after record.

A write that was cut short leaves a torn *tail*, which was never reported as safe and may go. Damage with good records
after it, or in a record that is there to its end, is another matter: something that was safe is lost. Then the log
is not opened, or whoever reads that far is told; a *salvage* keeps the rest.

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
"""up to 2106 a float holds microseconds exactly; more is most likely in milliseconds"""


class Mark(NamedTuple):
    """Where a record begins: a reader need not begin at the front."""

    position: int
    offset: int
    time: float
    """no later than that of the record, and no earlier than that of the one before"""


class Batch(NamedTuple):
    """Entries as they are written."""

    data: bytes
    marks: list[Mark]
    oldest: float
    newest: float


class Raw(msgspec.Struct, eq=False):
    """A segment that is written to, or waits to be sealed."""

    path: Path
    first: int
    last: int
    size: int
    salt: int
    before: float
    """the time of the last entry before it"""
    newest: float
    """the time of its last entry; if it has none, of the one before"""
    oldest: float | None = None
    """the time of its first entry, where that is known"""
    marks: list[Mark] = []
    """without any, it has not been looked through yet"""

    def read(self, position: int, end: int) -> Iterator[list[JournalEntry]]:
        """The entries from a position to an end that it has."""
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
        """The position of the first entry that is not earlier; one more than the last if there is none."""
        last = self.last
        mark = _before(self._marks(), time, "time")
        for entries in self.read(mark.position, last) if last >= self.first else ():
            if entries[-1].time >= time:
                return entries[bisect_left(entries, time, key=attrgetter("time"))].position
        return last + 1

    def offset(self, position: int) -> int:
        """Where the record of a position begins, or would."""
        mark = _before(self._marks(), position, "position")
        return raw_format.skip(self.path, mark.offset, position - mark.position)

    def take(self, batch: Batch, last: int) -> None:
        """Note that a batch was written."""
        self.marks += batch.marks
        self.oldest = batch.oldest if self.oldest is None else self.oldest
        self.newest = batch.newest
        self.size += len(batch.data)
        self.last = last  # at the end: who sees it may read it

    def _marks(self) -> list[Mark]:
        if not self.marks:
            marks = [Mark(self.first, HEADER_SIZE, self.before)]
            try:
                for offset, entries in blocks(self.path, self.salt, HEADER_SIZE, self.size):
                    marks.append(Mark(entries[0].position, offset, entries[0].time))
            except Damaged:
                pass  # what is before can still be read
            self.marks = marks
        return self.marks


def quantise(time: float) -> float:
    """A time in whole microseconds."""
    return round(time * 1e6) / 1e6 if -_LATEST < time < _LATEST else time


def encode(entries: Sequence[JournalEntry], raw: Raw) -> Batch:
    """The entries as records that continue a segment. Nothing earlier than its newest entry: clocks may go back."""
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
    """A file without entries. `before` is the time of the last entry before it."""
    return _empty(path, first, raw_format.write_header(path, first, before), before)


def is_torn(path: Path) -> bool:
    """Whether a file has no whole header: it was being made."""
    return path.stat().st_size < HEADER_SIZE


def closed(path: Path, first: int, last: int, newest: float | None) -> Raw:
    """A segment with another one after it. Only if its newest time is not known, it is looked through."""
    salt, before = read_header(path, first)
    raw = Raw(path, first, last, path.stat().st_size, salt, before, before if newest is None else newest)
    if newest is None:
        for entries in raw.read(first, last):
            raw.newest = entries[-1].time
    return raw


def recover(path: Path, first: int) -> Raw:
    """The last segment of a log as it was left. Its `size` is where the next record belongs: a torn tail is behind it.

    The tail is not all there, and nothing after it is good; else that is an error.
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
    """The last mark to begin at, in order to find the first record with that position or time."""
    bisect = bisect_right if by == "position" else bisect_left
    return marks[max(bisect(marks, value, key=attrgetter(by)) - 1, 0)]


def write(file: int, data: bytes) -> None:
    """Write all to an open file: in one go, unless the system takes less."""
    done = os.write(file, data)
    while done < len(data):
        done += os.write(file, memoryview(data)[done:])
