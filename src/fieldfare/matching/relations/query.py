"""Queries: a branch of a filter, translated for the search of related entries in an index.

A query changes nothing in the index: an unknown constant is none of the known constants, and no stored filter has a
constraint on an unknown attribute.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

import numpy as np

from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.intervals import Intervals
from fieldfare.filters.strings import StringSet
from fieldfare.filters.valueset import Atom
from fieldfare.matching.relations.layout import (
    AROUND,
    CO_AROUND,
    COVERED,
    COVERING,
    FULL,
    INSIDE,
    MEETS,
    MORE,
    OPEN,
    PART,
    PARTS,
    PLAN,
    SIDE,
    SIDES,
    SIDES_AT,
    SINGLE,
    SOME,
    WHOLE,
    Query,
    Table,
)
from fieldfare.matching.store.columns import Attribute, Columns
from fieldfare.matching.store.keys import (
    BYTES_TAG,
    NUMBER,
    NUMBER_TAG,
    OPEN_HIGH,
    OPEN_LOW,
    PREFIX,
    STRING,
    STRING_TAG,
    SUFFIX,
    TAG,
    TIME,
    TIME_TAG,
    key_ranges,
    number_key,
    time_key,
)

_FEW: Final = 16
"""number of points that are looked up in rows one by one; more points count as a range from the first to the last"""
_ENDS: Final = {
    NUMBER: (number_key(float("-inf")), number_key(float("inf"))),
    TIME: (time_key(datetime.min.replace(tzinfo=UTC)), time_key(datetime.max.replace(tzinfo=UTC))),
}
_NONE: Final = np.zeros(1, np.uint8)
_Range = tuple[int, int, bool, int]
"""a range as `key_range` returns"""


class _Plan(NamedTuple):
    """The entries that the rows of a column can rule out; see `PLAN`."""

    column: int
    needed: bool
    span: bool
    keys: Iterable[int]


class _Part(NamedTuple):
    """A part of the numbers, the strings or the times."""

    joined: bool
    decided: bool
    points: list[int]
    """keys of numbers or times, if the part is a few points"""
    low: int
    high: int
    tables: list[Table]
    listed: bool
    """for strings: whether the part is a list of texts"""

    def plan(self, column: int, *, needed: bool) -> _Plan:
        """Return the plan for the keys of the part, a key wider on either side: two open ends may meet in between."""
        if self.points:
            return _Plan(column, needed, False, self.points)
        return _Plan(column, needed, True, (self.low - 1, self.high + 1))


class _Side(NamedTuple):
    """The demand on an attribute: the kinds that are allowed as a whole, the kinds allowed at all, and parts."""

    attribute: Attribute
    whole: int
    some: int
    numbers: _Part | None
    texts: _Part | None
    times: _Part | None

    @property
    def single(self) -> bool:
        """Tell whether the side is a single piece of a single kind."""
        if self.some & (self.some - 1):
            return False
        part = self.numbers or self.texts or self.times
        return part.joined if part is not None else self.whole != 0  # a part of the bytes is not looked at

    def needed(self) -> Iterable[_Plan] | None:
        """Return the column that a covered entry must have a predicate on, if any; None if no entry can be covered."""
        if self.some & (self.some - 1):
            return ()  # values of several kinds
        for part, column in ((self.numbers, self.attribute.number), (self.times, self.attribute.time)):
            if part is not None:
                return None if column < 0 else (part.plan(column, needed=True),) if part.decided else ()
        if self.texts is None:
            return ()
        if not self.texts.listed:  # then an affix may do as well as a constant
            return () if self.texts.tables else None
        for table in self.texts.tables:
            if table.role == STRING and table.known:
                return (_Plan(table.column, True, False, table.known),)
        return None

    def excluding(self) -> Iterator[_Plan]:
        """Yield the columns that can show that an entry does not overlap, by a demand for other values."""
        attribute, whole, some = self.attribute, self.whole, self.some
        if attribute.tag >= 0:
            yield _Plan(attribute.tag, False, False, [tag for tag in range(1, BYTES_TAG + 1) if some >> tag & 1])
        for tag, part, column in (
            (NUMBER_TAG, self.numbers, attribute.number),
            (TIME_TAG, self.times, attribute.time),
        ):
            if column >= 0 and not whole >> tag & 1:
                if part is None:
                    yield _Plan(column, False, False, ())
                elif part.decided:
                    yield part.plan(column, needed=False)
        if not some >> STRING_TAG & 1:
            for column, _, _, _ in _text_columns(attribute):
                yield _Plan(column, False, False, ())
        elif self.texts is not None and self.texts.listed:
            for table in self.texts.tables:
                yield _Plan(table.column, False, False, table.known)


def query_of(columns: Columns, branch: Branch, relation: int, *, doubts: bool) -> Query | None:
    """Return the query for entries in a relation to a branch, or None if there can be none.

    With `doubts`, some stored filters take lists that their entries do not describe.
    """
    builder = _Builder(len(branch))
    hopeless = more = False
    joined = True
    plans: list[_Plan] = []
    for dimension, wanted in branch.items():
        if not isinstance(dimension, str):
            more = True
            continue
        attribute = columns.attributes.get(dimension)
        if attribute is None:  # no stored filter has a constraint on the attribute
            if relation == COVERED:
                return None
            continue
        side = builder.side(attribute, wanted)
        if relation == COVERED:
            needed = side.needed()
            hopeless = hopeless or needed is None
            plans += needed or ()
        elif relation == COVERING:
            joined = joined and side.single
        elif not (doubts and wanted.takes_lists):
            plans += side.excluding()
    return builder.query(len(columns), plans, hopeless=hopeless or more, more=more, joined=joined)


class _Builder:
    """A query under construction: words, tables and plans collected side by side."""

    def __init__(self, sides: int) -> None:
        self._words = [0] * (SIDES_AT + sides * SIDE)
        self._tables: list[Table] = []
        self._size = 0
        self._places: list[tuple[int, int]] = []

    def side(self, attribute: Attribute, wanted: Constraint) -> _Side:
        """Add the demand on an attribute."""
        values, words = wanted.values, self._words
        whole = some = values.atoms  # atoms and tags have the same bits
        numbers = texts = times = None
        at = SIDES_AT + words[SIDES] * SIDE
        if values.numbers.cuts:
            some |= 1 << NUMBER_TAG
            words[at + PARTS] = len(words)
            numbers = self._ordered(NUMBER, values.numbers)
        elif values.numbers.start:
            whole |= 1 << NUMBER_TAG
        if not values.strings.is_empty and not values.strings.is_full:
            some |= 1 << STRING_TAG
            words[at + PARTS + 1] = len(words)
            texts = self._texts(attribute, values.strings)
        elif values.strings.is_full:
            whole |= 1 << STRING_TAG
        if values.times.cuts:
            some |= 1 << TIME_TAG
            words[at + PARTS + 2] = len(words)
            times = self._ordered(TIME, values.times)
        elif values.times.start:
            whole |= 1 << TIME_TAG
        if not values.bytes.is_empty:
            some |= 1 << BYTES_TAG
            whole |= values.bytes.is_full << BYTES_TAG
        some |= whole
        words[at + FULL] = whole if wanted.is_plain else whole & ~Atom.LIST
        words[at + WHOLE], words[at + SOME] = whole, some
        self._place(attribute, words[SIDES], texts)
        words[SIDES] += 1
        side = _Side(attribute, whole, some, numbers, texts, times)
        words[at + SINGLE] = side.single
        return side

    def _place(self, attribute: Attribute, side: int, texts: _Part | None) -> None:
        """Assign every column of an attribute to a side."""
        for column, role in (
            (attribute.tag, TAG),
            (attribute.number, NUMBER),
            (attribute.time, TIME),
            (attribute.string, STRING),
        ):
            if column >= 0:
                self._places.append((column, side | role << 16))
        for length, column, _ in attribute.slices:
            self._places.append((column, side | (PREFIX if length > 0 else SUFFIX) << 16))
        if texts is not None:
            self._places += [(table.column, side | table.role << 16 | table.start << 24) for table in texts.tables]

    def _ordered(self, role: int, part: Intervals) -> _Part:
        """Add a part of the numbers or times."""
        lowest, highest = _ENDS[role]
        pieces = key_ranges(role, part.cuts)
        inside, outside = (pieces[::2], pieces[1::2]) if part.start else (pieces[1::2], pieces[::2])
        points, co_points = _points(inside, lowest, highest), _points(outside, lowest, highest)
        decided = all(exact for _, _, exact, _ in inside)
        low, high, how = _hull(inside, lowest, highest)
        words = self._words
        words += (
            len(words) + PART, len(inside), low, high, how, *_hull(outside, lowest, highest),
            len(points), len(co_points), len(inside) == 1, len(outside) == 1, decided,
        )  # fmt: skip
        for first, last, _, opens in inside:
            words += (first, last, opens)
        return _Part(len(inside) == 1, decided, points if len(points) <= _FEW else [], low, high, [], False)

    def _texts(self, attribute: Attribute, part: StringSet) -> _Part:
        """Add a part of the strings: a table for every column of strings."""
        texts = others = None
        pieces = gaps = 0
        if isinstance(part, Intervals):
            texts = part.points()
            others = None if texts is not None else (~part).points()
            pieces = (len(part.cuts) + 1 + part.start) // 2
            gaps = len(part.cuts) + 1 - pieces
        tables = [self._table(column, part, texts, others) for column in _text_columns(attribute)]
        self._words += (
            0, 0, 0, 0, 0, 0, 0, 0, len(texts or ()), len(others or ()), pieces == 1, gaps == 1, True
        )  # fmt: skip
        return _Part(pieces == 1, True, [], 0, 0, tables, texts is not None)

    def _table(self, column: _TextColumn, part: StringSet, texts: list[str] | None, others: list[str] | None) -> Table:
        """Make the table of a column: complete if the part or its complement is a list, else open."""
        usual, known = OPEN, {}
        if texts is not None:
            usual = 0
            known = _listed(column, texts, INSIDE | MEETS if column.role == STRING else MEETS, AROUND)
        elif others is not None:
            usual = INSIDE | MEETS
            known = _listed(column, others, 0 if column.role == STRING else MEETS, CO_AROUND)
        table = Table(column.column, column.role, self._size, len(column.numbers), usual, known, part)
        self._size += table.size
        self._tables.append(table)
        return table

    def query(self, columns: int, plans: list[_Plan], *, hopeless: bool, more: bool, joined: bool) -> Query:
        """Return the finished query, for an index with the given number of columns."""
        self._words[MORE] = more
        of_column = np.full(columns, -1, np.int64)
        for column, place in self._places:
            of_column[column] = place
        tables = _NONE
        if self._tables:
            tables = np.zeros(self._size, np.uint8)
            for table in self._tables:
                if table.usual:
                    tables[table.start : table.start + table.size] = table.usual
                for key, value in table.known.items():
                    tables[table.start + key] = value
        plan = [len(plans), *(0,) * (PLAN * len(plans))]
        for i, (column, needed, span, keys) in enumerate(plans):
            start = len(plan)
            plan += keys
            plan[1 + PLAN * i : 1 + PLAN * (i + 1)] = column, needed, span, start, len(plan)
        lazy = tuple(table for table in self._tables if table.usual == OPEN)
        return Query(
            np.array(self._words, np.int64), of_column, tables, np.array(plan, np.int64), hopeless, joined, lazy
        )


class _TextColumn(NamedTuple):
    """A column of strings, or of prefixes (length > 0) or suffixes of a length, with the numbers of the texts."""

    column: int
    role: int
    length: int
    numbers: dict[str, int]


def _text_columns(attribute: Attribute) -> Iterator[_TextColumn]:
    if attribute.string >= 0:
        yield _TextColumn(attribute.string, STRING, 0, attribute.strings)
    for length, column, numbers in attribute.slices:
        yield _TextColumn(column, PREFIX if length > 0 else SUFFIX, length, numbers)


def _hull(ranges: list[_Range], lowest: int, highest: int) -> tuple[int, int, int]:
    """Return the first and the last key of some ranges, and the open ends among the two."""
    first, last = ranges[0], ranges[-1]
    return max(first[0], lowest), min(last[1], highest), first[3] & OPEN_LOW | last[3] & OPEN_HIGH


def _points(ranges: list[_Range], lowest: int, highest: int) -> list[int]:
    """Return the keys of the ranges if each range is a point; else nothing."""
    found: list[int] = []
    for first, last, _, how in ranges:
        key = max(first, lowest)
        if how or key != min(last, highest):
            return []
        found.append(key)
    return found


def _listed(column: _TextColumn, texts: list[str], value: int, around: int) -> dict[int, int]:
    """Return the bytes of listed texts, or of their affixes; `around` is added if all have the same affix."""
    _, role, length, numbers = column
    cut = texts if role == STRING else [text[:length] if length > 0 else text[length:] for text in texts]
    known = {numbers[text] for text in cut if text in numbers}
    if len(known) == 1 and all(text == cut[0] for text in cut):
        value |= around
    return dict.fromkeys(known, value)
