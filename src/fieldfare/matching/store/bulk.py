"""Bulk loading: many filters straight to rows.

Nine of ten constraints are a range of numbers or a string. `Collector` recognises these in a few steps, keeps their
bounds as they are, and turns all bounds into keys at once; all other constraints take the general way.
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
from fieldfare.matching.store.columns import Columns
from fieldfare.matching.store.entries import Entry, entries_of
from fieldfare.matching.store.keys import HIGHEST, LOWEST, NUMBER, OPEN_HIGH, OPEN_LOW, RANGE, STRING
from fieldfare.matching.store.layout import SHARED_FLAG, VERIFY_FLAG
from fieldfare.matching.store.rows import Rows, joined, rows_of

Ints = NDArray[np.int64]
Words = tuple[tuple[int, int], ...]
_EXACT: Final = 2**53
"""integers up to here are floats"""
# A word describes a recognised predicate: the column, the open ends of the range, and, for numbers, the bounded sides.
# The words of a column are made once and shared: a new integer for each predicate would fill memory.
_HOW: Final = 18
_REAL, _NO_LOW, _NO_HIGH = 1 << 24, 1 << 25, 1 << 26
_BELOW, _ABOVE = 2, 3
"""cases of ranges with a single cut: below or above the cut; with two cuts, the side of the low cut is the case"""


class Collector:
    """Rows under construction, from many filters at once."""

    def __init__(self, columns: Columns, rest: Callable[[int, int, list[Entry]], list[Entry]]) -> None:
        """Take `rest`, which stores the entries that do not belong in rows and returns the others."""
        self._columns = columns
        self._rest = rest
        # Of recognised filters: their numbers, how many predicates each has, words; bounds of ranges, numbers of texts.
        self._owners: list[Ints] = []
        self._sizes: list[int] = []
        self._words: list[int] = []
        self._lows: list[float] = []
        self._highs: list[float] = []
        self._texts: list[int] = []
        self._others: list[tuple[int, Entry]] = []
        # The words of columns by path; for strings, with the numbers of the texts.
        self._of_numbers: dict[Dimension, Words] = {}
        self._of_strings: dict[Dimension, tuple[int, dict[str, int]]] = {}

    def load(self, first: int, filters: Iterable[Filter]) -> Iterator[tuple[int, Filter]]:
        """Collect filters under numbers from `first`; yield the filters that their entries describe inexactly.

        A single long loop with local variables: a call for each predicate would double the time of loading.
        """
        words, lows, highs, keys, sizes = self._words, self._lows, self._highs, self._texts, self._sizes
        of_numbers, of_strings, empty, elements = self._of_numbers, self._of_strings, EMPTY, ELEMENTS
        least, most = -_EXACT, _EXACT
        skipped: list[int] = []
        number, begin = first - 1, len(words)
        for number, filter in enumerate(filters, first):
            branches = filter.boxes
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
                        (low, case), (high, side) = cuts
                    elif len(cuts) == 1:
                        low, side = cuts[0]
                        high = low
                        case = _BELOW if numbers.start else _ABOVE
                    else:
                        break
                    if least > low or high > most:
                        break
                    if path not in of_numbers and not self._number_column(path):
                        break
                    words.append(of_numbers[path][case][side])
                    lows.append(low)
                    highs.append(high)
                else:
                    if numbers is not empty or type(texts) is not Intervals or texts.start or len(texts.cuts) != 2:
                        break
                    (text, _), (after, _) = texts.cuts
                    if after != text + "\0" or (path not in of_strings and not self._string_column(path)):
                        break
                    word, known = of_strings[path]
                    words.append(word)
                    keys.append(known.setdefault(text, len(known)))
            else:
                if alone:
                    end = len(words)
                    sizes.append(end - begin)
                    begin = end
                    continue
            self._forget(begin)
            skipped.append(number)
            if not self._general(number, filter):
                yield number, filter
        self._owners.append(np.delete(np.arange(first, number + 1), np.array(skipped, np.int64) - first))

    def _forget(self, begin: int) -> None:
        """Undo the words from `begin` on, with their bounds and texts."""
        reals = sum(word & _REAL != 0 for word in self._words[begin:])
        texts = len(self._words) - begin - reals
        del self._words[begin:], self._texts[len(self._texts) - texts :]
        del self._lows[len(self._lows) - reals :], self._highs[len(self._highs) - reals :]

    def _number_column(self, path: Dimension) -> bool:
        """Prepare the words for the numbers of a field; a computed dimension has no column."""
        if not isinstance(path, str):
            return False
        word = self._columns.column(self._columns.attribute(path), NUMBER) | _REAL
        high = (word | OPEN_HIGH << _HOW, word)  # by the side of the high cut: before or after the value
        low = (word, word | OPEN_LOW << _HOW)
        above = (high[0] | OPEN_LOW << _HOW, high[1] | OPEN_LOW << _HOW)
        self._of_numbers[path] = (
            high,
            above,
            (high[0] | _NO_LOW, high[1] | _NO_LOW),
            (low[0] | _NO_HIGH, low[1] | _NO_HIGH),
        )
        return True

    def _string_column(self, path: Dimension) -> bool:
        """Prepare the word for the strings of a field, and the numbers of texts; a computed dimension has no column."""
        if not isinstance(path, str):
            return False
        attribute = self._columns.attribute(path)
        self._of_strings[path] = self._columns.column(attribute, STRING), attribute.strings
        return True

    def _general(self, number: int, wanted: Filter) -> bool:
        """Collect any filter; tell whether the entries describe the filter exactly."""
        entries = entries_of(self._columns, wanted)
        owner = number | (SHARED_FLAG if len(entries) > 1 else 0)
        for entry in self._rest(number, owner, entries):
            self._others.append((owner | (VERIFY_FLAG if entry.verify else 0), entry))
        plain = all(side.is_plain for branch in wanted.branches for side in branch.values())
        return plain and not any(entry.verify or entry.substring is not None for entry in entries)

    def rows(self) -> Rows:
        """Return all collected entries as rows, recognised and general ones."""
        return joined([self._recognised(), rows_of(self._others)]) if self._others else self._recognised()

    def _recognised(self) -> Rows:
        word = _ints(self._words)
        how = (word >> _HOW) & (OPEN_LOW | OPEN_HIGH)
        lows, highs = _keys(self._lows), _keys(self._highs)
        if self._texts:
            real = word & _REAL != 0
            low, high = np.empty(len(word), np.int64), np.empty(len(word), np.int64)
            low[real], high[real] = lows, highs
            low[~real] = high[~real] = _ints(self._texts)
        else:
            low, high = lows, highs
        low += how & OPEN_LOW
        high -= how >> 1
        low[word & _NO_LOW != 0] = LOWEST
        high[word & _NO_HIGH != 0] = HIGHEST
        owner = np.concatenate([np.zeros(0, np.int64), *self._owners])
        at = np.append(0, np.cumsum(_ints(self._sizes)))
        return Rows(owner, at, word & 0xFFFF, np.full(len(word), RANGE), how, low, high, np.zeros(0, np.int64))


def _ints(values: list[int]) -> Ints:
    return np.fromiter(values, np.int64, len(values))  # a third faster than np.array


def _keys(values: list[float]) -> Ints:
    """Turn floats into keys, as `keys.number_key` does for a single float."""
    bits: Ints = (np.fromiter(values, np.float64, len(values)) + 0.0).view(np.int64)
    bits ^= (bits >> 63) & 0x7FFFFFFFFFFFFFFF
    return bits
