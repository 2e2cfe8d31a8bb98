"""Mergers: one branch for two, exactly where that is possible, and with known precision where it is not.

Two boxes make one box only if one holds the other or they differ along a single dimension. Every other merger is
*imperfect*: a merger that holds both boxes and more never loses an event, but lets other events pass. The *precision*
of a merger is the share of the events it lets pass that one of the two filters accepts, estimated from `statistics`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.machines import TooComplex
from fieldfare.filters.statistics import Statistics


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
