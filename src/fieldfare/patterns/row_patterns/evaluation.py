"""The values of bound expressions, column by column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fieldfare.filters.errors import FilterSyntaxError
from fieldfare.patterns.row_patterns.binding import Apply, At, Bound, Cell, Constant, Label, Number, Total
from fieldfare.patterns.row_patterns.functions import TypeMismatch, apply, plain

Integers = NDArray[np.int64]


class Context(Protocol):
    """The rows for which values are computed."""

    @property
    def length(self) -> int:
        """How many values a column of this context has."""

    def column(self, name: str) -> Any:
        """Return a column, a value for each row."""

    def label(self) -> Any:
        """Return the names of the variables of the rows."""

    def number(self) -> Any:
        """Return the numbers of the matches."""

    def at(self, bound: At) -> Any:
        """Return a value in the rows of a route."""

    def total(self, bound: Total) -> Any:
        """Return an aggregate over the rows of a match."""


def evaluate(bound: Bound, context: Context, text: str) -> Any:
    """Return a value as an array or a scalar; an error names the place in the text of the clause."""
    match bound:
        case Constant(value):
            return value
        case Cell(column):
            return context.column(column)
        case Label():
            return context.label()
        case Number():
            return context.number()
        case At():
            return context.at(bound)
        case Total():
            return context.total(bound)
        case Apply():
            arguments = [evaluate(one, context, text) for one in bound.arguments]
            try:
                return apply(bound.function, arguments, bound.option)
            except TypeMismatch as error:
                raise FilterSyntaxError(text, bound.at, str(error)) from None


def array_of(value: Any, length: int) -> Any:
    """Return a value as an array: a scalar is repeated."""
    if isinstance(value, pa.ChunkedArray):
        value = value.combine_chunks()
    return value if isinstance(value, pa.Array) else pa.repeat(value, length)


@dataclass(frozen=True)
class Rows:
    """Rows of a table by number; -1 is no row. Navigation stands outside, so a value here has none."""

    table: pa.Table
    rows: Integers | None
    """None stands for all rows in order"""
    names: Sequence[str] = ()
    labels: Integers | None = None
    """the number of the variable of each row; -1 is none"""

    @property
    def length(self) -> int:
        """How many values a column of this context has."""
        return self.table.num_rows if self.rows is None else len(self.rows)

    def column(self, name: str) -> Any:
        """Return a column, a value for each row."""
        column = plain(self.table.column(name))
        return column if self.rows is None else taken(column, self.rows)

    def label(self) -> Any:
        """Return the names of the variables of the rows."""
        assert self.labels is not None
        return taken(pa.array(self.names, pa.string()), self.labels)

    def number(self) -> Any:
        """Return nothing: the binder refuses match numbers here."""
        raise AssertionError("a value in a row has no match number")

    def at(self, bound: At) -> Any:
        """Return nothing: the binder refuses navigation here."""
        raise AssertionError("a value in a row has no navigation")

    def total(self, bound: Total) -> Any:
        """Return nothing: the binder refuses aggregates here."""
        raise AssertionError("a value in a row has no aggregates")


def taken(column: Any, rows: Integers) -> Any:
    """Return the values of a column in some rows, missing for -1."""
    missing = rows < 0
    if not missing.any():
        return column.take(pa.array(rows))
    if not len(column):
        return pa.nulls(len(rows), column.type)
    found = column.take(pa.array(np.where(missing, 0, rows)))
    return pc.if_else(pa.array(missing), pa.scalar(None, column.type), found)
