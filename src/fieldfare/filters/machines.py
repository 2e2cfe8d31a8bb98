"""Deterministic machines that read a string character by character: the common form of patterns and intervals.

A `Machine` need not be minimal. `automaton.build` runs several machines side by side and makes a minimal automaton.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable
from operator import itemgetter
from typing import Final, Protocol

from fieldfare.filters.intervals import Intervals
from fieldfare.filters.patterns import MANY, ONE, Pattern, Wild, case_variants

MAX_STATES: Final = 1024
"""limit on the states of a language; the predicate of a larger language is kept opaque"""


class TooComplex(ValueError):
    """A language whose automaton would be too large to analyse."""


class Machine(Protocol):
    """A deterministic machine that reads a string character by character."""

    def begin(self) -> Hashable:
        """Return the state before the first character."""

    def breaks(self, state: Hashable) -> Iterable[int]:
        """Return the code points at which the next step may change."""

    def step(self, state: Hashable, char: str) -> Hashable:
        """Return the state after another character."""

    def accepts(self, state: Hashable) -> bool:
        """Tell whether the string read so far is in the language."""


class PatternMachine:
    """The machine of a pattern; a state is the set of positions in the pattern that the text may have reached."""

    def __init__(self, pattern: Pattern) -> None:
        if len(pattern.tokens) >= MAX_STATES:  # there would be at least a state for each token
            raise TooComplex(f"more than {MAX_STATES} states")
        self._chars = [
            token if isinstance(token, Wild) else case_variants(token) if pattern.ignore_case else frozenset({token})
            for token in pattern.tokens
        ]

    def begin(self) -> Hashable:
        """Return the first position, and the second behind a leading `%`."""
        return self._closure({0})

    def _closure(self, places: set[int]) -> Hashable:
        for place in sorted(places):
            if place < len(self._chars) and self._chars[place] is MANY:
                places.add(place + 1)  # the normal form has no two % in a row
        # A later % accepts all that an earlier place could still come to: forget the earlier ones.
        last = max((p for p in places if p < len(self._chars) and self._chars[p] is MANY), default=0)
        return frozenset(p for p in places if p >= last)

    def breaks(self, state: Hashable) -> Iterable[int]:
        """Return the code points around every character that some position expects."""
        for place in self._places(state):
            if place < len(self._chars):
                chars = self._chars[place]
                if isinstance(chars, frozenset):
                    for char in chars:
                        yield from (ord(char), ord(char) + 1)

    def step(self, state: Hashable, char: str) -> Hashable:
        """Advance every position that accepts the character."""
        after: set[int] = set()
        for place in self._places(state):
            if place == len(self._chars):
                continue
            chars = self._chars[place]
            if chars is MANY:
                after.add(place)
            elif chars is ONE or char in chars:
                after.add(place + 1)
        return self._closure(after)

    def accepts(self, state: Hashable) -> bool:
        """Tell whether some position is the end of the pattern."""
        return len(self._chars) in self._places(state)

    @staticmethod
    def _places(state: Hashable) -> frozenset[int]:
        assert isinstance(state, frozenset)
        return state


class IntervalsMachine:
    """The machine of a set of string intervals; in state `(i, j, depth)` the cuts before `i` are passed.

    The cuts from `i` to `j` begin with the text read so far, which has `depth` characters.
    """

    def __init__(self, values: Intervals) -> None:
        self._start = values.start
        self._cuts: list[str] = [value for value, _ in values.cuts]

    def begin(self) -> Hashable:
        """Return the state in which no cut is passed."""
        return self._state(0, len(self._cuts), 0)

    def _state(self, i: int, j: int, depth: int) -> Hashable:
        return (i % 2, i % 2, 0) if i == j else (i, j, depth)  # of decided cuts only the parity matters

    def breaks(self, state: Hashable) -> Iterable[int]:
        """Return the code points around the next character of every undecided cut."""
        i, j, depth = self._unpack(state)
        for cut in self._cuts[i:j]:
            yield from (ord(cut[depth]), ord(cut[depth]) + 1)

    def step(self, state: Hashable, char: str) -> Hashable:
        """Pass the cuts that sort below the longer text; keep the cuts that begin with the longer text."""
        i, j, depth = self._unpack(state)
        if i == j:
            return state
        at = itemgetter(depth)  # cuts that share the text so far are sorted by the next character
        i = bisect_left(self._cuts, char, i, j, key=at)
        end = bisect_right(self._cuts, char, i, j, key=at)
        while i < end and len(self._cuts[i]) == depth + 1:
            i += 1
        return self._state(i, end, depth + 1)

    def accepts(self, state: Hashable) -> bool:
        """Tell whether the number of passed cuts puts the string inside."""
        return self._start ^ (self._unpack(state)[0] % 2 == 1)

    @staticmethod
    def _unpack(state: Hashable) -> tuple[int, int, int]:
        assert isinstance(state, tuple)
        return state
