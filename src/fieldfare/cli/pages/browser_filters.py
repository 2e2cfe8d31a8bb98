"""Filters as JSON that a web page can evaluate, with `data/table/matcher.js`.

Sets of numbers, strings and timestamps are passed on whole: cuts and LIKE patterns are enough to decide. A computed
dimension is None, and so is a set for which a browser would decide differently (case folding, integers that no float
equals, bytes): the page shows such a filter as undecided.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fieldfare.filters import Filter
from fieldfare.filters.constraint import ELEMENTS, Constraint
from fieldfare.filters.intervals import Intervals
from fieldfare.filters.patterns import Pattern
from fieldfare.filters.strings import Diagram, StringSet
from fieldfare.filters.valueset import ValueSet

Json = Any
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_SAFE: Final = 2**53


def portable(wanted: Filter) -> Json:
    """Return the branches of a filter, each a list of [field, constraint]; None for a computed dimension."""
    return [
        [[dimension, _constraint(side)] if isinstance(dimension, str) else None for dimension, side in branch.items()]
        for branch in wanted
    ]


def _constraint(side: Constraint) -> Json:
    tree = {"values": _set(side.values)}
    if side.every != ELEMENTS:
        tree["every"] = _set(side.every)
    if side.some:
        tree["some"] = [_set(hit) for hit in sorted(side.some, key=repr)]
    return tree


def _set(values: ValueSet) -> Json:
    return {
        "atoms": values.atoms,
        "numbers": _intervals(values.numbers, _number),
        "strings": _strings(values.strings),
        "times": _intervals(values.times, _microseconds),
    }


def _intervals(part: Intervals, place: Callable[[Any], Json]) -> Json:
    """Return whether the lowest value is inside, and the cuts: `[value, 0]` is below a value, `[value, 1]` above."""
    if not part.cuts:
        return part.start
    cuts = [[place(value), side] for value, side in part.cuts]
    return None if any(value is None for value, _ in cuts) else {"start": part.start, "cuts": cuts}


def _number(value: float) -> float | str | None:
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value if abs(value) <= _SAFE or float(value) == value else None


def _microseconds(value: datetime) -> str:
    """Return the microseconds since 1970 as text, because numbers of JSON lose digits in a browser."""
    return str((value - _EPOCH) // timedelta(microseconds=1))


def _strings(part: StringSet) -> Json:
    return _diagram(part if isinstance(part, Intervals) else part.diagram)


def _diagram(part: Diagram) -> Json:
    if isinstance(part, Intervals):
        return _intervals(part, lambda text: text)
    pattern = _pattern(part.pattern)
    return None if pattern is None else {"like": pattern, "yes": _diagram(part.high), "no": _diagram(part.low)}


def _pattern(pattern: Pattern) -> Json:
    """Return the texts of a pattern, with 0 for any character and 1 for any characters; None if case is ignored."""
    if pattern.ignore_case:
        return None
    return [token if isinstance(token, str) else int(token.value == "%") for token in pattern.tokens]
