"""`Tally`: how much of a run the checker could judge. No violations where nothing was judged show nothing."""

from __future__ import annotations

from typing import TypeAlias

Due: TypeAlias = tuple[str, tuple[str, int]]
"""a client, and an event: its publisher and its count"""


class Tally:
    """Counts of due deliveries, and of due deliveries whose absence would be a violation."""

    def __init__(self) -> None:
        self.due = 0
        """a client had a subscription that matched when an event was published"""
        self.judged = 0
        """due deliveries that the specification demands, with links and subscriptions unchanged since"""
        self._at_once: set[Due] = set()

    def asks(self, count: int) -> None:
        """Count the clients with a subscription for an event, at the publication."""
        self.due += count

    def judges_at_once(self, one: Due) -> None:
        """Count a delivery judged in the step of the publication: publisher and client share a broker."""
        self.judged += 1
        self._at_once.add(one)

    def judges(self, one: Due) -> None:
        """Count a delivery judged later, unless judged at once before."""
        if one in self._at_once:
            self._at_once.discard(one)
        else:
            self.judged += 1
