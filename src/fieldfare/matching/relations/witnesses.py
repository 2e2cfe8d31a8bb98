"""Witnesses of a branch: two events that satisfy the branch and differ as much as possible.

A filter that covers the branch is satisfied by both witnesses. For numbers and times the witnesses are the first and
the last value; for other kinds a single example serves twice. A value that is hard to find, or that does not exist
although the set is not empty (between two neighbouring floats), is left open.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from fieldfare.events.values import MISSING, Interval
from fieldfare.filters.branch import Branch
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.examples import example
from fieldfare.filters.intervals import Intervals
from fieldfare.filters.strings import Language, StringSet

ANYTHING: Final = Interval(0, 1)
"""a value with wild keys, which may satisfy any predicate"""
_TICK: Final = timedelta(microseconds=1)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def witnesses_of(branch: Branch) -> tuple[dict[str, object], dict[str, object]]:
    """Return flat fields that satisfy every constraint of a branch on a field: the first values, and the last."""
    first: dict[str, object] = {}
    last: dict[str, object] = {}
    for path, wanted in branch.items():
        if isinstance(path, str):
            low, high = _ends(wanted)
            if low is not MISSING:
                first[path] = low
            if high is not MISSING:
                last[path] = high
    return first, last


def _ends(wanted: Constraint) -> tuple[Any, Any]:
    values = wanted.values
    if not values.atoms:
        kinds = [part for part in (values.numbers, values.strings, values.times, values.bytes) if not part.is_empty]
        if len(kinds) == 1:
            if kinds[0] is values.numbers:
                return _numbers(values.numbers)
            if kinds[0] is values.times:
                return _times(values.times)
            if kinds[0] is values.strings:
                return (_text(values.strings),) * 2
    found = example(wanted)
    return (found if wanted.matches(found) else ANYTHING,) * 2


def _numbers(part: Intervals) -> tuple[Any, Any]:
    start, cuts = part.start, part.cuts
    end = start ^ (len(cuts) & 1 == 1)
    try:
        low = -math.inf if start else cuts[0][0] if cuts[0][1] == 0 else math.nextafter(cuts[0][0], math.inf)
        high = math.inf if end else cuts[-1][0] if cuts[-1][1] == 1 else math.nextafter(cuts[-1][0], -math.inf)
    except OverflowError:  # an integer beyond all floats
        return ANYTHING, ANYTHING
    return (low if low in part else ANYTHING), (high if high in part else ANYTHING)


def _times(part: Intervals) -> tuple[Any, Any]:
    start, cuts = part.start, part.cuts
    end = start ^ (len(cuts) & 1 == 1)
    return (_FIRST if start else cuts[0][0]), (_LAST if end else cuts[-1][0] - _TICK)


def _text(part: StringSet) -> Any:
    """Return the first string of a set; for a pattern, a string that is quickly found, or ANYTHING."""
    if isinstance(part, Intervals):
        return "" if part.start else part.cuts[0][0]
    assert isinstance(part, Language)
    for fits, _, _ in part.paths():
        text = "".join(token if isinstance(token, str) else "" for pattern in fits for token in pattern.tokens)
        if text in part:
            return text
    return ANYTHING
