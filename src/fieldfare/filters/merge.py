"""Merging: one branch for two, exactly where that is possible, and with known precision where it is not.

Two boxes make one box only if one holds the other or they differ along a single dimension. Everything else is
imperfect: the merger holds both and more, so it never loses an event but lets strangers pass. Its *precision* is the
share of what it lets through that somebody asked for, estimated from value statistics or, without any, as if values
were spread evenly over the range that the two filters speak of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from fieldfare.events.values import MISSING
from fieldfare.filters.automaton import TooComplex
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.intervals import Cut
from fieldfare.filters.strings import Language
from fieldfare.filters.valueset import ValueSet


class Statistics(Protocol):
    """What is known about the values of events."""

    def share(self, dimension: Dimension, wanted: Constraint, within: Constraint) -> float:
        """Of the events that satisfy `within`, the share that also satisfies `wanted` (a part of it): 0 to 1."""


@dataclass(frozen=True)
class Sample:
    """Statistics from events that were seen."""

    events: Sequence[Mapping[str, object]]

    def share(self, dimension: Dimension, wanted: Constraint, within: Constraint) -> float:
        """Counted; by the law of succession, so that a small sample never says never."""
        values = [
            fields.get(dimension, MISSING) if isinstance(dimension, str) else dimension.evaluate(fields)
            for fields in self.events
        ]
        inside = [value for value in values if within.matches(value)]
        return (sum(wanted.matches(value) for value in inside) + 1) / (len(inside) + 2) if wanted != within else 1.0


class Uniform:
    """No statistics: values are spread evenly over what the merger allows, clipped to the ends that it mentions."""

    def share(self, dimension: Dimension, wanted: Constraint, within: Constraint) -> float:
        """The ratio of sizes. A kind without size (lists, nulls, patterns, open ends) counts as one unit each."""
        if wanted == within:
            return 1.0
        ends = sorted({cut[0] for part in (wanted, within) for cut in _cuts(part.values)}, key=_place)
        low, high = (_place(ends[0]), _place(ends[-1])) if ends else (0.0, 0.0)
        whole = _size(within.values, low, high)
        return min(1.0, _size(wanted.values, low, high) / whole) if whole else 1.0


def _cuts(values: ValueSet) -> list[Cut]:
    return [cut for _, part in values.kinds() if not isinstance(part, Language) for cut in part.cuts]


def _place(value: object) -> float:
    """A position on a line for a value of any ordered kind; strings by their first eight characters."""
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, datetime):
        return value.timestamp()
    digits = (
        [ord(char) for char in value] if isinstance(value, str) else list(value) if isinstance(value, bytes) else []
    )
    return float(sum(digit / 128 ** (place + 1) for place, digit in enumerate(digits[:8])))


def _size(values: ValueSet, low: float, high: float) -> float:
    """Length of the ordered parts within [low, high], an open end reaching as far again; points are thin."""
    margin = (high - low) or 1.0
    thin = margin / 1000
    size = thin * values.atoms.bit_count()
    for _, part in values.kinds():
        if isinstance(part, Language):
            size += margin
            continue
        for left, right in part.pieces():
            start = low - margin if left is None else _place(left[0])
            end = high + margin if right is None else _place(right[0])
            size += max(thin, end - start)
    return size


@dataclass(frozen=True, slots=True)
class Merged:
    """What came of merging two branches."""

    branch: Branch
    precision: float
    """estimated share of what passes the merger that passes one of the two: 1 if exact"""
    exact: bool


def perfect(a: Branch, b: Branch) -> Branch | None:
    """The branch that is exactly the union of two, or None if no branch is."""
    if a.covers(b):
        return a
    if b.covers(a):
        return b
    differing = [dimension for dimension in a.keys() | b.keys() if a.on(dimension) != b.on(dimension)]
    if len(differing) != 1:
        return None
    return _joined(a, b, differing)


def _joined(a: Branch, b: Branch, dimensions: Sequence[Dimension]) -> Branch | None:
    """Branch a with the given sides stretched to hold b's."""
    sides = dict(a)
    for dimension in dimensions:
        try:
            union = a.on(dimension).union(b.on(dimension))
        except TooComplex:
            union = None
        if union is None:
            return None
        sides.pop(dimension, None)
        if not union.is_full:
            sides[dimension] = union
    return Branch(sides)


def imperfect(a: Branch, b: Branch, statistics: Statistics) -> Merged:
    """A branch that holds both: every side stretched, a dimension that only one of them constrains let go."""
    exact = perfect(a, b)
    if exact is not None:
        return Merged(exact, 1.0, True)
    sides: dict[Dimension, Constraint] = {}
    for dimension in a.keys() & b.keys():
        stretched = _joined(Branch({dimension: a[dimension]}), Branch({dimension: b[dimension]}), [dimension])
        if stretched is not None:
            sides.update(stretched)
    merger = Branch(sides)
    return Merged(merger, precision(merger, [a, b], statistics), False)


def precision(merger: Branch, parts: Sequence[Branch], statistics: Statistics) -> float:
    """The share of the merger that two branches fill, dimensions taken as independent."""

    def share(branch: Branch | None) -> float:
        product = 1.0
        for dimension in branch or ():
            assert branch is not None
            product *= statistics.share(dimension, branch[dimension], merger.on(dimension))
        return product if branch is not None else 0.0

    first, second = parts
    return min(1.0, share(first) + share(second) - share(first & second))
