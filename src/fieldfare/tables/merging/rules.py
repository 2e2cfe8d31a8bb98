"""Rules of merging without tables: may two filters become a single filter, and which pairs are worth trying?

The union of two boxes is a box only if the boxes agree in all fields but one. So not all pairs need a try: filters are
stored under their remainders without a field, and the partners of a filter are found under its own remainders, with a
single look-up for each field. Filters of several branches, or with computed dimensions, follow no such rule (three
corners of a square merge with the fourth, and agree with the fourth in nothing): they are compared with all.

A merger may also hold more than its parts. Its *waste* is the share of passing events that no part matches, as
statistics of values expect. The estimate is never too low, as far as the statistics are right and fields independent.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Final, Literal, NamedTuple, TypeAlias

from fieldfare.filters.branch import Branch
from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.filter import Filter
from fieldfare.filters.statistics import Statistics, Uniform
from fieldfare.filters.strings import Language
from fieldfare.filters.valueset import ValueSet

Keys: TypeAlias = tuple[Hashable, ...]


class MergeResult(NamedTuple):
    """A merged filter and its waste."""

    filter: Filter
    waste: float = 0.0


@dataclass(frozen=True, slots=True)
class Merging:
    """The options of merging. The default is perfect, and exact when a part leaves."""

    choice: Literal["first", "best", "none"] = "first"
    """take the first partner that merges; the partner with the least waste and the simplest, widest result; or none"""
    cascade: bool = True
    """let a merger look for partners in its turn, until no two exported filters merge; the thesis does not"""
    imperfect: bool = False
    """also merge filters on the same fields that differ in several fields, if the waste is within the budget"""
    lazy: bool = False
    """keep a merger after some of its parts have left, while the waste is within the budget"""
    budget: float = 0.0
    """the largest waste of a merger, 0 to 1"""
    patience: int | None = None
    """number of reported unwanted events before a merger with waste is made anew; None: never"""
    statistics: Statistics = field(default_factory=Uniform)
    search: Literal["keys", "scan"] = "keys"
    """find partners by shared parts, or try all: the slow twin, with the same results"""

    def join(self, a: MergeResult, b: MergeResult) -> MergeResult | None:
        """Return the merger of two filters, each with its present waste; None if they do not merge."""
        exact = _perfect(a.filter, b.filter)
        if exact is not None:
            return self._within(exact, 0.0, (a, b))
        if self.imperfect and _fields(a.filter) is not None and _fields(a.filter) == _fields(b.filter):
            merger = a.filter.merge_imperfect(b.filter, self.statistics)
            return self._within(merger.filter, 1.0 - merger.precision, (a, b))
        return None

    def union(self, filters: Sequence[Filter]) -> MergeResult | None:
        """Return a merger of many filters at once, where quickly found; None does not mean that no merger exists."""
        if agree_but_one(filters):
            try:
                union = Filter(branch for filter in filters for branch in filter.branches)
            except FilterTooComplex:
                return None
            return MergeResult(union) if len(union.branches) == 1 else None
        if not self.imperfect:
            return None
        all_so_far: MergeResult | None = MergeResult(filters[0])
        for filter in filters[1:]:
            all_so_far = all_so_far and self.join(all_so_far, MergeResult(filter))
        return all_so_far

    def keys(self, filter: Filter) -> Keys | None:
        """Return the keys under which the partners of a filter are found; None if all must be tried."""
        if self.search == "scan":
            return None
        fields = _fields(filter)
        if fields is None or self.imperfect:
            return None if fields is None else (fields,)
        (branch,) = filter.branches
        return tuple(_all_but_one(branch))

    def _within(self, merger: Filter, new_waste: float, parts: Sequence[MergeResult]) -> MergeResult | None:
        """Return the merger, unless new and old waste exceed the budget."""
        old = sum(part.waste * share(part.filter, merger, self.statistics) for part in parts if part.waste)
        waste = min(1.0, new_waste + old)
        return MergeResult(merger, waste) if waste <= self.budget else None


PERFECT: Final = Merging()
APART: Final = Merging(choice="none")
"""no merging at all"""


class Partners:
    """Filters, found again by a filter with which they may merge.

    Only filters that surely do not merge are left out.
    """

    def __init__(self, keys: Callable[[Filter], Keys | None]) -> None:
        """Make an empty collection; `keys` returns the keys of a filter's partners."""
        self._keys = keys
        self._all: dict[Filter, Keys | None] = {}
        self._loose: dict[Filter, None] = {}
        self._found: dict[Hashable, dict[Filter, None]] = {}

    def add(self, filter: Filter) -> None:
        """Add a filter under all its keys."""
        keys = self._all[filter] = self._keys(filter)
        if keys is None:
            self._loose[filter] = None
        for key in keys or ():
            self._found.setdefault(key, {})[filter] = None

    def remove(self, filter: Filter) -> None:
        """Remove a filter from all its keys."""
        keys = self._all.pop(filter)
        if keys is None:
            del self._loose[filter]
        for key in keys or ():
            bucket = self._found[key]
            del bucket[filter]
            if not bucket:
                del self._found[key]

    def of(self, filter: Filter) -> list[Filter]:
        """Return the filters that may merge with a given filter, in no particular order."""
        keys = self._keys(filter)
        if keys is None:
            return list(self._all)
        found = dict(self._loose)
        for key in keys:
            found.update(self._found.get(key, {}))
        return list(found)


def share(part: Filter, whole: Filter, statistics: Statistics) -> float:
    """Return the share of a whole that a part fills: an upper bound, because overlapping branches count twice."""
    total = 0.0
    for branch in part.branches:
        home = next((larger for larger in whole.branches if larger.covers(branch)), None)
        if home is None:
            return 1.0
        total += prod(statistics.share(dimension, side, home.on(dimension)) for dimension, side in branch.items())
    return min(1.0, total)


def weight(filter: Filter) -> tuple[int, int, int]:
    """Return the complexity of a filter: branches, constraints, pieces of sets.

    A simple filter is likelier to merge again.
    """
    sides = [side.values for branch in filter.branches for side in branch.values()]
    return len(filter.branches), len(sides), sum(min(_pieces(side), _pieces(~side)) for side in sides)


def _pieces(values: ValueSet) -> int:
    """Count the intervals and single values of a set. A set of patterns counts as a single piece."""
    parts = (1 if isinstance(part, Language) else len(list(part.pieces())) for _, part in values.kinds())
    return values.atoms.bit_count() + sum(parts)


def agree_but_one(filters: Sequence[Filter]) -> bool:
    """Tell whether all filters have a single branch over plain fields, and agree in all fields but one."""
    shared: set[Hashable] | None = None
    for filter in filters:
        if _fields(filter) is None:
            return False
        keys = set(_all_but_one(filter.branches[0]))
        shared = keys if shared is None else shared & keys
        if not shared:
            return False
    return True


def _perfect(a: Filter, b: Filter) -> Filter | None:
    try:
        return a.merge(b)
    except FilterTooComplex:
        return None


def _fields(filter: Filter) -> tuple[str, ...] | None:
    """Return the fields of a filter with a single branch and nothing computed, else None."""
    if len(filter.branches) != 1:
        return None
    names = tuple(dimension for dimension in filter.branches[0] if isinstance(dimension, str))
    return names if len(names) == len(filter.branches[0]) else None


def _all_but_one(branch: Branch) -> Iterator[Hashable]:
    """Yield the branch without a field, for each field, with the name of the field."""
    items = tuple(branch.items())
    for i, (dimension, _) in enumerate(items):
        yield dimension, items[:i] + items[i + 1 :]
