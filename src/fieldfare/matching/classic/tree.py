"""Decision tree: follow the event from the root to every filter it matches.

A node tests one dimension. Its edges carry the constraints that filters put on it, and the don't-care edge leads the
filters without one to the next test. The path of a branch is its constraints in a fixed order of the dimensions, and
the filter stands where the path ends. Matching goes depth first along *every* edge that the event satisfies; whatever
stands on the way matches.

    symbol ─── = 'IBM' ──→ price ─── < 15 ──→ F1
       │                     └────── < 12 ──→ F2
       └ don't care ─→ volume ─── > 1000000 ──→ F3

Paths that begin alike share their nodes, so put the most telling fields first. Nodes in a row of don't-care edges are
stored as one `Place`: reaching the first of them is reaching them all.
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
    """Where a path has led: filters that end here, and the tests that follow, one for each dimension."""

    __slots__ = ("ids", "tests")

    def __init__(self) -> None:
        self.ids: set[Id] = set()
        self.tests: dict[Dimension, ValueIndex[Place[Id]]] = {}


class DecisionTree(Matcher[Id]):
    """The matcher that walks a tree of tests.

    Args:
        order: the fields to test first; all others follow by name, and what is computed comes last.

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
        """The constraints of a branch in the order in which the tree tests them."""

        def order(item: tuple[Dimension, Constraint]) -> tuple[int, bool, str]:
            name = str(item[0])
            computed = isinstance(item[0], Expression)
            return len(self._ranks) if computed else self._ranks.get(name, len(self._ranks)), computed, name

        return sorted(branch.items(), key=order)

    def add(self, id: Id, filter: Filter | str) -> None:
        """Lay a path for each branch, over places that are there already as far as possible."""
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
        """Go its paths again, and cut off behind it what leads nowhere any more."""
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
