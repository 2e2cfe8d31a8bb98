"""Results of matching: a `Result` for each event, and the `Tally` of all results."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from fieldfare.events import Event


class Result(NamedTuple):
    """An event with its number, from 1 on with bad events counted, and the names of the filters that match."""

    number: int
    event: Event
    matches: list[str]


@dataclass(slots=True)
class Tally:
    """The numbers of events, matches and skipped records over a whole run."""

    filters: int = 0
    events: int = 0
    matches: int = 0
    unmatched: int = 0
    skipped: int = 0
    seconds: float = 0.0
    """of CPU time"""
    by_filter: Counter[str] = field(default_factory=Counter)

    def count(self, result: Result) -> None:
        """Add a result to the counts."""
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
    """Return a number with its noun, in the singular or the plural.

    >>> counted(1, "event"), counted(1000, "event"), counted(0, "match", "matches")
    ('1 event', '1,000 events', '0 matches')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
