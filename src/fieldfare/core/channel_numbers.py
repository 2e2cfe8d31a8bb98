"""`ChannelNumbers`: the numbers of events in channels, given at the home of each channel."""

from __future__ import annotations

import logging

from fieldfare.core.base import Base
from fieldfare.core.channel_homes import ChannelHomes
from fieldfare.core.take_over import NUMBER_GAP
from fieldfare.protocol import channels as c
from fieldfare.protocol.journal import EntryDetails, Row, StoredRows

logger = logging.getLogger("fieldfare.node")


class ChannelNumbers:
    """The last number of each channel."""

    def __init__(self, base: Base, homes: ChannelHomes) -> None:
        """Begin to count with the first event of each channel."""
        self._buffer = base.buffer
        self._homes = homes
        self.counts: dict[str, int] = {}
        """By type: number of the last event at the home; elsewhere the highest that the log had at the start."""

    def last(self, type: str) -> int:
        """Return the last number of a channel; before the first event, the number before the first."""
        return self.counts.get(type, self._homes.map.first - 1)

    def next(self, by: str) -> int:
        """Return the next number of a stream's channel; 0 if another node is the home by the settings here."""
        type = c.type_of(by)
        if not self._homes.here(type):
            logger.error("an event of the type %s comes here for a number: the settings of nodes differ", type)
            return 0
        self.counts[type] = number = self.last(type) + 1
        return number

    def raise_to(self, type: str, number: int) -> None:
        """Continue behind a number; a channel that is behind it already stays there."""
        self.counts[type] = max(number, self.counts.get(type, 0))

    def skip(self, type: str) -> None:
        """Let a channel continue behind all numbers that it may have given, and not remember."""
        self.counts[type] = self.last(type) + NUMBER_GAP

    def skip_all(self) -> None:
        """Let all channels at home here continue behind all numbers in use elsewhere: the end of the log is lost."""
        for type in filter(self._homes.here, list(self.counts)):
            self.skip(type)

    # Rows and recovery

    def store(self, type: str) -> None:
        """Write the last number of a channel."""
        self._buffer.store(Row("channel", (type,), self.counts[type]))

    def checkpoint(self) -> None:
        """Write the last number of every channel, so that recovery needs less of the log."""
        for type in self.counts:
            self.store(type)

    def restore(self, stored: StoredRows) -> None:
        """Recover from stored rows; the entries of the log follow."""
        self.counts = {str(type): count for (type,), count in stored.get("channel", {}).items()}

    def restore_entry(self, details: EntryDetails) -> None:
        """Recover from an entry of the log with a number."""
        self.raise_to(c.type_of(details.by), details.channel_number)
