"""Bulk loading: many filters straight to rows.

Nine of ten constraints are one range of numbers or one string. `Collector` recognises those in a few steps, keeps their
bounds as they are, and turns all of them into keys at once; everything else goes the general way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fieldfare.filters.branch import Dimension
from fieldfare.filters.constraint import ELEMENTS
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import EMPTY, Intervals
from fieldfare.matching.arena import SHARED_FLAG, VERIFY_FLAG
from fieldfare.matching.columns import Columns
from fieldfare.matching.entries import Entry, entries_of
from fieldfare.matching.keys import HIGHEST, LOWEST, NUMBER, STRING
from fieldfare.matching.segment import Rows

Ints = NDArray[np.int64]
_EXACT: Final = 2**53
"""integers up to here are floats"""
# A word says what a predicate is: its column, its kind (16 bits up), the open ends of its range and whether it is alone
# on its attribute (18 bits up), and whether it is one of those that were recognised, and unbounded on a side.
_HOW: Final = 18
_REAL, _TEXT, _NO_LOW, _NO_HIGH = 1 << 21, 1 << 22, 1 << 23, 1 << 24
_OPEN: Final = ((2 << _HOW, 0), (3 << _HOW, 1 << _HOW))
"""open ends by the sides of the low and the high cut"""


class Collector:
    """Rows in the making."""

    def __init__(self, columns: Columns, rest: Callable[[int, int, list[Entry]], list[Entry]]) -> None:
        """`rest` puts away the entries that do not belong in rows, and gives the others."""
        self._columns = columns
        self._rest = rest
        self._owner: list[int] = []
        self._at: list[int] = [0]
        self._word: list[int] = []
        # What the words are about: bounds of number ranges, numbers of texts, and for all others two keys.
        self._lows: list[float] = []
        self._highs: list[float] = []
        self._texts: list[int] = []
        self._low: list[int] = []
        self._high: list[int] = []
        self._sets: list[int] = []
        # The words of the columns by path; those of strings with the numbers of their texts.
        self._of_numbers: dict[Dimension, int] = {}
        self._of_strings: dict[Dimension, tuple[int, dict[str, int]]] = {}

    def load(self, first: int, filters: Iterable[Filter]) -> Iterator[tuple[int, Filter]]:
        """Collect filters under numbers from `first`; gives those whose entries are not all there is to know.

        One long loop with everything at hand: a call for each predicate would double the time that loading takes.
        """
        owner, at, word, lows, highs, keys = self._owner, self._at, self._word, self._lows, self._highs, self._texts
        of_numbers, of_strings, empty, elements = self._of_numbers, self._of_strings, EMPTY, ELEMENTS
        least, most = -_EXACT, _EXACT
        for number, filter in enumerate(filters, first):
            branches = filter.branches
            alone = len(branches) == 1
            for path, wanted in branches[0].items() if alone else ():
                values = wanted.values
                if (
                    values.atoms or wanted.some or wanted.every is not elements
                    or values.times is not empty or values.bytes is not empty
                ):  # fmt: skip
                    break
                numbers, texts = values.numbers, values.strings
                if texts is empty:
                    cuts = numbers.cuts
                    if len(cuts) == 2 and not numbers.start:
                        (low, above), (high, over) = cuts
                        how = 0 if over > above else _OPEN[above][over]
                    elif len(cuts) == 1:
                        low, side = cuts[0]
                        high = low
                        how = _NO_LOW | _OPEN[0][side] if numbers.start else _NO_HIGH | _OPEN[side][1]
                    else:
                        break
                    if least > low or high > most:
                        break
                    try:
                        column = of_numbers[path]
                    except KeyError:
                        if (column := self._number_column(path)) < 0:
                            break
                    word.append(column | how)
                    lows.append(low)
                    highs.append(high)
                else:
                    if numbers is not empty or type(texts) is not Intervals or texts.start or len(texts.cuts) != 2:
                        break
                    (text, _), (after, _) = texts.cuts
                    if after != text + "\0":
                        break
                    if path not in of_strings and not self._string_column(path):
                        break
                    column, known = of_strings[path]
                    word.append(column)
                    keys.append(known.setdefault(text, len(known)))
            else:
                if alone:
                    owner.append(number)
                    at.append(len(word))
                    continue
            self._forget()
            if not self._general(number, filter):
                yield number, filter

    def _forget(self) -> None:
        """Take back what was collected since the last entry was complete."""
        dropped = self._word[self._at[-1] :]
        del self._word[self._at[-1] :]
        reals = sum(word & _REAL != 0 for word in dropped)
        del self._lows[len(self._lows) - reals :], self._highs[len(self._highs) - reals :]
        del self._texts[len(self._texts) - (len(dropped) - reals) :]

    def _number_column(self, path: Dimension) -> int:
        """The word for the numbers of a field; -1 for what is computed, which has no column."""
        if not isinstance(path, str):
            return -1
        self._of_numbers[path] = word = self._columns.column(self._columns.attribute(path), NUMBER) | _REAL
        return word

    def _string_column(self, path: Dimension) -> bool:
        """Get to know the word for the strings of a field, unless it is computed."""
        if not isinstance(path, str):
            return False
        attribute = self._columns.attribute(path)
        self._of_strings[path] = self._columns.column(attribute, STRING) | _TEXT, attribute.strings
        return True

    def _general(self, number: int, wanted: Filter) -> bool:
        """Collect any filter; says whether its entries are all there is to know of it."""
        entries = entries_of(self._columns, wanted)
        owner = number | (SHARED_FLAG if len(entries) > 1 else 0)
        for entry in self._rest(number, owner, entries):
            self._entry(owner | (VERIFY_FLAG if entry.verify else 0), entry)
        plain = all(side.is_plain for branch in wanted.branches for side in branch.values())
        return plain and not any(entry.verify or entry.needle is not None for entry in entries)

    def _entry(self, owner: int, entry: Entry) -> None:
        for column, kind, low, high, keys, how in entry.predicates:
            self._word.append(column | kind << 16 | how << _HOW)
            self._low.append(len(self._sets) if keys else low)
            self._high.append(len(self._sets) + len(keys) if keys else high)
            self._sets.extend(keys)
        self._owner.append(owner)
        self._at.append(len(self._word))

    def rows(self) -> Rows:
        """All that was collected."""
        word = _ints(self._word)
        how = (word >> _HOW) & 7
        low, high = np.empty(len(word), np.int64), np.empty(len(word), np.int64)
        real, text = np.flatnonzero(word & _REAL), np.flatnonzero(word & _TEXT)
        low[real], high[real] = _keys(self._lows) + (how[real] & 1), _keys(self._highs) - ((how[real] >> 1) & 1)
        low[text] = high[text] = _ints(self._texts)
        rest = np.flatnonzero(word & (_REAL | _TEXT) == 0)
        low[rest], high[rest] = _ints(self._low), _ints(self._high)
        low[word & _NO_LOW != 0] = LOWEST
        high[word & _NO_HIGH != 0] = HIGHEST
        return Rows(
            _ints(self._owner), _ints(self._at), word & 0xFFFF, (word >> 16) & 3, how, low, high, _ints(self._sets)
        )


def _ints(values: list[int]) -> Ints:
    return np.fromiter(values, np.int64, len(values))  # a third faster than np.array


def _keys(values: list[float]) -> Ints:
    """Floats to keys, as `keys.number_key` does it one by one."""
    bits: Ints = (np.fromiter(values, np.float64, len(values)) + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)
