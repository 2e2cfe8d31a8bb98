"""Relations without compiled kernels: every predicate of an index against a branch, in NumPy.

Every predicate of an entry is judged against the demand of the branch on the same attribute: all predicates at once for
numbers and times, each distinct predicate once otherwise. Entries that no single predicate decides are compared as
filters. The fallback serves during compilation, and where numba is not installed; cost grows with the number of
predicates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import Intervals
from fieldfare.matching.store.columns import Columns
from fieldfare.matching.store.decoder import predicate_values
from fieldfare.matching.store.keys import NUMBER, OPEN_HIGH, OPEN_LOW, RANGE, TIME, key_range
from fieldfare.matching.store.layout import NUMBER_MASK, SHARED_FLAG, Words
from fieldfare.matching.store.rows import extract

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
NO, MAYBE, YES = 0, 1, 2


@dataclass(frozen=True)
class Table:
    """The live entries of some arenas, with their predicates in columns."""

    owner: Ints
    entry_of: Ints
    """the entry of each predicate"""
    word: Ints
    low: Ints
    high: Ints
    sets: list[Ints]
    part: Ints
    """the arena of each predicate, for its sets"""


def table_of(arenas: Iterable[Words]) -> Table:
    """Return the table of all live entries."""
    owners: list[Ints] = []
    entries: list[Ints] = []
    words: list[Ints] = []
    lows: list[Ints] = []
    highs: list[Ints] = []
    sets: list[Ints] = []
    parts: list[Ints] = []
    base = 0
    for arena in arenas:
        rows = extract(arena)
        owners.append(rows.owner)
        entries.append(base + np.repeat(np.arange(len(rows)), np.diff(rows.at)))
        words.append(rows.column | rows.kind << 16 | rows.open << 18)
        lows.append(rows.low)
        highs.append(rows.high)
        parts.append(np.full(len(rows.low), len(sets)))
        sets.append(rows.sets)
        base += len(rows)

    def whole(some: list[Ints]) -> Ints:
        return np.concatenate([np.zeros(0, np.int64), *some])

    return Table(whole(owners), whole(entries), whole(words), whole(lows), whole(highs), sets, whole(parts))


def related(
    table: Table, columns: Columns, wanted: Filter, inexact: Iterable[int], *, covered: bool
) -> tuple[list[int], set[int]]:
    """Return the filters that a filter covers, or that overlap the filter, and the undecided filters."""
    judge = _covered if covered else _overlapping
    verdict = np.maximum.reduce([judge(table, columns, branch) for branch in wanted.branches])
    number = table.owner & NUMBER_MASK
    unsure = np.isin(number, np.fromiter(inexact, np.int64))  # their entries say too little, or nothing about lists
    if covered and len(wanted.branches) > 1:
        unsure |= (table.owner & SHARED_FLAG != 0) & (verdict == YES)  # their entries may lie in different branches
    verdict[unsure] = MAYBE
    order = np.argsort(number, kind="stable")
    names, starts = np.unique(number[order], return_index=True)
    if not len(names):
        return [], set()
    joint = (np.minimum if covered else np.maximum).reduceat(verdict[order], starts)
    return names[joint == YES].tolist(), set(names[joint == MAYBE].tolist())


def _covered(table: Table, columns: Columns, wanted: Branch) -> Ints:
    """Return for each entry whether the branch covers the entry: YES, NO or MAYBE."""
    verdict = np.full(len(table.owner), YES)
    for dimension, side in wanted.items():
        if not isinstance(dimension, str):
            return np.full(len(table.owner), NO)  # only inexact filters may want something computed
        mine, sure = _judged(table, columns, dimension, side, numeric=_implies_numbers, relation=lambda a, b: b >= a)
        count = np.bincount(table.entry_of[mine], minlength=len(table.owner))
        implied = np.bincount(table.entry_of[mine][sure], minlength=len(table.owner)) > 0
        verdict = np.minimum(verdict, np.where(implied, YES, np.where(count > 1, MAYBE, NO)))
    return verdict


def _overlapping(table: Table, columns: Columns, wanted: Branch) -> Ints:
    """Return for each entry whether the entry overlaps the branch: YES, NO or MAYBE."""
    verdict = np.full(len(table.owner), YES)
    for dimension, side in wanted.items():
        if not isinstance(dimension, str):
            continue
        mine, apart = _judged(table, columns, dimension, side, numeric=_misses_numbers, relation=_apart)
        count = np.bincount(table.entry_of[mine], minlength=len(table.owner))
        excluded = np.bincount(table.entry_of[mine][apart], minlength=len(table.owner)) > 0
        verdict = np.minimum(verdict, np.where(excluded, NO, np.where(count > 1, MAYBE, YES)))
    return verdict


def _judged(
    table: Table,
    columns: Columns,
    path: str,
    side: Constraint,
    *,
    numeric: Callable[[int, Intervals, Ints, Ints, Ints], Bools | None],
    relation: Callable[[Constraint, Constraint], bool],
) -> tuple[Ints, Bools]:
    """Return the predicates on an attribute, and whether each is in the relation to the demand."""
    column = table.word & 0xFFFF
    wanted = [c for c, known in enumerate(columns.columns) if known.attribute.path == path]
    mine = np.flatnonzero(np.isin(column, wanted))
    verdict = np.zeros(len(mine), np.bool_)
    for c in wanted:
        here = np.flatnonzero(column[mine] == c)
        if not len(here):
            continue
        rows = mine[here]
        role = columns.columns[c].role
        part = side.values.numbers if role == NUMBER else side.values.times if role == TIME else None
        plain = (table.word[rows] >> 16) & 3 == RANGE
        if part is not None and side.is_plain and plain.any():
            some = rows[plain]
            answer = numeric(role, part, table.low[some], table.high[some], table.word[some] >> 18)
            if answer is not None:
                verdict[here[plain]] = answer
                here, rows = here[~plain], rows[~plain]
        if len(rows):
            verdict[here] = _one_by_one(table, columns, rows, side, relation)
    return mine, verdict


def _apart(a: Constraint, b: Constraint) -> bool:
    return not a.overlaps(b)


def _one_by_one(
    table: Table, columns: Columns, rows: Ints, side: Constraint, relation: Callable[[Constraint, Constraint], bool]
) -> Bools:
    """Judge each distinct predicate once."""
    out = np.zeros(len(rows), np.bool_)
    word, low, high = table.word[rows], table.low[rows], table.high[rows]
    for kind in np.unique(word).tolist():
        here = np.flatnonzero(word == kind)
        if kind >> 16 & 1:  # sets are told apart by their keys
            found = [
                tuple(table.sets[int(table.part[row])][int(table.low[row]) : int(table.high[row])].tolist())
                for row in rows[here].tolist()
            ]
            known = {
                keys: relation(Constraint(predicate_values(columns, kind, 0, 0, keys)), side) for keys in set(found)
            }
            out[here] = [known[keys] for keys in found]
        else:
            bounds, which = np.unique(np.stack([low[here], high[here]]), axis=1, return_inverse=True)
            answers = [
                relation(Constraint(predicate_values(columns, kind, a, b, ())), side) for a, b in bounds.T.tolist()
            ]
            out[here] = np.array(answers, np.bool_)[which.ravel()]
    return out


def _implies_numbers(role: int, part: Intervals, low: Ints, high: Ints, how: Ints) -> Bools | None:
    """Tell for each range of keys whether a piece contains the range; at equal keys an open end reaches further."""
    answer = np.zeros(len(low), np.bool_)
    for piece in part.pieces():
        first, last, exact, opens = key_range(role, *piece)
        if not exact:
            return None
        above = (low > first) | ((low == first) & (how & OPEN_LOW <= opens & OPEN_LOW))
        below = (high < last) | ((high == last) & (how & OPEN_HIGH <= opens & OPEN_HIGH))
        answer |= above & below
    return answer


def _misses_numbers(role: int, part: Intervals, low: Ints, high: Ints, how: Ints) -> Bools | None:
    """Tell for each range of keys whether the range meets no piece."""
    meets = np.zeros(len(low), np.bool_)
    for piece in part.pieces():
        first, last, exact, opens = key_range(role, *piece)
        if not exact:
            return None
        # Two open ends that face each other leave numbers between them, even between neighbouring keys.
        before = (high < first) & ~((high + 1 == first) & (how & OPEN_HIGH != 0) & (opens & OPEN_LOW != 0))
        behind = (low > last) & ~((low == last + 1) & (how & OPEN_LOW != 0) & (opens & OPEN_HIGH != 0))
        meets |= ~(before | behind)
    return ~meets
