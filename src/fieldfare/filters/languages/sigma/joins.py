"""Conjunction, disjunction and exception of filters with many texts; whole where the algebra would take long.

A rule often has a dozen exceptions with texts in the same two fields. As sets these would be multiplied out; here a
part that costs more than a few steps stays whole, a condition of its own (`MEETS`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from fieldfare.filters.budget import within
from fieldfare.filters.errors import FilterTooComplex
from fieldfare.filters.filter import EVERYTHING, Filter
from fieldfare.filters.machines import TooComplex
from fieldfare.filters.predicates import conjunction
from fieldfare.filters.sizes import MAX_SIZE
from fieldfare.filters.whole import whole

MAX_STEPS: Final = 10_000
"""steps to join two filters; a part that takes more stays whole"""
MAX_WAYS: Final = 16
"""alternatives of a conjunction; a part that would make more stays whole"""


def every(filters: Sequence[Filter]) -> Filter:
    """Return the events that match all filters."""
    found = EVERYTHING
    for one in sorted(filters, key=lambda one: len(one.boxes)):
        found = _both(found, one)
    return found


def _both(first: Filter, second: Filter) -> Filter:
    if len(first.boxes) * len(second.boxes) <= MAX_WAYS:
        try:
            with within(MAX_STEPS, MAX_SIZE):
                return conjunction([first, second])
        except FilterTooComplex:
            pass
    return conjunction([first, whole(second)])


def some(filters: Iterable[Filter]) -> Filter:
    """Return the events that match a filter or more."""
    given = list(filters)
    try:
        with within(MAX_STEPS * len(given), MAX_SIZE):
            return Filter(branch for one in given for branch in one.boxes)
    except (FilterTooComplex, TooComplex):
        return Filter(branch for one in given for branch in whole(one).boxes)


def excepted(wanted: Filter) -> Filter:
    """Return the events that do not match the filter: a set if the filter is one on a single field."""
    if len(wanted.boxes) == 1 and len(wanted.boxes[0]) == 1:
        try:
            with within(MAX_STEPS, MAX_SIZE):
                return ~wanted
        except (FilterTooComplex, TooComplex):
            pass
    return whole(wanted, False)
