"""`Seen`: which events were here lately, so that none is told twice.

Two sets take turns: when the younger has been filled for as long as events are to be remembered, it becomes the older,
and what was the older is forgotten. So each event is remembered for that long at least, and twice that long at most.
"""

from __future__ import annotations

from collections.abc import Hashable


class Seen:
    """Events by what tells them apart, remembered for a while.

    >>> seen = Seen(10.0)
    >>> seen.is_new(("ana", 1), 0.0), seen.is_new(("ana", 1), 9.0), seen.is_new(("ana", 1), 30.0)
    (True, False, True)
    """

    __slots__ = ("_older", "_since", "_younger", "remember")

    def __init__(self, remember: float) -> None:
        """Remember events for so many seconds: more than it takes them to cross the network."""
        self.remember = remember
        self._younger: set[Hashable] = set()
        self._older: set[Hashable] = set()
        self._since = 0.0

    def is_new(self, event: Hashable, now: float) -> bool:
        """Is this the first time? It is noted."""
        if now - self._since > self.remember:
            forget = now - self._since > 2 * self.remember
            self._older, self._younger, self._since = (set() if forget else self._younger), set(), now
        if event in self._younger or event in self._older:
            return False
        self._younger.add(event)
        return True
