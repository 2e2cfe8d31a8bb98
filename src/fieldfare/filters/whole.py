"""`MEETS('…')`: a whole filter as a computed dimension, true where an event matches the filter.

The algebra multiplies conditions out: `NOT (a AND b)` is two branches, and ten such exceptions are a thousand. A
language that reads conditions written by people, with dozens of exceptions, keeps those parts whole. The parts of a
filter on `MEETS` cover each other as their filters do; they are matched one by one, after the fields around them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from fieldfare.filters import valueset
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.elements import LEVELS, computed
from fieldfare.filters.expressions import UNCERTAIN, Expression, Literal
from fieldfare.filters.filter import Filter
from fieldfare.filters.literals import literal

_ANSWERS: Final = {True: Constraint(valueset.TRUE), False: Constraint(valueset.FALSE)}


@dataclass(frozen=True)
class Meets(Expression):
    """True if the event matches the filter, else false; never missing."""

    filter: Filter

    def __post_init__(self) -> None:
        self._above(computed(self.filter), LEVELS)

    @cached_property
    def text(self) -> str:
        """The expression in the native language: a call with the text of the filter."""
        return f"MEETS({literal(str(self.filter))})"

    def evaluate(self, fields: Mapping[str, object]) -> object:
        """Return true or false, UNCERTAIN if an interval in the event decides."""
        if not self.filter.matches_fields(fields):
            return False
        return True if self.filter.matches_fields(fields, "covers") else UNCERTAIN

    def fields(self) -> Iterator[str]:
        """Yield the paths of all fields of the filter."""
        return iter(sorted(self.filter.fields()))

    def implies(self, other: Expression) -> bool:
        """Tell whether the other filter is wider."""
        return isinstance(other, Meets) and other.filter.covers(self.filter)


def whole(filter: Filter, wanted: bool = True) -> Filter:  # as everywhere
    """Return the filter itself or, if not `wanted`, its complement, as a single condition.

    >>> from fieldfare.filters import parse
    >>> print(whole(parse("user = 'root' AND price < 5"), False))
    MEETS('price < 5 AND user = ''root''') = FALSE
    """
    return Filter.where(Meets(filter), _ANSWERS[wanted])


def meets_dimension(arguments: Sequence[Expression]) -> Expression:
    """Return the dimension for the call `MEETS('…')` of the native language."""
    from fieldfare.filters.languages import native  # noqa: PLC0415 - the language calls this function

    match arguments:
        case [Literal(value=str(text))]:
            return Meets(native.parse(text))
    raise TypeError("MEETS takes the text of a filter, such as MEETS('price < 3')")
