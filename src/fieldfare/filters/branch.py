"""`Branch`: a conjunction of constraints, at most one for each dimension; and the normal form of a disjunction.

A branch is a box: the sides are the sets of allowed values along each dimension, and a dimension without a constraint
is unbounded. A filter is a union of boxes and is kept as *all the largest boxes inside that union* (the prime
implicants, found by consensus). Filters of equal meaning are then equal, and a box lies in the union exactly if the box
lies in a largest box: covering is exact without a look at two branches at once.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, Sequence, ValuesView
from typing import Final, TypeAlias

from fieldfare.events.values import MISSING
from fieldfare.filters import constraint, valueset
from fieldfare.filters.budget import spend
from fieldfare.filters.constraint import Constraint, Mode
from fieldfare.filters.expressions import UNCERTAIN, Expression
from fieldfare.filters.machines import TooComplex
from fieldfare.filters.sizes import steps

Dimension: TypeAlias = str | Expression
"""a field, by dotted path, or an expression over fields"""

MAX_BRANCHES: Final = 256
"""limit on the branches of a filter; a filter with more is refused"""
EFFORT: Final = 10_000
"""steps to complete the normal form; beyond, `covers` may miss a box that only several branches together cover"""


class Branch(Mapping[Dimension, Constraint]):
    """An immutable conjunction: a mapping from dimensions to constraints."""

    __slots__ = ("_constraints", "_hash")

    def __init__(self, constraints: Mapping[Dimension, Constraint]) -> None:
        """Take satisfiable constraints, none of which is full."""
        spend(2 + 2 * len(constraints))
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

    def items(self) -> ItemsView[Dimension, Constraint]:
        """Return dimensions with constraints; the views of `Mapping` are several times slower."""
        return self._constraints.items()

    def keys(self) -> KeysView[Dimension]:
        """Return the constrained dimensions, fields first, each group by name."""
        return self._constraints.keys()

    def values(self) -> ValuesView[Constraint]:
        """Return the constraints in the order of the dimensions."""
        return self._constraints.values()

    def on(self, dimension: Dimension) -> Constraint:
        """Return the constraint on a dimension; FULL if the branch has none."""
        return self._constraints.get(dimension, constraint.FULL)

    def matches(self, fields: Mapping[str, object], mode: Mode) -> bool:
        """Tell whether the fields of an event satisfy every constraint."""
        for dimension, wanted in self._constraints.items():  # noqa: SIM110 - `all` takes half as long again
            if not satisfied(dimension, wanted, fields, mode):
                return False
        return True

    def covers(self, other: Branch) -> bool:
        """Tell whether every event that satisfies the other branch satisfies this branch."""
        theirs = other._constraints
        for dimension, wanted in self._constraints.items():
            given = theirs.get(dimension)
            if (given is None or not wanted >= given) and not self._implied(dimension, wanted, other):
                return False
        return True

    @staticmethod
    def _implied(dimension: Dimension, wanted: Constraint, other: Branch) -> bool:
        """Tell whether a computed dimension is surely true because another computed dimension is true."""
        if isinstance(dimension, str) or not wanted.values >= valueset.TRUE:
            return False
        spend(2 + 2 * len(other))
        return any(
            isinstance(reason, Expression) and given.values == valueset.TRUE and reason.implies(dimension)
            for reason, given in other._constraints.items()
        )

    def overlaps(self, other: Branch) -> bool:
        """Tell whether some event can satisfy both branches; dimensions count as independent except for implications.

        An error is always a wrong "yes". The answer agrees with `covers`: a branch that does not overlap this branch
        overlaps no branch within.
        """
        theirs = other._constraints
        for dimension, wanted in self._constraints.items():
            given = theirs.get(dimension)
            if given is not None and not wanted.overlaps(given):
                return False
        return not (self._computes and other._computes and _contradictory((*self.items(), *other.items())))

    @property
    def _computes(self) -> bool:
        """Tell whether a dimension is computed; computed dimensions come last."""
        return bool(self._constraints) and not isinstance(next(reversed(self._constraints)), str)

    def __and__(self, other: Branch) -> Branch | None:
        """Return the conjunction, or None if no event can satisfy both branches."""
        joined = dict(self._constraints)
        for dimension, wanted in other._constraints.items():
            mine = joined.get(dimension)
            both = wanted if mine is None else mine & wanted
            if both.is_empty:
                return None
            joined[dimension] = both
        if self._computes and other._computes and _contradictory(joined.items()):
            return None
        return Branch(joined)

    def complement(self) -> Iterator[Branch]:
        """Yield the complement as branches: a branch for each constraint that can fail."""
        for dimension, wanted in self._constraints.items():
            for failing in wanted.complement():
                box = None if failing.is_empty else with_consequences({dimension: failing})
                if box is not None:
                    yield box

    def fields(self) -> Iterator[str]:
        """Yield the paths of all fields that the branch reads."""
        for dimension in self._constraints:
            yield from (dimension,) if isinstance(dimension, str) else dimension.fields()

    def __repr__(self) -> str:
        return f"Branch({self._constraints!r})"


def satisfied(dimension: Dimension, wanted: Constraint, fields: Mapping[str, object], mode: Mode) -> bool:
    """Tell whether the fields of an event satisfy a constraint on a dimension."""
    if isinstance(dimension, str):
        return wanted.matches(fields.get(dimension, MISSING), mode)
    value = dimension.evaluate(fields)
    if value is UNCERTAIN:  # some points may pass, but not surely all
        return mode == "overlaps"
    return wanted.matches(value, mode)


def with_consequences(sides: Mapping[Dimension, Constraint]) -> Branch | None:
    """Return the branch, closed under the consequences of its true expressions; None if the result is empty.

    An expression never stands without its consequences for single fields, so that a filter has a single form.
    """
    closed = dict(sides)
    for dimension, wanted in sides.items():
        if not isinstance(dimension, str) and wanted.values == valueset.TRUE:
            for field, sure in dimension.consequences().items():
                side = closed[field] & sure if field in closed else sure
                if side.is_empty:
                    return None
                closed[field] = side
    return None if _contradictory(closed.items()) else Branch(closed)


def _contradictory(sides: Iterable[tuple[Dimension, Constraint]]) -> bool:
    """Tell whether an expression that must be true implies an expression that must not."""
    computed = [(dimension, wanted.values) for dimension, wanted in sides if not isinstance(dimension, str)]
    if len(computed) < 2:
        return False
    denied = [dimension for dimension, values in computed if not values >= valueset.TRUE]
    spend(len(computed) * (2 + 2 * len(denied)))
    return any(
        dimension.implies(other) for dimension, values in computed if values == valueset.TRUE for other in denied
    )


def _order(item: tuple[Dimension, Constraint]) -> tuple[bool, str]:
    return _name(item[0])


def _name(dimension: Dimension) -> tuple[bool, str]:
    return (False, dimension) if isinstance(dimension, str) else (True, dimension.text)


def independent(some: Sequence[Branch], others: Sequence[Branch]) -> bool:
    """Tell whether two unions of boxes constrain disjoint dimensions; the largest boxes are then products.

    Expressions may imply each other, so at most one of the two unions may have expressions.
    """
    mine = {dimension for branch in some for dimension in branch}
    theirs = {dimension for branch in others for dimension in branch}
    return mine.isdisjoint(theirs) and (all(map(_is_field, mine)) or all(map(_is_field, theirs)))


def _is_field(dimension: Dimension) -> bool:
    return isinstance(dimension, str)


def normal_form(branches: Iterable[Branch]) -> list[Branch]:
    """Return the largest boxes in the union of the given boxes, unless the search takes more than `EFFORT` steps.

    The result does not depend on the order of the boxes, and the normal form of the result is the result: the text of a
    filter is read as the same filter, also where the effort does not suffice.
    """
    boxes = list(branches)
    while True:
        joined = _joined(boxes)
        if len(joined) > 4 * MAX_BRANCHES:
            return joined  # too many, whatever else: do not compare all with all
        kept = absorbed(joined)
        if len(kept) == len(boxes):  # nothing is left to be joined
            return _saturated(kept) or kept
        boxes = kept


def _joined(branches: Iterable[Branch]) -> list[Branch]:
    """Join branches that differ along a single dimension: `a = 1 OR a = 2 OR …` is a single box."""
    alike: dict[tuple[Dimension, ...], list[Branch]] = {}
    for branch in branches:
        alike.setdefault(tuple(branch.keys()), []).append(branch)
    return [box for dimensions, boxes in alike.items() for box in _joined_alike(dimensions, boxes)]


def _joined_alike(dimensions: tuple[Dimension, ...], boxes: list[Branch]) -> list[Branch]:
    """Join branches that constrain the same dimensions."""
    if len(boxes) == 1:
        return boxes
    boxes = list(dict.fromkeys(boxes))
    for dimension in dimensions if len(boxes) > 1 else ():
        groups: dict[tuple[tuple[Dimension, Constraint], ...], list[Branch]] = {}
        for box in boxes:
            rest = tuple(item for item in box.items() if item[0] != dimension)
            groups.setdefault(rest, []).append(box)
        boxes = [box for rest, group in groups.items() for box in _along(dimension, rest, group)]
    return boxes


def _along(
    dimension: Dimension, rest: tuple[tuple[Dimension, Constraint], ...], group: list[Branch]
) -> Iterator[Branch]:
    """Yield the union of boxes that differ only along a dimension; boxes without a joint form stay apart."""
    sides = [box.on(dimension) for box in group]
    while len(sides) > 1:
        pairs = [_union(*pair) for pair in zip(sides[::2], sides[1::2], strict=False)]
        if None in pairs:
            break  # lists or complex patterns; consensus will find possible joins
        sides = [side for side in pairs if side is not None] + (sides[-1:] if len(sides) % 2 else [])
    if len(sides) == 1:
        yield Branch(dict(rest) if sides[0].is_full else {**dict(rest), dimension: sides[0]})
    else:
        yield from group


def _union(a: Constraint, b: Constraint) -> Constraint | None:
    try:
        return a.union(b)
    except TooComplex:
        return None


def absorbed(branches: Iterable[Branch], known: Sequence[Branch] = ()) -> list[Branch]:
    """Add branches to some of which none covers another, and drop every branch that another branch covers."""
    kept = list(known)
    for branch in branches:
        spend(2 + 2 * len(kept))
        if not any(other.covers(branch) for other in kept):
            kept = [other for other in kept if not branch.covers(other)]
            kept.append(branch)
    return kept


def _saturated(branches: list[Branch]) -> list[Branch] | None:
    """Add consensus boxes until there is nothing to add, or return None if that takes too long.

    Each round looks at all pairs with a new box: the effort depends on the boxes alone, and not on their order.
    """
    kept, fresh, effort = branches, branches, 0
    while fresh:
        new = set(map(id, fresh))
        costs = {id(box): {dimension: steps(side) for dimension, side in box.items()} for box in kept}
        pairs = [(a, b) for i, a in enumerate(kept) for b in kept[:i] if id(a) in new or id(b) in new]
        cost = sum(_effort(costs[id(a)], costs[id(b)]) for a, b in pairs)
        effort += cost
        if effort > EFFORT:
            return None
        spend(cost)
        found = [box for a, b in pairs for box in _consensus(a, b)]
        if not found:
            return kept
        effort += len(found) * len(kept) // 4
        if effort > EFFORT:
            return None
        known = set(map(id, kept))
        kept = absorbed(found, kept)
        fresh = [box for box in kept if id(box) not in known]
    return kept


def _effort(some: Mapping[Dimension, int], others: Mapping[Dimension, int]) -> int:
    """Return the steps to find the consensus of two boxes, given the steps for each side."""
    return 1 + sum(cost + others[dimension] for dimension, cost in some.items() if dimension in others)


def _consensus(a: Branch, b: Branch) -> Iterator[Branch]:
    """Yield the boxes that reach from a into b along a dimension and lie in both along all others."""
    shared = [dimension for dimension in a.keys() if dimension in b.keys()]  # noqa: SIM118 - of a dict, not a Mapping
    sides = dict([*a.items(), *b.items()])
    apart: list[Dimension] = []  # disjoint sides, or sides whose intersection is too complex
    for dimension in shared:
        both = _intersection(a[dimension], b[dimension])
        if both is None or both.is_empty:
            apart.append(dimension)
        else:
            sides[dimension] = both
    for dimension in () if len(apart) > 1 else apart or shared:
        others = {other: side for other, side in sides.items() if other != dimension}
        for joined in _joins(a[dimension], b[dimension]):
            box = with_consequences(others if joined.is_full else {**others, dimension: joined})
            if box is not None:
                yield box


def _intersection(a: Constraint, b: Constraint) -> Constraint | None:
    try:
        return a & b
    except TooComplex:
        return None


def _joins(a: Constraint, b: Constraint) -> list[Constraint]:
    """Return the constraints that reach from a into b; a constraint that holds the other reaches nowhere new."""
    try:
        return [joined for joined in a.joins(b) if joined is not a and joined is not b]
    except TooComplex:
        return []
