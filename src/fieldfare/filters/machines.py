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
"""above this a language is too complex to analyse, and its predicate is kept opaque"""


class TooComplex(ValueError):
    """A language whose automaton is too large."""


class Machine(Protocol):
    """A deterministic machine that reads a string: what patterns and intervals have in common."""

    def begin(self) -> Hashable:
        """The state before the first character."""

    def breaks(self, state: Hashable) -> Iterable[int]:
        """The code points at which the next step may begin to differ."""

    def step(self, state: Hashable, char: str) -> Hashable:
        """The state after one more character."""

    def accepts(self, state: Hashable) -> bool:
        """Is the string read so far inside?"""


class PatternMachine:
    """Reads a pattern; a state is the set of places where the pattern may be."""

    def __init__(self, pattern: Pattern) -> None:
        if len(pattern.tokens) >= MAX_STATES:  # it has a state for each at the least: no need to make them
            raise TooComplex(f"more than {MAX_STATES} states")
        self._chars = [
            token if isinstance(token, Wild) else case_variants(token) if pattern.ignore_case else frozenset({token})
            for token in pattern.tokens
        ]

    def begin(self) -> Hashable:
        """The first place, and what a leading `%` lets it skip."""
        return self._settle({0})

    def _settle(self, places: set[int]) -> Hashable:
        for place in sorted(places):
            if place < len(self._chars) and self._chars[place] is MANY:
                places.add(place + 1)  # the normal form has no two % in a row
        # A later % accepts all that an earlier place could still come to: forget the earlier ones.
        last = max((p for p in places if p < len(self._chars) and self._chars[p] is MANY), default=0)
        return frozenset(p for p in places if p >= last)

    def breaks(self, state: Hashable) -> Iterable[int]:
        """Around every character some place waits for."""
        for place in self._places(state):
            if place < len(self._chars):
                chars = self._chars[place]
                if isinstance(chars, frozenset):
                    for char in chars:
                        yield from (ord(char), ord(char) + 1)

    def step(self, state: Hashable, char: str) -> Hashable:
        """Move every place that the character lets move."""
        after: set[int] = set()
        for place in self._places(state):
            if place == len(self._chars):
                continue
            chars = self._chars[place]
            if chars is MANY:
                after.add(place)
            elif chars is ONE or char in chars:
                after.add(place + 1)
        return self._settle(after)

    def accepts(self, state: Hashable) -> bool:
        """Has some place come to the end?"""
        return len(self._chars) in self._places(state)

    @staticmethod
    def _places(state: Hashable) -> frozenset[int]:
        assert isinstance(state, frozenset)
        return state


class IntervalsMachine:
    """Reads intervals of strings. In state `(i, j, depth)` i cuts are passed, those up to j share the text so far."""

    def __init__(self, values: Intervals) -> None:
        self._start = values.start
        self._cuts: list[str] = [value for value, _ in values.cuts]

    def begin(self) -> Hashable:
        """Nothing read, nothing passed."""
        return self._settle(0, len(self._cuts), 0)

    def _settle(self, i: int, j: int, depth: int) -> Hashable:
        return (i % 2, i % 2, 0) if i == j else (i, j, depth)  # only the parity of what is decided matters

    def breaks(self, state: Hashable) -> Iterable[int]:
        """Around the next character of every undecided cut."""
        i, j, depth = self._unpack(state)
        for cut in self._cuts[i:j]:
            yield from (ord(cut[depth]), ord(cut[depth]) + 1)

    def step(self, state: Hashable, char: str) -> Hashable:
        """Pass the cuts that are now below; keep those that go on with this character."""
        i, j, depth = self._unpack(state)
        if i == j:
            return state
        at = itemgetter(depth)  # cuts that share the text so far are sorted by what comes next
        i = bisect_left(self._cuts, char, i, j, key=at)
        end = bisect_right(self._cuts, char, i, j, key=at)
        while i < end and len(self._cuts[i]) == depth + 1:
            i += 1
        return self._settle(i, end, depth + 1)

    def accepts(self, state: Hashable) -> bool:
        """Inside after an odd number of toggles."""
        return self._start ^ (self._unpack(state)[0] % 2 == 1)

    @staticmethod
    def _unpack(state: Hashable) -> tuple[int, int, int]:
        assert isinstance(state, tuple)
        return state
