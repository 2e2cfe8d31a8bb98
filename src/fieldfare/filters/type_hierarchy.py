"""Filters on a class of event types: events whose type is a class or a subclass.

The type of an event is a field, and a class is the set of the names of all its subclasses. Covering and merging of
classes therefore follow from the algebra of sets, without rules of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fieldfare.filters import valueset
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter


def instance_of(hierarchy: Mapping[str, Iterable[str]], name: str, field: str = "type") -> Filter:
    """Return the filter for events of a class, given the direct subclasses of each class that has some.

    >>> print(instance_of({"quote": ["stock quote", "bond quote"], "stock quote": ["IPO"]}, "stock quote"))
    type IN ('IPO', 'stock quote')
    """
    subclasses = {above: list(below) for above, below in hierarchy.items()}
    if name not in subclasses and not any(name in below for below in subclasses.values()):
        raise ValueError(f"there is no class {name!r} in the hierarchy")
    names = [name]
    for above in names:
        names += [below for below in subclasses.get(above, ()) if below not in names]
    return Filter.where(field, Constraint(valueset.one_of(names)))
