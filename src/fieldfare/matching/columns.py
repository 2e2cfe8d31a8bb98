"""Columns: how filters and events become integers that kernels can compare.

Every attribute has up to a handful of *columns*, each with one 64-bit key per event: its `TAG` (the kind of value, or
which of null, true, false), its value as a `NUMBER`, a `STRING` (the number of a known constant) or a `TIME`, and the
first or last n characters where a filter asks for a prefix or suffix. A filter becomes one or more *entries*, each a
conjunction of predicates "the key of column c lies in this range, or in this set, or does not". Where a constraint
cannot be said exactly in that way, the entry says what is necessary and is marked to be verified.

Attributes and constants that no filter mentions have no column and no number: they cost nothing.
"""

from __future__ import annotations

import itertools
import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from fieldfare.events.values import Interval
from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import Intervals, after_prefix, point
from fieldfare.filters.patterns import MANY, Pattern
from fieldfare.filters.strings import Language, StringSet
from fieldfare.filters.valueset import Atom, ValueSet
from fieldfare.matching.needles import Needle

MISSING_KEY: Final = -(2**63)
"""the key of a column that an event has no value for"""
WILD_KEY: Final = 2**63 - 1
"""the key of what is not one point (a list, an interval, an integer too long for a float): it may be anything"""
UNKNOWN_KEY: Final = -2
"""the key of a string that no filter mentions"""
LOWEST, HIGHEST = MISSING_KEY + 1, WILD_KEY - 1

TAG, NUMBER, STRING, TIME, PREFIX, SUFFIX = range(6)
"""roles of columns"""
RANGE, SET, NOT_RANGE, NOT_SET = range(4)
"""kinds of predicates; the last two are true of a missing key"""
OPEN_LOW, OPEN_HIGH = 1, 2

NULL_TAG, FALSE_TAG, TRUE_TAG, NAN_TAG, LIST_TAG, OBJECT_TAG, NUMBER_TAG, STRING_TAG, TIME_TAG, BYTES_TAG = range(1, 11)
_ATOM_TAGS: Final = {
    Atom.NULL: NULL_TAG, Atom.FALSE: FALSE_TAG, Atom.TRUE: TRUE_TAG, Atom.NAN: NAN_TAG, Atom.LIST: LIST_TAG,
    Atom.OBJECT: OBJECT_TAG,
}  # fmt: skip
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)
MAX_ENTRIES: Final = 16
"""alternatives of a branch that become entries of their own; beyond, the branch is verified"""


class Predicate(NamedTuple):
    """The key of a column lies in [low, high], or in `keys`; or, for the NOT_ kinds, does not."""

    column: int
    kind: int
    low: int
    high: int
    keys: tuple[int, ...] = ()
    open: int = 0
    """OPEN_LOW, OPEN_HIGH: the range of values was open there, which keys need not know, but the way back does"""


class Entry(NamedTuple):
    """A conjunction of predicates: necessary for a branch and, unless it must be verified, sufficient."""

    predicates: tuple[Predicate, ...]
    verify: bool
    needle: Needle | None = None
    """a text that a field must contain, where that is the best clue there is"""


def number_key(value: float) -> int:
    """A 64-bit integer that orders as the floats do."""
    bits: int = struct.unpack("<q", struct.pack("<d", value + 0.0))[0]  # + 0.0 turns -0.0 into 0.0
    return bits if bits >= 0 else bits ^ 0x7FFFFFFFFFFFFFFF


def number_of_key(key: int) -> float:
    """The float of a key."""
    value: float = struct.unpack("<d", struct.pack("<q", key if key >= 0 else key ^ 0x7FFFFFFFFFFFFFFF))[0]
    return value


def time_key(value: datetime) -> int:
    """Microseconds since 1970."""
    return (value - _EPOCH) // _TICK


def time_of_key(key: int) -> datetime:
    """The timestamp of a key."""
    return _EPOCH + key * _TICK


