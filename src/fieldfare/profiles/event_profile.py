"""`profile_of`: an event as a profile, a filter with the value of every field and no condition on other fields.

Where the event has an interval, the profile is a region; otherwise a point. A list counts by its elements, in any order
and number, because filters cannot ask for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from typing import cast

from fieldfare.events.event import Event
from fieldfare.events.values import Interval, Kind, Scalar, kind_of
from fieldfare.filters import valueset
from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter
from fieldfare.filters.valueset import Atom, ValueSet


def profile_of(event: Mapping[str, object]) -> Filter:
    """Return the profile of an event.

    >>> profile_of({"type": "photo", "taken": Interval(2024, 2025), "tags": ["rock", "live"]})
    parse("ALL tags IN ('live', 'rock') AND ANY tags = 'live' AND ANY tags = 'rock' ... type = 'photo'")
    """
    fields = event if isinstance(event, Event) else Event(event)
    return Filter([Branch({path: _constraint(value) for path, value in fields.fields.items()})])


def _constraint(value: object) -> Constraint:
    if isinstance(value, tuple):
        elements = [_values(element) for element in value]
        return Constraint(ValueSet(atoms=Atom.LIST), _union(elements), _least(elements))
    return Constraint(_values(value))


def _values(value: object) -> ValueSet:
    """Return the set of possible values of a field."""
    if isinstance(value, Interval):
        return valueset.between(value.low, value.high, value.closed)
    if kind_of(value) is Kind.OBJECT:
        return ValueSet(atoms=Atom.OBJECT)
    return valueset.one_of([cast(Scalar, value)]) if value == value else valueset.NAN


def _union(sets: Iterable[ValueSet]) -> ValueSet:
    return reduce(ValueSet.__or__, sets, valueset.EMPTY)


def _least(sets: list[ValueSet]) -> frozenset[ValueSet]:
    """Return the sets that contain no other set: an element in a part is in the whole as well."""
    return frozenset(mine for mine in sets if not any(mine != other and mine >= other for other in sets))
