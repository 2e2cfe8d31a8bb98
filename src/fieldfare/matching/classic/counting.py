"""The counting algorithm: find the satisfied predicates first, then count them for each branch.

Filters share predicates, so each distinct predicate is tested once, however many branches contain the predicate. A
branch matches when as many predicates are satisfied as the branch has. An event is matched in two steps:

1. For each dimension, a `ValueIndex` returns the satisfied constraints: single values by a hash table, ranges by sorted
   bounds, all others by a test of each distinct constraint.
2. Each satisfied predicate adds 1 to the tally of every branch that owns the predicate; a full tally is a match. A
   tally remembers the event, so that nothing is cleared between events.

Most predicates require a field, and the fields of the event lead to these predicates. The few predicates that an absent
field satisfies, such as `NOT (a = 1)`, are found by a list of the fields with such predicates.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Generic, TypeAlias, TypeVar

from fieldfare.events.event import fields_of
from fieldfare.events.values import MISSING
from fieldfare.filters import Filter, ValueSet
from fieldfare.filters.branch import Dimension
from fieldfare.filters.constraint import Constraint, Mode
from fieldfare.filters.expressions import UNCERTAIN, Expression
from fieldfare.filters.intervals import Cut, Intervals
from fieldfare.filters.valueset import Atom
from fieldfare.matching.matcher import Id, Matcher, as_filter

Entry = TypeVar("Entry")
Range: TypeAlias = tuple[Cut | tuple[()], Cut | None]
"""two ends; () is less than any cut, so that a range without a lower end sorts first"""

_LISTED: Final[dict[int, object]] = {Atom.NULL: None, Atom.FALSE: False, Atom.TRUE: True}
_LISTED_BITS: Final = sum(_LISTED)
_CLASSES: Final[dict[type, type]] = {int: float, **{of: of for of in (bool, float, str, bytes, datetime, type(None))}}
"""the types whose values can be looked up, merged where values compare equal; True is not 1"""


@dataclass(eq=False, slots=True)
class Tally(Generic[Id]):
    """A branch of a filter: the number of its predicates, and how many the event of an epoch satisfies."""

    id: Id
    need: int
    count: int = 0
    epoch: int = 0


class Counting(Matcher[Id]):
    """A matcher that counts satisfied predicates. Adding and removing filters is cheap at any time.

    >>> matcher = Counting[str]()
    >>> matcher.add("cheap", "price < 10 AND symbol = 'IBM'")
    >>> matcher.match({"price": 5, "symbol": "IBM"}), matcher.match({"price": 5})
    (['cheap'], [])
    """

    def __init__(self) -> None:
        self._filters: dict[Id, tuple[Filter, list[Tally[Id]]]] = {}
        self._owners: PredicateIndex[set[Tally[Id]]] = PredicateIndex()
        self._everything: dict[Id, None] = {}
        """filters without predicates, which would never be counted"""
        self._epoch = 0

    def add(self, id: Id, filter: Filter | str) -> None:
        """Enter each branch under each of its predicates."""
        if id in self._filters:
            raise KeyError(id)
        wanted = as_filter(filter)
        tallies = [Tally(id, len(branch)) for branch in wanted.branches]
        for branch, tally in zip(wanted.branches, tallies, strict=True):
            for dimension, constraint in branch.items():
                self._owners.setdefault(dimension, constraint, set()).add(tally)
        if wanted.is_full:
            self._everything[id] = None
        self._filters[id] = wanted, tallies

    def remove(self, id: Id) -> None:
        """Take the branches from their predicates, and drop predicates without an owner."""
        wanted, tallies = self._filters.pop(id)
        self._everything.pop(id, None)
        for branch, tally in zip(wanted.branches, tallies, strict=True):
            for dimension, constraint in branch.items():
                owners = self._owners.get(dimension, constraint)
                owners.remove(tally)
                if not owners:
                    self._owners.remove(dimension, constraint)

    def match(self, event: Mapping[str, object], mode: Mode = "overlaps") -> list[Id]:
        """Count, and collect the filters whose branches are complete."""
        self._epoch = epoch = self._epoch + 1
        matched = dict(self._everything)  # a dict, since two branches of a filter may match
        for owners in self._owners.satisfied(fields_of(event), mode):
            for tally in owners:
                count = tally.count + 1 if tally.epoch == epoch else 1
                tally.count, tally.epoch = count, epoch
                if count == tally.need:
                    matched[tally.id] = None
        return list(matched)

    def __len__(self) -> int:
        return len(self._filters)

    def __contains__(self, id: object) -> bool:
        return id in self._filters


class PredicateIndex(Generic[Entry]):
    """Distinct predicates, each a constraint on a dimension, with an entry for each."""

    def __init__(self) -> None:
        self._indexes: dict[Dimension, ValueIndex[Entry]] = {}
        self._computed: dict[Expression, ValueIndex[Entry]] = {}
        self._lenient: dict[str, ValueIndex[Entry]] = {}
        """the indexes of fields with a constraint that an absent field satisfies"""

    def get(self, dimension: Dimension, constraint: Constraint) -> Entry:
        """Return the entry of a predicate; KeyError if there is none."""
        return self._indexes[dimension].entries[constraint]

    def setdefault(self, dimension: Dimension, constraint: Constraint, entry: Entry) -> Entry:
        """Return the entry of a predicate; the given entry if there is none yet."""
        index = self._indexes.setdefault(dimension, ValueIndex())
        entry = index.setdefault(constraint, entry)
        if isinstance(dimension, Expression):
            self._computed[dimension] = index
        elif index.lenient:
            self._lenient[dimension] = index
        return entry

    def remove(self, dimension: Dimension, constraint: Constraint) -> None:
        """Drop the entry of a predicate."""
        index = self._indexes[dimension]
        index.remove(constraint)
        if not index.entries:
            del self._indexes[dimension]
            if isinstance(dimension, Expression):
                del self._computed[dimension]
        if isinstance(dimension, str) and not index.lenient:
            self._lenient.pop(dimension, None)

    def satisfied(self, fields: Mapping[str, object], mode: Mode) -> Iterator[Entry]:
        """Yield the entries of all predicates that the fields of an event satisfy."""
        for path, value in fields.items():
            index = self._indexes.get(path)
            if index is not None:
                yield from index.satisfied(value, mode)
        for path, index in self._lenient.items():
            if path not in fields:
                yield from index.satisfied(MISSING, mode)
        for expression, index in self._computed.items():
            yield from index.satisfied(expression.evaluate(fields), mode)


class ValueIndex(Generic[Entry]):
    """Distinct constraints on a dimension, with an entry for each; `satisfied` returns the entries for a value."""

    __slots__ = ("_others", "_points", "_ranges", "entries", "lenient")

    def __init__(self) -> None:
        self.entries: dict[Constraint, Entry] = {}
        self.lenient: dict[Constraint, Entry] = {}
        """the constraints that absence satisfies"""
        self._points: dict[tuple[type, object], dict[Constraint, Entry]] = {}
        self._ranges: dict[type, tuple[list[Range], list[Entry]]] = {}
        """for each class of values, sorted ranges and their entries"""
        self._others: dict[Constraint, Entry] = {}

    def setdefault(self, constraint: Constraint, entry: Entry) -> Entry:
        """Return the entry of a constraint; the given entry if there is none yet."""
        if constraint in self.entries:
            return self.entries[constraint]
        self.entries[constraint] = entry
        if MISSING in constraint.values:
            self.lenient[constraint] = entry
        points, span = _shape(constraint.values)
        for key in points:
            self._points.setdefault(key, {})[constraint] = entry
        if span is not None:
            ranges, entries = self._ranges.setdefault(span[0], ([], []))
            place = bisect_left(ranges, span[1][0], key=_low)
            ranges.insert(place, span[1])
            entries.insert(place, entry)
        elif not points:
            self._others[constraint] = entry
        return entry

    def remove(self, constraint: Constraint) -> None:
        """Drop the entry of a constraint."""
        for entries in (self.entries, self.lenient, self._others):
            entries.pop(constraint, None)
        points, span = _shape(constraint.values)
        for key in points:
            del self._points[key][constraint]
            if not self._points[key]:
                del self._points[key]
        if span is not None:
            ranges, spanned = self._ranges[span[0]]
            place = ranges.index(span[1], bisect_left(ranges, span[1][0], key=_low))
            del ranges[place], spanned[place]

    def satisfied(self, value: object, mode: Mode) -> list[Entry]:
        """Return the entries of the constraints that a value, `MISSING` or `UNCERTAIN` satisfies."""
        if value is UNCERTAIN:
            return list(self.entries.values()) if mode == "overlaps" else []
        if value is MISSING:
            return list(self.lenient.values())
        of = _CLASSES.get(type(value))
        if of is None:  # an interval, a list, an object
            return [entry for constraint, entry in self.entries.items() if constraint.matches(value, mode)]
        found = [entry for constraint, entry in self._others.items() if constraint.matches(value, mode)]
        found.extend(self._points.get((of, value), {}).values())
        if of in self._ranges and value == value:  # NaN lies in no range, and bisection would go astray
            here: Cut | tuple[()] = (value, 0)
            ranges, entries = self._ranges[of]
            begun = bisect_right(ranges, here, key=_low)
            found += [entries[i] for i, (_, end) in enumerate(ranges[:begun]) if end is None or end > here]
        return found


def _low(ends: Range) -> Cut | tuple[()]:
    return ends[0]


def _shape(values: ValueSet) -> tuple[list[tuple[type, object]], tuple[type, Range] | None]:
    """Return the values of a finite set, or the only range of a set, each with its class; or neither."""
    parts = [part for _, part in values.kinds() if isinstance(part, Intervals)]
    if values.atoms & ~_LISTED_BITS or len(parts) < sum(1 for _ in values.kinds()):
        return [], None
    listed = [part.points() for part in parts]
    if None not in listed:
        found = [value for bit, value in _LISTED.items() if values.atoms & bit]
        found += [value for points in listed for value in points or ()]
        return [(_CLASSES[type(value)], value) for value in found], None
    pieces = [piece for part in parts for piece in part.pieces()]
    low, high = pieces[0]
    end = low or high
    if values.atoms or len(pieces) > 1 or end is None:
        return [], None
    return [], (_CLASSES[type(end[0])], (low or (), high))
