"""Decision tree: follow the event from the root to every filter that matches.

A node tests a dimension. The edges carry the constraints of filters on the dimension, and the don't-care edge leads
filters without a constraint to the next test. The path of a branch is its constraints in a fixed order of the
dimensions, and the filter stands at the end of the path. Matching goes depth first along *every* edge that the event
satisfies; every filter on the way matches.

    symbol ─── = 'IBM' ──→ price ─── < 15 ──→ F1
       │                     └────── < 12 ──→ F2
       └ don't care ─→ volume ─── > 1000000 ──→ F3

Paths with a common beginning share nodes, so the most selective fields should come first. Nodes in a row of don't-care
edges are stored as a single `Place`: a walk that reaches the first reaches them all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Generic

from fieldfare.events.event import fields_of
from fieldfare.events.values import MISSING
from fieldfare.filters import Filter
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import Constraint, Mode
from fieldfare.filters.expressions import Expression
from fieldfare.matching.classic.counting import ValueIndex
from fieldfare.matching.matcher import Id, Matcher, as_filter


class Place(Generic[Id]):
    """The end of a path: the filters that end here, and the tests that follow, at most one for each dimension."""

    __slots__ = ("ids", "tests")

    def __init__(self) -> None:
        self.ids: set[Id] = set()
        self.tests: dict[Dimension, ValueIndex[Place[Id]]] = {}


class DecisionTree(Matcher[Id]):
    """A matcher that walks a tree of tests.

    Args:
        order: the fields to test first; all others follow by name, and expressions come last.

    >>> tree = DecisionTree[str](order=["symbol"])
    >>> tree.add("cheap", "price < 10 AND symbol = 'IBM'")
    >>> tree.match({"price": 5, "symbol": "IBM"}), tree.match({"price": 5})
    (['cheap'], [])
    """

    def __init__(self, order: Sequence[str] = ()) -> None:
        self._filters: dict[Id, Filter] = {}
        self._root: Place[Id] = Place()
        self._ranks = {path: rank for rank, path in enumerate(order)}

    def _path(self, branch: Branch) -> list[tuple[Dimension, Constraint]]:
        """Return the constraints of a branch in the order of the tests."""

        def order(item: tuple[Dimension, Constraint]) -> tuple[int, bool, str]:
            name = str(item[0])
            computed = isinstance(item[0], Expression)
            return len(self._ranks) if computed else self._ranks.get(name, len(self._ranks)), computed, name

        return sorted(branch.items(), key=order)

    def add(self, id: Id, filter: Filter | str) -> None:
        """Lay a path for each branch, over existing places as far as possible."""
        if id in self._filters:
            raise KeyError(id)
        wanted = as_filter(filter)
        for branch in wanted.branches:
            place = self._root
            for dimension, constraint in self._path(branch):
                place = place.tests.setdefault(dimension, ValueIndex()).setdefault(constraint, Place())
            place.ids.add(id)
        self._filters[id] = wanted

    def remove(self, id: Id) -> None:
        """Walk the paths of the filter again, and cut off places that lead nowhere."""
        for branch in self._filters.pop(id).branches:
            place = self._root
            steps: list[tuple[Place[Id], Dimension, Constraint]] = []
            for dimension, constraint in self._path(branch):
                steps.append((place, dimension, constraint))
                place = place.tests[dimension].entries[constraint]
            place.ids.remove(id)
            for before, dimension, constraint in reversed(steps):
                if place.ids or place.tests:
                    break
                test = before.tests[dimension]
                test.remove(constraint)
                if not test.entries:
                    del before.tests[dimension]
                place = before

    def match(self, event: Mapping[str, object], mode: Mode = "overlaps") -> list[Id]:
        """Walk all paths that the event satisfies."""
        fields = fields_of(event)
        computed: dict[Expression, object] = {}  # several places may test the same
        matched: set[Id] = set()
        ahead = [self._root]
        while ahead:
            place = ahead.pop()
            matched |= place.ids
            for dimension, test in place.tests.items():
                if isinstance(dimension, str):
                    value = fields.get(dimension, MISSING)
                elif dimension in computed:
                    value = computed[dimension]
                else:
                    value = computed[dimension] = dimension.evaluate(fields)
                ahead += test.satisfied(value, mode)
        return list(matched)

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, id: object) -> bool:
        return id in self._filters
