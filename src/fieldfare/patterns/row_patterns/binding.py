"""The meaning of expressions: each reference becomes a navigation to a row, and a value in this row.

`A.price` is the price in the last row of A so far, `price` in the last row so far, `FIRST(A.price + 1, 2)` a value in
the third row of A, `PREV(A.price)` in the row before the last row of A.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeAlias

from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.patterns.row_patterns import syntax as s
from fieldfare.patterns.row_patterns.functions import STRICT


@dataclass(frozen=True, slots=True)
class Route:
    """The way to a row: the first or last row of some variables, some of these rows further, then physical steps."""

    variables: frozenset[str] | None = None
    """None stands for all"""
    first: bool = False
    offset: int = 0
    shift: int = 0
    """rows of the partition, negative towards its beginning"""
    final: bool = False


@dataclass(frozen=True, slots=True)
class Constant:
    """A value that no row changes."""

    value: Any
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Cell:
    """A column in the row of a route; without a route, in a row that the context gives."""

    column: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Label:
    """The variable of the row."""

    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Number:
    """The number of the match."""

    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Apply:
    """A function or an operator, with its bound operands."""

    function: str
    arguments: tuple[Bound, ...]
    option: Any = None
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class At:
    """A value in the row of a route; missing if there is no such row."""

    route: Route
    value: Bound
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Total:
    """An aggregate over the rows of some variables so far, or over all of the match."""

    function: str
    variables: frozenset[str] | None
    value: Bound | None
    final: bool
    at: int = field(default=0, compare=False)


Bound: TypeAlias = Constant | Cell | Label | Number | Apply | At | Total


class Binder:
    """Expressions of a clause, for a table with some columns."""

    def __init__(self, clause: s.Clause, columns: Sequence[str]) -> None:
        self._text = clause.text
        self._variables: dict[str, frozenset[str]] = {name: frozenset([name]) for name in clause.variables}
        self._variables |= {name: frozenset(members) for name, members in clause.subsets.items()}
        self._columns: Mapping[str, list[str]] = {}
        by_name: dict[str, list[str]] = {}
        for column in columns:
            by_name.setdefault(column.lower(), []).append(column)
        self._columns = by_name

    def column(self, written: s.Column) -> str:
        """Return the column of the table that a name means: the same letters, else without regard to case."""
        known = self._columns.get(written.name.lower(), [])
        if written.name in known:
            return written.name
        if len(known) == 1:
            return known[0]
        if known:
            self.fail(f"{written.name} may be {' or '.join(known)}: write the name in quotes", written.at)
        names = ", ".join(name for names in self._columns.values() for name in names)
        problem = f"there is no column {written.name}; there are {names}"
        raise FilterSyntaxError(self._text, written.at, problem)

    def measure(self, expression: s.Expression) -> Bound:
        """Return the meaning of a measure."""
        return self._bound(expression, define=False)

    def condition(self, expression: s.Expression) -> Bound:
        """Return the meaning of a condition in DEFINE."""
        return self._bound(expression, define=True)

    def fail(self, problem: str, at: int) -> NoReturn:
        """Raise the error for a problem at a place of the clause."""
        raise FilterSyntaxError(self._text, at, problem)

    def variables(self, name: str | None, at: int) -> frozenset[str] | None:
        """Return the primary variables of a name."""
        if name is not None and name not in self._variables:
            known = ", ".join(self._variables)
            self.fail(f"{name} is no variable of the pattern, which has {known}", at)
        return None if name is None else self._variables[name]

    def _bound(self, expression: s.Expression, *, define: bool) -> Bound:
        match expression:
            case s.Literal(value, at):
                return Constant(value, at)
            case s.Column():
                variables = self.variables(expression.variable, expression.at)
                return At(Route(variables), Cell(self.column(expression), expression.at), expression.at)
            case s.Classifier(variable, at):
                return At(Route(self.variables(variable, at)), Label(at), at)
            case s.MatchNumber(at):
                return Number(at)
            case s.Call(function, arguments, at, option):
                return _hoisted(
                    Apply(function, tuple(self._bound(one, define=define) for one in arguments), option, at)
                )
            case s.Navigation():
                return self._navigation(expression, define=define)
        return self._total(expression, define=define)

    def _navigation(self, written: s.Navigation, *, define: bool) -> Bound:
        final = self._final(written.semantics, written.at, define=define)
        shift, inner = 0, written
        if written.function in (s.PREV, s.NEXT):
            shift = -written.offset if written.function == s.PREV else written.offset
            argument = written.argument
            if isinstance(argument, s.Navigation):
                if argument.function in (s.PREV, s.NEXT):
                    self.fail(f"{argument.function} cannot stand in {written.function}", argument.at)
                inner = argument
                final = self._final(inner.semantics, inner.at, define=define)
            else:
                inner = s.Navigation(s.LAST, argument, 0, "", written.at)
        value, names = self._value(inner.argument, inner.function)
        if not names:
            self.fail(f"{written.function} needs a column or CLASSIFIER() in its argument", written.at)
        route = Route(self._one(names, inner), inner.function == s.FIRST, inner.offset, shift, final)
        return At(route, value, written.at)

    def _total(self, written: s.Aggregate, *, define: bool) -> Bound:
        final = self._final(written.semantics, written.at, define=define)
        if written.argument is None:
            return Total(written.function, self.variables(written.variable, written.at), None, final, written.at)
        value, names = self._value(written.argument, written.function)
        return Total(written.function, self._one(names, written) if names else None, value, final, written.at)

    def _final(self, semantics: str, at: int, *, define: bool) -> bool:
        if semantics == "FINAL" and define:
            self.fail("FINAL is not possible in DEFINE: the match is not complete there", at)
        return semantics == "FINAL"

    def _one(self, names: Mapping[str | None, int], written: s.Navigation | s.Aggregate) -> frozenset[str] | None:
        if len(names) > 1:
            shown = " and ".join("all rows" if name is None else name for name in names)
            self.fail(f"{written.function} mixes rows of different variables: {shown}", written.at)
        ((name, at),) = names.items()
        return self.variables(name, at)

    def _value(self, expression: s.Expression, inside: str) -> tuple[Bound, dict[str | None, int]]:
        """Return the value of an expression in a single row, and the variables that it mentions, with places."""
        match expression:
            case s.Literal(value, at):
                return Constant(value, at), {}
            case s.Column(_, variable, at):
                return Cell(self.column(expression), at), {variable: at}
            case s.Classifier(variable, at):
                return Label(at), {variable: at}
            case s.Call(function, arguments, at, option):
                values, names = [], dict[str | None, int]()
                for one in arguments:
                    value, more = self._value(one, inside)
                    values.append(value)
                    names |= more
                return Apply(function, tuple(values), option, at), names
            case s.MatchNumber(at):
                raise FilterSyntaxError(self._text, at, f"MATCH_NUMBER() in {inside} is not supported")
        raise FilterSyntaxError(self._text, expression.at, f"{expression.function} cannot stand in {inside}")


def _hoisted(call: Apply) -> Bound:
    """Return a function of values in the same row as a value in this row, which is computed for whole columns."""
    if call.function not in STRICT:
        return call
    routes = {one.route for one in call.arguments if isinstance(one, At)}
    if len(routes) != 1 or not all(isinstance(one, (At, Constant)) for one in call.arguments):
        return call
    values = tuple(one.value if isinstance(one, At) else one for one in call.arguments)
    return At(routes.pop(), Apply(call.function, values, call.option, call.at), call.at)


def children(bound: Bound) -> tuple[Bound, ...]:
    """Return the values that a value is made of."""
    match bound:
        case Apply():
            return bound.arguments
        case At():
            return (bound.value,)
        case Total():
            return () if bound.value is None else (bound.value,)
    return ()


def mentions(bound: Bound, *kinds: type) -> bool:
    """Tell whether a value of a kind is part of a value."""
    return isinstance(bound, kinds) or any(mentions(child, *kinds) for child in children(bound))


def columns_of(bound: Bound) -> set[str]:
    """Return the columns that a value reads."""
    own = {bound.column} if isinstance(bound, Cell) else set[str]()
    return own.union(*(columns_of(child) for child in children(bound)))
