"""Computed dimensions: expressions over the fields of an event that a filter can constrain.

A branch of a filter constrains *dimensions*. Most dimensions are fields, named by path. `price * quantity > 1000`
constrains the dimension `price * quantity` to the numbers above 1000; `bid > $ask` constrains the comparison of two
fields to the outcome "greater". Covering, overlap and merging of such predicates therefore need no rules of their own:
filters over the same expression are compared by their sets, and different expressions count as independent, which errs
on the safe side.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from fieldfare.events.event import freeze
from fieldfare.events.values import MISSING, ORDERED_KINDS, Interval, Kind, Scalar, kind_of
from fieldfare.filters.budget import spend
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.functions import Function
from fieldfare.filters.literals import literal, name


class Uncertain:
    """The type of `UNCERTAIN`: the result of a computation on an interval, which may be any value."""

    def __repr__(self) -> str:
        return "UNCERTAIN"


UNCERTAIN: Final = Uncertain()


MAX_DEPTH: Final = 64
"""levels of an expression; a walk over an expression may therefore recurse"""


class Expression(ABC):
    """A computed value of an event. Expressions are immutable; equal expressions are the same dimension."""

    depth: int = 0
    """number of levels below"""
    paths: int = 0
    """number of PATHs within each other"""

    def _above(self, parts: Iterable[Expression], levels: int = 1) -> None:
        """Set the depth, given the parts so many levels below; `FilterTooComplex` if that is too deep."""
        depth = paths = 0
        for part in parts:
            depth, paths = max(depth, part.depth), max(paths, part.paths)
        if depth + levels > MAX_DEPTH:
            raise FilterTooComplex("the filter is nested too deeply")
        object.__setattr__(self, "depth", depth + levels)
        object.__setattr__(self, "paths", paths)

    @property
    @abstractmethod
    def text(self) -> str:
        """The expression in the native language."""

    @abstractmethod
    def evaluate(self, fields: Mapping[str, object]) -> object:
        """Return the value for an event, `MISSING` if there is none, or `UNCERTAIN`. Never raises."""

    @abstractmethod
    def fields(self) -> Iterator[str]:
        """Yield the paths of all fields that the expression reads."""

    def implies(self, other: Expression) -> bool:
        """Tell whether `other` is surely true where this expression is true. Must be reflexive and transitive."""
        return self == other

    def consequences(self) -> Mapping[str, Constraint]:
        """Return the constraints on single fields that surely hold where this expression is true."""
        return {}

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Field(Expression):
    """The value of a field, as an expression."""

    path: str

    @property
    def text(self) -> str:
        """The name of the field, quoted where needed."""
        return name(self.path)

    def evaluate(self, fields: Mapping[str, object]) -> object:
        """Return the value of the field; UNCERTAIN for an interval."""
        value = fields.get(self.path, MISSING)
        return UNCERTAIN if isinstance(value, Interval) else value

    def fields(self) -> Iterator[str]:
        """Yield the path of the field."""
        yield self.path


@dataclass(frozen=True)
class Literal(Expression):
    """A constant expression, which has the same value for every event."""

    value: Scalar

    @property
    def text(self) -> str:
        """The constant as the native language writes constants."""
        return literal(self.value)

    def evaluate(self, fields: Mapping[str, object]) -> object:
        """Return the constant for every event."""
        return self.value

    def fields(self) -> Iterator[str]:
        """Yield no path: a constant reads no field."""
        return iter(())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Literal) or type(self.value) is not type(other.value):
            return False
        return self.value == other.value or (self.value != self.value and other.value != other.value)  # also NaN

    def __hash__(self) -> int:
        return hash((type(self.value), self.value if self.value == self.value else None))


_OPERATORS: Final[dict[str, tuple[int, Callable[[Any, Any], Any]]]] = {
    "+": (1, operator.add),
    "-": (1, operator.sub),
    "*": (2, operator.mul),
    "/": (2, operator.truediv),
    "%": (2, math.fmod),
}


@dataclass(frozen=True)
class Arithmetic(Expression):
    """`left op right` over numbers; MISSING if an operand is no number or there is no result."""

    op: str
    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        self._above((self.left, self.right))

    @cached_property
    def text(self) -> str:
        """The expression in infix notation, with parentheses where needed."""
        strength, _ = _OPERATORS[self.op]
        left = self.left.text if _strength(self.left) >= strength else f"({self.left.text})"
        right = self.right.text if _strength(self.right) > strength else f"({self.right.text})"
        return f"{left} {self.op} {right}"

    def evaluate(self, fields: Mapping[str, object]) -> object:
        """Compute the result: exact for integers, except for `/` and `%`, which compute with floats."""
        left, right = self.left.evaluate(fields), self.right.evaluate(fields)
        if kind_of(left) is Kind.NUMBER and kind_of(right) is Kind.NUMBER:
            try:
                return _OPERATORS[self.op][1](left, right)
            except (ArithmeticError, ValueError):
                return MISSING
        unsure = all(side is UNCERTAIN or kind_of(side) is Kind.NUMBER for side in (left, right))
        return UNCERTAIN if unsure else MISSING

    def fields(self) -> Iterator[str]:
        """Yield the paths of both operands."""
        yield from self.left.fields()
        yield from self.right.fields()


def _strength(expression: Expression) -> int:
    if isinstance(expression, Arithmetic):
        return _OPERATORS[expression.op][0]
    if isinstance(expression, Literal) and expression.text.startswith("-"):
        return 0
    return 3


@dataclass(frozen=True)
class Compare(Expression):
    """The outcome of comparing two values: -1, 0 or 1; null if both exist and have no order and are not equal.

    >>> Compare(Field("bid"), Field("ask")).evaluate({"bid": 1, "ask": 2})
    -1
    """

    left: Expression
    right: Expression

    def __post_init__(self) -> None:
        self._above((self.left, self.right))

    @cached_property
    def text(self) -> str:
        """The comparison as a function call; an operator needs the outcome too, which only the filter knows."""
        return f"COMPARE({self.left.text}, {self.right.text})"

    def evaluate(self, fields: Mapping[str, object]) -> object:
        """Compare the two values; values of different kinds give null."""
        left: Any = self.left.evaluate(fields)
        right: Any = self.right.evaluate(fields)
        if left is MISSING or right is MISSING:
            return MISSING
        if UNCERTAIN in (left, right):
            return UNCERTAIN
        kind = kind_of(left)
        if kind is not kind_of(right):
            return None
        if kind in ORDERED_KINDS and (left < right or left > right):
            return -1 if left < right else 1
        return 0 if left == right else None

    def fields(self) -> Iterator[str]:
        """Yield the paths of both operands."""
        yield from self.left.fields()
        yield from self.right.fields()


@dataclass(frozen=True)
class Call(Expression):
    """A function of the values of expressions."""

    function: Function
    arguments: tuple[Expression, ...]

    def __post_init__(self) -> None:
        self._above(self.arguments)

    @cached_property
    def text(self) -> str:
        """The call in the native language."""
        return f"{self.function.name}({', '.join(argument.text for argument in self.arguments)})"

    def evaluate(self, fields: Mapping[str, object]) -> object:
        """Call the function; MISSING if an argument is missing or the function raises."""
        values = [argument.evaluate(fields) for argument in self.arguments]
        if MISSING in values:
            return MISSING
        if UNCERTAIN in values:
            return UNCERTAIN
        try:
            return freeze(self.function.call(*values))
        except Exception:  # noqa: BLE001 - a user's function may raise anything; the other filters must go on
            return MISSING

    def fields(self) -> Iterator[str]:
        """Yield the paths of all arguments."""
        for argument in self.arguments:
            yield from argument.fields()

    def implies(self, other: Expression) -> bool:
        """Tell whether the other call is equal, or follows by the rule of the function."""
        if self == other:
            return True
        if not isinstance(other, Call) or self.function != other.function or self.function.implies is None:
            return False
        spend(8)
        return self.function.implies(self.arguments, other.arguments)
