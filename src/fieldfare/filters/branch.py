"""`Branch`: a conjunction of constraints, one for each dimension; and the normal form of a disjunction of them.

A branch is a box: its sides are the sets of values it allows along each dimension, and a dimension it does not mention
is unbounded. A filter is a union of boxes, and it is kept as *all the largest boxes inside that union* (its prime
implicants, found by consensus). Then two filters that mean the same are the same, and a box lies in the union just if
it lies in one of those boxes: covering is exact without ever looking at two branches at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, TypeAlias

from fieldfare.events.values import MISSING
from fieldfare.filters import constraint, valueset
from fieldfare.filters.automaton import TooComplex
from fieldfare.filters.constraint import Constraint, Mode
from fieldfare.filters.expressions import UNCERTAIN, Expression

Dimension: TypeAlias = str | Expression
"""a field, by its dotted path, or something computed from fields"""

MAX_BRANCHES: Final = 256
"""a filter with more is refused"""
SATURATION: Final = 32
"""up to so many branches the normal form is complete; beyond, covering may miss that several branches cover jointly"""


class Branch(Mapping[Dimension, Constraint]):
    """An immutable conjunction: for each dimension the constraint on it."""

    __slots__ = ("_constraints", "_hash")

    def __init__(self, constraints: Mapping[Dimension, Constraint]) -> None:
        """Take satisfiable constraints, none of them full."""
        ordered = sorted(constraints.items(), key=_order) if len(constraints) > 1 else constraints.items()
        self._constraints = dict(ordered)
        self._hash: int | None = None

    def __getitem__(self, dimension: Dimension) -> Constraint:
        return self._constraints[dimension]

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self._constraints)

    def __len__(self) -> int:
        return len(self._constraints)

    def __eq__(self, other: object) -> bool:
        return self._constraints == other._constraints if isinstance(other, Branch) else NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(tuple(self._constraints.items()))
        return self._hash

    def on(self, dimension: Dimension) -> Constraint:
        """What it demands of a dimension; FULL for one it does not mention."""
        return self._constraints.get(dimension, constraint.FULL)

    def matches(self, fields: Mapping[str, object], mode: Mode) -> bool:
        """Do the fields of an event satisfy every constraint?"""
        for dimension, wanted in self._constraints.items():
            if isinstance(dimension, str):
                if not wanted.matches(fields.get(dimension, MISSING), mode):
                    return False
            else:
                value = dimension.evaluate(fields)
                if value is UNCERTAIN:
                    if mode == "covers":
                        return False
                elif not wanted.matches(value, mode):
                    return False
        return True

    def covers(self, other: Branch) -> bool:
        """Does everything that satisfies the other satisfy this?"""
        theirs = other._constraints
        for dimension, wanted in self._constraints.items():
            given = theirs.get(dimension)
            if (given is None or not wanted >= given) and not self._implied(dimension, wanted, other):
                return False
        return True

    @staticmethod
    def _implied(dimension: Dimension, wanted: Constraint, other: Branch) -> bool:
        """Is a computed dimension surely true because another one is?"""
        return (
            isinstance(dimension, Expression)
            and wanted.values >= valueset.TRUE
            and any(
                isinstance(reason, Expression) and given.values == valueset.TRUE and reason.implies(dimension)
                for reason, given in other._constraints.items()
            )
        )

    def overlaps(self, other: Branch) -> bool:
        """Can something satisfy both? Dimensions are taken as independent, which errs towards yes."""
        theirs = other._constraints
        return all(
            wanted.overlaps(theirs[dimension])
            for dimension, wanted in self._constraints.items()
            if dimension in theirs
        )

    def __and__(self, other: Branch) -> Branch | None:
        """Both, or None if nothing can satisfy both."""
        joined = dict(self._constraints)
        for dimension, wanted in other._constraints.items():
            mine = joined.get(dimension)
            if mine is not None:
                wanted = mine & wanted
                if wanted.is_empty:
                    return None
            joined[dimension] = wanted
        return Branch(joined)

    def complement(self) -> Iterator[Branch]:
        """What does not satisfy it: one branch for each constraint that can fail."""
        for dimension, wanted in self._constraints.items():
            for failing in wanted.complement():
                if not failing.is_empty:
                    yield Branch({dimension: failing})

    def fields(self) -> Iterator[str]:
        """The paths of the fields it looks at."""
        for dimension in self._constraints:
            yield from (dimension,) if isinstance(dimension, str) else dimension.fields()

    def __repr__(self) -> str:
        return f"Branch({self._constraints!r})"


def _order(item: tuple[Dimension, Constraint]) -> tuple[bool, str]:
    dimension = item[0]
    return (False, dimension) if isinstance(dimension, str) else (True, dimension.text)


def normal_form(branches: Iterable[Branch]) -> list[Branch]:
    """The largest boxes in the union of the given ones; at most `SATURATION` boxes are saturated, see there."""
    largest = absorbed(branches)
    if not 1 < len(largest) <= SATURATION:
        return largest
    saturated = _saturated(largest)
    return largest if saturated is None else saturated


def absorbed(branches: Iterable[Branch]) -> list[Branch]:
    """Those that no other covers; of several that cover each other, the first."""
    kept: list[Branch] = []
    for branch in branches:
        if not any(other.covers(branch) for other in kept):
            kept = [other for other in kept if not branch.covers(other)]
            kept.append(branch)
    return kept


def _saturated(branches: list[Branch]) -> list[Branch] | None:
    """Add consensus boxes until there is nothing to add, or None if there are too many."""
    kept = list(branches)
    queue = [(a, b) for i, a in enumerate(kept) for b in kept[:i]]
    while queue:
        a, b = queue.pop()
        if a not in kept or b not in kept:
            continue  # absorbed meanwhile, and with it all its consensus
        for found in _consensus(a, b):
            if any(other.covers(found) for other in kept):
                continue
            kept = [other for other in kept if not found.covers(other)]
            if len(kept) >= 4 * SATURATION:
                return None
            queue.extend((found, other) for other in kept)
            kept.append(found)
    return kept


def _consensus(a: Branch, b: Branch) -> Iterator[Branch]:
    """The boxes that reach from a into b along one dimension and lie in both along all others."""
    for dimension in a.keys() & b.keys():
        try:
            joined = a[dimension].union(b[dimension])
            if joined is None:
                continue
            sides: dict[Dimension, Constraint] = {} if joined.is_full else {dimension: joined}
            for other in (a.keys() | b.keys()) - {dimension}:
                side = a.on(other) & b.on(other)
                if side.is_empty:
                    break
                sides[other] = side
            else:
                yield Branch(sides)
        except TooComplex:
            continue
