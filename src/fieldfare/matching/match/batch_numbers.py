"""Expressions over the rows of an Arrow batch: arithmetic and comparisons of numbers, a whole column at once.

Values are those of `Expression.evaluate`, or there is no answer. Floats are computed alike by Python and by arrays.
Integers, which Python computes without rounding, are only answered below 2⁵³, where floats do not round either.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fieldfare.filters.expressions import Arithmetic, Compare, Expression, Field, Literal
from fieldfare.matching.match import decimal_keys
from fieldfare.matching.match.batch_keys import leaves

_EXACT: Final = 2.0**53
Rows = NDArray[np.int32]


class Numbers(NamedTuple):
    """The values of an expression, for some rows."""

    values: NDArray[np.float64]
    there: NDArray[np.bool_]
    """where the expression has a value"""
    whole: bool
    """whether values may come from integers, and are below 2⁵³"""


class BatchNumbers:
    """The numbers of a batch by path; a column becomes an array at its first use."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self._columns: dict[str, Numbers | None] | None = None
        self._arrays: dict[str, Any] = {}
        self._whole: dict[Expression, Numbers | None] = {}

    def of(self, expression: Expression, rows: Rows) -> Numbers | None:
        """Return the values of an expression in some rows, which may repeat; None if only Python can tell."""
        if len(rows) < self._batch.num_rows:
            return evaluated(expression, lambda path: _taken(self._read(path), rows), len(rows))
        if expression not in self._whole:
            self._whole[expression] = evaluated(expression, self._read, self._batch.num_rows)
        return _taken(self._whole[expression], rows)

    def _read(self, path: str) -> Numbers | None:
        if self._columns is None:
            self._columns = {}
            for name, array, simple in leaves(self._batch):
                known = name in self._arrays
                self._arrays[name] = array if simple and not known else None
        if path not in self._columns:
            self._columns[path] = _column(self._arrays[path]) if path in self._arrays else _missing(self._batch)
        return self._columns[path]


def _taken(numbers: Numbers | None, rows: Rows) -> Numbers | None:
    return None if numbers is None else Numbers(numbers.values[rows], numbers.there[rows], numbers.whole)


def _missing(batch: Any) -> Numbers:
    return Numbers(np.zeros(batch.num_rows), np.zeros(batch.num_rows, np.bool_), False)


def _column(array: Any) -> Numbers | None:
    """Return the numbers of a column; None for other values, and for integers that are no floats."""
    if array is None:
        return None
    kind, there = array.type, np.asarray(array.is_valid())
    if pa.types.is_decimal(kind):
        array, unsure = decimal_keys.numbers(array)
        if unsure is not None:
            return None
    elif not pa.types.is_integer(kind) and not pa.types.is_floating(kind):
        return None
    values = np.asarray(array.fill_null(0)).astype(np.float64)
    if pa.types.is_floating(kind):
        return Numbers(values, there, False)
    return _checked(Numbers(values, there, True))


def _checked(numbers: Numbers) -> Numbers | None:
    """Return numbers, unless integers among them may have been rounded."""
    if numbers.whole and not (np.abs(numbers.values[numbers.there]) < _EXACT).all():
        return None
    return numbers


def evaluated(expression: Expression, read: Callable[[str], Numbers | None], rows: int) -> Numbers | None:
    """Return the values of an expression over columns; None if only Python can tell.

    A comparison has the values -1, 0 and 1, and NaN for its outcome null.
    """
    match expression:
        case Field():
            return read(expression.path)
        case Literal(value) if type(value) is int or type(value) is float:
            if abs(value) >= _EXACT and type(value) is int:
                return None
            return Numbers(np.full(rows, float(value)), np.ones(rows, np.bool_), type(value) is int)
        case Arithmetic(op, left, right) if op in _OPERATORS:
            sides = _sides(left, right, read, rows)
            return None if sides is None else _computed(op, *sides)
        case Compare(left, right):
            sides = _sides(left, right, read, rows)
            return None if sides is None else _compared(*sides)
    return None


def _sides(
    left: Expression, right: Expression, read: Callable[[str], Numbers | None], rows: int
) -> tuple[Numbers, Numbers] | None:
    if isinstance(left, Compare) or isinstance(right, Compare):
        return None  # whose outcome may be null
    a = evaluated(left, read, rows)
    b = None if a is None else evaluated(right, read, rows)
    return None if a is None or b is None else (a, b)


_OPERATORS: Final[dict[str, Callable[..., Any]]] = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
}


def _computed(op: str, left: Numbers, right: Numbers) -> Numbers | None:
    there = left.there & right.there
    if op == "/":
        there &= right.values != 0
    with np.errstate(all="ignore"):
        values = _OPERATORS[op](left.values, right.values)
    return _checked(Numbers(values, there, left.whole and right.whole and op != "/"))


def _compared(left: Numbers, right: Numbers) -> Numbers:
    a, b = left.values, right.values
    values = np.where(np.isnan(a) | np.isnan(b), np.nan, (a > b).astype(np.float64) - (a < b))
    return Numbers(values, left.there & right.there, False)
