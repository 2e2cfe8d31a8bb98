"""`ValueSet`: the values that a constraint allows, as an exact set over all kinds.

`price < 10`, `name LIKE 'A%'`, `EXISTS x` and `tag IN ('a', 'b')` are sets of values, and all else follows: matching is
membership, covering is ⊇, overlap is ∩ ≠ ∅, merging is ∪, negation is the complement. A set has a part for each ordered
kind, and a bit for each value or kind without order: missing, null, true, false, NaN, list, object. NOT is exact
because "missing" is a value among others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Final, cast

from fieldfare.events.values import MISSING, Interval, Kind, Ordered, Scalar, kind_of, utc
from fieldfare.filters import intervals, strings
from fieldfare.filters.intervals import Intervals
from fieldfare.filters.patterns import Pattern
from fieldfare.filters.strings import StringSet


class Atom:
    """Bits for values without order, and for kinds whose values a set does not distinguish.

    Plain integers: `enum.IntFlag` is some twenty times slower, and atoms occur in every operation.
    """

    MISSING: Final = 1
    NULL: Final = 2
    FALSE: Final = 4
    TRUE: Final = 8
    NAN: Final = 16
    LIST: Final = 32
    OBJECT: Final = 64
    ALL: Final = 127


@dataclass(frozen=True, slots=True)
class ValueSet:
    """An immutable set of values with the operators of a set. Equal sets are equal objects with equal hashes.

    >>> cheap = between(None, 10)
    >>> 9.5 in cheap, "9.5" in cheap, cheap >= between(1, 5), (cheap & between(20, None)).is_empty
    (True, False, True, True)
    >>> MISSING in ~cheap
    True
    """

    atoms: int = 0
    numbers: Intervals = intervals.EMPTY
    strings: StringSet = intervals.EMPTY
    times: Intervals = intervals.EMPTY
    bytes: Intervals = intervals.EMPTY

    @property
    def is_empty(self) -> bool:
        """Tell whether the set has no value."""
        return (
            not self.atoms
            and self.numbers.is_empty
            and self.strings.is_empty
            and self.times.is_empty
            and self.bytes.is_empty
        )

    @property
    def is_full(self) -> bool:
        """Tell whether the set has every value, and absence too."""
        return self.atoms == Atom.ALL and self == FULL

    def __contains__(self, value: object) -> bool:
        part = self._part(value)
        return part if isinstance(part, bool) else cast(Any, value) in part

    def _part(self, value: object) -> StringSet | bool:
        """Return the part that decides about a value, or the decision."""
        if value is MISSING:
            return bool(self.atoms & Atom.MISSING)
        match kind_of(value):
            case Kind.NUMBER:
                return self.numbers if value == value else bool(self.atoms & Atom.NAN)
            case Kind.STRING:
                return self.strings
            case Kind.BOOL:
                return bool(self.atoms & (Atom.TRUE if value else Atom.FALSE))
            case Kind.TIME:
                return self.times
            case Kind.BYTES:
                return self.bytes
            case Kind.NULL:
                return bool(self.atoms & Atom.NULL)
            case Kind.LIST:
                return bool(self.atoms & Atom.LIST)
            case Kind.OBJECT:
                return bool(self.atoms & Atom.OBJECT)
            case _:
                raise TypeError(f"no field can hold {value!r}; an Interval is tested with meets() or holds()")

    def of_kind(self, kind: Kind) -> StringSet:
        """Return the part for an ordered kind."""
        match kind:
            case Kind.NUMBER:
                return self.numbers
            case Kind.STRING:
                return self.strings
            case Kind.TIME:
                return self.times
            case Kind.BYTES:
                return self.bytes
        raise KeyError(kind)

    def meets(self, value: object) -> bool:
        """Tell whether the value or, for an interval, some point of the interval is inside."""
        if isinstance(value, Interval):
            return strings.overlap(self.of_kind(value.kind), intervals.of_interval(value))
        return value in self

    def holds(self, value: object) -> bool:
        """Tell whether the value or, for an interval, every point of the interval is inside."""
        if isinstance(value, Interval):
            return strings.contains(self.of_kind(value.kind), intervals.of_interval(value))
        return value in self

    def __invert__(self) -> ValueSet:
        return ValueSet(Atom.ALL & ~self.atoms, ~self.numbers, ~self.strings, ~self.times, ~self.bytes)

    def __or__(self, other: ValueSet) -> ValueSet:
        return ValueSet(
            self.atoms | other.atoms,
            self.numbers | other.numbers,
            strings.either(self.strings, other.strings),
            self.times | other.times,
            self.bytes | other.bytes,
        )

    def __and__(self, other: ValueSet) -> ValueSet:
        return ValueSet(
            self.atoms & other.atoms,
            self.numbers & other.numbers,
            strings.both(self.strings, other.strings),
            self.times & other.times,
            self.bytes & other.bytes,
        )

    def __sub__(self, other: ValueSet) -> ValueSet:
        return self & ~other

    def __ge__(self, other: ValueSet) -> bool:
        return self is other or (
            self.atoms & other.atoms == other.atoms
            and self.numbers >= other.numbers
            and strings.contains(self.strings, other.strings)
            and self.times >= other.times
            and self.bytes >= other.bytes
        )

    def overlaps(self, other: ValueSet) -> bool:
        """Tell whether some value is in both sets."""
        return (
            self.atoms & other.atoms != 0
            or self.numbers.overlaps(other.numbers)
            or strings.overlap(self.strings, other.strings)
            or self.times.overlaps(other.times)
            or self.bytes.overlaps(other.bytes)
        )

    def kinds(self) -> Iterator[tuple[Kind, StringSet]]:
        """Yield the ordered kinds that have values inside, with their parts."""
        for kind in (Kind.NUMBER, Kind.STRING, Kind.TIME, Kind.BYTES):
            part = self.of_kind(kind)
            if not part.is_empty:
                yield kind, part


EMPTY: Final = ValueSet()
FULL: Final = ~EMPTY
ABSENT: Final = ValueSet(atoms=Atom.MISSING)
PRESENT: Final = ~ABSENT
TRUE: Final = ValueSet(atoms=Atom.TRUE)
FALSE: Final = ValueSet(atoms=Atom.FALSE)

_WHOLE: Final[dict[Kind, ValueSet]] = {
    Kind.NULL: ValueSet(atoms=Atom.NULL),
    Kind.BOOL: ValueSet(atoms=Atom.TRUE | Atom.FALSE),
    Kind.NUMBER: ValueSet(atoms=Atom.NAN, numbers=intervals.FULL),
    Kind.STRING: ValueSet(strings=intervals.FULL),
    Kind.TIME: ValueSet(times=intervals.FULL),
    Kind.BYTES: ValueSet(bytes=intervals.FULL),
    Kind.LIST: ValueSet(atoms=Atom.LIST),
    Kind.OBJECT: ValueSet(atoms=Atom.OBJECT),
}
NAN: Final = ValueSet(atoms=Atom.NAN)


def whole(kind: Kind) -> ValueSet:
    """Return the set of all values of a kind."""
    return _WHOLE[kind]


def _of_kind(kind: Kind | None, part: StringSet) -> ValueSet:
    match kind:
        case Kind.NUMBER:
            return ValueSet(numbers=cast(Intervals, part))
        case Kind.STRING:
            return ValueSet(strings=part)
        case Kind.TIME:
            return ValueSet(times=cast(Intervals, part))
        case Kind.BYTES:
            return ValueSet(bytes=cast(Intervals, part))
    raise TypeError(f"values of kind {kind.value if kind else '?'} have no order")


def between(low: Ordered | None, high: Ordered | None, closed: str = "[]") -> ValueSet:
    """Return the values of a kind between two ends; None is unbounded, and the other end gives the kind."""
    kind = kind_of(high if low is None else low)
    if low is not None and high is not None and kind is not kind_of(high):
        raise TypeError(f"the ends of a range must be of one kind: {low!r}, {high!r}")
    if kind is Kind.TIME:
        low, high = (None if end is None else utc(cast(Any, end)) for end in (low, high))
    return _of_kind(kind, intervals.interval(low, high, closed))


def one_of(values: Iterable[Scalar]) -> ValueSet:
    """Return the set of the given values. NaN equals nothing, so a listed NaN adds nothing."""
    numbers: list[Any] = []
    texts: list[Any] = []
    times: list[Any] = []
    binaries: list[Any] = []
    atoms = 0
    for value in values:
        match kind_of(value):
            case Kind.STRING:
                texts.append(value)
            case Kind.NUMBER:
                numbers.append(value)
            case Kind.NULL:
                atoms |= Atom.NULL
            case Kind.BOOL:
                atoms |= Atom.TRUE if value else Atom.FALSE
            case Kind.TIME:
                times.append(utc(cast(Any, value)))
            case Kind.BYTES:
                binaries.append(value)
            case _:
                raise TypeError(f"a field cannot be compared with {value!r}")
    return ValueSet(
        atoms, intervals.points(numbers), intervals.points(texts), intervals.points(times), intervals.points(binaries)
    )


def like(pattern: Pattern) -> ValueSet:
    """Return the set of the strings that match a pattern."""
    return ValueSet(strings=strings.matching(pattern))
