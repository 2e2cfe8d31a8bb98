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
    """A branch that covers two others, with precision."""

    branch: Branch
    precision: float
    """estimated share of the events in the merger that satisfy one of the two branches: 1 if exact"""
    exact: bool


def perfect(a: Branch, b: Branch) -> Branch | None:
    """Return the branch that is exactly the union of two branches, or None if there is none."""
    if a.covers(b):
        return a
    if b.covers(a):
        return b
    differing = [dimension for dimension in a.keys() | b.keys() if a.on(dimension) != b.on(dimension)]
    if len(differing) != 1:
        return None
    return _joined(a, b, differing)


def _joined(a: Branch, b: Branch, dimensions: Sequence[Dimension]) -> Branch | None:
    """Return branch a with the given sides extended to the union with the sides of b."""
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
    """Return a branch that covers both: shared sides extended, and dimensions of a single branch dropped."""
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
    """Return the share of the merger that two branches fill; dimensions count as independent."""

    def share(branch: Branch | None) -> float:
        product = 1.0
        for dimension in branch or ():
            assert branch is not None
            product *= statistics.share(dimension, branch[dimension], merger.on(dimension))
        return product if branch is not None else 0.0

    first, second = parts
    return min(1.0, share(first) + share(second) - share(first & second))
