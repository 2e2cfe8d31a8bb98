"""`Lost`: positions of the event log that a salvage could not save, as a segment without entries.

Positions stay what they are, and are never given again: whoever reads goes on behind a gap. The file has the name of a
sealed segment, but for its ending, and says of which time the last entry before the gap is.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from zlib import crc32

import msgspec

from fieldfare.node.storage import private
from fieldfare.node.storage.raw_format import LogError, advice
from fieldfare.protocol.journal import JournalEntry


class Lost(msgspec.Struct, eq=False):
    """A gap in the log."""

    path: Path
    first: int
    last: int
    size: int
    newest: float
    """the time of the last entry before the gap"""

    def check(self) -> None:
        """All of it is there."""

    def read(self, position: int, end: int) -> Iterator[list[JournalEntry]]:
        """No entries."""
        return iter(())

    def position_at(self, time: float) -> int:
        """The position behind the gap."""
        return self.last + 1


class _Said(msgspec.Struct):
    first: int
    last: int
    newest: float | None
    """null for none: JSON has no infinity"""
    check: int = 0


def lost_path(directory: Path, first: int, last: int) -> Path:
    """The file of a gap."""
    return directory / f"events-{first:020}-{last:020}.lost"


def write(path: Path, first: int, last: int, newest: float) -> None:
    """Write the file of a gap."""
    said = _Said(first, last, None if newest == -float("inf") else newest)
    said.check = _check(said)
    private.create(path, msgspec.json.encode(said) + b"\n")


def read(path: Path, first: int, last: int) -> Lost:
    """The gap that a file stands for."""
    data = path.read_bytes()
    try:
        said = msgspec.json.decode(data, type=_Said)
        if said.check != _check(said) or (said.first, said.last) != (first, last):
            raise ValueError("its checksum or name is wrong")
    except ValueError as error:
        raise LogError(f"{path} is damaged: {error}. {advice(path.parent)}") from None
    return Lost(path, first, last, len(data), -float("inf") if said.newest is None else said.newest)


def _check(said: _Said) -> int:
    return crc32(repr((said.first, said.last, said.newest)).encode())
