"""A pattern as an automaton over places: each place is an occurrence of a variable, with repetitions written out.

After each place, `successors` lists the places that may come next, the preferred first; END means that the match may
end. The list depends on two facts: whether the next row is the first of the partition (`^`), and whether there is no
next row (`$`). A search that tries successors in this order finds the preferred match of the standard first.

A path without a row in between never passes the same point of the pattern twice, so that repetitions of the empty
pattern end. Trino's matcher does the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldfare.filters.errors import FilterTooComplex
from fieldfare.patterns.row_patterns.syntax import (
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Variable,
)

END: Final = -1
SITUATIONS: Final = 4
"""first row or not, plus twice: no row left or not"""
MAX_POINTS: Final = 20_000
"""points of a pattern with repetitions and permutations written out"""


@dataclass(frozen=True)
class Automaton:
    """The places of a pattern, and what may follow.

    The successors after place p in situation s are `successors[starts[4 * (p + 1) + s] : starts[4 * (p + 1) + s + 1]]`;
    p = -1 is the beginning.
    """

    variables: tuple[str, ...]
    """the names of the variables, by number"""
    variable_at: NDArray[np.int32]
    """the number of the variable of each place"""
    excluded: NDArray[np.bool_]
    """the places within an exclusion"""
    starts: NDArray[np.int32]
    successors: NDArray[np.int32]

    def after(self, place: int, situation: int) -> list[int]:
        """Return the places that may follow a place."""
        at = SITUATIONS * (place + 1) + situation
        return [int(one) for one in self.successors[self.starts[at] : self.starts[at + 1]]]


class _Point(NamedTuple):
    """A point of the pattern: a place, a fork with ways in order, an anchor or the end."""

    kind: str
    ways: list[int]
    name: str = ""
    excluded: bool = False


class _Builder:
    """Points, made from the end of the pattern to its beginning: each part is told where to go on."""

    def __init__(self) -> None:
        self.points: list[_Point] = []

    def add(self, point: _Point) -> int:
        self.points.append(point)
        if len(self.points) > MAX_POINTS:
            raise FilterTooComplex(f"the pattern has more than {MAX_POINTS} points with repetitions written out")
        return len(self.points) - 1

    def part(self, pattern: Pattern, then: int, excluded: bool = False) -> int:
        """Return the point where a part begins, if the pattern goes on at the point `then`."""
        match pattern:
            case Variable(name):
                return self.add(_Point("place", [then], name, excluded))
            case Anchor(end):
                return self.add(_Point("end anchor" if end else "start anchor", [then]))
            case Concatenation(parts):
                return self._all(parts, then, excluded)
            case Alternation(parts):
                return self.add(_Point("fork", [self.part(part, then, excluded) for part in parts]))
            case Permutation(parts):
                ways = [self._all(order, then, excluded) for order in permutations(parts)]
                return self.add(_Point("fork", ways))
            case Exclusion(part):
                return self.part(part, then, excluded=True)
            case Repetition():
                return self._repetition(pattern, then, excluded)

    def _all(self, parts: Sequence[Pattern], then: int, excluded: bool) -> int:
        for part in reversed(parts):
            then = self.part(part, then, excluded)
        return then

    def _repetition(self, pattern: Repetition, then: int, excluded: bool) -> int:
        part, low, high = pattern.part, pattern.low, pattern.high
        if high is None:
            # The loop: a repetition, then the fork that repeats or leaves.
            fork = self.add(_Point("fork", []))
            begin = self.part(part, fork, excluded)
            self.points[fork].ways.extend([begin, then] if pattern.greedy else [then, begin])
            if low == 0:
                return self.add(_Point("fork", [begin, then] if pattern.greedy else [then, begin]))
            low -= 1
        else:
            begin = then
            for _ in range(high - low):
                more = self.part(part, begin, excluded)
                begin = self.add(_Point("fork", [more, then] if pattern.greedy else [then, more]))
        for _ in range(low):
            begin = self.part(part, begin, excluded)
        return begin


def compile_pattern(pattern: Pattern) -> Automaton:
    """Return the automaton of a pattern.

    >>> from fieldfare.patterns.row_patterns.parser import parse_clause
    >>> automaton = compile_pattern(parse_clause("PATTERN (A B*)").pattern)
    >>> [automaton.after(place, 0) for place in (-1, 0, 1)]
    [[0], [1, -1], [1, -1]]
    """
    builder = _Builder()
    end = builder.add(_Point("end", []))
    begin = builder.part(pattern, end)
    places = sorted((at for at, point in enumerate(builder.points) if point.kind == "place"), reverse=True)
    numbers = {at: number for number, at in enumerate(places)}
    names = tuple(dict.fromkeys(builder.points[at].name for at in places))
    entries = [begin, *(builder.points[at].ways[0] for at in places)]
    starts, successors = [0], list[int]()
    for entry in entries:
        for situation in range(SITUATIONS):
            successors += _closure(builder.points, entry, numbers, first=bool(situation & 1), last=bool(situation & 2))
            starts.append(len(successors))
    return Automaton(
        names,
        np.array([names.index(builder.points[at].name) for at in places], np.int32),
        np.array([builder.points[at].excluded for at in places], np.bool_),
        np.array(starts, np.int32),
        np.array(successors or [0], np.int32),
    )


def _closure(
    points: Sequence[_Point], entry: int, numbers: dict[int, int], *, first: bool, last: bool
) -> list[int]:  # fmt: skip
    """Return the places and the end that a point reaches without a row, in order of preference, each once."""
    found: list[int] = []
    seen: set[int] = set()
    waiting = [entry]
    while waiting:
        at = waiting.pop()
        if at in seen:
            continue
        seen.add(at)
        point = points[at]
        if point.kind == "end":
            found.append(END)
            break  # whatever comes later is less preferred than a match that is complete
        if point.kind == "place":
            found.append(numbers[at])
        elif point.kind == "fork" or (first if point.kind == "start anchor" else last):
            waiting.extend(reversed(point.ways))
    return found
