"""`Journal`: the end of the log, as a core extends it."""

from __future__ import annotations

from fieldfare.core.step import StepBuffer
from fieldfare.protocol.journal import EntryDetails, JournalEntry, encode_details


class Journal:
    """The position of the last event in the log, and the entries of the present step."""

    def __init__(self, buffer: StepBuffer, life: str) -> None:
        """Begin an empty log; the `life` is a unique name of the present run of the log: see `lineage`."""
        self._buffer = buffer
        self.life = life
        self.position = 0
        """Position of the last event in the log."""
        self.ahead = 0.0
        """Seconds by which the wall clock is ahead of the times given to a core, which never jump."""

    def append(self, now: float, publisher: str, sequence: int, event: bytes, details: EntryDetails) -> int:
        """Log an event under the next position; return the position."""
        self.position += 1
        self.write(now, publisher, sequence, event, details)
        return self.position

    def write(self, now: float, publisher: str, sequence: int, event: bytes, details: EntryDetails) -> None:
        """Log an event under the present position, which the caller has raised."""
        entries = self._buffer.entries
        assert not entries or entries[-1].position == self.position - 1, "a position of the log is left out"
        entries.append(
            JournalEntry(self.position, now + self.ahead, publisher, sequence, event, encode_details(details))
        )
