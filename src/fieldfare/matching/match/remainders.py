"""Remainders: what the keys of an event leave open of a filter, decided for many events at once.

`symbol LIKE 'A%' AND bid + ask < 20` is found by keys of `symbol`, which decide this side. What remains, `bid + ask`
below 20, is a range of a computed dimension. Such ranges are kept as arrays: a batch computes an expression once for
all its rows, and compares all candidates of all filters with it. Filters with another remainder are left to
`verification`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldfare.events.values import MISSING
from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.expressions import Arithmetic, Compare, Expression
from fieldfare.filters.intervals import Cut
from fieldfare.matching.match.batch_numbers import BatchNumbers, Numbers, Rows
from fieldfare.matching.store.entries import decided_by_keys
from fieldfare.matching.store.store import Store

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
FEWEST: Final = 8
"""candidates with an expression; fewer are verified one by one"""
_UNKNOWN: Final = -2
_OTHER: Final = -1
_EXACT: Final = 2**53
"""integers up to here are floats"""
_OUTSIDE, _MISSING, _ODD = 1, 2, 4


class _Range(NamedTuple):
    """A range of an expression, as in a table."""

    expression: int
    low: float
    high: float
    special: int


class _Table(NamedTuple):
    """Ranges of filters. A table never changes; a newer one has the same filters and more."""

    first: NDArray[np.int32]
    """the place of the first range of a filter, by number; or _OTHER, or _UNKNOWN"""
    sides: NDArray[np.int8]
    """the number of ranges of a filter"""
    expression: NDArray[np.int32]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    """the ends of a range, both inside"""
    special: NDArray[np.int8]
    """_OUTSIDE: all but the range passes; _MISSING, _ODD: a missing value passes, or NaN or the null of a comparison"""
    expressions: tuple[Expression, ...]


_NONE: Final = np.zeros(0, np.int32)
_NOTHING: Final = _Table(_NONE, np.zeros(0, np.int8), _NONE, np.zeros(0), np.zeros(0), np.zeros(0, np.int8), ())


class Remainders:
    """The remainders of the filters of a store, learnt when a filter is a candidate for the first time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._places: dict[Expression, int] = {}
        self._table = _NOTHING

    def decided(self, values: BatchNumbers, rows: Rows, numbers: Ints) -> tuple[Bools, Bools]:
        """Return which candidates match, a row of the batch and a number of a filter each; and which are undecided.

        The keys of the row must have decided every field of the filter.
        """
        table = self._known(numbers)
        first = table.first[numbers]
        good, undecided = first >= 0, first < 0
        at = np.flatnonzero(good)
        nth = 0
        while len(at):
            for expression, some in _by_expression(table, first[at] + nth):
                chosen = at if some is None else at[some]
                found = values.of(expression, rows[chosen]) if len(chosen) >= FEWEST else None
                if found is None:
                    good[chosen], undecided[chosen] = False, True
                else:
                    good[chosen] = _within(table, first[chosen] + nth, found)
            nth += 1
            at = at[good[at]]
            at = at[table.sides[numbers[at]] > nth]
        return good, undecided

    def _known(self, numbers: Ints) -> _Table:
        """Return a table with all these filters."""
        table = self._table
        top = int(numbers.max(initial=-1))
        if top >= len(table.first) or (table.first[numbers] == _UNKNOWN).any():
            with self._store.lock:
                table = self._table = self._learnt(self._table, np.unique(numbers))
        return table

    def _learnt(self, table: _Table, numbers: Ints) -> _Table:
        size = max(len(table.first), int(numbers[-1]) + 1)
        first, count = np.full(size, _UNKNOWN, np.int32), np.zeros(size, np.int8)
        first[: len(table.first)], count[: len(table.first)] = table.first, table.sides
        added: list[_Range] = []
        for number in numbers[first[numbers] == _UNKNOWN].tolist():
            ranges = self._ranges(number)
            first[number] = _OTHER if ranges is None else len(table.low) + len(added)
            count[number] = len(ranges or ())
            added += ranges or ()
        return table._replace(
            first=first,
            sides=count,
            expression=np.append(table.expression, np.array([one.expression for one in added], np.int32)),
            low=np.append(table.low, np.array([one.low for one in added])),
            high=np.append(table.high, np.array([one.high for one in added])),
            special=np.append(table.special, np.array([one.special for one in added], np.int8)),
            expressions=tuple(self._places),
        )

    def _ranges(self, number: int) -> list[_Range] | None:
        """Return the ranges that remain of a filter; None if something else remains."""
        wanted = self._store.inexact.get(number)
        if wanted is None or len(wanted.branches) != 1 or number in self._store.substrings:
            return None
        branch = wanted.branches[0]
        fields = Branch({dimension: side for dimension, side in branch.items() if isinstance(dimension, str)})
        found = []
        for dimension, side in branch.items():
            if isinstance(dimension, str):
                continue
            ends = _range(side) if isinstance(dimension, Arithmetic | Compare) else None
            if ends is None:
                return None
            low, high, outside = ends
            odd = side.matches(None if isinstance(dimension, Compare) else math.nan)
            special = _OUTSIDE * outside | _MISSING * side.matches(MISSING) | _ODD * odd
            found.append(_Range(self._places.setdefault(dimension, len(self._places)), low, high, special))
        return found if decided_by_keys(self._store.columns, fields) else None


def _by_expression(table: _Table, ranges: Rows) -> Iterator[tuple[Expression, Ints | None]]:
    """Yield the expressions of some ranges, each with the places of its ranges in the array; None: all."""
    which = table.expression[ranges]
    if (which == which[0]).all():
        yield table.expressions[which[0]], None
        return
    order = np.argsort(which, kind="stable")
    starts = np.flatnonzero(np.diff(which[order], prepend=-1))
    for start, end in pairwise([*starts.tolist(), len(order)]):
        yield table.expressions[which[order[start]]], order[start:end]


def _within(table: _Table, ranges: Rows, found: Numbers) -> Bools:
    """Tell which values lie in ranges, a value and a range each."""
    values = found.values
    inside: Bools = (values >= table.low[ranges]) & (values <= table.high[ranges])
    special = table.special[ranges]
    if special.any():
        inside ^= special & _OUTSIDE != 0
        inside = np.where(np.isnan(values), special & _ODD != 0, inside)
        return np.where(found.there, inside, special & _MISSING != 0)
    return inside & found.there


def _range(side: Constraint) -> tuple[float, float, bool] | None:
    """Return the numbers of a constraint as a range with both ends, or as all but a range; None for another set."""
    numbers = side.values.numbers
    low: Cut | None
    high: Cut | None
    match numbers.cuts:
        case ():
            return -math.inf, math.inf, not numbers.start
        case (cut,):
            low, high = (None, cut) if numbers.start else (cut, None)
        case (low, high):
            pass
        case _:
            return None
    if any(cut is not None and type(cut[0]) is int and abs(cut[0]) > _EXACT for cut in (low, high)):
        return None
    first = -math.inf if low is None else _inside(low, math.inf, low[1] == 1)
    last = math.inf if high is None else _inside(high, -math.inf, high[1] == 0)
    return first, last, numbers.start and len(numbers.cuts) > 1


def _inside(cut: Cut, towards: float, outside: bool) -> float:
    """Return the float at a cut, or the next one if that is outside."""
    return math.nextafter(cut[0], towards) if outside else float(cut[0])
