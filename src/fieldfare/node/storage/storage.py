"""`Storage`: where a node keeps what must survive, and the last events at hand.

With a folder that is a log of events and a store of rows in it. Without one both are in memory: then nothing survives
the process, and only the last events can be replayed.
"""

from __future__ import annotations

import logging
import os
import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Final, Protocol

from fieldfare.node.config import Log as LogSettings
from fieldfare.node.step import Step
from fieldfare.node.storage import private
from fieldfare.node.storage.log import Log
from fieldfare.node.storage.rows import Store, StoreDamaged, StoreError
from fieldfare.protocol.journal import JournalEntry, Row, StoredRows, last_complete_position, low_water

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

AT_HAND: Final = 20_000
"""entries that need not be read again from disk"""
IN_MEMORY: Final = 100_000
"""entries that a node without a folder keeps"""

logger = logging.getLogger("fieldfare.node")


class EventLog(Protocol):
    """What is needed of a log of events."""

    @property
    def first(self) -> int:
        """The position of the oldest entry."""

    @property
    def last(self) -> int:
        """The position of the last entry."""

    @property
    def bytes(self) -> int:
        """Its size."""

    def append(self, entries: Sequence[JournalEntry]) -> None:
        """Add entries, and let them survive."""

    def read(self, first: int, last: int | None = None) -> Iterator[JournalEntry]:
        """Entries from a position on."""

    def position_at(self, time: float) -> int:
        """Where the entries begin that are not older."""

    def close(self) -> None:
        """Let go of the files."""


class MemoryLog:
    """The last entries, in memory."""

    def __init__(self, limit: int = IN_MEMORY) -> None:
        """None yet."""
        self.last = 0
        self.bytes = 0
        self._kept: deque[JournalEntry] = deque(maxlen=limit)

    @property
    def first(self) -> int:
        """The position of the oldest entry."""
        return self._kept[0].position if self._kept else self.last + 1

    def append(self, entries: Sequence[JournalEntry]) -> None:
        """Add entries; the oldest go."""
        self._kept.extend(entries)
        self.last = entries[-1].position if entries else self.last

    def read(self, first: int, last: int | None = None) -> Iterator[JournalEntry]:
        """Entries from a position on."""
        kept = list(self._kept)
        start = max(0, first - kept[0].position) if kept else 0
        return (entry for entry in islice(kept, start, None) if last is None or entry.position <= last)

    def position_at(self, time: float) -> int:
        """Where the entries begin that are not older."""
        return next((entry.position for entry in self._kept if entry.time >= time), self.last + 1)

    def close(self) -> None:
        """Nothing to do."""


class Storage:
    """The log, the store, and the last entries at hand."""

    def __init__(self, folder: Path | None, settings: LogSettings) -> None:
        """Open what is in a folder; what a crash left unfinished is cut off."""
        self._settings = settings
        self.sync = folder is not None and settings.sync == "full"
        self._store: Store | None = None
        self._disk: Log | None = None
        self.log: EventLog = MemoryLog()
        self._recent: dict[int, JournalEntry] = {}
        self._lock: IO[str] | None = None
        self._rolled = time.time()
        self.is_torn = False
        """a write had been cut short: what the log said last may be lost, and its positions may be given again"""
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
        """All that was written: rows, and the entries that are needed with them."""
        stored: StoredRows = self._store.load() if self._store is not None else {}
        if times := stored.get("salvaged", {}).get((), 0):
            logger.warning("this node has lost something %d times: see report.json in its salvaged-... folders", times)
        needed, known = low_water(stored), stored.get("checkpoint", {}).get((), 0)
        if known and needed < self.log.first:
            logger.error("the log begins with position %d, and events from %d on are needed", self.log.first, needed)
        entries = self.log.read(needed) if self.log.last else iter(())
        if known < self.log.last:  # the log may end with a gap, and whoever goes on must do so behind it
            stored = {**stored, "checkpoint": {(): self.log.last}}
        return stored, entries

    def write(self, step: Step) -> None:
        """Let everything of a step survive: first the events, then what is said of them."""
        if step.entries:
            self.log.append(step.entries)
            for entry in step.entries:
                self._recent[entry.position] = entry
                self._recent.pop(entry.position - AT_HAND, None)
        if self._store is not None:
            self._store.commit(step.rows)

    def remember(self, row: Row) -> None:
        """Write a single row of the node's own."""
        if self._store is not None:
            self._store.commit([row])

    def entries(self, positions: Sequence[int]) -> dict[int, JournalEntry]:
        """Entries by position; what the log no longer has is left out. Slow, unless they are all at hand."""
        near = ((position, self._recent.get(position)) for position in positions)
        found = {position: entry for position, entry in near if entry is not None}
        missing = sorted({position for position in positions if position not in found})
        while missing:  # those that stand close together are read in one go
            run = [position for position in missing if position < missing[0] + 1000]
            wanted = set(run)
            found |= {entry.position: entry for entry in self.log.read(run[0], run[-1]) if entry.position in wanted}
            missing = missing[len(run) :]
        return found

    def are_at_hand(self, positions: Sequence[int]) -> bool:
        """Whether nothing has to be read from disk for them."""
        return self._store is None or all(position in self._recent for position in positions)

    def tidy(self, now: float, keep_from: int) -> int:
        """Seal what is closed, and let go what is old; slow. Gives how many events went."""
        if self._disk is None:
            return 0
        limits = self._settings
        if not 0 <= now - self._rolled <= limits.segment_seconds:  # the clock may have been set back
            self._rolled = now
            self._disk.roll()
        self._disk.seal()
        return self._disk.retain(
            max_bytes=limits.max_bytes, max_seconds=limits.max_seconds, now=now, keep_from=keep_from
        )

    def close(self) -> None:
        """Close the files."""
        self.log.close()
        if self._store is not None:
            self._store.close()
        if self._lock is not None:
            self._lock.close()


def locked(folder: Path) -> IO[str]:
    """Let no other process use a folder as long as this file is open."""
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
