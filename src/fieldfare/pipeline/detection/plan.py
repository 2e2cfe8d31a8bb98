"""`DetectPlan`: the data of a worker for detection, and `Prepared`, the compiled form in a worker.

The filters of all patterns stand in one index, each distinct filter once. Patterns with the same key make a *group*:
an event goes once to each group with a pattern for the event. A pattern without a key is a group alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from itertools import chain
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldfare.filters.filter import Filter
from fieldfare.matching.index import Index
from fieldfare.patterns import composite_type, parse_pattern
from fieldfare.patterns.conditions import Condition, Reference, Selection
from fieldfare.patterns.definition import Pattern
from fieldfare.pipeline.detection.shapes import Shape, shape
from fieldfare.pipeline.match.catalogue import About, Opened, looked_at

Ints = NDArray[np.int64]
Bits = NDArray[np.uint64]
NAMES: Final = 64
"""names of a pattern at most: a bit for each"""


class Sought(NamedTuple):
    """A pattern of a job."""

    name: str
    pattern: Pattern
    """as the automaton runs it: with the keys of the job, and events in order"""
    text: str
    """of the pattern as it was given"""
    type: str
    group: int
    shape: Shape
    disorder: int
    """microseconds that events may be late, in a stream"""

    @property
    def starts(self) -> frozenset[Any]:
        """The names with which an instance may begin."""
        program = self.pattern.program
        return frozenset().union(*(program.wants[way.target] for way in program.start if way.target >= 0))


@dataclass(frozen=True)
class DetectPlan:
    """Patterns by name, as texts, and the fields added to the key of each."""

    texts: tuple[tuple[str, str], ...]
    by: tuple[str, ...] = ()

    def prepared(self) -> Prepared:
        """Return the compiled patterns; a process compiles a plan once."""
        return _prepared(self)

    @property
    def digest(self) -> str:
        """A hash of the patterns, for the state of a stream."""
        return blake2b(repr((self.texts, self.by)).encode(), digest_size=12).hexdigest()


@lru_cache(maxsize=4)
def _prepared(plan: DetectPlan) -> Prepared:
    return Prepared(plan)


class Prepared:
    """The patterns of a job, compiled, with a common index for all filters."""

    def __init__(self, plan: DetectPlan) -> None:
        """Parse the patterns, and make the index."""
        groups: dict[tuple[str, ...] | str, int] = {}
        self.keys: list[tuple[str, ...]] = []
        """By group: the fields of the key."""
        self.sought: list[Sought] = []
        for name, text in plan.texts:
            given = parse_pattern(text)
            keys = tuple(dict.fromkeys((*given.keys, *plan.by)))
            group = groups.setdefault(keys or name, len(groups))
            if group == len(self.keys):
                self.keys.append(keys)
            run = replace(given, keys=keys, disorder=0)
            self.sought.append(
                Sought(name, run, given.text, composite_type(given.text), group, shape(run), given.disorder)
            )
        self._atoms: dict[Filter, int] = {}
        self._concerned: list[list[tuple[int, int]]] = []
        for number, one in enumerate(self.sought):
            for bit, name in enumerate(one.pattern.names):
                atom = self._atoms.setdefault(one.pattern.filters[name], len(self._atoms))
                if atom == len(self._concerned):
                    self._concerned.append([])
                self._concerned[atom].append((number, bit))

    @cached_property
    def opened(self) -> Opened:
        """The filters of all patterns, for `matched`: numbers are numbers of atoms."""
        index: Index[int] = Index((number, filter) for filter, number in self._atoms.items())
        return Opened(About(1, len(self._atoms), looked_at([*self._atoms])), index, None, None)

    @cached_property
    def references(self) -> list[str]:
        """The fields in keys, conditions and selections."""
        found: dict[str, None] = dict.fromkeys(chain.from_iterable(self.keys))
        for one in self.sought:
            found |= dict.fromkeys(reference.path for reference in references(one.pattern) if reference.path)
        return [*found]

    @cached_property
    def groups_of(self) -> Ranges:
        """By atom: the groups with a pattern of the atom."""
        numbers = ({self.sought[pattern].group for pattern, _ in entries} for entries in self._concerned)
        return Ranges.of([[(group, 0) for group in sorted(some)] for some in numbers])

    def entries(self, group: int) -> Ranges:
        """By atom: the patterns of a group with the atom, and the bits of the names."""
        found = self._entries.get(group)
        if found is None:
            mine = [[one for one in entries if self.sought[one[0]].group == group] for entries in self._concerned]
            found = self._entries[group] = Ranges.of(mine)
        return found

    @cached_property
    def _entries(self) -> dict[int, Ranges]:
        return {}

    @cached_property
    def table(self) -> ShapeTable:
        """The shapes of all patterns as arrays."""
        return ShapeTable.of(self.sought)


class Ranges(NamedTuple):
    """Lists of pairs, end to end."""

    starts: Ints
    counts: Ints
    first: Ints
    second: Ints

    @classmethod
    def of(cls, lists: Sequence[Sequence[tuple[int, int]]]) -> Ranges:
        """Put lists end to end."""
        counts = np.array([len(one) for one in lists], np.int64)
        pairs = np.array([*chain.from_iterable(lists)], np.int64).reshape(-1, 2)
        return cls(np.cumsum(counts) - counts, counts, pairs[:, 0], pairs[:, 1])

    def spread(self, numbers: Ints) -> tuple[Ints, Ints]:
        """Return the places of the pairs of some lists, and for each pair the place of the list in `numbers`."""
        counts = self.counts[numbers]
        before = np.cumsum(counts) - counts
        of = np.repeat(np.arange(len(numbers)), counts)
        return np.arange(len(of)) - before[of] + self.starts[numbers][of], of


class ShapeTable(NamedTuple):
    """Shapes as arrays, a row for each pattern."""

    starts: Bits
    clauses: Bits
    """a column for each clause; all bits where a pattern has no more"""
    events: Ints
    lifetime: Ints
    window: Ints

    @classmethod
    def of(cls, sought: Sequence[Sought]) -> ShapeTable:
        """Return the table of some patterns."""
        most = max((len(one.shape.clauses) for one in sought), default=0)
        clauses = np.full((len(sought), most), np.iinfo(np.uint64).max, np.uint64)
        starts = np.zeros(len(sought), np.uint64)
        for row, one in enumerate(sought):
            bits = bits_of(one.pattern)
            starts[row] = _mask(one.starts, bits)
            for column, clause in enumerate(one.shape.clauses):
                clauses[row, column] = _mask(clause, bits)
        return cls(
            starts,
            clauses,
            np.array([one.shape.events for one in sought], np.int64),
            np.array([one.shape.lifetime for one in sought], np.int64),
            np.array([one.pattern.window for one in sought], np.int64),
        )


def bits_of(pattern: Pattern) -> dict[str, int]:
    """Return the bit of each name."""
    return {name: bit for bit, name in enumerate(pattern.names)}


def _mask(names: frozenset[Any], bits: Mapping[str, int]) -> np.uint64:
    return np.uint64(sum(1 << bits[name] for name in names if name in bits))


def references(pattern: Pattern) -> list[Reference]:
    """Return the values in conditions and selections of a pattern."""
    parts: list[Condition | Selection] = [*pattern.conditions, *pattern.selections]
    return [one for part in parts for one in part.references]
