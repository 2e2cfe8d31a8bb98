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
        parts = [
            counted(self.events, "event"),
            counted(self.filters, "filter"),
            counted(self.matches, "match", "matches"),
        ]
        return ", ".join([*parts, f"{counted(self.skipped, 'bad event')} skipped"] if self.skipped else parts)


def counted(number: int, one: str, many: str = "") -> str:
    """So many of something.

    >>> counted(1, "event"), counted(1000, "event"), counted(0, "match", "matches")
    ('1 event', '1,000 events', '0 matches')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
