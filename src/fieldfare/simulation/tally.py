"""`Tally`: how much of a run the checker could judge. No violations where nothing was judged show nothing."""

from __future__ import annotations

from typing import TypeAlias

Due: TypeAlias = tuple[str, tuple[str, int]]
"""a client, and an event: its publisher and its count"""


class Tally:
    """Deliveries that were asked for, and those of them whose absence would have been a violation."""

    def __init__(self) -> None:
        self.due = 0
        """a client had a subscription that matched when an event was published"""
        self.judged = 0
        """of these, those that the specification demands in the end, with links and subscriptions as they were"""
        self._at_once: set[Due] = set()

    def asks(self, count: int) -> None:
        """So many clients have asked for an event that is published now."""
        self.due += count

    def judges_at_once(self, one: Due) -> None:
        """Publisher and client are at one broker: whether it comes is seen in this very step."""
        self.judged += 1
        self._at_once.add(one)

    def judges(self, one: Due) -> None:
        """What was owed has come, or is missing for good."""
        if one in self._at_once:
            self._at_once.discard(one)
        else:
            self.judged += 1
