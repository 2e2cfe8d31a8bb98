"""Bulk loading: many filters straight to rows.

Nine of ten constraints are one range of numbers or a few strings. `Collector` recognises those in a few steps, keeps
their bounds as plain floats, and turns all of them into keys at once; everything else goes the general way.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np

from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import ELEMENTS
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import EMPTY, Intervals
from fieldfare.filters.strings import StringSet
from fieldfare.matching.arena import SHARED_FLAG, VERIFY_FLAG
from fieldfare.matching.columns import Columns
from fieldfare.matching.entries import Entry, entries_of
from fieldfare.matching.keys import HIGHEST, LOWEST, NUMBER, OPEN_HIGH, OPEN_LOW, STRING
from fieldfare.matching.segment import Rows

_INFINITY: Final = float("inf")
_EXACT: Final = 2**53
"""integers up to here are floats"""


class Collector:
    """Rows in the making."""

    def __init__(self, columns: Columns, rest: Callable[[int, int, list[Entry]], list[Entry]]) -> None:
        """`rest` puts away the entries that do not belong in rows, and gives the others."""
        self._columns = columns
        self._rest = rest
        self._owner: list[int] = []
        self._at: list[int] = [0]
        self._word: list[int] = []
        """column, kind and open ends in one; no kind is a range"""
        self._low: list[int] = []
        self._high: list[int] = []
        self._sets: list[int] = []
        # Number ranges: where they stand, and their bounds; turned into keys together.
        self._reals: list[int] = []
        self._lows: list[float] = []
        self._highs: list[float] = []

    def add(self, number: int, wanted: Filter) -> bool:
        """Collect a filter; says whether its entries are all there is to know of it."""
        if len(wanted.branches) == 1 and self._simple(wanted.branches[0]):
            self._owner.append(number)
            self._at.append(len(self._word))
            return True
        entries = entries_of(self._columns, wanted)
        owner = number | (SHARED_FLAG if len(entries) > 1 else 0)
        for entry in self._rest(number, owner, entries):
            self._entry(owner | (VERIFY_FLAG if entry.verify else 0), entry)
        plain = all(side.is_plain for branch in wanted.branches for side in branch.values())
        return plain and not any(entry.verify for entry in entries)

    def _simple(self, branch: Branch) -> bool:
        """Collect a branch of simple constraints, or leave no trace."""
        before = len(self._word), len(self._reals)
        for path, wanted in branch.items():
            values = wanted.values
            numbers, texts = values.numbers, values.strings
            simple = (
                not (values.atoms or wanted.some or values.times is not EMPTY or values.bytes is not EMPTY)
                and wanted.every is ELEMENTS
                and type(path) is str
                and (self._range(path, numbers) if texts is EMPTY else numbers is EMPTY and self._text(path, texts))
            )
            if not simple:
                del self._word[before[0] :], self._low[before[0] :], self._high[before[0] :]
                del self._reals[before[1] :], self._lows[before[1] :], self._highs[before[1] :]
                return False
        return True

    def _text(self, path: str, texts: StringSet) -> bool:
        """One constant."""
        cuts = texts.cuts if type(texts) is Intervals and not texts.start else ()
        if len(cuts) != 2 or cuts[1][0] != cuts[0][0] + "\0":
            return False
        attribute = self._columns.attributes.get(path) or self._columns.attribute(path)
        key = attribute.strings.setdefault(cuts[0][0], len(attribute.strings))
        self._word.append(attribute.string if attribute.string >= 0 else self._columns.column(attribute, STRING))
        self._low.append(key)
        self._high.append(key)
        return True

    def _range(self, path: str, numbers: Intervals) -> bool:
        """One range, with ends that are floats exactly."""
        cuts = numbers.cuts
        first, last, low, high, how = LOWEST, HIGHEST, -_INFINITY, _INFINITY, 0
        if len(cuts) + numbers.start > 2 or not cuts:
            return False
        if not numbers.start:
            low, above = cuts[0]
            first, how = 0, OPEN_LOW if above else 0
        if numbers.start or len(cuts) == 2:
            high, above = cuts[-1]
            last = 0
            how |= 0 if above else OPEN_HIGH
        if (type(low) is int and not -_EXACT <= low <= _EXACT) or (type(high) is int and not -_EXACT <= high <= _EXACT):
            return False
        attribute = self._columns.attributes.get(path) or self._columns.attribute(path)
        column = attribute.number if attribute.number >= 0 else self._columns.column(attribute, NUMBER)
        self._reals.append(len(self._word))
        self._lows.append(low)
        self._highs.append(high)
        self._word.append(column | how << 18)
        self._low.append(first)
        self._high.append(last)
        return True

    def _entry(self, owner: int, entry: Entry) -> None:
        for column, kind, low, high, keys, how in entry.predicates:
            self._word.append(column | kind << 16 | how << 18)
            self._low.append(len(self._sets) if keys else low)
            self._high.append(len(self._sets) + len(keys) if keys else high)
            self._sets.extend(keys)
        self._owner.append(owner)
        self._at.append(len(self._word))

    def rows(self) -> Rows:
        """All that was collected."""
        word, low, high = (np.array(values, np.int64) for values in (self._word, self._low, self._high))
        place = np.array(self._reals, np.int64)
        how = word[place] >> 18
        lows, highs = _keys(self._lows) + (how & OPEN_LOW), _keys(self._highs) - (how >> 1)
        low[place] = np.where(low[place] == LOWEST, LOWEST, lows)
        high[place] = np.where(high[place] == HIGHEST, HIGHEST, highs)
        return Rows(
            np.array(self._owner, np.int64), np.array(self._at, np.int64), word & 0xFFFF, (word >> 16) & 3, word >> 18,
            low, high, np.array(self._sets, np.int64),
        )  # fmt: skip


def _keys(values: list[float]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Floats to keys, as `columns.number_key` does it one by one."""
    bits = (np.array(values, np.float64) + 0.0).view(np.int64)
    return np.where(bits >= 0, bits, bits ^ 0x7FFFFFFFFFFFFFFF)
