"""Which stored filters cover a given one, are covered by it, or overlap it: from the arrays that match events.

*Covering f*: whatever covers f matches every event that f matches, hence also one example of it. So the index is asked
for that example, and the few answers are compared with f. *Covered by f* and *overlapping f*: every predicate of an
entry is judged against what f wants of the same attribute, all at once for numbers and times, once for each distinct
one otherwise; entries that no single predicate decides are compared as filters.
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
from fieldfare.matching.arena import NUMBER_MASK, Words
from fieldfare.matching.columns import Columns
from fieldfare.matching.decoding import predicate_values
from fieldfare.matching.keys import NUMBER, OPEN_HIGH, OPEN_LOW, RANGE, TIME, key_range
from fieldfare.matching.segment import extract

Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
NO, MAYBE, YES = 0, 1, 2


@dataclass(frozen=True)
class Table:
    """The live entries of some arenas, their predicates in columns."""

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
    """All live entries."""
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


def covered_by(table: Table, columns: Columns, wanted: Branch) -> Ints:
    """For each entry: is it covered by the branch? YES, NO or MAYBE."""
    verdict = np.full(len(table.owner), YES)
    for dimension, side in wanted.items():
        if not isinstance(dimension, str):
            return np.full(len(table.owner), MAYBE)
        mine, sure = _judged(table, columns, dimension, side, numeric=_implies_numbers, relation=lambda a, b: b >= a)
        count = np.bincount(table.entry_of[mine], minlength=len(table.owner))
        implied = np.bincount(table.entry_of[mine][sure], minlength=len(table.owner)) > 0
        verdict = np.minimum(verdict, np.where(implied, YES, np.where(count > 1, MAYBE, NO)))
    return verdict


def overlapping(table: Table, columns: Columns, wanted: Branch) -> Ints:
    """For each entry: does it overlap the branch? YES, NO or MAYBE."""
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
    """The predicates on an attribute, and whether each is in the relation to what is wanted of it."""
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
    """Each distinct predicate judged once."""
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
    """Does each range of keys lie in one of the pieces? At equal keys an open end reaches further than a closed one."""
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
    """Does each range of keys meet none of the pieces?"""
    meets = np.zeros(len(low), np.bool_)
    for piece in part.pieces():
        first, last, exact, opens = key_range(role, *piece)
        if not exact:
            return None
        start, end = np.maximum(low, first), np.minimum(high, last)
        touching = (
            (start == end + 1) & (how != 0) & (opens != 0)
        )  # open intervals between neighbours count as inhabited
        meets |= (start <= end) | touching
    return ~meets


def numbers_where(table: Table, verdict: Ints, compare: Callable[[int], bool], *, every: bool) -> list[int]:
    """The filters all of whose entries (or, not `every`, some entry) are judged YES, the doubtful ones compared."""
    number = table.owner & NUMBER_MASK
    found: list[int] = []
    worst = np.minimum if every else np.maximum
    order = np.argsort(number, kind="stable")
    names, starts = np.unique(number[order], return_index=True)
    if not len(names):
        return []
    joint = worst.reduceat(verdict[order], starts)
    doubtful = np.minimum.reduceat(np.where(verdict[order] == MAYBE, 0, 1), starts) == 0
    found += names[(joint == YES) & ~(doubtful & every)].tolist()
    unsure = names[(joint == MAYBE) | (doubtful & every & (joint != NO))].tolist()
    return found + [n for n in unsure if n not in set(found) and compare(n)]


def candidates(wanted: Filter, ask: Callable[[Branch], set[int]]) -> set[int]:
    """The filters that match an example of every branch."""
    found: set[int] | None = None
    for branch in wanted.branches:
        found = ask(branch) if found is None else found & ask(branch)
    return found or set()
