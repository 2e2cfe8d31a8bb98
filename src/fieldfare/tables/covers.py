"""The minimal cover of some filters: the definition that every table implements faster."""

from __future__ import annotations

from collections.abc import Iterable

from fieldfare.filters.filter import Filter
from fieldfare.tables.base import Tests


def minimal_cover(filters: Iterable[Filter], tests: Tests | None = None) -> list[Filter]:
    """Return the filters without those that another filter covers; of filters with the same meaning the first stays.

    Each filter is compared with the whole result so far: at most n² comparisons, counted in `tests`.
    """
    counted = tests or Tests()
    kept: list[Filter] = []
    for filter in filters:
        if not any(counted.covers(other, filter) for other in kept):
            kept = [other for other in kept if not counted.covers(filter, other)]
            kept.append(filter)
    return kept