@dataclass
class Attribute:
    """The columns of one attribute; -1 where there is none."""

    path: str
    tag: int = -1
    number: int = -1
    string: int = -1
    time: int = -1
    strings: dict[str, int] = field(default_factory=dict)
    """numbers of the string constants, in the order of their numbers"""
    slices: list[tuple[int, int, dict[str, int]]] = field(default_factory=list)
    """prefixes (length > 0) and suffixes (length < 0): length, column, numbers of the constants"""


class Column(NamedTuple):
    """What a column is."""

    attribute: Attribute
    role: int
    length: int = 0


class Columns:
    """The columns that filters have asked for so far. They are only ever added to."""

    def __init__(self) -> None:
        self.attributes: dict[str, Attribute] = {}
        self.columns: list[Column] = []
        self.numbers: list[int] = []
        """the columns whose keys come as raw floats"""

    def __len__(self) -> int:
        return len(self.columns)

    @classmethod
    def restored(cls, described: Iterable[tuple[str, int, int, int]], texts: Iterator[str]) -> Columns:
        """Columns as they were: path, role, length and number of texts of each, and all their texts in a row."""
        columns = cls()
        for path, role, length, count in described:
            attribute = columns.attribute(path)
            numbers = {text: number for number, text in enumerate(itertools.islice(texts, count))}
            if role in (PREFIX, SUFFIX):
                attribute.slices.append((length, len(columns.columns), numbers))
                columns.columns.append(Column(attribute, role, length))
            else:
                columns.column(attribute, role)
                if role == STRING:
                    attribute.strings = numbers
        return columns

    @staticmethod
    def texts(column: Column) -> dict[str, int]:
        """The numbers of the texts that a column knows."""
        if column.role == STRING:
            return column.attribute.strings
        return next((known for length, _, known in column.attribute.slices if length == column.length), {})

    def attribute(self, path: str) -> Attribute:
        """The attribute of a path, made if it is new."""
        found = self.attributes.get(path)
        if found is None:
            found = self.attributes[path] = Attribute(path)
        return found

    def column(self, attribute: Attribute, role: int) -> int:
        """The column of an attribute for a role other than an affix, made if it is new."""
        name = ("tag", "number", "string", "time")[role]
        column: int = getattr(attribute, name)
        if column < 0:
            column = len(self.columns)
            self.columns.append(Column(attribute, role))
            if role == NUMBER:
                self.numbers.append(column)
            setattr(attribute, name, column)
        return column

    def _slice(self, attribute: Attribute, length: int, text: str) -> tuple[int, int]:
        """The column for prefixes (or, negative, suffixes) of a length, and the number of one of them."""
        for known, column, numbers in attribute.slices:
            if known == length:
                return column, numbers.setdefault(text, len(numbers))
        column = len(self.columns)
        self.columns.append(Column(attribute, PREFIX if length > 0 else SUFFIX, length))
        attribute.slices.append((length, column, {text: 0}))
        return column, 0

    # Filters to entries

    def entries(self, wanted: Filter) -> list[Entry]:
        """The entries of a filter: its branches, and the alternatives that a constraint of several kinds has."""
        return [entry for branch in wanted.branches for entry in self._branch(branch)]

    def _branch(self, branch: Branch) -> Iterator[Entry]:
        sides: list[list[Entry]] = []
        verify = False
        count = 1
        for dimension, wanted in branch.items():
            if not isinstance(dimension, str):
                verify = True
                continue
            ways = self._constraint(dimension, wanted)
            if count * len(ways) > MAX_ENTRIES:
                verify = True
                continue
            count *= len(ways)
            sides.append(ways)
        needle = max(_needles(branch), key=lambda found: len(found[1]), default=None) if verify or sides else None
        for choice in itertools.product(*sides):
            predicates = tuple(predicate for way in choice for predicate in way.predicates)
            unsure = verify or any(way.verify for way in choice)
            telling = any(
                (p.kind == RANGE and p.low == p.high) or p.kind == SET for p in predicates if not self._is_tag(p)
            )
            yield Entry(predicates, unsure, None if telling or not unsure else needle)

    def _is_tag(self, predicate: Predicate) -> bool:
        return self.columns[predicate.column].role == TAG

    def _constraint(self, path: str, wanted: Constraint) -> list[Entry]:
        """Alternatives whose union is the constraint. Events with a list there are verified, whatever they say."""
        attribute = self.attribute(path)
        values = wanted.values
        if not values.atoms and sum(1 for _ in _kinds(values)) == 1:  # most are: values of one kind
            return list(self._including(attribute, values))
        if not wanted.is_plain:
            values = values - ValueSet(atoms=Atom.LIST)
            if values.is_empty:
                return [Entry((self._tags(attribute, SET, {LIST_TAG}),), True)]
        outside = ~values
        if values.atoms & Atom.MISSING or _parts(outside) < _parts(values):
            return [self._excluding(attribute, outside)]
        return list(self._including(attribute, values))

    def _tags(self, attribute: Attribute, kind: int, tags: Iterable[int]) -> Predicate:
        keys = tuple(sorted(tags))
        column = self.column(attribute, TAG)
        if keys[-1] - keys[0] == len(keys) - 1:
            return Predicate(column, RANGE if kind == SET else NOT_RANGE, keys[0], keys[-1])
        return Predicate(column, kind, 0, 0, keys)

    def _including(self, attribute: Attribute, values: ValueSet) -> Iterator[Entry]:
        """One alternative or more for each kind that has values in the set."""
        tags = {tag for atom, tag in _ATOM_TAGS.items() if values.atoms & atom}
        verified: set[int] = set()
        for tag, part in _kinds(values):
            if part.is_full:
                tags.add(tag)
            elif tag == STRING_TAG:
                ways = list(self._strings(attribute, part))
                if ways:
                    yield from ways
                else:
                    verified.add(tag)
            elif tag == BYTES_TAG or not isinstance(part, Intervals):
                verified.add(tag)
            else:
                yield from self._ordered(attribute, NUMBER if tag == NUMBER_TAG else TIME, part)
        if tags:
            yield Entry((self._tags(attribute, SET, tags),), False)
        if verified:
            yield Entry((self._tags(attribute, SET, verified),), True)

    def _ordered(self, attribute: Attribute, role: int, part: Intervals) -> Iterator[Entry]:
        """Numbers or times: points as one set, every interval as a range of its own."""
        column = self.column(attribute, role)
        keys: list[int] = []
        for low, high in part.pieces():
            first, last, exact, how = key_range(role, low, high)
            if exact and point(low, high) is not None:
                keys.append(first)
            else:
                yield Entry((Predicate(column, RANGE, first, last, (), how),), not exact)
        if keys:
            yield Entry((_one_of(column, keys),), False)

    def _strings(self, attribute: Attribute, part: StringSet) -> Iterator[Entry]:
        """Constants, prefixes and suffixes; nothing if the set has other parts."""
        if isinstance(part, Language):
            yield from self._patterns(attribute, part)
            return
        texts, prefixes = [], []
        for low, high in part.pieces():
            single = point(low, high)
            if single is not None:
                texts.append(single[0])
            elif low is not None and low[0] and high == (after_prefix(low[0]), 0):
                prefixes.append(low[0])
            else:
                return
        for text in prefixes:
            column, key = self._slice(attribute, len(text), text)
            yield Entry((Predicate(column, RANGE, key, key),), False)
        if texts:
            column = self.column(attribute, STRING)
            yield Entry(
                (_one_of(column, [attribute.strings.setdefault(t, len(attribute.strings)) for t in texts]),), False
            )

    def _patterns(self, attribute: Attribute, part: Language) -> Iterator[Entry]:
        """A pattern that must match gives what it begins and ends with; only a lone suffix is exact."""
        paths = list(part.paths())
        if len(paths) != 1 or not paths[0][0]:
            return
        fits, fails, leaf = paths[0]
        predicates: list[Predicate] = []
        for pattern in fits:
            predicates.extend(self._affixes(attribute, pattern))
        lone = len(fits) == 1 and not fails and leaf.is_full and _is_suffix(fits[0])
        if predicates:
            yield Entry(tuple(predicates), not lone)

    def _affixes(self, attribute: Attribute, pattern: Pattern) -> Iterator[Predicate]:
        if pattern.ignore_case:
            return
        for length, text in ((1, _leading(pattern.tokens)), (-1, _leading(pattern.tokens[::-1])[::-1])):
            if text:
                column, key = self._slice(attribute, length * len(text), text)
                yield Predicate(column, RANGE, key, key)

    def _excluding(self, attribute: Attribute, outside: ValueSet) -> Entry:
        """Everything but `outside`, as one conjunction of what must not be."""
        predicates: list[Predicate] = []
        verify = False
        tags = {tag for atom, tag in _ATOM_TAGS.items() if outside.atoms & atom}
        for tag, part in _kinds(outside):
            if part.is_full:
                tags.add(tag)
            elif tag == STRING_TAG:
                denied = list(self._strings(attribute, part))
                verify |= not denied or any(entry.verify or len(entry.predicates) > 1 for entry in denied)
                predicates += [_denied(e.predicates[0]) for e in denied if not e.verify and len(e.predicates) == 1]
            elif tag == BYTES_TAG or not isinstance(part, Intervals):
                verify = True
            else:
                for entry in self._ordered(attribute, NUMBER if tag == NUMBER_TAG else TIME, part):
                    verify |= entry.verify
                    predicates += [] if entry.verify else [_denied(entry.predicates[0])]
        if outside.atoms & Atom.MISSING:
            predicates.append(Predicate(self.column(attribute, TAG), RANGE, NULL_TAG, BYTES_TAG))
        if tags:
            predicates.append(self._tags(attribute, NOT_SET, tags))
        return Entry(tuple(predicates), verify)

    # Events to keys

    def encode(self, fields: Mapping[str, object], blank: bytes) -> bytearray:
        """The keys of one event, numbers as raw floats that kernels turn into keys. `blank` has all keys missing."""
        keys = bytearray(blank)
        whole = memoryview(keys).cast("q")
        real = memoryview(keys).cast("d")
        attributes = self.attributes
        for path, value in fields.items():
            attribute = attributes.get(path)
            if attribute is None:
                continue
            kind = type(value)
            if kind is float:
                if value == value:
                    tag = NUMBER_TAG
                    if attribute.number >= 0:
                        real[attribute.number] = value + 0.0  # type: ignore[operator]
                else:
                    tag = NAN_TAG
            elif kind is str:
                tag = STRING_TAG
                if attribute.string >= 0:
                    whole[attribute.string] = attribute.strings.get(value, UNKNOWN_KEY)  # type: ignore[call-overload]
                for length, column, numbers in attribute.slices:
                    text = value[:length] if length > 0 else value[length:]  # type: ignore[index]
                    whole[column] = numbers.get(text, UNKNOWN_KEY)
            elif kind is int and -(2**53) <= value <= 2**53:  # type: ignore[operator]
                tag = NUMBER_TAG
                if attribute.number >= 0:
                    real[attribute.number] = value  # type: ignore[call-overload]
            else:
                tag = self._encode_rest(attribute, value, whole)
            if attribute.tag >= 0:
                whole[attribute.tag] = tag
        return keys

    @staticmethod
    def _encode_rest(attribute: Attribute, value: object, whole: memoryview[int]) -> int:
        """The tag of a value of the rarer kinds, after its keys are written."""
        match value:
            case None:
                return NULL_TAG
            case bool():
                return TRUE_TAG if value else FALSE_TAG
            case datetime():
                if attribute.time >= 0:
                    whole[attribute.time] = time_key(value)
                return TIME_TAG
            case bytes():
                return BYTES_TAG
            case int():
                if attribute.number >= 0:
                    whole[attribute.number] = WILD_KEY
                return NUMBER_TAG
            case list() | tuple() | Interval():
                for column in (
                    attribute.number,
                    attribute.string,
                    attribute.time,
                    *(c for _, c, _ in attribute.slices),
                ):
                    if column >= 0:
                        whole[column] = WILD_KEY
                return WILD_KEY
            case str():
                return Columns._encode_subclass(attribute, str(value), whole)
            case float():
                if attribute.number >= 0:
                    whole[attribute.number] = WILD_KEY
                return WILD_KEY
        return OBJECT_TAG

    @staticmethod
    def _encode_subclass(attribute: Attribute, value: str, whole: memoryview[int]) -> int:
        for column in (attribute.string, *(c for _, c, _ in attribute.slices)):
            if column >= 0:
                whole[column] = WILD_KEY
        return STRING_TAG


