"""A simulated disk: the journal entries and rows of a node, with all faults for a node to survive.

A write goes on for some time, first the entries and then the rows, in the order of a node's storage. A kill in the
middle leaves a part of the entries, or all entries without any row. Rows are kept as bytes, so that no value on the
disk changes with the state of a core. Each record has a checksum: a flipped bit is found by the next reader.

A `synced` disk is that of a node with `log.sync = "full"`. Without, the machine may lose the last writes in a power
failure: the log ends anywhere behind the last sync, and so do the commits of rows, since they are in another file.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from enum import IntEnum
from random import Random
from typing import Any, Final
from zlib import crc32

import msgspec

from fieldfare.core.step import Step
from fieldfare.protocol.journal import JournalEntry, Row, RowKey, StoredRows, last_complete_position, low_water

_encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder().decode


class Stage(IntEnum):
    """Progress of the write of a step at the kill of the node."""

    NOTHING = 0
    """nothing is written"""
    TORN = 1
    """some of the entries are written"""
    ENTRIES = 2
    """all entries are written, and no rows"""
    ALL = 3
    """all is written, and nobody has heard of it"""

    def __repr__(self) -> str:
        return f"Stage.{self.name}"  # the text of a plan is Python


UNSYNCED: Final = 40
"""writes that a power failure may undo, at most: the operating system syncs earlier writes by itself"""


class DiskDamaged(Exception):
    """A checksum does not fit a record."""


class DiskFull(Exception):
    """There is no room for anything."""


class Disk:
    """The disk of a node, which survives the node."""

    def __init__(self, *, synced: bool = True) -> None:
        """Begin with an empty log, without rows."""
        self.synced = synced
        self.copied = False
        """whether the present content may not be the latest"""
        self._unsynced: deque[tuple[int, list[tuple[str, RowKey, bytes | None]]]] = deque(maxlen=UNSYNCED)
        """of each unsynced write: the last position before, and the rows that were replaced"""
        self._copy: tuple[dict[int, JournalEntry], int, dict[str, dict[RowKey, bytes]]] = {}, 0, {}
        self.log: dict[int, JournalEntry] = {}
        """by position; entries that nobody needs are deleted at the front"""
        self.history: dict[int, JournalEntry] = {}
        """all entries ever written, for the checker"""
        self.last = 0
        """position of the last entry"""
        self.rows: dict[str, dict[RowKey, bytes]] = {}
        self.seconds = 0.0
        """mean time of a write"""
        self.full = False
        self.damaged: dict[int, JournalEntry] = {}
        """entries with a flipped bit, by position; a node finds them at its start, and has the right ones in memory"""
        self.damaged_rows: dict[tuple[str, RowKey], tuple[bytes, bytes]] = {}
        """rows with a flipped bit, by kind and key: the right bytes and the wrong ones"""

    def write(self, step: Step, stage: Stage = Stage.ALL, kept: int = 0) -> None:
        """Write a step up to a stage; of a torn write `kept` entries survive."""
        entries: Sequence[JournalEntry] = step.entries
        if stage is Stage.NOTHING:
            return
        if stage is Stage.TORN:
            entries = entries[: kept % (len(entries) + 1)]
        if not self.synced:
            self._unsynced.append((self.last, []))
        for entry in entries:
            if entry.position != self.last + 1:
                raise ValueError(f"position {entry.position} does not follow {self.last}")
            self.last = entry.position
            self.log[entry.position] = self.history[entry.position] = entry
        if stage is Stage.ALL:
            for kind, key, value in step.rows:
                self._store(kind, key, value)

    def remember(self, row: Row) -> None:
        """Write a single row at once, outside any step."""
        if not self.synced:
            self._unsynced.append((self.last, []))
        self._store(*row)

    def _store(self, kind: str, key: RowKey, value: Any) -> None:
        table = self.rows.setdefault(kind, {})
        if not self.synced:
            self._unsynced[-1][1].append((kind, key, table.get(key)))
        if value is None:
            table.pop(key, None)
        else:
            table[key] = _encode(value)

    def load(self) -> tuple[StoredRows, Iterable[JournalEntry]]:
        """Return all rows and the entries for recovery; an incomplete publication is cut off."""
        if self.full:
            raise DiskFull("the disk is full")
        for position, entry in self.damaged.items():
            if position in self.log and _checksum(entry) != _checksum(self.log[position]):
                raise DiskDamaged(f"entry {position} is damaged")
        for (kind, key), (right, wrong) in self.damaged_rows.items():
            if self.rows.get(kind, {}).get(key) is right and crc32(wrong) != crc32(right):
                raise DiskDamaged(f"the row {kind} of {key} is damaged")
        if self.last in self.log:
            self.truncate(last_complete_position(self.log[self.last]))
        stored = {kind: {key: _decode(value) for key, value in table.items()} for kind, table in self.rows.items()}
        first = low_water(stored)
        if stored.get("checkpoint", {}).get((), 0) < self.last:
            stored["checkpoint"] = {(): self.last}
        return stored, [entry for position, entry in self.log.items() if position >= first]

    def entries(self, positions: Iterable[int]) -> dict[int, JournalEntry]:
        """Return entries by position, without deleted entries."""
        return {position: self.log[position] for position in positions if position in self.log}

    def truncate(self, last: int) -> None:
        """Delete the entries behind a position."""
        for position in range(last + 1, self.last + 1):
            self.log.pop(position, None)
            self.history.pop(position, None)
        self.last = min(self.last, last)

    def retain(self, first: int) -> None:
        """Delete the unneeded entries before a position."""
        for position in [position for position in self.log if position < first]:
            del self.log[position]

    # The way back in time

    def lose_power(self, random: Random) -> bool:
        """Lose some of the unsynced writes, of the log and of the rows apart; tell whether anything is lost."""
        if not self._unsynced:
            return False
        before = self.last, len(self._unsynced)
        self.truncate(random.randint(min(self._unsynced[0][0], self.last), self.last))
        commits = random.randint(0, len(self._unsynced))
        while len(self._unsynced) > commits:
            for kind, key, value in reversed(self._unsynced.pop()[1]):
                if value is None:
                    self.rows[kind].pop(key, None)
                else:
                    self.rows[kind][key] = value
        self._unsynced.clear()
        self.copied = True
        return (self.last, commits) != before

    def copy(self) -> None:
        """Copy the content to another place, as a backup does."""
        self._copy = dict(self.log), self.last, {kind: dict(table) for kind, table in self.rows.items()}

    def restore(self) -> bool:
        """Replace the content with the copy, if there is one."""
        log, last, rows = self._copy
        if not rows:
            return False
        self.log, self.last, self.rows = dict(log), last, {kind: dict(table) for kind, table in rows.items()}
        self._unsynced.clear()
        self.repair()
        self.copied = True
        return True

    def flip(self, random: Random) -> None:
        """Flip a bit of an entry or of a row."""
        rows = [(kind, key) for kind, table in self.rows.items() for key in table]
        if self.log and random.random() < 0.5:
            position = random.choice(list(self.log))
            entry = self.log[position]
            if random.random() < 0.5:
                self.damaged[position] = entry._replace(event=_flipped(entry.event, random))
            else:
                self.damaged[position] = entry._replace(details=_flipped(entry.details, random))
        elif rows:
            kind, key = random.choice(rows)
            right = self.rows[kind][key]
            self.damaged_rows[kind, key] = right, _flipped(right, random)

    def repair(self) -> None:
        """Replace damaged entries and rows from a mirror, as an operator does after a node has refused to start."""
        self.damaged.clear()
        self.damaged_rows.clear()

    def salvage(self) -> None:
        """Remove damaged rows, and the log from the first damaged entry on, for want of a mirror."""
        for kind, key in self.damaged_rows:
            self.rows.get(kind, {}).pop(key, None)
        self.truncate(min((position for position in self.damaged if position in self.log), default=self.last + 1) - 1)
        self._unsynced.clear()
        self.repair()
        self.copied = True


def _flipped(data: bytes, random: Random) -> bytes:
    changed = bytearray(data)
    changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _checksum(entry: JournalEntry) -> int:
    return crc32(entry.details, crc32(entry.event))
