"""`CoverGraph`: the filters of a table as a graph to look at. An edge leads from a filter to one that it covers.

As a *poset* the graph has all immediate covers: an edge for each pair with nothing in between. As a *forest* each
filter has one cover at most, as in the tables that are forests. Either way the roots, which nothing covers, are the
minimal cover. Beside the edges there are the pairs of roots that merge perfectly, which one filter could replace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, Literal, TypeAlias

from fieldfare.filters.branch import Branch
from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.tables.base import satisfiable
from fieldfare.tables.structures.forest import Forest

Structure: TypeAlias = Literal["poset", "forest"]
Edge: TypeAlias = tuple[int, int]
"""the place of a filter and that of one that it covers"""

MOST_ROOTS: Final = 400
"""beyond, nobody wants to see which of them merge"""


@dataclass(frozen=True, slots=True)
class RootMerge:
    """Two roots, by their places, and the filter that is exactly their union."""

    first: int
    second: int
    filter: Filter


@dataclass(frozen=True, slots=True)
class CoverGraph:
    """Filters, whose they are, and how they cover each other."""

    filters: tuple[Filter, ...]
    interfaces: tuple[tuple[str, ...], ...]
    edges: tuple[Edge, ...]
    mergers: tuple[RootMerge, ...]
    complete: bool
    """are these all mergers? If there are too many roots, none are looked for"""

    @property
    def roots(self) -> list[int]:
        """The places of the filters that no other covers."""
        covered = {lower for _, lower in self.edges}
        return [place for place in range(len(self.filters)) if place not in covered]

    def matching(self, event: Mapping[str, object]) -> list[int]:
        """The places of the filters that an event matches; below a filter that it does not match, none need a look."""
        covers = _neighbours(len(self.filters), [(lower, upper) for upper, lower in self.edges])
        below = _neighbours(len(self.filters), self.edges)
        matched: set[int] = set()
        for place in _downwards(len(self.filters), below, covers):
            if all(upper in matched for upper in covers[place]) and self.filters[place].matches(event):
                matched.add(place)
        return sorted(matched)


def cover_graph(pairs: Iterable[tuple[Filter, str | None]], structure: Structure = "poset") -> CoverGraph:
    """The graph of filters and the interfaces they came from, if known; one that comes more than once is one node.

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
    forest = Forest()
    for filter in filters:
        forest.add(filter)
    edges = sorted(_tree_edges(filters, forest) if structure == "forest" else immediate_covers(filters, forest))
    lower = {below for _, below in edges}
    roots = [place for place in range(len(filters)) if place not in lower]
    few = len(roots) <= MOST_ROOTS
    mergers = tuple(_mergers(filters, roots)) if few else ()
    return CoverGraph(filters, tuple(tuple(whose) for whose in known.values()), tuple(edges), mergers, few)


def immediate_covers(filters: Sequence[Filter], forest: Forest) -> Iterator[Edge]:
    """The transitive reduction of covering. The forest of the filters saves most comparisons.

    Of filters that cover each other without being equal, the first stands above.
    """
    place_of = {filter: place for place, filter in enumerate(filters)}
    above: list[int] = []  # for each filter those that cover it, as the bits of a number
    for place, filter in enumerate(filters):
        places = (place_of[other] for other in forest.covering(filter))
        above.append(sum(1 << p for p in places if p < place or (p > place and not filter.covers(filters[p]))))
    for place, covers in enumerate(above):
        far = 0
        for upper in _bits(covers):
            far |= above[upper]
        yield from ((upper, place) for upper in _bits(covers & ~far))


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
    """The perfect merger of two filters neither of which covers the other."""
    if len(a.branches) == len(b.branches) == 1 and not _alike(a.branches[0], b.branches[0]):
        return None  # told without making the union
    try:
        return a.merge(b)
    except FilterTooComplex:
        return None


def _alike(a: Branch, b: Branch) -> bool:
    """Do two boxes differ along one dimension only, so that they make one box?"""
    return a.keys() == b.keys() and sum(side != b[dimension] for dimension, side in a.items()) <= 1


def _neighbours(count: int, edges: Iterable[Edge]) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(count)]
    for start, end in edges:
        found[start].append(end)
    return found


def _downwards(count: int, below: list[list[int]], covers: list[list[int]]) -> Iterator[int]:
    """All places, each after those above it."""
    waiting = [len(uppers) for uppers in covers]
    ready = [place for place in range(count) if not waiting[place]]
    while ready:
        place = ready.pop()
        yield place
        for lower in below[place]:
            waiting[lower] -= 1
            if not waiting[lower]:
                ready.append(lower)
