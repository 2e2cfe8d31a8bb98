"""`NumberRanges`: a set of whole numbers as ranges, small where the numbers are dense."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator


class NumberRanges:
    """A set of numbers growing number by number, and cut off below.

    >>> numbers = NumberRanges()
    >>> for number in (4, 6, 5, 9):
    ...     numbers.add(number)
    >>> list(numbers), 5 in numbers, numbers.last
    ([(4, 6), (9, 9)], True, 9)
    >>> numbers.cut(5)
    >>> list(numbers)
    [(6, 6), (9, 9)]
    """

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        """Begin with ranges in order, with gaps between; first and last number belong to a range."""
        self._firsts: list[int] = []
        self._lasts: list[int] = []
        for first, last in ranges:
            self._firsts.append(first)
            self._lasts.append(last)

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        """Yield the ranges in order."""
        return zip(self._firsts, self._lasts, strict=True)

    def __contains__(self, number: int) -> bool:
        place = bisect_right(self._firsts, number) - 1
        return place >= 0 and self._lasts[place] >= number

    @property
    def last(self) -> int:
        """The largest number; 0 for an empty set."""
        return self._lasts[-1] if self._lasts else 0

    def add(self, number: int) -> None:
        """Add a number, which may join two ranges."""
        after = bisect_right(self._firsts, number)
        before = after - 1
        if before >= 0 and self._lasts[before] >= number:
            return
        joins_before = before >= 0 and self._lasts[before] == number - 1
        joins_after = after < len(self._firsts) and self._firsts[after] == number + 1
        if joins_before and joins_after:
            self._lasts[before] = self._lasts.pop(after)
            del self._firsts[after]
        elif joins_before:
            self._lasts[before] = number
        elif joins_after:
            self._firsts[after] = number
        else:
            self._firsts.insert(after, number)
            self._lasts.insert(after, number)

    def cut(self, number: int) -> None:
        """Remove all numbers up to a limit."""
        gone = bisect_right(self._lasts, number)
        del self._firsts[:gone], self._lasts[:gone]
        if self._firsts and self._firsts[0] <= number:
            self._firsts[0] = number + 1
