"""`Cesql`: the value of a CESQL expression, as a dimension of filters; the native language writes `CESQL('…')`.

The dimension serves for the part of an expression that value sets on single attributes cannot express:
`CESQL('INT(hop)') < 3`. CESQL never fails, but has errors; an expression with an error has no value here, so that no
set contains the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from fieldfare.events.values import MISSING, Interval
from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.filters.expressions import UNCERTAIN, Expression, Literal
from fieldfare.filters.languages.cesql import syntax
from fieldfare.filters.languages.cesql.evaluation import evaluate, find_function
from fieldfare.filters.literals import literal

_CASTS_AROUND: Final = 4
"""levels that the translation into a filter may have added around an expression"""
_CASTS: Final[dict[type, str]] = {bool: "BOOL", int: "INT", str: "STRING"}


@dataclass(frozen=True)
class Cesql(Expression):
    """The value of a CESQL expression: a bool, a 32-bit integer or a string.

    >>> Cesql(syntax.parse("hop + 1")).evaluate({"hop": "4"}), Cesql(syntax.parse("hop + 1")).evaluate({"hop": "four"})
    (5, MISSING)
    """

    expr: syntax.Expr

    @cached_property
    def text(self) -> str:
        """A function of the CESQL text, in the spelling that all equal expressions share."""
        return f"CESQL({literal(syntax.to_text(self.expr))})"

    def evaluate(self, fields: Mapping[str, object]) -> object:
        """Return the value for the event, or MISSING if there is an error."""
        if any(isinstance(fields.get(name), Interval) for name in self.fields()):
            return UNCERTAIN
        outcome = evaluate(self.expr, fields)
        return MISSING if outcome.error else outcome.value

    def fields(self) -> Iterator[str]:
        """Yield the attributes that the expression reads. `data` is no attribute and is never read."""
        return iter(names(self.expr))


def string_of(name: str) -> Cesql:
    """Return an attribute cast to a string."""
    return Cesql(syntax.Call("STRING", (syntax.Attribute(name),)))


def names(expr: syntax.Expr) -> dict[str, None]:
    """Return the names of the attributes in an expression, each once, from left to right."""
    if isinstance(expr, (syntax.Attribute, syntax.Exists)):
        return {expr.name: None} if expr.name != "data" else {}
    return {name: None for child in syntax.children(expr) for name in names(child)}


def type_of(expr: syntax.Expr) -> type | None:
    """Return the type of the value of an expression without error, or None if the type depends on the event."""
    match expr:
        case syntax.Attribute():
            return None
        case syntax.Literal(value):
            return type(value)
        case syntax.Negate() | syntax.Binary(op="+" | "-" | "*" | "/" | "%"):
            return int
        case syntax.Call(function, args):
            found = find_function(function, len(args))
            return found.returns if found else None
        case _:
            return bool


def cast_to(expr: syntax.Expr, to: type) -> syntax.Expr:
    """Return the expression if the type is right, or an expression that casts."""
    return expr if type_of(expr) is to else syntax.Call(_CASTS[to], (expr,))


def constant(expr: syntax.Expr, to: type | None = None) -> syntax.Value | None:
    """Return the value of an expression, cast to a type, if the value is the same for every event."""
    if names(expr):
        return None
    outcome = evaluate(expr if to is None else cast_to(expr, to), {})
    return None if outcome.error else outcome.value


def read(text: str, most: int = syntax.MAX_DEPTH) -> syntax.Expr:
    """Return the tree of a CESQL text; every called function must exist."""
    expr = syntax.parse(text, most)
    nodes = [expr]
    for node in nodes:
        if isinstance(node, syntax.Call) and find_function(node.function, len(node.args)) is None:
            problem = f"there is no function {node.function} of {len(node.args)} arguments"
            raise FilterSyntaxError(text, node.start, problem)
        nodes.extend(syntax.children(node))
    return expr


def cesql_dimension(arguments: Sequence[Expression]) -> Expression:
    """Return the dimension for the call `CESQL('…')` of the native language."""
    match arguments:
        case [Literal(value=str(text))]:
            try:
                return Cesql(read(text, syntax.MAX_DEPTH + _CASTS_AROUND))
            except FilterSyntaxError as error:
                raise ValueError(f"CESQL, line {error.line}, column {error.column}: {error.problem}") from None
    raise TypeError("CESQL takes one string, such as CESQL('hop < 3')")
