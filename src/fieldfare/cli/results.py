"""What comes of matching: a `Result` per event, and the `Tally` of them all."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from fieldfare.events import Event


class Result(NamedTuple):
    """An event, its number from 1 (bad ones count too), and the names of the filters it matches."""

    number: int
    event: Event
    matches: list[str]


@dataclass(slots=True)
class Tally:
    """Counts over many results."""

    filters: int = 0
    events: int = 0
    matches: int = 0
    unmatched: int = 0
    skipped: int = 0
    seconds: float = 0.0
    """of CPU time"""
    by_filter: Counter[str] = field(default_factory=Counter)

    def count(self, result: Result) -> None:
        """Take in one more."""
        self.events += 1
        self.matches += len(result.matches)
        self.unmatched += not result.matches
        self.by_filter.update(result.matches)

    def __str__(self) -> str:
        skipped = f", {self.skipped:,} bad events skipped" if self.skipped else ""
        return f"{self.events:,} events, {self.filters:,} filters, {self.matches:,} matches{skipped}"
