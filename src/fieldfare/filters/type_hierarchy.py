"""Class filters: events whose type is a class or one below it.

The type of an event is a field, and a class is the set of the names of all its subclasses. So a class covers what is
assignable to it and merges with its siblings by the algebra of sets; nothing here needs to know about either.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from fieldfare.filters import valueset
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter


def instance_of(hierarchy: Mapping[str, Iterable[str]], name: str, field: str = "type") -> Filter:
    """Events of a class, given the direct subclasses of each class that has some.

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
