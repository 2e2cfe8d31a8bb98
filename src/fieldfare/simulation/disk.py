"""A simulated disk: the journal entries and rows of a node, with all faults for a node to survive.

A write goes on for some time, first the entries and then the rows, in the order of a node's storage. A kill in the
middle leaves a part of the entries, or all entries without any row. Rows are kept as bytes, so that no value on the
disk changes with the state of a core. Each record has a checksum: a flipped bit is found by the next reader.
"""

from __future__ import annotations

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


class DiskDamaged(Exception):
    """A checksum does not fit a record."""


class Disk:
    """The disk of a node, which survives the node."""

    def __init__(self) -> None:
        self.log: dict[int, JournalEntry] = {}
        """by position; entries that nobody needs are deleted at the front"""
        self.last = 0
        """position of the last entry"""
        self.rows: dict[str, dict[RowKey, bytes]] = {}
        self.seconds = 0.0
        """mean time of a write"""
        self.full = False
        self.damaged: dict[int, JournalEntry] = {}
        """entries with a flipped bit, by position; a node finds them when it starts, and has the others in memory"""

    def write(self, step: Step, stage: Stage = Stage.ALL, kept: int = 0) -> None:
        """Write a step up to a stage; of a torn write `kept` entries survive."""
        entries: Sequence[JournalEntry] = step.entries
        if stage is Stage.NOTHING:
            return
        if stage is Stage.TORN:
            entries = entries[: kept % (len(entries) + 1)]
        for entry in entries:
            if entry.position != self.last + 1:
                raise ValueError(f"position {entry.position} does not follow {self.last}")
            self.last = entry.position
            self.log[entry.position] = entry
        if stage is Stage.ALL:
            for kind, key, value in step.rows:
                self._store(kind, key, value)

    def remember(self, row: Row) -> None:
        """Write a single row at once, outside any step."""
        self._store(*row)

    def _store(self, kind: str, key: RowKey, value: Any) -> None:
        table = self.rows.setdefault(kind, {})
        if value is None:
            table.pop(key, None)
        else:
            table[key] = _encode(value)

    def load(self) -> tuple[StoredRows, Iterable[JournalEntry]]:
        """Return all rows and the entries for recovery; an incomplete publication is cut off."""
        for position, entry in self.damaged.items():
            if position in self.log and _checksum(entry) != _checksum(self.log[position]):
                raise DiskDamaged(f"entry {position} is damaged")
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
        self.last = min(self.last, last)

    def retain(self, first: int) -> None:
        """Delete the unneeded entries before a position."""
        for position in [position for position in self.log if position < first]:
            del self.log[position]

    def flip(self, random: Random) -> None:
        """Flip a bit of an event in the log, unless the log is empty."""
        if self.log:
            position = random.choice(list(self.log))
            event = bytearray(self.log[position].event)
            event[random.randrange(len(event))] ^= 1 << random.randrange(8)
            self.damaged[position] = self.log[position]._replace(event=bytes(event))

    def repair(self) -> None:
        """Replace damaged entries from a mirror, as an operator does after a node has refused to start."""
        self.damaged.clear()


def _checksum(entry: JournalEntry) -> int:
    return crc32(entry.details, crc32(entry.event))
