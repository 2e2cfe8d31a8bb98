"""`Storage`: the log and the rows of a node, and its latest entries in memory.

With a folder, the log and the store of rows are in it. Without a folder both are in memory: then nothing survives
the process, and only the last events can be replayed.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, Protocol

from fieldfare.core.step import Step
from fieldfare.node.config import Log as LogSettings
from fieldfare.node.storage import private
from fieldfare.node.storage.log import Log
from fieldfare.node.storage.rows import Store, StoreDamaged, StoreError
from fieldfare.protocol.journal import JournalEntry, Row, StoredRows, last_complete_position, low_water

if TYPE_CHECKING:  # it needs fieldfare[archive]
    from fieldfare.node.storage.archive import Archive

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

AT_HAND: Final = 20_000
"""Number of latest entries that are kept in memory."""
IN_MEMORY: Final = 100_000
"""Number of entries that a node without a folder keeps."""

logger = logging.getLogger("fieldfare.node")


class EventLog(Protocol):
    """The interface of a log, on disk or in memory."""

    @property
    def first(self) -> int:
        """The position of the oldest entry."""

    @property
    def last(self) -> int:
        """The position of the last entry."""

    @property
    def bytes(self) -> int:
        """The bytes that all stored entries take."""

    def append(self, entries: Sequence[JournalEntry]) -> None:
        """Append entries; they are safe when the call returns."""

    def read(self, first: int, last: int | None = None) -> Iterator[JournalEntry]:
        """Yield the entries from a position on."""

    def position_at(self, time: float) -> int:
        """Return the position of the first entry at or after a time."""

    def close(self) -> None:
        """Close the files of the log."""


class MemoryLog:
    """A log of the latest entries, in memory."""

    def __init__(self, limit: int = IN_MEMORY) -> None:
        """Begin empty; at most `limit` entries are kept."""
        self.last = 0
        self.bytes = 0
        self._kept: deque[JournalEntry] = deque(maxlen=limit)

    @property
    def first(self) -> int:
        """The position of the oldest entry."""
        return self._kept[0].position if self._kept else self.last + 1

    def append(self, entries: Sequence[JournalEntry]) -> None:
        """Append entries; the oldest are dropped."""
        self._kept.extend(entries)
        self.last = entries[-1].position if entries else self.last

    def read(self, first: int, last: int | None = None) -> Iterator[JournalEntry]:
        """Yield the entries from a position on."""
        kept = list(self._kept)
        start = max(0, first - kept[0].position) if kept else 0
        return (entry for entry in islice(kept, start, None) if last is None or entry.position <= last)

    def position_at(self, time: float) -> int:
        """Return the position of the first entry at or after a time."""
        return next((entry.position for entry in self._kept if entry.time >= time), self.last + 1)

    def close(self) -> None:
        """Do nothing: there are no files."""


class Storage:
    """The log and the store of a node."""

    def __init__(self, folder: Path | None, settings: LogSettings) -> None:
        """Open the files in a folder, and cut off a write that a crash left unfinished."""
        self._settings = settings
        self.sync = folder is not None and settings.sync == "full"
        self._store: Store | None = None
        self._disk: Log | None = None
        self.log: EventLog = MemoryLog()
        self._recent: dict[int, JournalEntry] = {}
        self._lock: IO[str] | None = None
        self._archive: Archive | None = None
        self._rolled = time.time()
        self.is_torn = False
        """Whether a write had been cut short: the last entries may be lost, and their positions may be given again."""
        if folder is not None:
            private.make_folder(folder)
            is_ours = (folder / "node.sqlite").exists() or not any(folder.iterdir())
            self._lock = locked(folder)
            private.tighten(folder, is_ours=is_ours)
            if (log := folder / "log").is_dir():
                private.tighten(log, is_ours=True)
            try:
                self._open(folder)
            except BaseException:
                self.close()
                raise

    def _open(self, folder: Path) -> None:
        settings = self._settings
        self._store = Store(folder / "node.sqlite", sync=settings.sync)
        self.log = self._disk = disk = Log(
            folder / "log",
            segment_bytes=settings.segment_bytes,
            segment_seconds=settings.segment_seconds,
            sync=self.sync,
        )
        if settings.archive:
            self._archive = _archive(settings.archive, folder / "archive.json")
        if self._store.is_empty and disk.last:
            raise StoreDamaged(folder / "node.sqlite", "it is empty, but there are events in the log")
        self.is_torn = disk.is_torn
        for entry in disk.read(disk.last):
            end = max(last_complete_position(entry), disk.active_first - 1)
            if end < disk.last:
                self.is_torn = True
                logger.warning(
                    "%s: the last %d events were cut off: their publication had not been written to its end, and had"
                    " not been accepted",
                    folder / "log",
                    disk.last - end,
                )
                disk.truncate(end)

    def load(self) -> tuple[StoredRows, Iterator[JournalEntry]]:
        """Return all rows, and the entries that recovery needs besides."""
        stored: StoredRows = self._store.load() if self._store is not None else {}
        if times := stored.get("salvaged", {}).get((), 0):
            logger.warning("this node has lost something %d times: see report.json in its salvaged-... folders", times)
        needed, known = low_water(stored), stored.get("checkpoint", {}).get((), 0)
        if known and needed < self.log.first:
            logger.error("the log begins with position %d, and events from %d on are needed", self.log.first, needed)
        entries = self.log.read(needed) if self.log.last else iter(())
        if known < self.log.last:  # the log may end with a gap: new entries stand behind it
            stored = {**stored, "checkpoint": {(): self.log.last}}
        return stored, entries

    def write(self, step: Step) -> None:
        """Write a step: first its entries, then its rows, which refer to the entries."""
        if step.entries:
            self.log.append(step.entries)
            for entry in step.entries:
                self._recent[entry.position] = entry
                self._recent.pop(entry.position - AT_HAND, None)
        if self._store is not None:
            self._store.commit(step.rows)

    def remember(self, row: Row) -> None:
        """Write a single row at once, outside any step."""
        if self._store is not None:
            self._store.commit([row])

    def entries(self, positions: Sequence[int]) -> dict[int, JournalEntry]:
        """Return entries by position, without those that the log no longer has. Slow, unless all are in memory."""
        near = ((position, self._recent.get(position)) for position in positions)
        found = {position: entry for position, entry in near if entry is not None}
        missing = sorted({position for position in positions if position not in found})
        while missing:  # positions close together are read in one go
            run = [position for position in missing if position < missing[0] + 1000]
            wanted = set(run)
            found |= {entry.position: entry for entry in self.log.read(run[0], run[-1]) if entry.position in wanted}
            missing = missing[len(run) :]
        return found

    @property
    def latest(self) -> Mapping[int, JournalEntry]:
        """The latest entries, by position, which need no read."""
        return self._recent

    def are_at_hand(self, positions: Sequence[int]) -> bool:
        """Tell whether all entries of the positions are in memory."""
        return self._store is None or all(position in self._recent for position in positions)

    def tidy(self, now: float, keep_from: int) -> int:
        """Seal and archive closed segments and delete old ones; slow. Return the number of deleted entries."""
        if self._disk is None:
            return 0
        limits = self._settings
        if not 0 <= now - self._rolled <= limits.segment_seconds:  # the clock may have been set back
            self._rolled = now
            self._disk.roll()
        self._disk.seal()
        if self._archive is not None:
            self._archive.add(self._disk.segments)
            keep_from = min(keep_from, self._archive.last + 1)
        return self._disk.retain(
            max_bytes=limits.max_bytes, max_seconds=limits.max_seconds, now=now, keep_from=keep_from
        )

    def close(self) -> None:
        """Close all files, and release the lock of the folder."""
        self.log.close()
        if self._store is not None:
            self._store.close()
        if self._lock is not None:
            self._lock.close()


def _archive(place: str, owner: Path) -> Archive:
    try:
        from fieldfare.node.storage.archive import Archive  # noqa: PLC0415 - it needs fieldfare[archive]
    except ModuleNotFoundError as error:
        raise StoreError(f"log.archive needs the module {error.name}: pip install 'fieldfare[archive]'") from None
    return Archive(place, owner)


def locked(folder: Path) -> IO[str]:
    """Lock a folder against other processes, as long as the returned file is open."""
    file = open(folder / "lock", "w", opener=_private)  # noqa: SIM115 - it stays open as long as the node runs
    if fcntl is not None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            file.close()
            raise StoreError(f"{folder} is used by another node that runs now") from None
    return file


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, private.FILE)
