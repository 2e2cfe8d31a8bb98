"""A step of a core: everything to be on disk before anyone hears of the effects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from fieldfare.core.state import Link, Session
from fieldfare.protocol.journal import JournalEntry, Row


class Step(NamedTuple):
    """Entries and rows to write together, and the effects of the write."""

    entries: list[JournalEntry]
    rows: list[Row]
    sessions: dict[str, int]
    """Sessions with new deliveries, each with the number of the last delivery that may be sent after the write."""
    neighbours: dict[str, int]
    """The same for neighbours and messages."""
    overflowing: set[str]
    """Sessions to disconnect, since more deliveries wait than the policy allows."""
    closing: dict[str, str]
    """Sessions whose connections end, with the node where the session continues; empty if it stays here."""
    freed: Sequence[tuple[str, int]] = ()
    """Deliveries that members have acknowledged, by session and number: after the write others may have the keys."""
    answers: Sequence[Any] = ()
    """Answer to each input: a result, or the exception of an input without effect."""


class StepBuffer:
    """The unwritten changes since the last step."""

    def __init__(self) -> None:
        """Begin with no unwritten changes."""
        self.entries: list[JournalEntry] = []
        self.rows: list[Row] = []
        self.overflowing: set[str] = set()
        self.freed: list[tuple[str, int]] = []
        self.closing: dict[str, str] = {}
        self._woken: set[str] = set()

    def store(self, *rows: Row) -> None:
        """Write rows with the present step; of several rows with the same key the last is valid."""
        self.rows += rows

    def wake(self, *names: str) -> None:
        """Let connections of sessions or neighbours look for new deliveries or messages after the write."""
        self._woken.update(names)

    def drain(self, sessions: Mapping[str, Session], links: Mapping[str, Link]) -> Step:
        """Return the changes as a step, and begin the next step."""
        entries, self.entries = self.entries, []
        rows, self.rows = self.rows, []
        overflowing, self.overflowing = self.overflowing, set()
        closing, self.closing = self.closing, {}
        freed, self.freed = self.freed, []
        woken, self._woken = self._woken, set()
        return Step(
            entries,
            rows,
            {name: sessions[name].count for name in woken if name in sessions},
            {name: link.last for name, link in links.items() if name in woken},
            overflowing,
            closing,
            freed,
        )
