"""`Poset`: filters as a graph of immediate covers.

The graph has every covering relation, at the price of many comparisons.

An edge leads from a filter to each covered filter with none in between. So all filters above or below a stored filter
are known without a comparison, and so are the neighbours that must know the filter. The price: the place of a new
filter is found only after a comparison with all its covers and with many filters below them.

The table is not redundant: the filters of an interface never cover each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Generic

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Interface, Table, Towards, satisfiable
from fieldfare.tables.structures.graph_match import interested, reachable


@dataclass(eq=False, slots=True)
class PosetNode(Generic[Interface]):
    """A filter between its closest covers and the largest covered filters. Dicts, because sets have no order."""

    filter: Filter
    number: int
    """number of arrival"""
    interfaces: set[Interface]
    parents: dict[Filter, PosetNode[Interface]] = field(default_factory=dict)
    children: dict[Filter, PosetNode[Interface]] = field(default_factory=dict)

    def above(self) -> dict[Filter, PosetNode[Interface]]:
        """Return all covers of the filter, by filter."""
        return reachable(self.parents.values(), lambda vertex: vertex.parents.values())

    def below(self) -> dict[Filter, PosetNode[Interface]]:
        """Return all covered filters, by filter."""
        return reachable(self.children.values(), lambda vertex: vertex.children.values())


class Poset(Table[Interface]):
    """The filters poset of the thesis, as a routing table.

    >>> from fieldfare.filters import parse
    >>> table: Poset[str] = Poset({"north", "south"})
    >>> table.add(parse("price < 10"), "north"), table.add(parse("price < 5"), "south")
    (True, True)
    >>> table.roots(), table.forwards(parse("price < 10")), table.forwards(parse("price < 5"))
    ([parse('price < 10')], frozenset({'south'}), frozenset({'north'}))
    """

    redundant = False

    def __init__(self, neighbours: Iterable[Interface] = (), *, towards: Towards[Interface] | None = None) -> None:
        super().__init__(neighbours, towards=towards)
        self.vertices: dict[Filter, PosetNode[Interface]] = {}
        self._roots: dict[Filter, PosetNode[Interface]] = {}
        self._pairs: Counter[Interface] = Counter()
        self._arrivals = 0

    # Pairs

    def add(self, filter: Filter, interface: Interface) -> bool:
        """Store a pair, and forget the pairs of the interface below."""
        vertex = self.vertices.get(satisfiable(filter))
        above = vertex.above() if vertex is not None else self._covers(filter)
        if interface in self.interfaces(filter) or any(interface in cover.interfaces for cover in above.values()):
            return False
        if vertex is None:
            self._arrivals += 1
            vertex = PosetNode(filter, self._arrivals, set())
            self._insert(vertex, above)
        smaller = [below for below in vertex.below().values() if interface in below.interfaces]
        if vertex.interfaces and any(self.tests.covers(below.filter, filter) for below in smaller):
            return False  # the interface has a younger filter with the same meaning
        vertex.interfaces.add(interface)
        self._pairs[interface] += 1
        for below in smaller:
            self._forget(below, interface)
        return True

    def remove(self, filter: Filter, interface: Interface) -> bool:
        """Forget a pair, and take a filter without interfaces out of the graph."""
        vertex = self.vertices.get(filter)
        if vertex is None or interface not in vertex.interfaces:
            return False
        self._forget(vertex, interface)
        return True

    def _forget(self, vertex: PosetNode[Interface], interface: Interface) -> None:
        vertex.interfaces.remove(interface)
        self._pairs[interface] -= 1
        if not self._pairs[interface]:
            del self._pairs[interface]
        if not vertex.interfaces:
            self._take_out(vertex)

    def filters(self) -> Iterator[Filter]:
        """Iterate over a copy, so that the table may change meanwhile."""
        return iter(list(self.vertices))

    def interfaces(self, filter: Filter) -> AbstractSet[Interface]:
        """Return the interfaces of a filter; an empty set for a filter that is not stored."""
        vertex = self.vertices.get(filter)
        return frozenset() if vertex is None else vertex.interfaces

    def __len__(self) -> int:
        return len(self.vertices)

    # The graph

    def _covers(self, filter: Filter) -> dict[Filter, PosetNode[Interface]]:
        """Return all nodes that cover a filter which is not stored: each is found from the covers above."""
        answers: dict[Filter, bool] = {}
        found: dict[Filter, PosetNode[Interface]] = {}
        todo = list(self._roots.values())
        for vertex in todo:  # grows on the way
            if vertex.filter not in answers:
                answers[vertex.filter] = self.tests.covers(vertex.filter, filter)
                if answers[vertex.filter]:
                    found[vertex.filter] = vertex
                    todo.extend(vertex.children.values())
        return found

    def _largest_below(
        self, filter: Filter, parents: Mapping[Filter, PosetNode[Interface]]
    ) -> dict[Filter, PosetNode[Interface]]:
        """Return the largest nodes below a filter that is not stored but would have these parents.

        All of them lie below every parent, so a search below the parent with the fewest children suffices. A node that
        is not covered may still have a covered node below.
        """
        start = min((parent.children for parent in parents.values()), key=len, default=self._roots)
        found: dict[Filter, PosetNode[Interface]] = {}
        known: dict[Filter, PosetNode[Interface]] = {}
        met: set[Filter] = set()
        todo = list(start.values())
        for vertex in todo:  # grows on the way
            if vertex.filter in met or vertex.filter in known:
                continue
            met.add(vertex.filter)
            if self.tests.covers(filter, vertex.filter):
                found[vertex.filter] = vertex
                known |= vertex.below()
            else:
                todo.extend(vertex.children.values())
        return {below: vertex for below, vertex in found.items() if below not in known}

    def _insert(self, vertex: PosetNode[Interface], above: Mapping[Filter, PosetNode[Interface]]) -> None:
        parents = _lowest(above)
        children = self._largest_below(vertex.filter, parents)
        for parent in parents.values():
            for child in children.values():
                if child.filter in parent.children:
                    _unlink(parent, child)
            _link(parent, vertex)
        for child in children.values():
            _link(vertex, child)
            self._roots.pop(child.filter, None)
        if not parents:
            self._roots[vertex.filter] = vertex
        self.vertices[vertex.filter] = vertex

    def _take_out(self, vertex: PosetNode[Interface]) -> None:
        """Take a node out and link its parents with its children, unless another path links them.

        Every covering relation is a path in the graph, so no comparison is needed.
        """
        parents, children = list(vertex.parents.values()), list(vertex.children.values())
        del self.vertices[vertex.filter]
        self._roots.pop(vertex.filter, None)
        for parent in parents:
            _unlink(parent, vertex)
        for child in children:
            _unlink(vertex, child)
            above = child.above()
            for parent in parents:
                if parent.filter not in above:
                    _link(parent, child)
            if not child.parents:
                self._roots[child.filter] = child

    # Questions

    def roots(self) -> list[Filter]:
        """Return the minimal cover: the nodes without parents."""
        return self._in_order(self._roots)

    def forwards(self, filter: Filter) -> frozenset[Interface]:
        """Return the neighbours that must know a filter.

        All neighbours know a root, except the only neighbour from which the root came. The exception may have to know
        the root's children, which came from elsewhere; all neighbours know a cover of the filters further down.
        (Assumption: the neighbours that may learn a covered filter may learn its cover. The assumption holds for
        overlapping advertisements, and where `overlaps` errs towards True nothing is lost.)
        """
        vertex = self.vertices.get(filter)
        if vertex is None:
            return frozenset()
        parents = vertex.parents.values()
        if any(parent.parents or len(parent.interfaces) > 1 for parent in parents):
            return frozenset()
        return self._told(filter).intersection(*(parent.interfaces for parent in parents))

    def beneath(self, filter: Filter) -> list[Filter]:
        """Return the children, and the children of those children that came from a single neighbour.

        A neighbour that had to learn a filter further down would have two covers of it below the given filter, from
        itself alone. Of such two, the larger covers the smaller, and the table would have forgotten the smaller.
        """
        vertex = self.vertices.get(filter)
        if vertex is None or (vertex.parents and not self.forwards(filter)):
            return []
        found = dict(vertex.children)
        for child in vertex.children.values():
            if len(child.interfaces) == 1 and child.interfaces <= self.neighbours:
                found |= child.children
        return self._in_order(found)

    def match(self, event: Mapping[str, object]) -> set[Interface]:
        """Return the interfaces with a filter that the event matches."""
        return self._match(event)

    def match_within(self, event: Mapping[str, object], tests: int) -> set[Interface]:
        """Return the matching interfaces, and perhaps others, after a limited number of filter tests."""
        return self._match(event, tests)

    def _match(self, event: Mapping[str, object], budget: int | None = None) -> set[Interface]:
        def carried(vertex: PosetNode[Interface]) -> set[Interface]:
            return vertex.interfaces.union(*(below.interfaces for below in vertex.below().values()))

        return interested(
            self._roots.values(),
            event,
            self.tests,
            interfaces=self.interfaces,
            everyone=len(self._pairs),
            carried=carried,
            budget=budget,
        )

    def covering(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that cover a given filter; for a stored filter almost without comparisons."""
        vertex = self.vertices.get(filter)
        if vertex is None:
            return self._in_order(self._covers(filter))
        found = {**vertex.above(), filter: vertex}
        while len(vertex.children) == 1:  # a younger filter with the same meaning is the only child
            (vertex,) = vertex.children.values()
            if not self.tests.covers(vertex.filter, filter):
                break
            found[vertex.filter] = vertex
        return self._in_order(found)

    def covered(self, filter: Filter) -> list[Filter]:
        """Return the stored filters which a given filter covers; for a stored filter almost without comparisons."""
        vertex = self.vertices.get(filter)
        if vertex is not None:
            found, parents = {**vertex.below(), filter: vertex}, vertex.parents
        else:
            parents = _lowest(self._covers(filter))
            found = reachable(self._largest_below(filter, parents).values(), lambda vertex: vertex.children.values())
        while len(parents) == 1:  # an older filter with the same meaning is the only parent
            (vertex,) = parents.values()
            if not self.tests.covers(filter, vertex.filter):
                break
            found[vertex.filter], parents = vertex, vertex.parents
        return self._in_order(found)

    def overlapping(self, filter: Filter) -> list[Filter]:
        """Return the stored filters that overlap a given filter; the search goes on only below overlapping filters."""
        vertex = self.vertices.get(filter)
        known = {**vertex.above(), **vertex.below(), filter: vertex} if vertex is not None else {}
        answers: dict[Filter, bool] = {}
        todo = list(self._roots.values())
        for vertex in todo:  # grows on the way
            if vertex.filter not in answers:
                answers[vertex.filter] = vertex.filter in known or self.tests.overlaps(vertex.filter, filter)
                if answers[vertex.filter]:
                    todo.extend(vertex.children.values())
        return self._in_order(found for found, yes in answers.items() if yes)

    def _in_order(self, filters: Iterable[Filter]) -> list[Filter]:
        return sorted(filters, key=lambda filter: self.vertices[filter].number)


def _lowest(above: Mapping[Filter, PosetNode[Interface]]) -> dict[Filter, PosetNode[Interface]]:
    """Return the covers of a filter that cover no other cover."""
    return {cover: vertex for cover, vertex in above.items() if not any(child in above for child in vertex.children)}


def _link(parent: PosetNode[Interface], child: PosetNode[Interface]) -> None:
    parent.children[child.filter] = child
    child.parents[parent.filter] = parent


def _unlink(parent: PosetNode[Interface], child: PosetNode[Interface]) -> None:
    del parent.children[child.filter]
    del child.parents[parent.filter]
