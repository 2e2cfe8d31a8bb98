"""A node's log seen from outside: its files are only read, while the node may append, seal and delete.

The names of the files tell their positions; only the raw segment at the end must be read through. A `Folder` does so on
the driver, and goes on from the last end. The result is `Slice`s, which tasks `read`, in whatever file the positions
are by then: a raw segment may have become Parquet.

Rows never change once they were read: an entry that is not completely written is not shown, because a node that
restarts after a crash cuts it off. (A loss of power can still remove shown rows, unless the node has `log.sync` at
`"full"`.) Where a salvage has left a gap (`node.storage.lost_segment`), readers go on behind the gap.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from fieldfare.node.storage.log import LogError
from fieldfare.node.storage.raw_format import HEADER_SIZE, Damaged, blocks, good_after, read_header
from fieldfare.node.storage.raw_segment import Mark, Raw, is_torn
from fieldfare.node.storage.segments import NAME
from fieldfare.objects import Objects, is_url
from fieldfare.pipeline.sources import rows
from fieldfare.protocol import journal

SLICE: Final = 20_000
"""entries that a task reads at most"""
TRIES: Final = 20
"""attempts to list a folder that changes meanwhile"""
_LOST: Final = ".lost"
"""the ending of a file for a gap that a salvage has left"""


class Part(NamedTuple):
    """A segment, with the place in a raw segment to begin at."""

    path: Path
    """the file; in an archive at a URL only its name counts"""
    first: int
    last: int
    marks: Sequence[Mark] = ()


class Slice(NamedTuple):
    """Positions to read, with a place in the raw segment to begin at if the segment is still raw."""

    first: int
    last: int
    mark: Mark | None = None


class Folder:
    """The log in a folder, to be looked at again and again."""

    def __init__(self, path: Path | str) -> None:
        """Keep the path, or the URL of an archive; the folder is not read yet."""
        self.path = path
        self._tails: dict[Path, _Tail] = {}

    def parts(self) -> list[Part]:
        """Return all present segments, in order and without a gap; at least one."""
        for _ in range(TRIES):
            try:
                listed = _listed(self.path)
                self._tails = {
                    path: self._tails.get(path) or _Tail(path, first) for path, first, last in listed if not last
                }
                parts = [
                    Part(path, first, last) if last else self._tails[path].advance() for path, first, last in listed
                ]
            except FileNotFoundError:
                continue  # it was sealed or deleted a moment ago
            if all(before.last + 1 == after.first for before, after in pairwise(parts)):
                return parts or [Part(Path(self.path), 1, 0)]
        raise LogError(f"{self.path} has a gap between two segments: bring missing files back from a copy")


def slices(parts: Sequence[Part], first: int, last: int) -> list[Slice]:
    """The positions from a first to a last, as pieces for tasks."""
    found = []
    for part in parts:
        if part.path.suffix == _LOST:
            continue
        for begin in range(max(first, part.first), min(last, part.last) + 1, SLICE):
            end = min(begin + SLICE - 1, last, part.last)
            number = bisect_right(part.marks, begin, key=attrgetter("position"))
            found.append(Slice(begin, end, part.marks[number - 1] if number else None))
    return found


def read(folder: Path | str, piece: Slice) -> Iterator[pa.RecordBatch]:
    """Read the rows of a slice."""
    position, tries = piece.first, TRIES
    while position <= piece.last:
        holding = [one for one in _listed(folder) if one[1] <= position]
        path, first, last = holding[-1] if holding else (Path(folder), 1, 0)
        if (last and last < position) or not holding:
            raise LogError(f"{folder} no longer has position {position}: the node has deleted it")
        try:
            if path.suffix == _LOST:
                position = last + 1
            elif last:
                yield from _sealed(_file(folder, path), position, min(last, piece.last))
                position = last + 1
            else:
                mark = piece.mark or Mark(first, HEADER_SIZE, 0.0)
                raw = Raw(
                    path, first, piece.last, path.stat().st_size, read_header(path, first)[0], 0.0, 0.0, marks=[mark]
                )
                for entries in raw.read(position, piece.last):
                    yield from rows.of_entries(entries)
                    position = entries[-1].position + 1
        except FileNotFoundError:  # it was sealed or deleted a moment ago
            tries -= 1
            if not tries:
                raise


def _sealed(path: Any, first: int, last: int) -> Iterator[pa.RecordBatch]:
    table = pq.read_table(
        path,
        columns=rows.NAMES,
        filters=[("position", ">=", first), ("position", "<=", last)],
        use_threads=False,
        page_checksum_verification=True,
    )
    if table.num_rows != last - first + 1:
        raise LogError(f"{path} is damaged: bring the file back from a copy (not all of {first} to {last} is there)")
    return rows.of_table(table)


def _file(folder: Path | str, path: Path) -> Any:
    """Return the file of a segment as Parquet reads it: the path, or an opened object."""
    return Objects(folder).open(path.name) if is_url(folder) else path


def _listed(folder: Path | str) -> list[tuple[Path, int, int]]:
    """Return path, first and last position of each segment, from the names; a raw segment has 0 for the last."""
    found: dict[int, tuple[Path, int, int]] = {}
    for path in (Path(one.name) for one in Objects(folder).here()[0]) if is_url(folder) else Path(folder).iterdir():
        if match := NAME.fullmatch(path.name):
            first, last = int(match[1]), int(match[2] or 0)
            if last or first not in found:  # for a moment it is there twice, raw and sealed
                found[first] = path, first, last
    return sorted(found.values(), key=lambda one: one[1])


class _Tail:
    """A raw segment that was read through up to a place."""

    def __init__(self, path: Path, first: int) -> None:
        self._path, self._first = path, first
        self._salt: int | None = None
        self._marks = [Mark(first, HEADER_SIZE, 0.0)]
        self._offset, self._last, self._stuck = HEADER_SIZE, first - 1, 0

    def advance(self) -> Part:
        """Read through the entries that were written meanwhile."""
        if self._salt is None:
            if is_torn(self._path):  # it is being made
                return Part(self._path, self._first, self._last)
            self._salt, _ = read_header(self._path, self._first)
        size, whole = self._path.stat().st_size, self._last
        if size < self._offset:
            raise LogError(f"{self._path} has become shorter: a node has lost what was read already")
        try:
            for offset, entries in blocks(self._path, self._salt, self._offset, size):
                if (begin := entries[0].position) != self._last + 1:
                    raise LogError(f"{self._path} has position {begin} where {self._last + 1} belongs")
                self._marks.append(Mark(begin, offset, 0.0))
                self._last = entries[-1].position
                whole = journal.last_complete_position(entries[-1]) if entries[-1].details else self._last
            self._offset = size
        except Damaged as damaged:  # a write is under way, or was cut short by a crash: then nothing good is behind it
            self._offset = damaged.offset
            if self._stuck == damaged.offset and good_after(self._path, self._salt, damaged.offset) is not None:
                raise
            self._stuck = damaged.offset
        if whole < self._last:
            self._rewind(whole)
        return Part(self._path, self._first, whole, tuple(self._marks))

    def _rewind(self, whole: int) -> None:
        """Go back to a position: later entries may be cut off, and replaced by others."""
        number = bisect_right(self._marks, whole + 1, key=attrgetter("position"))
        mark = self._marks[number - 1]
        self._marks = self._marks[: max(number - 1, 1)]
        self._offset, self._last = mark.offset, mark.position - 1
