"""`CoverGraph`: the filters of a table as a graph for display, with an edge from a filter to each covered filter.

As a *poset* the graph has all immediate covers: an edge for each covering pair with no filter in between. As a *forest*
each filter has at most a single cover, as in the tables that are forests. In both, the roots, which nothing covers, are
the minimal cover. Beside the edges the graph has the pairs of roots that merge perfectly, so that a single filter could
replace both.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from fieldfare.filters.branch import Branch
from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.tables.base import satisfiable

if TYPE_CHECKING:
    from fieldfare.tables.structures.forest import Forest

Structure: TypeAlias = Literal["poset", "forest"]
Edge: TypeAlias = tuple[int, int]
"""positions of a filter and of a filter below"""

MOST_ROOTS: Final = 400
"""with more roots, the search for mergers is too slow, and its result too large to look at"""


@dataclass(frozen=True, slots=True)
class RootMerge:
    """Two roots, by position, and the filter that is exactly their union."""

    first: int
    second: int
    filter: Filter


@dataclass(frozen=True, slots=True)
class CoverGraph:
    """Filters with their interfaces, their covering relations and their mergers."""

    filters: tuple[Filter, ...]
    interfaces: tuple[tuple[str, ...], ...]
    edges: tuple[Edge, ...]
    mergers: tuple[RootMerge, ...]
    complete: bool
    """False if there were too many roots to look for mergers"""

    @property
    def roots(self) -> list[int]:
        """The positions of the filters that no other filter covers."""
        covered = {lower for _, lower in self.edges}
        return [place for place in range(len(self.filters)) if place not in covered]

    def matching(self, event: Mapping[str, object]) -> list[int]:
        """Return the positions of the filters that an event matches.

        The search goes down from the roots and stops below each filter which the event does not match.
        """
        covers = _neighbours(len(self.filters), [(lower, upper) for upper, lower in self.edges])
        below = _neighbours(len(self.filters), self.edges)
        matched: set[int] = set()
        for place in _downwards(len(self.filters), below, covers):
            if all(upper in matched for upper in covers[place]) and self.filters[place].matches(event):
                matched.add(place)
        return sorted(matched)


def cover_graph(pairs: Iterable[tuple[Filter, str | None]], structure: Structure = "poset") -> CoverGraph:
    """Build the graph of filters and the interfaces from which they came, if known; equal filters are a single node.

    >>> from fieldfare.filters import parse
    >>> texts = ["x < 9", "x < 7", "x < 5", "y = 1"]
    >>> cover_graph((parse(text), "ana") for text in texts).edges
    ((0, 1), (1, 2))
    """
    known: dict[Filter, dict[str, None]] = {}
    for filter, interface in pairs:
        whose = known.setdefault(satisfiable(filter), {})
        if interface is not None:
            whose[interface] = None
    filters = tuple(known)
    forest = _forest(filters)
    edges = sorted(_tree_edges(filters, forest) if structure == "forest" else immediate_covers(filters, forest))
    lower = {below for _, below in edges}
    roots = [place for place in range(len(filters)) if place not in lower]
    few = len(roots) <= MOST_ROOTS
    mergers = tuple(_mergers(filters, roots)) if few else ()
    return CoverGraph(filters, tuple(tuple(whose) for whose in known.values()), tuple(edges), mergers, few)


def immediate_covers(filters: Sequence[Filter], forest: Forest | None = None) -> Iterator[Edge]:
    """Yield the transitive reduction of covering, as edges. The forest of the filters saves most comparisons.

    Of filters with the same meaning that are not equal, the first stands above.
    """
    forest = forest or _forest(filters)
    place_of = {filter: place for place, filter in enumerate(filters)}
    above: list[int] = []  # for each filter its covers, as the bits of a number
    for place, filter in enumerate(filters):
        places = (place_of[other] for other in forest.covering(filter))
        above.append(sum(1 << p for p in places if p < place or (p > place and not filter.covers(filters[p]))))
    for place, covers in enumerate(above):
        far = 0
        for upper in _bits(covers):
            far |= above[upper]
        yield from ((upper, place) for upper in _bits(covers & ~far))


def _forest(filters: Iterable[Filter]) -> Forest:
    from fieldfare.tables.structures.forest import Forest  # noqa: PLC0415 - a node need not load forests at its start

    forest = Forest()
    for filter in filters:
        forest.add(filter)
    return forest


def _bits(number: int) -> Iterator[int]:
    while number:
        low = number & -number
        yield low.bit_length() - 1
        number ^= low


def _tree_edges(filters: Sequence[Filter], forest: Forest) -> Iterator[Edge]:
    place_of = {filter: place for place, filter in enumerate(filters)}
    for filter, place in place_of.items():
        node = forest.nodes[filter]
        if node.parent is not None and not forest.is_root(node):
            yield place_of[node.parent.filter], place


def _mergers(filters: Sequence[Filter], roots: Sequence[int]) -> Iterator[RootMerge]:
    for first, second in combinations(roots, 2):
        merged = _merged(filters[first], filters[second])
        if merged is not None:
            yield RootMerge(first, second, merged)


def _merged(a: Filter, b: Filter) -> Filter | None:
    """Return the perfect merger of two filters, neither of which covers the other; None if there is none."""
    if len(a.branches) == len(b.branches) == 1 and not _alike(a.branches[0], b.branches[0]):
        return None  # told without making the union
    try:
        return a.merge(b)
    except FilterTooComplex:
        return None


def _alike(a: Branch, b: Branch) -> bool:
    """Tell whether two boxes differ along a single dimension, so that their union is a box."""
    return a.keys() == b.keys() and sum(side != b[dimension] for dimension, side in a.items()) <= 1


def _neighbours(count: int, edges: Iterable[Edge]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(count)]
    for start, end in edges:
        found[start].append(end)
    return found


def _downwards(count: int, below: list[list[int]], covers: list[list[int]]) -> Iterator[int]:
    """Yield all positions, each after the positions above."""
    waiting = [len(uppers) for uppers in covers]
    ready = [place for place in range(count) if not waiting[place]]
    while ready:
        place = ready.pop()
        yield place
        for lower in below[place]:
            waiting[lower] -= 1
            if not waiting[lower]:
                ready.append(lower)
