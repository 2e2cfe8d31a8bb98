"""Places: the movement graph, and the places that count as here for filters such as `location IN myloc`.

A *movement graph* has an edge between places that are a step apart; no client moves faster. So from a former place
follow the possible places now (`ploc`). A node asks its neighbours for the events of some places `ahead`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from itertools import islice
from typing import Final, NamedTuple, TypeAlias

Graph: TypeAlias = Mapping[str, Collection[str]]
"""for each place the places a step away; to remain at a place is always possible"""
_COMPARED: Final = 2000
"""places that are compared with a wrong name, to find the name that was meant"""


def ploc(graph: Graph, place: str, steps: int | None) -> frozenset[str]:
    """Return the possible places of a client that was at a place some steps ago.

    >>> square = {"a": "bc", "b": "ad", "c": "ad", "d": "bc"}
    >>> ["".join(sorted(ploc(square, "a", steps))) for steps in (0, 1, 2)]
    ['a', 'abc', 'abcd']
    """
    if place not in graph:
        raise ValueError(f"there is no place {place!r}")
    if steps is None:
        return frozenset(graph)
    far, queue = {place: 0}, deque([place])
    while queue:
        here = queue.popleft()
        if far[here] < steps:
            for other in graph[here]:
                if other not in far:
                    far[other] = far[here] + 1
                    queue.append(other)
    return frozenset(far)


class Places(NamedTuple):
    """The places that sessions may have at a node, and the places that count as here.

    >>> street = Places({"1": ["2"], "2": ["1", "3"], "3": ["2", "4"], "4": ["3"]}, here=1, ahead=1)
    >>> sorted(street.near("1")), sorted(street.within("1", 2))
    (['1', '2'], ['1', '2', '3'])
    """

    graph: Graph | None = None
    """The movement graph; None: any place is allowed, and only the place itself counts as here."""
    here: int = 0
    """Steps up to which places count as here."""
    ahead: int = 0
    """Steps up to which neighbours are asked for the events of further places, so that a move has no gap."""

    def check(self, place: object) -> None:
        """Raise a ValueError unless a session may have a place."""
        if not isinstance(place, str) or not place:
            raise ValueError(f"a place is a text, such as 'rebeca-drive 100', and not {place!r}")
        if self.graph is not None and place not in self.graph:
            near = get_close_matches(place, islice(self.graph, _COMPARED), n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"the movement graph has no place {place!r}{hint}")

    def within(self, place: str, steps: int) -> frozenset[str]:
        """Return the places within some steps; a place that the graph does not have stands alone."""
        if self.graph is None or place not in self.graph:
            return frozenset((place,))
        return ploc(self.graph, place, steps)

    def near(self, place: str) -> frozenset[str]:
        """Return the places that count as here, for a session at a place."""
        return self.within(place, self.here)

    def anchor(self, place: str, before: str | None) -> str:
        """Return the place around which neighbours are asked for events, which changes as rarely as possible.

        The former anchor serves as long as the next step leads to a place that neighbours have been asked for.
        """
        if before is not None and self.within(place, min(1, self.ahead)) <= self.within(before, self.ahead):
            return before
        return place
