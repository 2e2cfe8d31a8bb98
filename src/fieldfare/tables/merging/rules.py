"""Merging, the part that knows no table: may two filters become one, and which ones are worth trying?

Two boxes are exactly one box only if they agree in all fields but one. So nobody has to try all pairs: filters are kept
under what remains of them when one field is left out, and those that can merge with a given one are found where that
lies, at one look for each of its fields. Filters of several branches, or with computed dimensions, follow no such rule
(three corners of a square merge with the fourth, and agree with it in nothing): they are compared with all.

A merger may also hold more than its parts. How much more is its *waste*: the share of the events it lets pass that
nobody asked for, as statistics of values expect it. It is never estimated too low, as far as the statistics are right
and fields independent.
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
    """A merger and its waste."""

    filter: Filter
    waste: float = 0.0


@dataclass(frozen=True, slots=True)
class Merging:
    """How to merge. The default is perfect, and exact when a part leaves."""

    choice: Literal["first", "best", "none"] = "first"
    """take the first partner that merges, or the one with the least waste and the simplest, widest result, or none"""
    cascade: bool = True
    """let a merger look for partners in its turn, until no two exported filters merge; the thesis does not"""
    imperfect: bool = False
    """also merge filters that look at the same fields but differ in several, if the waste is within the budget"""
    lazy: bool = False
    """keep a merger some of whose parts have left, while the waste is within the budget"""
    budget: float = 0.0
    """the largest waste of a merger, 0 to 1"""
    patience: int | None = None
    """unwanted events reported before a merger with waste is made anew; None: however many"""
    statistics: Statistics = field(default_factory=Uniform)
    search: Literal["keys", "scan"] = "keys"
    """find partners by what they share, or try all: the obvious twin, with the same results"""

    def join(self, a: MergeResult, b: MergeResult) -> MergeResult | None:
        """The merger of two filters, each with the waste it has already, or None."""
        exact = _perfect(a.filter, b.filter)
        if exact is not None:
            return self._within(exact, 0.0, (a, b))
        if self.imperfect and _fields(a.filter) is not None and _fields(a.filter) == _fields(b.filter):
            merger = a.filter.merge_imperfect(b.filter, self.statistics)
            return self._within(merger.filter, 1.0 - merger.precision, (a, b))
        return None

    def union(self, filters: Sequence[Filter]) -> MergeResult | None:
        """One merger of many filters at once, where that is quickly found; None does not mean that there is none."""
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
        """Where to look for its partners; None if all must be tried."""
        if self.search == "scan":
            return None
        fields = _fields(filter)
        if fields is None or self.imperfect:
            return None if fields is None else (fields,)
        (branch,) = filter.branches
        return tuple(_all_but_one(branch))

    def _within(self, merger: Filter, new_waste: float, parts: Sequence[MergeResult]) -> MergeResult | None:
        """The merger, unless new and old waste exceed the budget."""
        old = sum(part.waste * share(part.filter, merger, self.statistics) for part in parts if part.waste)
        waste = min(1.0, new_waste + old)
        return MergeResult(merger, waste) if waste <= self.budget else None


PERFECT: Final = Merging()
APART: Final = Merging(choice="none")
"""no merging at all"""


class Partners:
    """Filters, found again by one with which they may merge. It leaves out only those that surely do not."""

    def __init__(self, keys: Callable[[Filter], Keys | None]) -> None:
        """No filters yet; `keys` says where to look for the partners of one."""
        self._keys = keys
        self._all: dict[Filter, Keys | None] = {}
        self._loose: dict[Filter, None] = {}
        self._found: dict[Hashable, dict[Filter, None]] = {}

    def add(self, filter: Filter) -> None:
        """Let it be found."""
        keys = self._all[filter] = self._keys(filter)
        if keys is None:
            self._loose[filter] = None
        for key in keys or ():
            self._found.setdefault(key, {})[filter] = None

    def remove(self, filter: Filter) -> None:
        """Let it be found no more."""
        keys = self._all.pop(filter)
        if keys is None:
            del self._loose[filter]
        for key in keys or ():
            bucket = self._found[key]
            del bucket[filter]
            if not bucket:
                del self._found[key]

    def of(self, filter: Filter) -> list[Filter]:
        """Those that may merge with a filter, in no particular order."""
        keys = self._keys(filter)
        if keys is None:
            return list(self._all)
        found = dict(self._loose)
        for key in keys:
            found.update(self._found.get(key, {}))
        return list(found)


def share(part: Filter, whole: Filter, statistics: Statistics) -> float:
    """The share of a whole that a part of it fills: at most this, since where branches meet, they count twice."""
    total = 0.0
    for branch in part.branches:
        home = next((larger for larger in whole.branches if larger.covers(branch)), None)
        if home is None:
            return 1.0
        total += prod(statistics.share(dimension, side, home.on(dimension)) for dimension, side in branch.items())
    return min(1.0, total)


def weight(filter: Filter) -> tuple[int, int, int]:
    """How complicated a filter is: branches, constraints, pieces of sets. The less so, the likelier it merges again."""
    sides = [side.values for branch in filter.branches for side in branch.values()]
    return len(filter.branches), len(sides), sum(min(_pieces(side), _pieces(~side)) for side in sides)


def _pieces(values: ValueSet) -> int:
    """Of how many intervals and single values does a set consist? A set of patterns is one."""
    parts = (1 if isinstance(part, Language) else len(list(part.pieces())) for _, part in values.kinds())
    return values.atoms.bit_count() + sum(parts)


def agree_but_one(filters: Sequence[Filter]) -> bool:
    """Have all a single branch over plain fields, and agree in all fields but one?"""
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
    """The fields of a filter with a single branch and nothing computed, else None."""
    if len(filter.branches) != 1:
        return None
    names = tuple(dimension for dimension in filter.branches[0] if isinstance(dimension, str))
    return names if len(names) == len(filter.branches[0]) else None


def _all_but_one(branch: Branch) -> Iterator[Hashable]:
    """The branch without one field, for each of them, and the name of that field."""
    items = tuple(branch.items())
    for i, (dimension, _) in enumerate(items):
        yield dimension, items[:i] + items[i + 1 :]
