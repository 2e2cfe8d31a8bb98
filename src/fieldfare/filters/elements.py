"""`path HAS (condition)`: one and the same element of a list of objects satisfies a whole condition.

`ANY items.sku = 'a' AND ANY items.qty > 2` may be met by two different items; `items HAS (sku = 'a' AND qty > 2)` wants
one. It is a computed dimension that is true or false. What it implies for the fields below, taken one by one, is added
to the filter as ordinary constraints: an index finds the filter by them, and the elements are looked at only if they
hold. "There is an element with this or that" is "one with this, or one with that", so each `Has` is a single branch.
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
"""that the text of a condition on elements has below the text around it"""


def computed(filter: Filter) -> Iterator[Expression]:
    """The dimensions of a filter that are no fields."""
    return (dimension for box in filter.boxes for dimension in box if not isinstance(dimension, str))


class Selection(Expression):
    """Does one of the objects that it selects match the filter?"""

    filter: Filter

    @abstractmethod
    def selects(self, path: str) -> bool:
        """Does it look at the objects at a path?"""

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
    """Does the object at `path`, or an element of the list there, match the filter? Make it with `has`."""

    path: str
    filter: Filter

    def __post_init__(self) -> None:
        self._above(computed(self.filter), LEVELS)

    @cached_property
    def text(self) -> str:
        """As the language writes it."""
        return f"{name(self.path)} HAS ({self.filter})"

    def evaluate(self, fields: Mapping[str, object]) -> object:
        """True or false, UNCERTAIN if it hangs on an interval; MISSING if there is nothing at the path."""
        if self.path not in fields and not any(True for _ in Below(fields, self.path)):
            return MISSING
        return self._among(objects_at(fields, self.path))

    def selects(self, path: str) -> bool:
        """Only its own."""
        return path == self.path

    def fields(self) -> Iterator[str]:
        """The list, and the fields of its elements."""
        yield self.path
        for path in sorted(self.filter.fields()):
            yield f"{self.path}.{path}"

    def consequences(self) -> Mapping[str, Constraint]:
        """Each field, gathered from all elements, has a value that the condition on one element wants."""
        return {
            f"{self.path}.{dimension}": _necessary(wanted)
            for branch in self.filter.branches[:1]
            if len(self.filter.branches) == 1
            for dimension, wanted in branch.items()
            if isinstance(dimension, str) and MISSING not in wanted.values
        }

    def implies(self, other: Expression) -> bool:
        """A narrower condition on the same list implies a wider one."""
        return isinstance(other, Selection) and other.selects(self.path) and other.filter.covers(self.filter)


def objects_at(fields: Mapping[str, object], path: str) -> Iterator[Mapping[str, object]]:
    """The flat fields of the object at a path, or of each object in the list there; one may be given flat itself."""
    value = fields.get(path, MISSING)
    if isinstance(value, (tuple, list)):
        yield from (_flat(element) for element in value if isinstance(element, Mapping))
    elif value is MISSING or isinstance(value, Mapping):
        yield Below(fields, path)


class Below(Mapping[str, object]):
    """The fields of the object at a path, which an event that is flat already holds: nothing needs to be copied."""

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
    """The flat fields of an element of a list: part of an event that has passed its limits, whatever they were."""
    try:
        return fields_of(element)
    except EventError:
        return Event(element, limits=_UNLIMITED).fields


def has(path: str, condition: Filter) -> Filter:
    """The filter `path HAS (condition)`, with what follows for the single fields.

    >>> from fieldfare.filters import parse
    >>> print(has("items", parse("sku = 'a' AND qty > 2")))
    ANY items.qty > 2 AND ANY items.sku = 'a' AND items HAS (qty > 2 AND sku = 'a')
    """
    found = (with_consequences({Has(path, Filter([branch])): _TRUE}) for branch in condition.branches)
    return Filter(branch for branch in found if branch is not None)


def _necessary(wanted: Constraint) -> Constraint:
    """What the values of a field, gathered from all elements, must be like if one element satisfies the constraint.

    A list in that element has been poured into the others, so that only its own elements can be found again.
    """
    if not wanted.takes_lists:
        return any_of(wanted.values)
    single = wanted.values & ELEMENTS
    return reduce(Constraint.__and__, (any_of(single | hit) for hit in wanted.some), constraint.PRESENT)
