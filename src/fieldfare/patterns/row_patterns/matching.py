"""The search for the matches of a clause in sorted rows."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from fieldfare.patterns.row_patterns import kernels as k
from fieldfare.patterns.row_patterns.automaton import END, SITUATIONS, Automaton
from fieldfare.patterns.row_patterns.binding import At, Bound, Total
from fieldfare.patterns.row_patterns.conditions import ANYWHERE, ATTEMPT, HISTORY, Conditions, Vector, as_whole
from fieldfare.patterns.row_patterns.evaluation import Integers, array_of, evaluate
from fieldfare.patterns.row_patterns.functions import plain
from fieldfare.patterns.row_patterns.syntax import Skip

MOST_STEPS: Final = 2_000_000_000
"""rows that a single attempt may try, over and over, before it is given up with an error"""
MOST_MEMORY: Final = 1 << 30
"""bytes for failures that the search remembers; with more places and rows nothing is remembered"""
_SKIPS: Final = {"PAST LAST ROW": k.PAST_LAST, "NEXT ROW": k.NEXT_ROW, "FIRST": k.TO_FIRST, "LAST": k.TO_LAST}


class RowPatternError(ValueError):
    """A search that cannot go on, such as a skip to a variable that the match does not have."""


@dataclass(frozen=True)
class Matches:
    """The matches in sorted rows, in the order of their first rows."""

    begins: Integers
    """the first row of each match; the row of an empty match"""
    lengths: Integers
    numbers: Integers
    """the number of each match within its partition"""
    places: NDArray[np.int32]
    """the place of the pattern of each row of each match, one match after the other"""

    @property
    def offsets(self) -> Integers:
        """The place of each match in `places`, and the end."""
        return np.concatenate([[0], np.cumsum(self.lengths)]).astype(np.int64)


@dataclass(frozen=True)
class Current:
    """Values as a variable sees each row of the table, when the row is the last of the match so far."""

    table: pa.Table
    bounds: Integers
    variable: str
    text: str

    @property
    def length(self) -> int:
        """How many values a column of this context has."""
        return int(self.table.num_rows)

    def column(self, name: str) -> Any:
        """Return the values of all rows, in order."""
        return plain(self.table.column(name))

    def label(self) -> Any:
        """Return the variable, which all rows have here."""
        return pa.scalar(self.variable)

    def number(self) -> Any:
        """Return nothing: a match number is no value of a row alone."""
        raise AssertionError("a match number depends on the match")

    def total(self, bound: Total) -> Any:
        """Return nothing: an aggregate is no value of a row alone."""
        raise AssertionError("an aggregate depends on the match")

    def at(self, bound: At) -> Any:
        """Return a value in the row that is a number of rows before or after, within the partition."""
        value = array_of(evaluate(bound.value, self, self.text), self.length)
        return shifted(value, bound.route.shift, self.bounds)


def shifted(values: Any, shift: int, bounds: Integers) -> Any:
    """Return for each row the value of the row `shift` rows further, missing outside of the partition."""
    if shift == 0 or not len(values):
        return values
    count = len(values)
    steps = min(abs(shift), count)
    if shift < 0:
        moved = pa.concat_arrays([values.slice(0, steps), values.slice(0, count - steps)])
        gone = bounds[:-1, None] + np.arange(steps)
        outside = gone[gone < bounds[1:, None]]
    else:
        moved = pa.concat_arrays([values.slice(steps), values.slice(count - steps)])
        gone = bounds[1:, None] - 1 - np.arange(steps)
        outside = gone[gone >= bounds[:-1, None]]
    there = np.ones(count, np.bool_)
    there[outside] = False
    return pc.if_else(pa.array(there), moved, pa.scalar(None, values.type))


@dataclass(frozen=True)
class Search:
    """A pattern with its conditions, ready for tables of a schema."""

    automaton: Automaton
    conditions: Conditions
    skip: Skip
    skip_set: frozenset[str]

    def matches(self, table: pa.Table, bounds: Integers, loops: Any = None) -> Matches:
        """Return the matches in rows that are sorted; `bounds` are the first rows of partitions, and the end."""
        rows = table.num_rows
        out = _Output(rows, 0)
        if not rows:
            return out.matches()
        automaton, conditions = self.automaton, self.conditions
        tracked = len(conditions.sets)
        sets = [*conditions.sets, self.skip_set]
        members = np.array([[name in one for name in automaton.variables] for one in sets], np.bool_)
        longest = int(np.diff(bounds).max()) + 1
        memory = self._memory()
        words = (len(memory) + 7) // 8
        if rows * words > MOST_MEMORY:
            memory[:] = HISTORY
        sums = len(conditions.totals)
        longest_code = max((len(code) for code in conditions.code.values()), default=1)
        before = (
            bounds, automaton.starts, automaton.successors, automaton.variable_at, *self._masks(table, bounds), memory,
            np.zeros((rows if (memory == ANYWHERE).any() else 0, words), np.uint8),
            np.zeros((rows, words) if (memory == ATTEMPT).any() else (0, 0), np.uint8),
            *self._code(), _numbers(conditions.routes, 4), *self._vectors(table, bounds), members, tracked,
            _numbers(conditions.totals, 3), _SKIPS[self.skip.to], len(sets) - 1, MOST_STEPS,
            np.zeros(longest, np.int32), np.zeros(longest + 1, np.int32),
            np.zeros((tracked, longest), np.int64), np.zeros((tracked, longest), np.int64),
            np.zeros((sums, longest), np.int64), np.zeros((sums, longest), np.float64),
            np.zeros((sums, longest), np.int64), np.zeros(longest_code, np.int64),
            np.zeros(longest_code, np.float64), np.zeros(longest_code, np.bool_),
        )  # fmt: skip
        search = (loops or k.loops(rows)).search
        place = np.array([0, 0, 1], np.int64)
        reason = k.FULL
        while reason == k.FULL:
            out = out.larger(longest)
            reason, *at, found, written = search(*before[:1], place, *before[1:], *out.free())
            out.count += found
            out.written += written
            place = np.array(at, np.int64)
        if reason != k.DONE:
            raise RowPatternError(self._problem(reason))
        return out.matches()

    def _problem(self, reason: int) -> str:
        to = f"AFTER MATCH SKIP TO {self.skip.to} {self.skip.variable}"
        return {
            k.ABSENT: f"{to} failed: the variable is not in the match",
            k.STUCK: f"{to} failed: it would go back to the first row of the match, for ever",
            k.TOO_LONG: f"a match attempt took more than {MOST_STEPS:,} steps: the pattern has too many ways to match",
            k.OVERFLOW: "a whole number in DEFINE is beyond 64 bits",
        }[reason]

    def _memory(self) -> NDArray[np.int64]:
        """Return for each place how long a failure stays known: what the conditions depend on, from there on."""
        automaton = self.automaton
        of = [self.conditions.levels.get(automaton.variables[one], ANYWHERE) for one in automaton.variable_at]
        follow = [
            {to for situation in range(SITUATIONS) for to in automaton.after(place, situation) if to != END}
            for place in range(len(of))
        ]
        changed = True
        while changed:
            new = [max([own, *(of[to] for to in follow[place])]) for place, own in enumerate(of)]
            changed, of = new != of, new
        return np.array(of, np.int64)

    def _masks(self, table: pa.Table, bounds: Integers) -> tuple[Integers, NDArray[np.bool_]]:
        """Return the masks, and the number of the mask of each place; -1 for no mask."""
        masks: list[NDArray[np.bool_]] = []
        numbers: dict[str, int] = {}
        for variable, parts in self.conditions.masks.items():
            if parts:
                context = Current(table, bounds, variable, self.conditions.text)
                numbers[variable] = len(masks)
                masks.append(_true(parts, context))
        found = np.array(masks, np.bool_).reshape(len(masks), table.num_rows)
        places = [numbers.get(self.automaton.variables[one], -1) for one in self.automaton.variable_at]
        return np.array(places, np.int64), found

    def _code(self) -> tuple[Integers, Integers]:
        """Return the instructions of all places, and where those of each place begin."""
        starts, code = [0], list[tuple[int, int, int, int]]()
        for one in self.automaton.variable_at:
            code += self.conditions.code.get(self.automaton.variables[one], [])
            starts.append(len(code))
        return np.array(starts, np.int64), _numbers(code, 4)

    def _vectors(self, table: pa.Table, bounds: Integers) -> tuple[Any, ...]:
        """Return the values of rows that instructions read, the places without a value, and the constants."""
        conditions, rows = self.conditions, table.num_rows
        columns = {
            vector: self._column(vector, table, bounds) for vector in {*conditions.whole, *conditions.real}
        }  # fmt: skip
        texts = [column for vector, column in columns.items() if vector.kind == "text"]
        written = [one for one in conditions.constants if isinstance(one, str)]
        rank = _ranked([*texts, pa.array([*written, *self.automaton.variables], pa.string())])
        whole = [_whole(columns[one], rank if one.kind == "text" else None) for one in conditions.whole]
        real = [_real(columns[one], one.kind) for one in conditions.real]
        constants = [_rank_of(rank, one) if isinstance(one, str) else one for one in conditions.constants]
        return (
            np.array(whole, np.int64).reshape(len(whole), rows),
            np.array(real, np.float64).reshape(len(real), rows),
            _missing([columns[one] for one in conditions.whole], rows),
            _missing([columns[one] for one in conditions.real], rows),
            np.array(constants or [0], np.int64),
            np.array(conditions.real_constants or [0.0], np.float64),
            np.array([_rank_of(rank, name) for name in self.automaton.variables], np.int64),
        )

    def _column(self, vector: Vector, table: pa.Table, bounds: Integers) -> Any:
        context = Current(table, bounds, vector.variable, self.conditions.text)
        return array_of(evaluate(vector.value, context, self.conditions.text), table.num_rows)


@dataclass
class _Output:
    """Room for matches; the search comes back when the room is used up."""

    rows: int
    room: int
    begins: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    lengths: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    numbers: Integers = field(default_factory=lambda: np.zeros(0, np.int64))
    places: NDArray[np.int32] = field(default_factory=lambda: np.zeros(0, np.int32))
    count: int = 0
    written: int = 0

    def larger(self, longest: int) -> _Output:
        """Return twice the room, with the matches so far; at least room for another match."""
        matches = max(2 * self.count, self.rows // 4 + 16)
        places = max(2 * self.written, self.rows) + longest
        self.begins, self.lengths, self.numbers = (
            np.concatenate([one[: self.count], np.zeros(matches - self.count, np.int64)])
            for one in (self.begins, self.lengths, self.numbers)
        )
        self.places = np.concatenate([self.places[: self.written], np.zeros(places - self.written, np.int32)])
        return self

    def free(self) -> tuple[Any, ...]:
        """Return the room that is left."""
        rest = slice(self.count, None)
        return self.begins[rest], self.lengths[rest], self.numbers[rest], self.places[self.written :]

    def matches(self) -> Matches:
        """Return what has been found, without the free room."""
        begins, lengths, numbers = (one[: self.count] for one in (self.begins, self.lengths, self.numbers))
        return Matches(begins, lengths, numbers, self.places[: self.written])


def _numbers(rows: Any, width: int) -> Integers:
    return np.array(rows, np.int64).reshape(len(rows), width)


def _true(parts: list[Bound], context: Current) -> NDArray[np.bool_]:
    found: Any = None
    for part in parts:
        value = array_of(evaluate(part, context, context.text), context.length).cast(pa.bool_())
        value = pc.fill_null(value, False) if value.null_count else value
        found = value if found is None else pc.and_(found, value)
    return np.asarray(found.to_numpy(zero_copy_only=False), np.bool_)


def _missing(columns: list[Any], rows: int) -> NDArray[np.bool_]:
    missing = [one.is_null().to_numpy(zero_copy_only=False) for one in columns]
    return np.array(missing, np.bool_).reshape(len(columns), rows)


def _whole(column: Any, ranked: Any) -> Integers:
    if ranked is not None:
        found = pc.index_in(column, ranked).cast(pa.int64())
    else:
        found = as_whole(column)
    return np.asarray(pc.fill_null(found, 0).to_numpy(zero_copy_only=False), np.int64)


def _real(column: Any, kind: str) -> NDArray[np.float64]:
    if kind == "missing":
        return np.zeros(len(column))
    return np.asarray(pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False), np.float64)


def _ranked(texts: list[Any]) -> Any:
    """Return all texts in order, each once."""
    unique = pc.unique(pa.chunked_array([one.cast(pa.string()) for one in texts])).drop_null()
    return unique.take(pc.sort_indices(unique))


def _rank_of(ranked: Any, text: str) -> int:
    return int(pc.index_in(pa.scalar(text), ranked).as_py())
