"""`Log`: the journal entries of a node on disk, in the order in which the events were accepted.

It is only ever appended to, many entries in one write. The end of it, the *active* segment, is a raw file; from time
to time it is closed and another one begins. Closed segments are turned into Parquet at leisure, and the oldest ones go
when the log has become too large or too old. Reading takes no notice of which is which.

One thread appends. Others may read at the same time, and one may seal: the list of segments is a tuple that is replaced
as a whole, and a reader that finds its file gone looks where the entries are now.

A log has one owner: nothing here keeps two processes from appending to the same folder.
"""

from __future__ import annotations

import logging
import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain
from operator import attrgetter
from pathlib import Path
from threading import RLock

from fieldfare.node.storage import parquet_segment, private, raw_segment
from fieldfare.node.storage.lost_segment import Lost
from fieldfare.node.storage.parquet_segment import Sealed
from fieldfare.node.storage.raw_format import LogError, advice
from fieldfare.node.storage.raw_segment import Raw
from fieldfare.node.storage.segments import Segment, found, raw_path
from fieldfare.protocol.journal import JournalEntry

__all__ = ["JournalEntry", "Log", "LogError", "export"]

logger = logging.getLogger("fieldfare.node")


class Log:
    """The event log in a folder; a missing folder is created. Readers skip a gap that a salvage has left.

    A segment is closed when the next entries would make it larger than `segment_bytes`, or come `segment_seconds` after
    its first one. What `append` took survives a kill; with `sync`, also a power loss.
    """

    cut: int = 0
    """Bytes of a torn write that were cut off when the log was opened."""
    is_torn: bool = False
    """Whether a write, or the creation of a segment, had been cut short: the end of the log may be lost."""

    def __init__(
        self, directory: Path, *, segment_bytes: int = 64 << 20, segment_seconds: float = 3600.0, sync: bool = False
    ) -> None:
        self._directory = directory
        self._segment_bytes = segment_bytes
        self._segment_seconds = segment_seconds
        self._sync = sync
        self._changing = RLock()
        self._sealing = RLock()
        private.make_folder(directory)
        if sync:
            parquet_segment.sync(directory.parent)
        there = found(directory)
        self._segments: tuple[Segment, ...] = there.segments
        self.is_torn = there.is_torn
        if self.is_torn:
            logger.warning(
                "%s: the last segment had only been begun. It was empty, unless the machine has lost power", directory
            )
        for gap in self._segments:
            if isinstance(gap, Lost):
                logger.warning("%s: the events at positions %d to %d are gone", directory, gap.first, gap.last)
        self._file: int | None = self._open(self._active)

    @property
    def last(self) -> int:
        """The position of the last entry; `first - 1` in an empty log, so 0 in a new one."""
        return self._segments[-1].last

    @property
    def first(self) -> int:
        """The position of the oldest entry; `last + 1` in an empty log."""
        return self._segments[0].first

    @property
    def active_first(self) -> int:
        """The first position of the active segment; `truncate` can remove entries from there on."""
        return self._active.first

    @property
    def segments(self) -> tuple[Segment, ...]:
        """The present segments, in order; the last is the active one."""
        return self._segments

    @property
    def bytes(self) -> int:
        """The size of all segments on disk."""
        return sum(part.size for part in self._segments)

    # Writing

    def append(self, entries: Sequence[JournalEntry]) -> None:
        """Append entries with consecutive positions: all are safe when the call returns, or none is there if it raises.

        An entry with an earlier time than the last one gets the last one's time: clocks may go back, the log does not.
        """
        if not entries:
            return
        with self._changing:
            batch = raw_segment.encode(entries, self._active)
            if self._is_full(batch):
                self.roll()
                batch = raw_segment.encode(entries, self._active)  # another salt
            self._write(batch)
            self._active.take(batch, entries[-1].position)

    def roll(self) -> None:
        """Close the active segment and begin another one; an empty segment stays active."""
        with self._changing:
            active, file = self._active, self._writable()
            if active.last < active.first:
                return
            path = raw_path(self._directory, active.last + 1)
            try:
                new = raw_segment.create(path, active.last + 1, active.newest)
                self._file = self._open(new)
            except BaseException:
                path.unlink(missing_ok=True)
                raise
            self._segments = (*self._segments, new)
            os.close(file)

    def truncate(self, last: int) -> None:
        """Remove the entries behind a position. Sealed entries cannot be removed, and no reader may be active."""
        with self._changing:
            if last >= self.last:
                return
            kept = bisect_right(self._segments, last + 1, key=attrgetter("first"))
            target = self._segments[kept - 1] if kept else None
            gone = self._segments[kept:]
            if not isinstance(target, Raw) or not all(isinstance(part, Raw) for part in gone):
                raise LogError(f"the entries after {last} are sealed, or gone: they cannot be forgotten")
            offset = target.offset(last + 1)
            self.close()
            self._segments = self._segments[:kept]
            for newest in reversed(gone):  # a crash in between leaves no gap
                newest.path.unlink()
            os.truncate(target.path, offset)
            target = raw_segment.recover(target.path, target.first)
            self._segments = (*self._segments[:-1], target)
            self._file = self._open(target)

    def close(self) -> None:
        """Close the file of the active segment; reading still works."""
        with self._changing:
            if self._file is not None:
                os.close(self._file)
            self._file = None

    def _is_full(self, batch: raw_segment.Batch) -> bool:
        active = self._active
        if active.oldest is None:
            return False
        too_old = batch.oldest - active.oldest >= self._segment_seconds
        return too_old or active.size + len(batch.data) > self._segment_bytes

    def _write(self, batch: raw_segment.Batch) -> None:
        file, written = self._writable(), False
        try:
            raw_segment.write(file, batch.data)
            written = True
            if self._sync:
                os.fsync(file)
        except BaseException:
            try:
                os.ftruncate(file, self._active.size)  # half a record must not stay: more may follow
            except OSError:
                self.close()
            if written:
                self.close()  # after a failed sync, the next one may succeed for nothing
            raise

    def _open(self, active: Raw) -> int:
        """Open a segment for appending, and cut off a torn write."""
        file = os.open(active.path, os.O_WRONLY | os.O_APPEND | getattr(os, "O_BINARY", 0))
        try:
            if torn := os.fstat(file).st_size - active.size:
                os.ftruncate(file, active.size)
                self.cut += torn
                self.is_torn = True
                logger.warning(
                    "%s: %d bytes at its end were cut off: a write had not been finished. Events in it had not been"
                    " accepted, unless the machine has lost power%s",
                    active.path,
                    torn,
                    "" if self._sync else ' (log.sync = "full" keeps accepted events safe from that)',
                )
            if self._sync:  # a write just before a crash may not have been synced
                os.fsync(file)
                parquet_segment.sync(self._directory)
        except BaseException:
            os.close(file)
            raise
        return file

    def _writable(self) -> int:
        if self._file is None:
            raise LogError("the log is closed, or could not be written to: open it again")
        return self._file

    @property
    def _active(self) -> Raw:
        active = self._segments[-1]
        assert isinstance(active, Raw)
        return active

    # Reading

    def read(self, first: int, last: int | None = None) -> Iterator[JournalEntry]:
        """Yield the entries from a position on, or from the oldest; later appends are not included."""
        return self._read(first, self.last if last is None else min(last, self.last))

    def position_at(self, time: float) -> int:
        """Return the position of the first entry at or after a time (to the microsecond), else `last + 1`."""
        time = raw_segment.quantise(time)
        while True:
            segments, last = self._segments, self.last
            try:
                number = bisect_left(segments, time, key=attrgetter("newest"))
                return segments[number].position_at(time) if number < len(segments) else last + 1
            except FileNotFoundError as error:
                if segments is self._segments:
                    raise LogError(f"{error}. {advice(self._directory)}") from error

    def _read(self, position: int, end: int) -> Iterator[JournalEntry]:
        while True:
            segments = self._segments
            position, end = max(position, segments[0].first), min(end, segments[-1].last)
            if position > end:
                return
            part = segments[bisect_right(segments, position, key=attrgetter("first")) - 1]
            stop = min(end, part.last)
            try:
                for entries in part.read(position, stop):
                    yield from entries
                    position = entries[-1].position + 1
                position = stop + 1  # of a gap nothing was read
            except (FileNotFoundError, LogError) as error:
                if part in self._segments and position <= self.last:  # else it was replaced in the meantime
                    if isinstance(error, LogError):
                        raise
                    raise LogError(f"{part.path} is missing. {advice(self._directory)}") from error

    # Closed segments

    def seal(self) -> list[Path]:
        """Turn closed raw segments into Parquet, and return the new files. Slow: call it in a thread."""
        paths = []
        with self._sealing:
            while raw := next((part for part in self._segments[:-1] if isinstance(part, Raw)), None):
                paths += self._seal(raw)
        return paths

    def _seal(self, raw: Raw) -> list[Path]:
        path = self._directory / f"events-{raw.first:020}-{raw.last:020}.parquet"
        temporary = path.with_name(f".{path.name}.tmp")  # a dot: readers of the folder skip the file
        try:
            parquet_segment.write(temporary, chain.from_iterable(raw.read(raw.first, raw.last)))
            with self._changing:
                if raw not in self._segments:  # it was retained in the meantime
                    return []
                sealed = Sealed(path, raw.first, raw.last, temporary.stat().st_size)
                temporary.rename(path)
                self._segments = tuple(sealed if part is raw else part for part in self._segments)
                parquet_segment.sync(self._directory)
                raw.path.unlink()
                return [path]
        except FileNotFoundError as error:
            if raw in self._segments:
                raise LogError(f"{raw.path} is missing. {advice(self._directory)}") from error
            return []
        finally:
            temporary.unlink(missing_ok=True)

    def retain(self, *, max_bytes: int | None, max_seconds: float | None, now: float, keep_from: int) -> int:
        """Delete the oldest closed segments while the log is too large, or all their entries are too old.

        No entry from `keep_from` on is deleted. Return the number of deleted entries.
        """
        count = 0
        with self._changing:
            while len(self._segments) > 1 and (oldest := self._segments[0]).last < keep_from:
                too_large = max_bytes is not None and self.bytes > max_bytes
                if not too_large and (max_seconds is None or now - oldest.newest <= max_seconds):
                    break
                before, self._segments = self._segments, self._segments[1:]
                try:
                    oldest.path.unlink(missing_ok=True)
                    raw_path(self._directory, oldest.first).unlink(missing_ok=True)  # if it could not go when sealed
                except OSError:
                    self._segments = before  # or there would be a gap once the next one is gone
                    raise
                count += oldest.last - oldest.first + 1
            if count and self._sync:
                parquet_segment.sync(self._directory)
        return count


def export(log: Log, path: Path, first: int = 1, last: int | None = None) -> int:
    """Write a range of the log as a Parquet file with the columns of sealed segments; return its size in entries."""
    temporary = path.with_name(f".{path.name}.tmp")
    count = parquet_segment.write(temporary, log.read(first, last))
    temporary.replace(path)
    return count
