"""Statistics of events: the share of events that satisfy a constraint, from a sample or without any knowledge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from fieldfare.events.values import MISSING
from fieldfare.filters.branch import Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.intervals import Cut
from fieldfare.filters.strings import Language
from fieldfare.filters.valueset import ValueSet


class Statistics(Protocol):
    """Knowledge of the values of events: a source of shares."""

    def share(self, dimension: Dimension, wanted: Constraint, within: Constraint) -> float:
        """Return the share of the events in `within` that satisfy `wanted`, a part of `within`: 0 to 1."""


@dataclass(frozen=True)
class Sample:
    """Statistics from a sample of observed events."""

    events: Sequence[Mapping[str, object]]

    def share(self, dimension: Dimension, wanted: Constraint, within: Constraint) -> float:
        """Count the sample by the law of succession, so that a small sample never gives 0."""
        values = [
            fields.get(dimension, MISSING) if isinstance(dimension, str) else dimension.evaluate(fields)
            for fields in self.events
        ]
        inside = [value for value in values if within.matches(value)]
        return (sum(wanted.matches(value) for value in inside) + 1) / (len(inside) + 2) if wanted != within else 1.0


class Uniform:
    """No statistics: values are spread evenly over the merger, between the ends that the constraints mention."""

    def share(self, dimension: Dimension, wanted: Constraint, within: Constraint) -> float:
        """Return the ratio of sizes. A kind without size (lists, nulls, patterns, open ends) counts as a unit."""
        if wanted == within:
            return 1.0
        ends = sorted({cut[0] for part in (wanted, within) for cut in _cuts(part.values)}, key=_place)
        low, high = (_place(ends[0]), _place(ends[-1])) if ends else (0.0, 0.0)
        whole = _size(within.values, low, high)
        return min(1.0, _size(wanted.values, low, high) / whole) if whole else 1.0


def _cuts(values: ValueSet) -> list[Cut]:
    return [cut for _, part in values.kinds() if not isinstance(part, Language) for cut in part.cuts]


def _place(value: object) -> float:
    """Return a position on a line for a value of any ordered kind; strings by the first eight characters."""
    if isinstance(value, (int, float)):
        return float(value)
    if isinstance(value, datetime):
        return value.timestamp()
    digits = (
        [ord(char) for char in value] if isinstance(value, str) else list(value) if isinstance(value, bytes) else []
    )
    return float(sum(digit / 128 ** (place + 1) for place, digit in enumerate(digits[:8])))


def _size(values: ValueSet, low: float, high: float) -> float:
    """Return the length of the ordered parts within [low, high]; an open end reaches as far again; points are thin."""
    margin = (high - low) or 1.0
    thin = margin / 1000
    size = thin * values.atoms.bit_count()
    for _, part in values.kinds():
        if isinstance(part, Language):
            size += margin
            continue
        for left, right in part.pieces():
            start = low - margin if left is None else _place(left[0])
            end = high + margin if right is None else _place(right[0])
            size += max(thin, end - start)
    return size
