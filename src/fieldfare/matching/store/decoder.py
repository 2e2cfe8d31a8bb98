"""The decoder: from the entries of an arena back to the filter.

An index does not keep filters that entries describe exactly; a Python object for each would take more room than all the
rest. Every predicate is a set of values of an attribute, and a filter is the union of its entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from fieldfare.events.values import Kind
from fieldfare.filters import intervals, patterns, valueset
from fieldfare.filters.branch import Branch, Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.filter import Filter
from fieldfare.filters.intervals import Intervals
from fieldfare.filters.patterns import MANY
from fieldfare.filters.valueset import ValueSet
from fieldfare.matching.store import layout
from fieldfare.matching.store.columns import Columns
from fieldfare.matching.store.keys import (
    BYTES_TAG,
    FALSE_TAG,
    HIGHEST,
    LIST_TAG,
    LOWEST,
    NAN_TAG,
    NOT_RANGE,
    NULL_TAG,
    NUMBER,
    NUMBER_TAG,
    OBJECT_TAG,
    OPEN_HIGH,
    OPEN_LOW,
    PREFIX,
    RANGE,
    SET,
    STRING,
    STRING_TAG,
    SUFFIX,
    TAG,
    TIME,
    TIME_TAG,
    TRUE_TAG,
    number_of_key,
    time_of_key,
)
from fieldfare.matching.store.layout import Words

_TAGGED: Final[dict[int, ValueSet]] = {
    NULL_TAG: valueset.whole(Kind.NULL), FALSE_TAG: valueset.FALSE, TRUE_TAG: valueset.TRUE, NAN_TAG: valueset.NAN,
    LIST_TAG: valueset.whole(Kind.LIST), OBJECT_TAG: valueset.whole(Kind.OBJECT),
    NUMBER_TAG: ValueSet(numbers=intervals.FULL), STRING_TAG: valueset.whole(Kind.STRING),
    TIME_TAG: valueset.whole(Kind.TIME), BYTES_TAG: valueset.whole(Kind.BYTES),
}  # fmt: skip


def filter_of(columns: Columns, arena: Words, entries: Iterable[int]) -> Filter:
    """Return the union of some entries that need no verification."""
    at = layout.section(arena, layout.PREDICATES_AT)
    table, sets = int(arena[layout.PREDICATE]), int(arena[layout.SETS])
    branches: list[Branch] = []
    for entry in entries:
        first, last = at[entry : entry + 2].tolist()
        words = arena[table + 3 * first : table + 3 * last].tolist()
        sides: dict[Dimension, Constraint] = {}
        for word, low, high in zip(words[::3], words[1::3], words[2::3], strict=True):
            keys = () if (word >> 16) & 3 in (RANGE, NOT_RANGE) else arena[sets + low : sets + high].tolist()
            wanted = Constraint(predicate_values(columns, word, low, high, keys))
            path = columns.columns[word & 0xFFFF].attribute.path
            sides[path] = sides[path] & wanted if path in sides else wanted
        branches.append(Branch(sides))
    return Filter(branches)


def predicate_values(columns: Columns, word: int, low: int, high: int, keys: Sequence[int]) -> ValueSet:
    """Return the values that satisfy a predicate of an arena; `keys` are the keys of a set predicate."""
    column, kind, how = word & 0xFFFF, (word >> 16) & 3, word >> 18
    if kind in (RANGE, NOT_RANGE):
        values = _values(columns, column, low, high, how)
    else:
        values = _union(_values(columns, column, key, key) for key in keys)
    return values if kind in (RANGE, SET) else ~values


def _union(parts: Iterable[ValueSet]) -> ValueSet:
    found = list(parts)
    while len(found) > 1:  # by halves, so that a long list takes n log n
        pairs = [a | b for a, b in zip(found[::2], found[1::2], strict=False)]
        found = pairs + (found[-1:] if len(found) % 2 else [])
    return found[0]


def _values(columns: Columns, number: int, low: int, high: int, how: int = 0) -> ValueSet:
    """Return the values whose keys in a column lie between two keys."""
    column = columns.columns[number]
    match column.role:
        case role if role == TAG:
            return _union(_TAGGED[tag] for tag in range(max(low, NULL_TAG), min(high, BYTES_TAG) + 1))
        case role if role == NUMBER:
            return ValueSet(numbers=_ordered(low, high, how, number_of_key))
        case role if role == TIME:
            return ValueSet(times=_ordered(low, high, 0, time_of_key))
        case role if role == STRING:
            return valueset.one_of([columns.text(number, low)])
        case role if role in (PREFIX, SUFFIX):
            return affix(role, columns.text(number, low))
    raise AssertionError(column)


def affix(role: int, text: str) -> ValueSet:
    """Return the strings that begin or end with a text."""
    return valueset.like(patterns.pattern(*text, MANY) if role == PREFIX else patterns.pattern(MANY, *text))


def _ordered(low: int, high: int, how: int, value: Callable[[int], object]) -> Intervals:
    """Return the values between two keys; an open end begins just beyond the value at the key."""
    below, above = bool(how & OPEN_LOW), bool(how & OPEN_HIGH)
    return intervals.interval(
        None if low == LOWEST else value(low - below),  # type: ignore[arg-type]
        None if high == HIGHEST else value(high + above),  # type: ignore[arg-type]
        ("(" if below else "[") + (")" if above else "]"),
    )
