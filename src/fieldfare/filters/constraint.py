"""`Constraint`: the demand of a branch on a single field, lists included.

For most fields a constraint is a `ValueSet`. A list needs more: `ANY tags = 'a'` demands some element in a set, `ALL
scores >= 50` demands every element in a set, and both can be combined. A list passes if every element is in `every` and
each set of `some` contains an element. Membership, intersection, covering and overlap stay exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from fieldfare.filters import valueset
from fieldfare.filters.budget import spend
from fieldfare.filters.machines import TooComplex
from fieldfare.filters.valueset import Atom, ValueSet

Mode: TypeAlias = Literal["overlaps", "covers"]
"""How an interval in an event is read: "overlaps" asks for some point inside the filter, "covers" for all points."""

ELEMENTS: Final = valueset.PRESENT - ValueSet(atoms=Atom.LIST)
"""the values that can be elements of a list; lists within lists are looked through"""

MAX_HITS: Final = 128
"""sets of which a list must contain an element each; each set is compared with each"""


@dataclass(frozen=True, slots=True)
class Constraint:
    """A set of values; lists in the set are restricted further by conditions on their elements.

    >>> tags = any_of(valueset.one_of(["a"]))
    >>> tags.matches(("a", "b")), tags.matches("a"), tags.matches(())
    (True, True, False)
    """

    values: ValueSet
    every: ValueSet = ELEMENTS
    some: frozenset[ValueSet] = frozenset()

    @property
    def is_empty(self) -> bool:
        """Tell whether no value satisfies the constraint."""
        return self.values.is_empty

    @property
    def is_full(self) -> bool:
        """Tell whether every value satisfies the constraint, and absence too."""
        return self.values.is_full and self.is_plain

    @property
    def is_plain(self) -> bool:
        """Tell whether the constraint is a value set without conditions on elements."""
        return not self.some and (self.every is ELEMENTS or self.every == ELEMENTS)

    @property
    def takes_lists(self) -> bool:
        """Tell whether some list may satisfy the constraint."""
        return self.values.atoms & Atom.LIST != 0

    def matches(self, value: object, mode: Mode = "overlaps") -> bool:
        """Tell whether the value, or `MISSING`, satisfies the constraint."""
        test = ValueSet.meets if mode == "overlaps" else ValueSet.holds
        if isinstance(value, (tuple, list)):
            return (
                self.takes_lists
                and (self.every is ELEMENTS or all(test(self.every, element) for element in value))
                and all(any(test(wanted, element) for element in value) for wanted in self.some)
            )
        return test(self.values, value)

    def __and__(self, other: Constraint) -> Constraint:
        if self is other:
            return self
        values = self.values & other.values
        if self.is_plain and other.is_plain:
            return Constraint(values)
        return _normal(values, self.every & other.every, [*self.some, *other.some])

    def __ge__(self, other: Constraint) -> bool:
        return self is other or (self.values >= other.values and (not other.takes_lists or self._lists_cover(other)))

    def _lists_cover(self, other: Constraint) -> bool:
        """Tell whether every list that passes `other` passes here too.

        The elements must be confined at least as far, and every demanded element must be sure to occur.
        """
        return self.every >= other.every and all(any(wanted >= sure for sure in other.some) for wanted in self.some)

    def overlaps(self, other: Constraint) -> bool:
        """Tell whether some value satisfies both constraints."""
        if self.is_plain and other.is_plain:
            return self.values.overlaps(other.values)
        return not (self & other).is_empty

    def union(self, other: Constraint) -> Constraint | None:
        """Return the union as a constraint, or None if conditions on lists exceed a single constraint."""
        if self >= other:
            return self
        if other >= self:
            return other
        values = self.values | other.values
        if not other.takes_lists or (self.takes_lists and self._lists_cover(other)):
            return Constraint(values, self.every, self.some)
        if not self.takes_lists or other._lists_cover(self):
            return Constraint(values, other.every, other.some)
        mine, theirs = self.some - other.some, other.some - self.some
        if self.every == other.every and len(mine) == len(theirs) == 1:
            (a,), (b,) = mine, theirs
            return _normal(values, self.every, [*(self.some & other.some), a | b])
        for hit, confined in ((self, other), (other, self)):
            if len(hit.some) == 1 and not confined.some and hit.every >= confined.every:
                (wanted,) = hit.some
                if wanted | confined.every >= hit.every:  # a list without a hit is confined to the rest
                    return _normal(values, hit.every, [])
        return None

    def joins(self, other: Constraint) -> list[Constraint]:
        """Return the largest constraints in the union: the union, or all single values with the lists of a side."""
        union = self.union(other)
        if union is not None:
            return [union]
        values = self.values | other.values
        return [Constraint(values, side.every, side.some) for side in (self, other)]

    def complement(self) -> list[Constraint]:
        """Return the complement as alternatives: a list fails by a stray element or by a missing demanded element."""
        rest = ~self.values
        if not self.takes_lists or self.is_plain:
            return [Constraint(rest)]
        lists = ValueSet(atoms=Atom.LIST)
        ways: list[tuple[ValueSet, list[ValueSet]]] = [(ELEMENTS - wanted, []) for wanted in self.some]
        if self.every != ELEMENTS:
            ways.append((ELEMENTS, [ELEMENTS - self.every]))
        first, *others = ways
        return [_normal(rest | lists, *first), *(_normal(lists, *way) for way in others)]


def _normal(values: ValueSet, every: ValueSet, some: Iterable[ValueSet]) -> Constraint:
    """Return the normal form: demanded sets within `every`, the smallest only; no lists if a demand is impossible."""
    if not values.atoms & Atom.LIST:
        return Constraint(values)
    hits = {wanted & every for wanted in some}
    if len(hits) > MAX_HITS:
        raise TooComplex(f"a list with more than {MAX_HITS} different elements is wanted")
    spend(4 + len(hits) * len(hits))
    if valueset.EMPTY in hits:
        return Constraint(values - ValueSet(atoms=Atom.LIST))
    least = frozenset(hit for hit in hits if not any(other != hit and hit >= other for other in hits))
    return Constraint(values, every, least)


def any_of(values: ValueSet) -> Constraint:
    """Return the constraint that the field, or some element of a list in the field, lies in the set."""
    elements = values & ELEMENTS
    return _normal(elements | ValueSet(atoms=Atom.LIST), ELEMENTS, [elements])


def all_of(values: ValueSet) -> Constraint:
    """Return the constraint that the field, or every element of a list in the field, lies in the set."""
    elements = values & ELEMENTS
    return _normal(elements | ValueSet(atoms=Atom.LIST), elements, [])


FULL: Final = Constraint(valueset.FULL)
EMPTY: Final = Constraint(valueset.EMPTY)
PRESENT: Final = Constraint(valueset.PRESENT)
ABSENT: Final = Constraint(valueset.ABSENT)
