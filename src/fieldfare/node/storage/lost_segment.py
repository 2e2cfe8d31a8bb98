"""`Lost`: a gap in the event log, that is positions that a salvage could not save, as a segment without entries.

Positions are never given again: a reader continues behind the gap. The file has the name of a
sealed segment, but for its ending, and holds the time of the last entry before the gap.
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
    """A segment without entries, which stands for lost positions."""

    path: Path
    first: int
    last: int
    size: int
    newest: float
    """Time of the last entry before the gap."""

    def check(self) -> None:
        """Do nothing: a gap is checked when it is read."""

    def read(self, position: int, end: int) -> Iterator[list[JournalEntry]]:
        """Yield nothing: the entries of these positions could not be saved."""
        return iter(())

    def position_at(self, time: float) -> int:
        """Return the position behind the gap."""
        return self.last + 1


class _GapFile(msgspec.Struct):
    first: int
    last: int
    newest: float | None
    """Null stands for minus infinity, which JSON lacks."""
    check: int = 0


def lost_path(directory: Path, first: int, last: int) -> Path:
    """Return the path of the file of a gap."""
    return directory / f"events-{first:020}-{last:020}.lost"


def write(path: Path, first: int, last: int, newest: float) -> None:
    """Write the file of a gap."""
    said = _GapFile(first, last, None if newest == -float("inf") else newest)
    said.check = _check(said)
    private.create(path, msgspec.json.encode(said) + b"\n")


def read(path: Path, first: int, last: int) -> Lost:
    """Read the file of a gap; `LogError` if it is damaged."""
    data = path.read_bytes()
    try:
        said = msgspec.json.decode(data, type=_GapFile)
        if said.check != _check(said) or (said.first, said.last) != (first, last):
            raise ValueError("its checksum or name is wrong")
    except ValueError as error:
        raise LogError(f"{path} is damaged: {error}. {advice(path.parent)}") from None
    return Lost(path, first, last, len(data), -float("inf") if said.newest is None else said.newest)


def _check(said: _GapFile) -> int:
    return crc32(repr((said.first, said.last, said.newest)).encode())
