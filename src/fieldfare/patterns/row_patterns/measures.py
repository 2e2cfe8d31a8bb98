"""Measures: the values of expressions at points of matches, for all points at once.

A point is a row of the output: with ONE ROW PER MATCH the last row of a match, with ALL ROWS PER MATCH every row. An
empty match has a point without a row in the match, and an unmatched row a point without a match.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fieldfare.patterns.row_patterns import kernels as k
from fieldfare.patterns.row_patterns.automaton import Automaton
from fieldfare.patterns.row_patterns.binding import At, Bound, Label, Route, Total, mentions
from fieldfare.patterns.row_patterns.evaluation import Integers, Rows, array_of, evaluate, taken
from fieldfare.patterns.row_patterns.matching import Matches, RowPatternError
from fieldfare.patterns.row_patterns.sorting import codes_of
from fieldfare.patterns.row_patterns.types import total_type


@dataclass(frozen=True)
class Points:
    """Where measures are computed, in the order of the output."""

    rows: Integers
    """the row of the table whose columns are shown"""
    matches: Integers
    """the match, -1 for an unmatched row"""
    flat: Integers
    """the place in the rows of all matches, one match after the other; -1 for an empty match or an unmatched row"""


def points_of(
    matches: Matches, automaton: Automaton, rows: int, *, all_rows: bool, empty: bool, unmatched: bool
) -> Points:
    """Return the rows of the output in order."""
    lengths, offsets = matches.lengths, matches.offsets
    each = np.arange(len(lengths), dtype=np.int64)
    bare = each[lengths == 0] if empty else each[:0]
    if all_rows:
        of = np.repeat(each, lengths)
        flat = np.arange(len(of), dtype=np.int64)
        shown = ~automaton.excluded[matches.places]
        of, flat = of[shown], flat[shown]
        source = matches.begins[of] + flat - offsets[of]
    else:
        of = each[lengths > 0]
        flat = offsets[of + 1] - 1
        source = matches.begins[of]
    alone = _unmatched(matches, rows) if unmatched else each[:0]
    found = (
        np.concatenate([source, matches.begins[bare], alone]),
        np.concatenate([of, bare, np.full(len(alone), -1, np.int64)]),
        np.concatenate([flat, np.full(len(bare) + len(alone), -1, np.int64)]),
    )
    if len(bare) or len(alone):
        starts = np.concatenate([matches.begins[of], matches.begins[bare], alone])
        order = np.argsort(starts, kind="stable")
        found = (found[0][order], found[1][order], found[2][order])
    return Points(*found)


def _unmatched(matches: Matches, rows: int) -> Integers:
    """Return the rows that no match covers."""
    ends = matches.begins + np.maximum(matches.lengths, 1)
    change = np.bincount(matches.begins, minlength=rows + 1) - np.bincount(ends, minlength=rows + 1)
    return np.flatnonzero(np.cumsum(change[:-1]) == 0).astype(np.int64)


@dataclass
class Measured:
    """A context of expressions: the points of some matches."""

    table: pa.Table
    bounds: Integers
    matches: Matches
    automaton: Automaton
    points: Points
    text: str
    loops: Any = None
    _variables: dict[frozenset[str], tuple[Integers, Integers]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Prepare what all measures need."""
        matches, points = self.matches, self.points
        self.length = len(points.rows)
        self.offsets = matches.offsets
        self.variable_at = self.automaton.variable_at[matches.places].astype(np.int64)
        of = np.maximum(points.matches, 0)
        self.there = points.flat >= 0
        self.begin = self.offsets[:-1][of] if len(matches.begins) else of
        self.end = self.offsets[1:][of] - 1 if len(matches.begins) else of - 1
        self.first_row = matches.begins[of] if len(matches.begins) else of
        self.names = list(self.automaton.variables)

    def measure(self, bound: Bound) -> Any:
        """Return a measure: a value for each point, missing for unmatched rows."""
        found = array_of(evaluate(bound, self, self.text), self.length)
        alone = self.points.matches < 0
        return pc.if_else(pa.array(alone), pa.scalar(None, found.type), found) if alone.any() else found

    def column(self, name: str) -> Any:
        """Return nothing: the binder puts each column into a navigation."""
        raise AssertionError("a column without a navigation")

    def label(self) -> Any:
        """Return nothing: the binder puts CLASSIFIER into a navigation."""
        raise AssertionError("a classifier without a navigation")

    def number(self) -> Any:
        """Return the numbers of the matches."""
        return taken(pa.array(self.matches.numbers), self.points.matches)

    def at(self, bound: At) -> Any:
        """Return a value in the row of a route."""
        flat = self._reached(bound.route)
        gone = flat < 0
        rows = self.first_row + flat - self.begin
        labelled = flat
        if shift := bound.route.shift:
            part = np.searchsorted(self.bounds, self.first_row, side="right") - 1
            rows = rows + shift
            gone |= (rows < self.bounds[:-1][part]) | (rows >= self.bounds[1:][part])
            labelled = flat + shift
        rows = np.where(gone, -1, rows)
        labels = None
        if mentions(bound.value, Label):
            inside = ~gone & (labelled >= self.begin) & (labelled <= self.end)
            labels = np.where(inside, self.variable_at[np.where(inside, labelled, 0)], -1) if len(
                self.variable_at
            ) else np.full(len(rows), -1, np.int64)  # fmt: skip
        context = Rows(self.table, rows, self.names, labels)
        found = array_of(evaluate(bound.value, context, self.text), self.length)
        return pc.if_else(pa.array(gone), pa.scalar(None, found.type), found) if gone.any() else found

    def _reached(self, route: Route) -> Integers:
        """Return the place of a row in the rows of all matches; -1 for no row.

        FIRST looks at the whole match, also as RUNNING: Trino's matcher and its tests do so, unlike the standard.
        """
        look = self.end if route.final or route.first else self.points.flat
        if route.variables is None:
            flat = self.begin + route.offset if route.first else look - route.offset
            return np.where(self.there & (flat >= self.begin) & (flat <= look), flat, -1)
        places, before = self._places(route.variables)
        low = before[self.begin]
        high = before[np.where(self.there, look + 1, 0)]
        rank = low + route.offset if route.first else high - 1 - route.offset
        good = self.there & (rank >= low) & (rank < high)
        if not len(places):
            return np.full(self.length, -1, np.int64)
        return np.where(good, places[np.where(good, rank, 0)], -1)

    def _places(self, variables: frozenset[str]) -> tuple[Integers, Integers]:
        """Return the places of the rows of some variables, and for each place how many come before."""
        if variables not in self._variables:
            inside = self._inside(variables)
            before = np.concatenate([[0], np.cumsum(inside)]).astype(np.int64)
            self._variables[variables] = np.flatnonzero(inside).astype(np.int64), before
        return self._variables[variables]

    def _inside(self, variables: frozenset[str] | None) -> Any:
        if variables is None:
            return np.ones(len(self.variable_at), np.bool_)
        chosen = np.array([name in variables for name in self.names], np.bool_)
        return chosen[self.variable_at]

    def total(self, bound: Total) -> Any:
        """Return an aggregate at each point."""
        flat = np.where(self.there, self.end if bound.final else self.points.flat, -1)
        function, inside = bound.function, self._inside(bound.variables)
        values = None
        if bound.value is not None:
            values = self._all_values(bound.value)
            inside = inside & values.is_valid().to_numpy(zero_copy_only=False)
        kind = total_type(function, pa.int64() if values is None else values.type)
        if function in ("min", "max"):
            number, whole, real = (k.LEAST_I if function == "min" else k.MOST_I), codes_of(values), None
        elif function == "count":
            number, whole, real = k.COUNT, None, None
        elif function == "sum" and not pa.types.is_floating(kind):
            assert values is not None
            number, whole, real = k.SUM_I, _whole(values), None
        else:
            assert values is not None
            number, whole, real = k.SUM_F, None, values.cast(pa.float64())
        sums_i, sums_f, counts = self._run(number, inside, whole, real)
        count = np.where(self.there, counts[flat], 0) if len(counts) else np.zeros(self.length, np.int64)
        if function == "count":
            return pa.array(count)
        missing = pa.array(count == 0)
        if not len(counts):
            return pa.nulls(self.length, kind)
        if function in ("min", "max"):
            return taken(values, np.where(count == 0, -1, sums_i[flat]))
        if real is None:
            return pc.if_else(missing, pa.scalar(None, kind), pa.array(sums_i[flat]).cast(kind))
        found = sums_f[flat] / np.maximum(count, 1) if function == "avg" else sums_f[flat]
        return pc.if_else(missing, pa.scalar(None, kind), pa.array(found))

    def _all_values(self, value: Bound) -> Any:
        """Return a value for each row of each match."""
        of = np.repeat(np.arange(len(self.matches.begins)), self.matches.lengths)
        rows = self.matches.begins[of] + np.arange(len(of)) - self.offsets[:-1][of]
        context = Rows(self.table, rows, self.names, self.variable_at)
        return array_of(evaluate(value, context, self.text), len(rows))

    def _run(self, kind: int, inside: Any, whole: Any, real: Any) -> tuple[Any, Any, Any]:
        size = len(inside)
        out = np.zeros(size, np.int64), np.zeros(size, np.float64), np.zeros(size, np.int64)
        wholes = np.zeros(0, np.int64) if whole is None else whole
        reals = np.zeros(0) if real is None else pc.fill_null(real, 0.0).to_numpy(zero_copy_only=False)
        loops = self.loops or k.loops(size)
        if loops.run_sums(kind, self.offsets, inside, wholes, reals, *out) == k.OVERFLOW:
            raise RowPatternError("a sum in MEASURES is beyond 64 bits")
        return out


def _whole(values: Any) -> Integers:
    kind = pa.duration("us") if pa.types.is_duration(values.type) else pa.int64()
    return np.asarray(pc.fill_null(values.cast(kind).cast(pa.int64()), 0).to_numpy(zero_copy_only=False), np.int64)
