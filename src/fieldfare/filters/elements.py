"""`path HAS (condition)`: a single element of a list of objects satisfies a whole condition.

`ANY items.sku = 'a' AND ANY items.qty > 2` may be met by two different items; `items HAS (sku = 'a' AND qty > 2)`
demands a single item. `Has` is a computed dimension, true or false. The consequences for the fields below, field by
field, are added to the filter as ordinary constraints: an index finds the filter by these constraints, and elements are
looked at only if the constraints hold. A disjunction inside HAS is a disjunction of HAS, so each `Has` has a single
branch.
"""

from __future__ import annotations

import sys
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Final

from fieldfare.events.event import Event, fields_of
from fieldfare.events.limits import EventError, Limits
from fieldfare.events.values import MISSING
from fieldfare.filters import constraint, valueset
from fieldfare.filters.branch import with_consequences
from fieldfare.filters.constraint import ELEMENTS, Constraint, Mode, any_of
from fieldfare.filters.expressions import UNCERTAIN, Expression
from fieldfare.filters.filter import Filter
from fieldfare.filters.literals import name

_TRUE: Final = Constraint(valueset.TRUE)
_UNLIMITED: Final = Limits(bytes=sys.maxsize, fields=sys.maxsize, depth=sys.maxsize, string=sys.maxsize)


LEVELS: Final = 6
"""levels of nesting that the text of a condition on elements has below the text around"""


def computed(filter: Filter) -> Iterator[Expression]:
    """Yield the dimensions of a filter that are expressions."""
    return (dimension for box in filter.boxes for dimension in box if not isinstance(dimension, str))


class Selection(Expression):
    """An expression that is true if some selected object matches a filter."""

    filter: Filter

    @abstractmethod
    def selects(self, path: str) -> bool:
        """Tell whether the objects at a path are selected."""

    def _among(self, elements: Iterable[Mapping[str, object]]) -> object:
        found: object = False
        for element in elements:
            if self._matches(element, "overlaps"):
                if self._matches(element, "covers"):
                    return True
                found = UNCERTAIN
        return found

    def _matches(self, element: Mapping[str, object], mode: Mode) -> bool:
        return any(branch.matches(element, mode) for branch in self.filter.branches)


@dataclass(frozen=True)
class Has(Selection):
    """True if the object at `path`, or an element of the list at `path`, matches the filter. Make one with `has`."""

    path: str
    filter: Filter

    def __post_init__(self) -> None:
        self._above(computed(self.filter), LEVELS)

    @cached_property
    def text(self) -> str:
        """The expression in the native language."""
        return f"{name(self.path)} HAS ({self.filter})"

    def evaluate(self, fields: Mapping[str, object]) -> object:
        """Return true or false, UNCERTAIN if an interval decides, MISSING if there is nothing at the path."""
        if self.path not in fields and not any(True for _ in Below(fields, self.path)):
            return MISSING
        return self._among(objects_at(fields, self.path))

    def selects(self, path: str) -> bool:
        """Tell whether a path is the path of the list."""
        return path == self.path

    def fields(self) -> Iterator[str]:
        """Yield the path of the list and the fields of the elements."""
        yield self.path
        for path in sorted(self.filter.fields()):
            yield f"{self.path}.{path}"

    def consequences(self) -> Mapping[str, Constraint]:
        """Return, for each field of the elements, the values of which some element must have one."""
        return {
            f"{self.path}.{dimension}": _necessary(wanted)
            for branch in self.filter.branches[:1]
            if len(self.filter.branches) == 1
            for dimension, wanted in branch.items()
            if isinstance(dimension, str) and MISSING not in wanted.values
        }

    def implies(self, other: Expression) -> bool:
        """Tell whether the other condition is wider and concerns the same list."""
        return isinstance(other, Selection) and other.selects(self.path) and other.filter.covers(self.filter)


def objects_at(fields: Mapping[str, object], path: str) -> Iterator[Mapping[str, object]]:
    """Yield the flat fields of the object at a path, or of each object in the list at the path."""
    value = fields.get(path, MISSING)
    if isinstance(value, (tuple, list)):
        yield from (_flat(element) for element in value if isinstance(element, Mapping))
    elif value is MISSING or isinstance(value, Mapping):
        yield Below(fields, path)


class Below(Mapping[str, object]):
    """The fields of the object at a path within a flat event, without a copy."""

    __slots__ = ("_fields", "_prefix")

    def __init__(self, fields: Mapping[str, object], path: str) -> None:
        self._fields = fields
        self._prefix = f"{path}."

    def __getitem__(self, path: str) -> object:
        return self._fields[self._prefix + path]

    def __iter__(self) -> Iterator[str]:
        return (path[len(self._prefix) :] for path in self._fields if path.startswith(self._prefix))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _flat(element: Mapping[str, object]) -> Mapping[str, object]:
    """Return the flat fields of a list element; the event is within the limits already, so none apply here."""
    try:
        return fields_of(element)
    except EventError:
        return Event(element, limits=_UNLIMITED).fields


def has(path: str, condition: Filter) -> Filter:
    """Return the filter `path HAS (condition)`, with the consequences for single fields.

    >>> from fieldfare.filters import parse
    >>> print(has("items", parse("sku = 'a' AND qty > 2")))
    ANY items.qty > 2 AND ANY items.sku = 'a' AND items HAS (qty > 2 AND sku = 'a')
    """
    found = (with_consequences({Has(path, Filter([branch])): _TRUE}) for branch in condition.branches)
    return Filter(branch for branch in found if branch is not None)


def _necessary(wanted: Constraint) -> Constraint:
    """Return the constraint on a field, gathered from all elements, that follows from a constraint on an element.

    A list inside the element is mixed with the values of the other elements, so only the elements of such a list can be
    found.
    """
    if not wanted.takes_lists:
        return any_of(wanted.values)
    single = wanted.values & ELEMENTS
    return reduce(Constraint.__and__, (any_of(single | hit) for hit in wanted.some), constraint.PRESENT)
