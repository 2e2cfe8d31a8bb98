"""Conditions of DEFINE, compiled: masks over all rows, and instructions for the rest.

A part of a condition that looks at the current row and at rows a fixed number before or after is computed for all rows
at once, before the search. A part that looks at the rows of the match so far becomes instructions that the search
runs. Parts are joined by AND.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import pyarrow as pa

from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.patterns.row_patterns import kernels as k
from fieldfare.patterns.row_patterns.binding import (
    Apply,
    At,
    Bound,
    Cell,
    Constant,
    Label,
    Number,
    Route,
    Total,
    children,
    mentions,
)
from fieldfare.patterns.row_patterns.types import type_of

ANYWHERE, ATTEMPT, HISTORY = range(3)
"""a condition depends on the place of the row in the table; also on the first row and number of the match; or on all"""
_COMPARISONS: Final = {
    "less": ("LESS", False), "less_equal": ("LESS_EQUAL", False), "greater": ("LESS", True),
    "greater_equal": ("LESS_EQUAL", True), "equal": ("EQUAL", False),
}  # fmt: skip
_ARITHMETIC: Final = {"add": "ADD", "subtract": "SUBTRACT", "multiply": "MULTIPLY", "modulo": "MODULO"}


class Vector(NamedTuple):
    """A value for each row of the table, as the variable sees the row; `kind` is whole, real, text or missing."""

    variable: str
    value: Bound
    kind: str


class _Value(NamedTuple):
    """The number of an instruction, and the kind of its result."""

    at: int
    kind: str


@dataclass
class Conditions:
    """The compiled conditions of a clause."""

    text: str
    schema: pa.Schema
    variables: Sequence[str]
    masks: dict[str, list[Bound]] = field(default_factory=dict)
    code: dict[str, list[tuple[int, int, int, int]]] = field(default_factory=dict)
    levels: dict[str, int] = field(default_factory=dict)
    whole: list[Vector] = field(default_factory=list)
    real: list[Vector] = field(default_factory=list)
    routes: list[tuple[int, int, int, int]] = field(default_factory=list)
    sets: list[frozenset[str]] = field(default_factory=list)
    totals: list[tuple[int, int, int]] = field(default_factory=list)
    constants: list[int | str] = field(default_factory=list)
    """whole numbers, and texts, which become whole numbers when the texts of the table are known"""
    real_constants: list[float] = field(default_factory=list)

    def add(self, variable: str, condition: Bound) -> None:
        """Compile the condition of a variable."""
        kind = type_of(condition, self.schema, self.text)
        if not pa.types.is_boolean(kind) and not pa.types.is_null(kind):
            raise FilterSyntaxError(self.text, condition.at, f"DEFINE {variable} is no condition but of type {kind}")
        parts = _parts(condition)
        levels = [level(part, variable) for part in parts]
        self.levels[variable] = max(levels)
        self.masks[variable] = [part for part, of in zip(parts, levels, strict=True) if of == ANYWHERE]
        rest = [part for part, of in zip(parts, levels, strict=True) if of != ANYWHERE]
        if rest:
            writer = _Writer(self, variable)
            last = writer.value(rest[0])
            for part in rest[1:]:
                last = _Value(writer.emit(k.AND, last.at, writer.value(part).at), "whole")
            self.code[variable] = writer.code

    def set_number(self, variables: frozenset[str]) -> int:
        """Return the number of a set of variables."""
        return _number(self.sets, variables)


def _number(items: list[Any], item: Any) -> int:
    if item not in items:
        items.append(item)
    return items.index(item)


def _parts(condition: Bound) -> list[Bound]:
    if isinstance(condition, Apply) and condition.function == "and":
        return [part for side in condition.arguments for part in _parts(side)]
    return [condition]


def _kind_of(route: Route, variable: str) -> int:
    """Return the kind of a route, as the variable of the current row sees the route."""
    if route.variables is None:
        return k.FORTH if route.first else k.BACK if route.offset else k.CURRENT
    if route.first:
        return k.FIRST_OF
    return k.CURRENT if variable in route.variables and not route.offset else k.LAST_OF


def level(bound: Bound, variable: str) -> int:
    """Return on what a value depends: ANYWHERE, ATTEMPT or HISTORY."""
    match bound:
        case At(route, value):
            kind = _kind_of(route, variable)
            if kind == k.CURRENT:
                return HISTORY if route.shift and mentions(value, Label) else ANYWHERE
            return ATTEMPT if kind in (k.BACK, k.FORTH) and not mentions(value, Label) else HISTORY
        case Total():
            return ATTEMPT if bound.variables is None else HISTORY
        case Number():
            return ATTEMPT
    return max((level(child, variable) for child in children(bound)), default=ANYWHERE)


class _Writer:
    """Writes the instructions of a condition."""

    def __init__(self, whole: Conditions, variable: str) -> None:
        self._all = whole
        self._variable = variable
        self.code: list[tuple[int, int, int, int]] = []

    def emit(self, operation: int, a: int = -1, b: int = -1, c: int = -1) -> int:
        """Write an instruction, and return its number."""
        self.code.append((operation, a, b, c))
        return len(self.code) - 1

    def value(self, bound: Bound) -> _Value:
        """Write the instructions of a value."""
        if not isinstance(bound, Constant) and level(bound, self._variable) == ANYWHERE:
            if isinstance(bound, At) and isinstance(bound.value, Label):
                return self._text(self._variable)
            return self._leaf(bound, kind_of(self._type(bound)), Route())
        match bound:
            case Constant(value):
                return self._constant(value)
            case Number():
                return _Value(self.emit(k.MATCH), "whole")
            case At():
                return self._at(bound)
            case Total():
                return self._total(bound)
            case Apply():
                return self._apply(bound)
        raise AssertionError(bound)

    def _type(self, bound: Bound) -> Any:
        return type_of(bound, self._all.schema, self._all.text)

    def _text(self, text: str) -> _Value:
        return _Value(self.emit(k.CONST_I, _number(self._all.constants, text)), "text")

    def _constant(self, value: Any) -> _Value:
        kind = kind_of(value.type)
        if value.as_py() is None:
            return _Value(self.emit(k.MISSING), "missing")
        if kind == "text":
            return self._text(value.as_py())
        if kind == "real":
            number = _number(self._all.real_constants, float(value.as_py()))
            return _Value(self.emit(k.CONST_F, number), "real")
        return _Value(self.emit(k.CONST_I, _number(self._all.constants, as_whole(value).as_py())), "whole")

    def _route(self, route: Route) -> int:
        kind = _kind_of(route, self._variable)
        group = -1
        if kind in (k.LAST_OF, k.FIRST_OF):
            assert route.variables is not None
            group = self._all.set_number(route.variables)
        return _number(self._all.routes, (kind, group, route.offset, route.shift))

    def _vector(self, bound: Bound, kind: str) -> int:
        vector = Vector(self._variable, bound, kind)
        return _number(self._all.real if kind in ("real", "missing") else self._all.whole, vector)

    def _leaf(self, value: Bound, kind: str, route: Route) -> _Value:
        if kind == "missing":
            return _Value(self.emit(k.MISSING), kind)
        operation = k.LEAF_F if kind == "real" else k.LEAF_I
        return _Value(self.emit(operation, self._vector(value, kind), self._route(route)), kind)

    def _at(self, bound: At) -> _Value:
        if isinstance(bound.value, Label):
            return _Value(self.emit(k.VARIABLE, -1, self._route(bound.route)), "text")
        if not mentions(bound.value, Label):
            return self._leaf(bound.value, kind_of(self._type(bound)), bound.route)
        there = self.emit(k.HAS, -1, self._route(bound.route))
        found = self.value(_spread(bound.value, bound.route))
        return _Value(self.emit(k.SELECT, there, found.at, self.emit(k.MISSING)), found.kind)

    def _total(self, bound: Total) -> _Value:
        group = -1 if bound.variables is None else self._all.set_number(bound.variables)
        if bound.value is not None and mentions(bound.value, Label):
            self._refuse(bound, f"{bound.function} of CLASSIFIER()")
        if bound.function == "count":
            vector = -1 if bound.value is None else self._vector(bound.value, "missing")
            return _Value(self.emit(k.TOTAL_I, self._sum(k.COUNT, vector, group), 1), "whole")
        assert bound.value is not None
        kind = kind_of(self._type(bound))
        if bound.function == "avg":
            real = self.emit(k.TOTAL_F, self._sum(k.SUM_F, self._vector(bound.value, "real"), group))
            count = self._sum(k.COUNT, self._vector(bound.value, "missing"), group)
            many = self.emit(k.TO_FLOAT, self.emit(k.TOTAL_I, count, 1))
            return _Value(self.emit(k.DIVIDE_F, real, many), "real")
        whole = {"sum": k.SUM_I, "min": k.LEAST_I, "max": k.MOST_I}[bound.function]
        real_kind = {"sum": k.SUM_F, "min": k.LEAST_F, "max": k.MOST_F}[bound.function]
        total = self._sum(real_kind if kind == "real" else whole, self._vector(bound.value, kind), group)
        return _Value(self.emit(k.TOTAL_F if kind == "real" else k.TOTAL_I, total, 0), kind)

    def _sum(self, kind: int, vector: int, group: int) -> int:
        return _number(self._all.totals, (kind, vector, group))

    def _refuse(self, bound: Bound, what: str) -> None:
        problem = f"{what} is not supported in DEFINE where it looks at other rows of the match"
        raise FilterSyntaxError(self._all.text, bound.at, problem)

    def _apply(self, bound: Apply) -> _Value:
        function, arguments = bound.function, bound.arguments
        if function in ("and", "or"):
            left, right = map(self.value, arguments)
            return _Value(self.emit(k.AND if function == "and" else k.OR, left.at, right.at), "whole")
        if function in ("not", "is_null"):
            value = self.value(arguments[0])
            return _Value(self.emit(k.NOT if function == "not" else k.IS_MISSING, value.at), "whole")
        if function in _COMPARISONS:
            name, swapped = _COMPARISONS[function]
            left, right = self._same(arguments)
            pair = (right.at, left.at) if swapped else (left.at, right.at)
            return _Value(self.emit(getattr(k, f"{name}_{_suffix(left)}"), *pair), "whole")
        if function in ("not_equal", "distinct", "nullif"):
            return self._unequal(bound)
        if function in _ARITHMETIC:
            left, right = self._same(arguments)
            return _Value(
                self.emit(getattr(k, f"{_ARITHMETIC[function]}_{_suffix(left)}"), left.at, right.at), left.kind
            )
        if function == "divide":
            left, right = (self._real(self.value(one)) for one in arguments)
            return _Value(self.emit(k.DIVIDE_F, left.at, right.at), "real")
        if function in ("negate", "abs"):
            value = self.value(arguments[0])
            return _Value(self.emit(getattr(k, f"{function.upper()}_{_suffix(value)}"), value.at), value.kind)
        if function in ("case", "if"):
            parts = list(arguments)
            return self._case(parts if len(parts) % 2 else [*parts, Constant(pa.scalar(None))])
        if function == "coalesce":
            *values, last = self._same(arguments)
            for one in reversed(values):
                last = _Value(self.emit(k.SELECT, self.emit(k.IS_MISSING, one.at), last.at, one.at), last.kind)
            return last
        if function in ("greatest", "least"):
            return self._extreme(function, arguments)
        self._refuse(bound, f"{function}()")
        raise AssertionError

    def _unequal(self, bound: Apply) -> _Value:
        left, right = self._same(bound.arguments)
        equal = self.emit(getattr(k, f"EQUAL_{_suffix(left)}"), left.at, right.at)
        if bound.function == "not_equal":
            return _Value(self.emit(k.NOT, equal), "whole")
        if bound.function == "nullif":
            return _Value(self.emit(k.SELECT, equal, self.emit(k.MISSING), left.at), left.kind)
        missing = [self.emit(k.IS_MISSING, one.at) for one in (left, right)]
        # Equal and there, or both missing; SELECT takes an unknown comparison for false.
        both = self.emit(k.AND, *missing)
        yes, no = (self.emit(k.CONST_I, _number(self._all.constants, one)) for one in (1, 0))
        same = self.emit(k.OR, self.emit(k.SELECT, equal, yes, no), both)
        return _Value(self.emit(k.NOT, same), "whole")

    def _case(self, parts: list[Bound]) -> _Value:
        conditions = [self.value(one) for one in parts[:-1:2]]
        *values, last = self._same([*parts[1:-1:2], parts[-1]])
        for condition, value in zip(reversed(conditions), reversed(values), strict=True):
            last = _Value(self.emit(k.SELECT, condition.at, value.at, last.at), last.kind)
        return last

    def _extreme(self, function: str, arguments: Sequence[Bound]) -> _Value:
        first, *rest = self._same(arguments)
        for one in rest:
            pair = (one.at, first.at) if function == "least" else (first.at, one.at)
            better = self.emit(getattr(k, f"LESS_{_suffix(first)}"), *pair)
            chosen = self.emit(k.SELECT, better, one.at, first.at)
            # A missing comparison means a missing operand, and the result is missing.
            gone = self.emit(k.IS_MISSING, better)
            first = _Value(self.emit(k.SELECT, gone, self.emit(k.MISSING), chosen), first.kind)
        return first

    def _same(self, arguments: Sequence[Bound]) -> list[_Value]:
        """Write values, and make all of them real if one is."""
        values = [self.value(one) for one in arguments]
        kinds = {one.kind for one in values} - {"missing"}
        if "real" in kinds:
            return [self._real(one) for one in values]
        kind = next(iter(kinds), "missing")
        return [_Value(one.at, kind) for one in values]

    def _real(self, value: _Value) -> _Value:
        if value.kind in ("real", "missing"):
            return _Value(value.at, "real")
        return _Value(self.emit(k.TO_FLOAT, value.at), "real")


def _suffix(value: _Value) -> str:
    return "F" if value.kind == "real" else "I"


def _spread(value: Bound, route: Route) -> Bound:
    """Return a value in the row of a route, with the route at each column and label."""
    match value:
        case Cell() | Label():
            return At(route, value, value.at)
        case Apply():
            return Apply(value.function, tuple(_spread(one, route) for one in value.arguments), value.option, value.at)
    return value


def kind_of(kind: Any) -> str:
    """Return how instructions see values of a type: as whole numbers, real numbers, texts, or always missing."""
    if pa.types.is_null(kind):
        return "missing"
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return "real"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind):
        return "whole"
    raise ValueError(f"values of the type {kind} are not supported in DEFINE where other rows of the match count")


def as_whole(value: Any) -> Any:
    """Return truth values, whole numbers and times as whole numbers of 64 bits; times in microseconds."""
    kind = value.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        value = value.cast(pa.timestamp("us"))
    elif pa.types.is_duration(kind):
        value = value.cast(pa.duration("us"))
    return value.cast(pa.int64())