def _needles(branch: Branch) -> Iterator[Needle]:
    """The texts that fields must contain for a branch."""
    for path, wanted in branch.items():
        part = wanted.values.strings
        if isinstance(path, str) and not wanted.values.atoms and isinstance(part, Language):
            paths = list(part.paths())
            if len(paths) == 1 and sum(1 for _ in wanted.values.kinds()) == 1:
                for pattern in paths[0][0]:
                    if not pattern.ignore_case:
                        runs = "".join(token if isinstance(token, str) else "\0" for token in pattern.tokens).split(
                            "\0"
                        )
                        yield from ((path, run) for run in runs if len(run) > 1)


def _parts(values: ValueSet) -> int:
    return (values.atoms & ~Atom.MISSING).bit_count() + sum(1 for _ in values.kinds())


def _kinds(values: ValueSet) -> Iterator[tuple[int, StringSet]]:
    for tag, part in (
        (NUMBER_TAG, values.numbers),
        (STRING_TAG, values.strings),
        (TIME_TAG, values.times),
        (BYTES_TAG, values.bytes),
    ):
        if not part.is_empty:
            yield tag, part


def key_range(role: int, low: Any, high: Any) -> tuple[int, int, bool, int]:
    """The first and last key between two cuts, whether no other values have such keys, and which ends are open."""
    if role == TIME:
        first = LOWEST if low is None else time_key(low[0])
        return first, HIGHEST if high is None else time_key(high[0]) - (high[1] == 0), True, 0
    first, last, exact, how = LOWEST, HIGHEST, True, 0
    if low is not None:
        near = _nearest(low[0])
        exact &= near == low[0]
        how |= OPEN_LOW if low[1] else 0
        first = number_key(near) + (1 if low[1] and near == low[0] else 0)
    if high is not None:
        near = _nearest(high[0])
        exact &= near == high[0]
        how |= 0 if high[1] else OPEN_HIGH
        last = number_key(near) - (1 if not high[1] and near == high[0] else 0)
    return first, last, exact, how


def _nearest(value: float) -> float:
    try:
        return float(value)
    except OverflowError:  # an integer beyond all floats
        return math.inf if value > 0 else -math.inf


def _one_of(column: int, keys: list[int]) -> Predicate:
    if len(keys) == 1:
        return Predicate(column, RANGE, keys[0], keys[0])
    return Predicate(column, SET, 0, 0, tuple(sorted(keys)))


def _denied(predicate: Predicate) -> Predicate:
    return predicate._replace(kind=NOT_RANGE if predicate.kind == RANGE else NOT_SET)


def _leading(tokens: tuple[Any, ...]) -> str:
    return "".join(itertools.takewhile(lambda token: isinstance(token, str), tokens))


def _is_suffix(pattern: Pattern) -> bool:
    return pattern.tokens[0] is MANY and all(isinstance(token, str) for token in pattern.tokens[1:])
