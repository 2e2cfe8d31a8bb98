"""The types of expressions, found out on a table without rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.patterns.row_patterns.binding import At, Bound, Total
from fieldfare.patterns.row_patterns.evaluation import Rows, evaluate
from fieldfare.patterns.row_patterns.functions import TypeMismatch

_NO_ROWS: Final = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Types:
    """A context without rows, whose values have the right types."""

    table: pa.Table
    text: str
    length: int = 0

    def column(self, name: str) -> Any:
        """Return a column without values."""
        return self._rows.column(name)

    def label(self) -> Any:
        """Return an empty column of texts."""
        return pa.array([], pa.string())

    def number(self) -> Any:
        """Return an empty column of whole numbers."""
        return pa.array([], pa.int64())

    def at(self, bound: At) -> Any:
        """Return no values in a row."""
        return _array(evaluate(bound.value, self._rows, self.text))

    def total(self, bound: Total) -> Any:
        """Return an empty column of the type of an aggregate."""
        if bound.value is None:
            return pa.array([], pa.int64())
        value = evaluate(bound.value, self._rows, self.text)
        try:
            return pa.array([], total_type(bound.function, value.type))
        except TypeMismatch as error:
            raise FilterSyntaxError(self.text, bound.at, str(error)) from None

    @property
    def _rows(self) -> Rows:
        return Rows(self.table, _NO_ROWS, (), _NO_ROWS)


def _array(value: Any) -> Any:
    return value if isinstance(value, pa.Array) else pa.array([], value.type)


def type_of(bound: Bound, schema: pa.Schema, text: str) -> Any:
    """Return the type of a value; an error names the place of a function that does not take its operands."""
    return evaluate(bound, Types(schema.empty_table(), text), text).type


def total_type(function: str, kind: Any) -> Any:
    """Return the type of an aggregate over values of a type."""
    if function == "count":
        return pa.int64()
    if function in ("min", "max"):
        return kind
    if pa.types.is_integer(kind) or pa.types.is_null(kind):
        return pa.int64() if function == "sum" else pa.float64()
    if pa.types.is_floating(kind):
        return pa.float64()
    if pa.types.is_duration(kind) and function == "sum":
        return pa.duration("us")
    advice = ": CAST to DOUBLE" if pa.types.is_decimal(kind) else ""
    raise TypeMismatch(f"{function} is not possible for {kind}{advice}")
