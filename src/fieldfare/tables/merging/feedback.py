"""`MergingFeedback`: the share of unwanted events from a neighbour, and the budget left for merging.

Statistics may be wrong, and events change from day to day. So a broker counts the events forwarded by a neighbour and
wanted by nobody: the true waste of the mergers sent to the neighbour. The broker itself has made the mergers, and needs
no message. Events are judged in windows. After a window with too large a share the worst mergers are taken apart, and
new mergers get half the budget; after a number of good windows in a row the budget doubles again, up to the first size.
So the share returns below the budget, with any statistics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

WINDOW: Final = 64
"""forwarded events that are judged together"""
PATIENCE: Final = 16
"""good windows in a row after which the budget may grow"""
LEAST: Final = 1 / 256
"""share of the first budget below which nothing is left"""


class MergingFeedback:
    """The forwards of a neighbour in the present window, and the budget for new mergers.

    >>> feedback = MergingFeedback(0.25)
    >>> feedback.note(48, [{"x": n} for n in range(16)])
    >>> feedback.overdue, feedback.budget
    (False, 0.25)
    >>> feedback.note(40, [{"x": n} for n in range(40)])
    >>> feedback.overdue
    True
    >>> events, allowed = feedback.judge()
    >>> len(events), allowed, feedback.budget
    (40, 20, 0.125)
    """

    def __init__(self, budget: float) -> None:
        """Begin without events; `budget` is the largest share of unwanted events, 0 to 1."""
        self.budget = self._most = budget
        self._count = 0
        self._unwanted: list[Mapping[str, Any]] = []
        self._good = 0

    def note(self, wanted: int, unwanted: Sequence[Mapping[str, Any]]) -> None:
        """Count events of the neighbour; a full window within the budget ends at once."""
        self._count += wanted + len(unwanted)
        self._unwanted += unwanted
        if self._count >= WINDOW and not self.overdue:
            self._begin()
            self._good += 1
            if self._good >= PATIENCE and self.budget < self._most:
                self.budget, self._good = min(self._most, max(2 * self.budget, LEAST * self._most)), 0

    @property
    def overdue(self) -> bool:
        """Whether the window is full, with more unwanted events than the budget allows."""
        return self._count >= WINDOW and len(self._unwanted) > self._most * self._count

    def judge(self) -> tuple[list[Mapping[str, Any]], int]:
        """End an overdue window, halve the budget, and return the unwanted events with the number of tolerated events.

        Of a very large window, as in a large batch, the last events stand for all.
        """
        events = self._unwanted[-WINDOW:]
        allowed = int(self._most * self._count * len(events) / len(self._unwanted))
        self.budget = self.budget / 2 if self.budget > 2 * LEAST * self._most else 0.0
        self._good = 0
        self._begin()
        return events, allowed

    def _begin(self) -> None:
        self._count, self._unwanted = 0, []
