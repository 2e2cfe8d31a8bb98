"""Sizes of filters: estimates of the length of the text, and of the steps of work, for each part of a filter.

Both are computed from the sets, so that a filter can be refused before construction and printing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from fieldfare.filters import budget
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.intervals import Intervals
from fieldfare.filters.strings import Diagram, Language, Node
from fieldfare.filters.valueset import ValueSet

MAX_SIZE: Final = 1 << 20
"""approximate characters of the text of a filter; a longer filter is refused"""
_NUMBER: Final = 6
"""characters of a number or a timestamp, with the signs around, at least"""
_COMPUTED: Final = 8
"""characters of an expression, at least"""
_LANGUAGE: Final = 32
"""steps for a set of strings with patterns, besides the steps for the automaton"""


def length(wanted: Constraint) -> int:
    """Return the approximate length of the text of a constraint, in characters."""
    total = _length(wanted.values)
    if not wanted.is_plain:
        total += _length(wanted.every) + sum(map(_length, wanted.some))
    return total


def _length(values: ValueSet) -> int:
    total = 4 + _NUMBER * (len(values.numbers.cuts) + len(values.times.cuts))
    if values.bytes.cuts:
        total += _texts(values.bytes)
    if isinstance(values.strings, Language):
        total += _diagram_length(values.strings.diagram)
    elif values.strings.cuts:
        total += _texts(values.strings)
    return total


def _texts(values: Intervals) -> int:
    """Return the approximate length of intervals of texts: about half of the texts of all cuts."""
    return sum(len(text) + 4 for text, _ in values.cuts) // 2


def _diagram_length(diagram: Diagram) -> int:
    total, parts = 0, [diagram]
    while parts:
        part = parts.pop()
        if isinstance(part, Node):
            total += len(part.pattern.tokens) + 8
            parts += (part.high, part.low)
        else:
            total += _texts(part)
    return total


def steps(wanted: Constraint) -> int:
    """Return the approximate steps to intersect or compare a constraint with a small constraint.

    The result depends on the content of the sets, and not on their history: see `normal_form`.
    """
    total = _steps(wanted.values)
    if not wanted.is_plain:
        total += _steps(wanted.every) + sum(map(_steps, wanted.some))
    return total


def _steps(values: ValueSet) -> int:
    texts = values.strings
    total = 1 + (len(values.numbers.cuts) + len(values.times.cuts) + len(values.bytes.cuts)) // 4
    if isinstance(texts, Language):
        return total + _LANGUAGE + sum(map(len, texts.automaton.edges))
    return total + len(texts.cuts) // 4


def size_of(boxes: Iterable[Mapping[Any, Constraint]]) -> int:
    """Return the approximate length of the text of a union of boxes, in characters."""
    total = 0
    for box in boxes:
        for dimension, wanted in box.items():
            total += length(wanted) + (len(dimension) if isinstance(dimension, str) else _COMPUTED)
    return total


def expect_small(size: int) -> None:
    """Refuse a filter whose size exceeds the limit."""
    most = budget.size(MAX_SIZE)
    if size > most:
        raise FilterTooComplex(f"the normal form of the filter has more than {most} characters")
