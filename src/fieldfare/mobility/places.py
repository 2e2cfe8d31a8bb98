"""`World`: the meaning of filters such as `location IN myloc` where each broker widens them by its hops.

From a former place follow the possible places now (`routing.places`), and a broker farther away, which learns of a move
later, subscribes to more places. The `Reach` is the number of steps by which a client may be ahead of the knowledge of
a broker, by its hops. Running nodes have one width for all hops: `Places`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Final, TypeAlias

from fieldfare.filters import EVERYTHING, FilterTooComplex
from fieldfare.filters.dynamic import MYLOC, DynamicFilter
from fieldfare.filters.filter import Filter
from fieldfare.routing.places import Graph, ploc

Reach: TypeAlias = Callable[[int], int | None]
"""by hops: the number of steps by which a client may be ahead; None: the client may be anywhere"""
MyLoc: TypeAlias = Callable[[str], Collection[str]]
"""returns the places that count as here, for a client at a place"""
Fill: TypeAlias = Callable[[str, str], Filter]
"""returns the filter of a template for a client at a place"""

_KEPT: Final = 10_000


def exactly(place: str) -> Collection[str]:
    """Return only the place itself, as the places that count as here."""
    return (place,)


def within(graph: Graph, steps: int) -> MyLoc:
    """Return a `MyLoc` of all places at most some steps away."""
    return lambda place: ploc(graph, place, steps)


def by_myloc(myloc: MyLoc = exactly) -> Fill:
    """Return a `Fill` for templates with `myloc` in the text.

    >>> str(by_myloc(within({"a": "b", "b": "a"}, 1))("service = 'parking' AND location IN myloc", "a"))
    "location IN ('a', 'b') AND service = 'parking'"
    """
    return lambda text, place: DynamicFilter(text).fill({MYLOC: tuple(myloc(place))})


def reach(there: Sequence[float], back: Sequence[float], residence: float) -> Reach:
    """Return the steps by which a client can be ahead, from the delays of hops and the shortest residence.

    When an event passes the broker i hops away, the broker's knowledge is as old as the delay of news to the broker; at
    arrival of the event, the delay of events back has passed as well. Only both delays together suffice. Hops beyond
    the last are like the last.

    >>> steps = reach([0.2] * 3, [0.1] * 3, residence=0.5)
    >>> [steps(hop) for hop in range(5)]
    [0, 1, 2, 2, 3]
    """
    if residence <= 0 or not there or len(there) != len(back):
        raise ValueError("the residence must be positive, and each hop needs a delay there and back")
    sums = [0.0, *accumulate(a + b for a, b in zip(there, back, strict=True))]

    def steps(hop: int) -> int:
        beyond = max(0, hop - len(there))
        return math.ceil((sums[hop - beyond] + beyond * (sums[-1] - sums[-2])) / residence)

    return steps


def nothing_ahead(hop: int) -> int:
    """Return 0: every broker has the filter for the present place, as if the client resubscribed at each move."""
    return 0


def flooded(hop: int) -> int | None:
    """Return None except at the client's own broker: all other brokers want the events of all places."""
    return None if hop else 0


class World:
    """The common knowledge of brokers: the movement graph, the reach, and the meaning of templates."""

    def __init__(self, graph: Graph, reach: Reach, fill: Fill | None = None) -> None:
        """Make a world; without `fill`, templates are texts with `myloc`, which is the place itself."""
        strange = {other for others in graph.values() for other in others} - set(graph)
        if strange:
            raise ValueError(f"one can get to {', '.join(sorted(strange))}, but not on from there")
        if reach(0) != 0:
            raise ValueError("a client's own broker knows where it is")
        self.graph = graph
        self.reach = reach
        self._meaning = lru_cache(_KEPT)(fill or by_myloc())
        self.near = lru_cache(_KEPT)(self._near)
        self.filter = lru_cache(_KEPT)(self._filter)

    def _near(self, place: str, hop: int) -> frozenset[str]:
        """Return the possible places of a client, given the last place which a broker some hops away knows."""
        return ploc(self.graph, place, self.reach(hop))

    def _filter(self, template: str, places: frozenset[str]) -> Filter:
        """Return the filter of a client that may be at any of some places.

        The filter is a union of the filters for each place, not the template with all places: a template may contain
        NOT.
        """
        boxes = [box for place in sorted(places) for box in self._meaning(template, place).boxes]
        try:
            return Filter(boxes)
        except FilterTooComplex:
            return EVERYTHING  # rather too much than too little: the client's own broker is exact
