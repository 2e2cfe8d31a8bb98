"""`path HAS (condition)`: one and the same element of a list of objects satisfies a whole condition.

`ANY items.sku = 'a' AND ANY items.qty > 2` may be met by two different items; `items HAS (sku = 'a' AND qty > 2)` wants
one. It is a computed dimension that is true or false. What it implies for the fields below, taken one by one, is added
to the filter as ordinary constraints, so that an index can find it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from fieldfare.events.event import fields_of
from fieldfare.events.values import MISSING
from fieldfare.filters import valueset
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import Constraint, any_of
from fieldfare.filters.expressions import Expression
from fieldfare.filters.filter import Filter
from fieldfare.filters.literals import name


@dataclass(frozen=True)
class Has(Expression):
    """Does the object at `path`, or an element of the list there, match the filter?"""

    path: str
    filter: Filter

    @property
    def text(self) -> str:
        """As the language writes it."""
        return f"{name(self.path)} HAS ({self.filter})"

    def evaluate(self, fields: Mapping[str, object]) -> object:
        """True or false; MISSING if there is nothing at the path."""
        value = fields.get(self.path, MISSING)
        if value is MISSING:
            return MISSING
        elements = value if isinstance(value, (tuple, list)) else (value,)
        return any(
            isinstance(element, Mapping) and self.filter.matches(fields_of(element)) for element in elements
        )

    def fields(self) -> Iterator[str]:
        """The list, and the fields of its elements."""
        yield self.path
        for path in sorted(self.filter.fields()):
            yield f"{self.path}.{path}"

    def implies(self, other: Expression) -> bool:
        """A narrower condition on the same list implies a wider one."""
        return isinstance(other, Has) and self.path == other.path and other.filter.covers(self.filter)


def has(path: str, condition: Filter) -> Filter:
    """The filter `path HAS (condition)`, with what follows for the single fields."""
    exact = Filter.where(Has(path, condition), Constraint(valueset.TRUE))
    return exact.intersect(Filter(_necessary(path, branch) for branch in condition.branches))


def _necessary(path: str, branch: Branch) -> Branch:
    """What an element in the branch implies for the event: some value below the path lies in each set."""
    sides: dict[Dimension, Constraint] = {}
    for dimension, wanted in branch.items():
        if isinstance(dimension, str) and wanted.is_plain and MISSING not in wanted.values:
            sides[f"{path}.{dimension}"] = any_of(wanted.values)
    return Branch(sides)
