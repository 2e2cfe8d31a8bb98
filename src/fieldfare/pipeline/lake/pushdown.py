"""Predicates for Parquet: a condition on columns that every event satisfies which the filter matches.

Spark passes the condition down to Parquet, which skips whole blocks by their least and largest values. The condition
may let too many events pass, never too few: the engine decides on the remaining events.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import reduce
from operator import and_, or_
from typing import Any, Final

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import (
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)

from fieldfare.events.values import INT64_MAX, INT64_MIN, utc
from fieldfare.filters import Filter
from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.intervals import Cut, Intervals
from fieldfare.filters.valueset import Atom
from fieldfare.pipeline.table.schema import is_interval

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MANY: Final = 50
"""pieces of a set at most; of a set with more, only the ends are used"""


def necessary(filter: Filter, fields: StructType, within: str = "fields", rest: str | None = None) -> Column:
    """Return a condition on the struct `within`, and on the column `rest`, that holds for every matching event."""
    return _any(_branch(branch, fields, within, rest) for branch in filter.boxes)


def moment(when: datetime) -> Column:
    """Return a time as a column; a time without a zone is refused, because it names no instant."""
    return F.timestamp_micros(F.lit((utc(when) - _EPOCH) // timedelta(microseconds=1)))


def _branch(branch: Branch, fields: StructType, within: str, rest: str | None) -> Column:
    sides = []
    for dimension, wanted in branch.items():
        if isinstance(dimension, str) and (found := _column(dimension, fields, within)) is not None:
            side = _side(*found, wanted)
            if rest is not None and "." in dimension:  # the rest may have it under a name with a dot
                side |= F.col(rest).contains(".")
            sides.append(side)
    return reduce(and_, sides) if sides else F.lit(True)


def _column(path: str, fields: StructType, within: str) -> tuple[Column, DataType] | None:
    """Return the column of a field; None without such a column, or if its name could be read in two ways."""
    kind: DataType = fields
    for step in path.split("."):
        if not isinstance(kind, StructType) or is_interval(kind) or any("." in name for name in kind.names):
            return None
        if step not in kind.names:
            return None
        kind = kind[step].dataType
        within += f".`{step.replace('`', '``')}`"
    return F.col(within), kind


def _side(column: Column, kind: DataType, wanted: Constraint) -> Column:
    values = wanted.values
    ways = [column.isNull()] if values.atoms & Atom.MISSING else []
    match kind:
        case BooleanType():
            ways += [column == F.lit(truth) for truth, atom in _TRUTHS if values.atoms & atom]
        case LongType():
            ways += [] if values.numbers.is_empty else [_whole(column, values.numbers)]
        case DoubleType():
            ways += [F.isnan(column)] if values.atoms & Atom.NAN else []
            ways += [] if values.numbers.is_empty else [_ordered(column, values.numbers, kind)]
        case StringType():
            if not isinstance(values.strings, Intervals):  # a pattern
                ways.append(column.isNotNull())
            elif not values.strings.is_empty:
                ways.append(_ordered(column, values.strings, kind))
        case TimestampType():
            ways += [] if values.times.is_empty else [_ordered(column, values.times, kind)]
        case _:
            return F.lit(True)
    return _any(ways)


_TRUTHS: Final = ((True, Atom.TRUE), (False, Atom.FALSE))


def _ordered(column: Column, part: Intervals, kind: DataType) -> Column:
    points = part.points()
    if points is not None:
        return column.isin([_literal(value, kind) for value in points])
    return _any(_between(column, low, high, kind) for low, high in _pieces(part))


def _between(column: Column, low: Cut | None, high: Cut | None, kind: DataType) -> Column:
    """Return a condition with both ends included, because a number may have changed in the column's type."""
    ends = [
        *([] if low is None else [column >= _literal(low[0], kind)]),
        *([] if high is None else [column <= _literal(high[0], kind)]),
    ]
    return reduce(and_, ends) if ends else column.isNotNull()


def _literal(value: Any, kind: DataType) -> Column:
    if isinstance(kind, TimestampType):
        return moment(value)
    return F.lit(_float(value) if isinstance(kind, DoubleType) else value)


def _float(number: int | float) -> float:
    try:
        return float(number)
    except OverflowError:
        return math.copysign(math.inf, number)


def _whole(column: Column, part: Intervals) -> Column:
    """Return bounds as integers: Spark would compare with a fraction as floats, which are fewer."""
    ranges = ((_first(low), _last(high)) for low, high in _pieces(part))
    return _any(column.between(low, high) for low, high in ranges if low <= high)


def _first(cut: Cut | None) -> int:
    """The first integer above a cut."""
    if cut is None or cut[0] <= INT64_MIN:
        return INT64_MIN
    if cut[0] > INT64_MAX:
        return INT64_MAX + 1
    number: int | float = cut[0]
    return math.ceil(number) if cut[1] == 0 else math.floor(number) + 1


def _last(cut: Cut | None) -> int:
    """The last integer below a cut."""
    return INT64_MAX if cut is None else max(INT64_MIN, _first(cut) - 1)


def _pieces(part: Intervals) -> list[tuple[Cut | None, Cut | None]]:
    found = list(part.pieces())
    return found if len(found) <= _MANY else [(found[0][0], found[-1][1])]


def _any(conditions: Iterable[Column]) -> Column:
    found = list(conditions)
    return reduce(or_, found) if found else F.lit(False)
