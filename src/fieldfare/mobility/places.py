"""Places, and filters that depend on the client's place: `location IN myloc`.

A *movement graph* has an edge between places that are a step apart; no client moves faster. So from a former place
follow the possible places now (`ploc`), and a broker that learns of a move later subscribes to a few more places.
`Places` has the rules of running nodes: a node asks its neighbours for the events of places `ahead`. `World` has the
rules of `Location`, where each broker widens filters by its hops: the `Reach` is the number of steps by which a client
may be ahead of the knowledge of a broker.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from itertools import accumulate, islice
from typing import Final, NamedTuple, TypeAlias

from fieldfare.filters import EVERYTHING, FilterTooComplex
from fieldfare.filters.dynamic import MYLOC, DynamicFilter
from fieldfare.filters.filter import Filter

Graph: TypeAlias = Mapping[str, Collection[str]]
"""for each place the places a step away; to remain at a place is always possible"""
Reach: TypeAlias = Callable[[int], int | None]
"""by hops: the number of steps by which a client may be ahead; None: the client may be anywhere"""
MyLoc: TypeAlias = Callable[[str], Collection[str]]
"""returns the places that count as here, for a client at a place"""
Fill: TypeAlias = Callable[[str, str], Filter]
"""returns the filter of a template for a client at a place"""

_KEPT: Final = 10_000
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
