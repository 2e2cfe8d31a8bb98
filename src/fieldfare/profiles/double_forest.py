"""`DoubleForest`: a forest of profiles and a forest of queries, and the pairs between them.

The other forest saves comparisons: a filter that does not meet a node does not meet the nodes below. The own forest
saves more: a filter is placed in its own forest first, and the partners of its new neighbours there are *bounds* for
its own partners. A query finds at least the partners of the queries below, and at most those of the query above. Only
filters between the bounds need a comparison. (For profiles that must be covered, the bounds are reversed: the smaller a
profile, the more queries cover the profile.)

Bounds rely on transitive `covers`, and on `overlaps` in agreement with `covers`: a filter that overlaps a part overlaps
the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, Final, NamedTuple

from fieldfare.filters.filter import Filter
from fieldfare.profiles.pairs import Asker, Object, Operator, Pairing, Side
from fieldfare.tables.structures.forest import Forest, ForestNode

Test = Callable[[Filter], bool]


class Bounds(NamedTuple):
    """The knowledge about the partners of a filter before any comparison."""

    upper: Collection[Filter] | None
    """all possible partners; None if unknown"""
    lower: Collection[Filter]
    """certain partners"""

    def restrict(self, test: Test) -> Test:
        """Return the test, called only where the bounds leave the answer open."""
        upper, lower = self
        if upper is None:
            return lambda other: other in lower or test(other)
        return lambda other: other in lower or (other in upper and test(other))


UNBOUNDED: Final = Bounds(None, ())


class DoubleForest(Pairing[Object, Asker]):
    """Profiles against queries, with a forest on each side.

    >>> from fieldfare.filters import parse
    >>> space: DoubleForest[str, str] = DoubleForest("cover")
    >>> space.queries.add(parse("price < 10"), "ana")
    []
    >>> space.profiles.add(parse("price BETWEEN 3 AND 5"), "book 7")
    [parse('price < 10')]
    """

    def __init__(self, operator: Operator = "cover", *, bounds: bool = True) -> None:
        """Make an empty pairing. Without `bounds` only the other forest is used."""
        super().__init__(operator)
        self.bounds = bounds
        self.profile_forest = Forest(self.tests)
        self.query_forest = Forest(self.tests)

    def _store(self, side: Side[Any], filter: Filter) -> None:
        self._own(side).add(filter)

    def _drop(self, side: Side[Any], filter: Filter) -> None:
        self._own(side).remove(filter)

    def _find(self, side: Side[Any], filter: Filter) -> list[Filter]:
        bounds = self._bounds(side, filter)
        if bounds.upper is not None and not bounds.upper:
            return []
        if side is self.profiles:
            return _from_above(self.query_forest, bounds.restrict(lambda query: self.meets(query, filter)))
        test = bounds.restrict(lambda profile: self.meets(filter, profile))
        if self.operator == "overlap":
            return _from_above(self.profile_forest, test)
        return _whole_trees(self.profile_forest, test)

    def _own(self, side: Side[Any]) -> Forest:
        return self.profile_forest if side is self.profiles else self.query_forest

    def _bounds(self, side: Side[Any], filter: Filter) -> Bounds:
        """Return bounds from the parent and the children of a filter in its own forest; no bounds for a new filter."""
        own = self._own(side)
        node = own.nodes.get(filter) if self.bounds else None
        if node is None:
            return UNBOUNDED
        above = None if node.parent is None or own.is_root(node) else side._known(node.parent.filter)
        below = [side._known(child) for child in node.children]
        if side is self.profiles and self.operator == "cover":
            return Bounds(_in_all(below) if below else None, above or ())
        return Bounds(above, _in_any(below))


def _from_above(forest: Forest, test: Test) -> list[Filter]:
    """Return all filters that pass a test which nothing below a failure passes."""
    found: list[Filter] = []
    todo: list[ForestNode] = [forest.top]
    while todo:
        passed = [child for child in todo.pop().children.values() if test(child.filter)]
        found += [node.filter for node in passed]
        todo += passed
    return found


def _whole_trees(forest: Forest, test: Test) -> list[Filter]:
    """Return all filters that pass a test which everything below a success passes."""
    found: list[Filter] = []
    todo: list[ForestNode] = [forest.top]
    while todo:
        for child in todo.pop().children.values():
            if test(child.filter):
                found += [node.filter for node in child.below()]
            else:
                todo.append(child)
    return found


def _in_all(some: list[dict[Filter, None]]) -> Collection[Filter]:
    first, *others = sorted(some, key=len)
    return {filter for filter in first if all(filter in other for other in others)}


def _in_any(some: list[dict[Filter, None]]) -> Collection[Filter]:
    return some[0] if len(some) == 1 else {filter for part in some for filter in part}
