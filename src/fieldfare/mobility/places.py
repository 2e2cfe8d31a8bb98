"""Places, and filters that depend on where one is: `location IN myloc`.

A *movement graph* says which places are one step away; nobody moves faster. So who knew a while ago where somebody was
knows where they can be now (`ploc`), and a broker farther away, which hears of a move later, wants a little more. How
much more is the `Reach`: it says how many steps a client may be ahead of what a broker so many hops away knows.

Nothing here is about places only. Any state of a client will do that changes in steps, with a function that says
what is wanted in it: *dynamic filters*, such as "what I can still afford".
"""

from __future__ import annotations

import math
import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from itertools import accumulate
from typing import Final, NamedTuple, TypeAlias

from fieldfare.filters import EVERYTHING, NOTHING, FilterSyntaxError, FilterTooComplex, parse
from fieldfare.filters.filter import Filter
from fieldfare.filters.literals import literal

Graph: TypeAlias = Mapping[str, Collection[str]]
"""for each place those that are one step away; to visit is always possible"""
Reach: TypeAlias = Callable[[int], int | None]
"""by hops: the steps that a client may be ahead; None: it may be anywhere"""
MyLoc: TypeAlias = Callable[[str], Collection[str]]
"""the places that count as here, for somebody at a place"""
Fill: TypeAlias = Callable[[str, str], Filter]
"""what a template means to somebody at a place, for any place"""

_MARKED: Final = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")|\bIN\s+myloc(?![\w.])""", re.IGNORECASE)
"""a quoted piece, which stays as it is, or the marker"""
_KEPT: Final = 10_000


def ploc(graph: Graph, place: str, steps: int | None) -> frozenset[str]:
    """Where somebody can be who was at a place so many steps ago.

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
    """Only the place itself is here."""
    return (place,)


def within(graph: Graph, steps: int) -> MyLoc:
    """Here is whatever is at most so many steps away."""
    return lambda place: ploc(graph, place, steps)


class Template(NamedTuple):
    """A filter with places left open."""

    pieces: tuple[str, ...]
    """of its text; between them the marker stood"""

    def at(self, places: Iterable[str]) -> Filter:
        """The filter for those places."""
        listed = ", ".join(map(literal, sorted(places)))
        if not listed:
            raise ValueError("one is always somewhere: a filter needs a place")
        return _parsed(f"IN ({listed})".join(self.pieces))


def _parsed(text: str) -> Filter:
    """The filter of a text that may make sense at other places only, so that here nothing matches."""
    try:
        return parse(text)
    except FilterSyntaxError:
        with suppress(FilterSyntaxError):
            if parse(f"NOT ({text})").is_full:
                return NOTHING
        raise


def located(text: str) -> Template:
    """Read a filter that may say `field IN myloc`.

    >>> str(located("service = 'parking' AND location IN myloc").at(["a", "b"]))
    "location IN ('a', 'b') AND service = 'parking'"
    """
    pieces, start = [], 0
    for found in _MARKED.finditer(text):
        if found[1] is None:
            pieces.append(text[start : found.start()])
            start = found.end()
    return Template((*pieces, text[start:]))


def by_myloc(myloc: MyLoc = exactly) -> Fill:
    """Templates are texts with `myloc` in them."""
    return lambda text, place: located(text).at(myloc(place))


def reach(there: Sequence[float], back: Sequence[float], residence: float) -> Reach:
    """How many steps a client can be ahead, by what each hop takes and the time for which it stays at least.

    When an event passes the broker i hops away, that broker knows where the client was as long ago as news take to get
    there; and when the event arrives, as long as events take to get back has passed on top. Only both together are
    enough. Brokers beyond the last hop named are reached as if each hop were like the last.

    >>> steps = reach([0.2] * 3, [0.1] * 3, residence=0.5)
    >>> [steps(hop) for hop in range(5)]
    [0, 1, 2, 2, 3]
    """
    if residence <= 0 or not there or len(there) != len(back):
        raise ValueError("a client stays for a while, and each hop takes its time there and back")
    sums = [0.0, *accumulate(a + b for a, b in zip(there, back, strict=True))]

    def steps(hop: int) -> int:
        beyond = max(0, hop - len(there))
        return math.ceil((sums[hop - beyond] + beyond * (sums[-1] - sums[-2])) / residence)

    return steps


def nothing_ahead(hop: int) -> int:
    """Every broker wants what is wanted now, as if the client unsubscribed and subscribed at each move."""
    return 0


def flooded(hop: int) -> int | None:
    """Every broker but the client's own wants the events of all places."""
    return None if hop else 0


class World:
    """What brokers know in common: how one can move, how far one may be ahead, and what templates mean."""

    def __init__(self, graph: Graph, reach: Reach, fill: Fill | None = None) -> None:
        """Without a `fill`, templates are texts with `myloc`, which is the place itself."""
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
        """Where a client can be that was at a place when the news left that a broker so many hops away has."""
        return ploc(self.graph, place, self.reach(hop))

    def _filter(self, template: str, places: frozenset[str]) -> Filter:
        """What a client wants that may be at any of some places.

        It is made of what is wanted at each, not of all places put into the template at once: a template may say NOT.
        """
        boxes = [box for place in sorted(places) for box in self._meaning(template, place).boxes]
        try:
            return Filter(boxes)
        except FilterTooComplex:
            return EVERYTHING  # rather too much than too little: the client's own broker is exact
