"""`Distributions`: statistics of events as a small value for a file.

The distribution of each field is a line of values with weights; shares of conditions are counted on the line. Fields
with values of several kinds, lists and computed values are looked up in a sample of whole events instead. A node reads
such a file to choose filters for merging; `fieldfare statistics` counts events, the pipeline counts tables.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Any, Final, Literal

import msgspec

from fieldfare.events import msgpack
from fieldfare.events.event import Event
from fieldfare.events.values import MISSING, Kind, kind_of
from fieldfare.filters.branch import Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.intervals import Cut, Intervals
from fieldfare.filters.statistics import Sample
from fieldfare.filters.valueset import Atom, ValueSet

SAMPLE: Final = 500
"""events of the sample in a file"""
TYPES: Final[Mapping[Kind, Any]] = {
    Kind.BOOL: bool,
    Kind.NUMBER: int | float,
    Kind.STRING: str,
    Kind.TIME: datetime,
    Kind.BYTES: bytes,
}
"""types of the values on a line; fields of other kinds have none"""
_INFINITE: Final = (float("inf"), float("-inf"))


class Distribution(msgspec.Struct, frozen=True, dict=True):
    """The values of a field in ascending order, with the number of events for each value."""

    kind: Kind
    missing: float
    """the number of events without the field"""
    nan: float
    values: tuple[Any, ...]
    weights: tuple[float, ...]

    @cached_property
    def below(self) -> list[float]:
        """The number of events before each value, and before the end."""
        return [0.0, *accumulate(self.weights)]

    def count(self, wanted: ValueSet) -> float:
        """Return how many events have a value in a set, or no value, if the set includes missing."""
        found = self.missing * (MISSING in wanted) + self.nan * bool(wanted.atoms & Atom.NAN)
        if self.kind is Kind.BOOL:
            pairs = zip(self.values, self.weights, strict=True)
            return found + sum(weight for truth, weight in pairs if truth in wanted)
        below, part = self.below, wanted.of_kind(self.kind)
        if isinstance(part, Intervals):
            places = ((self._place(low, 0), self._place(high, len(self.values))) for low, high in part.pieces())
            return found + sum(below[end] - below[begin] for begin, end in places)
        return found + sum(weight for value, weight in zip(self.values, self.weights, strict=True) if value in wanted)

    def _place(self, cut: Cut | None, end: int) -> int:
        """Return how many values lie below a cut."""
        if cut is None:
            return end
        return bisect_right(self.values, cut[0]) if cut[1] else bisect_left(self.values, cut[0])


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    events: int
    fields: dict[str, Distribution]
    sample: list[bytes]
    """events as MessagePack"""
    version: Literal[1] = 1


class Distributions(msgspec.Struct, frozen=True):
    """Statistics for the merging of filters (`Statistics`), from the distribution of each field.

    >>> from fieldfare.filters import parse
    >>> known = Distributions.of([Event({"x": x}) for x in (1, 1, 1, 9)])
    >>> known.fields["x"].count(parse("x < 5").boxes[0]["x"].values)
    3.0
    >>> Distributions.read(known.text()) == known
    True
    """

    events: int
    fields: dict[str, Distribution]
    sample: Sample

    @classmethod
    def of(cls, events: Sequence[Event]) -> Distributions:
        """Count the values of events."""
        counts: defaultdict[str, Counter[Any]] = defaultdict(Counter)
        kinds: defaultdict[str, set[Kind | None]] = defaultdict(set)
        for event in events:
            for field, value in event.fields.items():
                kind = kind_of(value) if value not in _INFINITE else None  # JSON has no word for them
                kinds[field].add(kind)
                if kind in TYPES:
                    counts[field]["nan" if value != value else (value,)] += 1
        fields = {
            field: _line(kind, len(events), counts[field])
            for field, (kind, *others) in ((field, list(known)) for field, known in sorted(kinds.items()))
            if kind in TYPES and kind is not None and not others
        }
        step = max(1, -(-len(events) // SAMPLE))
        return cls(len(events), fields, Sample(list(events[::step])))

    def share(self, dimension: Dimension, wanted: Constraint, within: Constraint) -> float:
        """Return the share of events with a match of `wanted` among the events with a match of `within`.

        The share follows the law of succession, as for a sample.
        """
        if wanted == within:
            return 1.0
        known = self.fields.get(dimension) if isinstance(dimension, str) else None
        if known is None:
            return self.sample.share(dimension, wanted, within)
        return min(1.0, (known.count(wanted.values) + 1) / (known.count(within.values) + 2))

    def text(self) -> bytes:
        """Return the statistics as JSON."""
        sample = [msgpack.encode(event) for event in _events(self.sample.events)]
        return msgspec.json.format(msgspec.json.encode(_File(self.events, self.fields, sample)), indent=1)

    @classmethod
    def read(cls, text: bytes) -> Distributions:
        """Return the statistics in a JSON text; ValueError, with the place, if there are none."""
        try:
            found = msgspec.json.decode(text, type=_File)
            fields = {name: _typed(name, field) for name, field in found.fields.items()}
            return cls(found.events, fields, Sample([msgpack.decode(event) for event in found.sample]))
        except (msgspec.DecodeError, ValueError) as error:
            raise ValueError(f"no statistics of events: {error}") from None


def _line(kind: Kind, events: int, counts: Counter[Any]) -> Distribution:
    nan = counts.pop("nan", 0)
    pairs = sorted((value, float(count)) for (value,), count in counts.items())
    values, weights = (tuple(part) for part in zip(*pairs, strict=True)) if pairs else ((), ())
    return Distribution(kind, float(events - nan - sum(counts.values())), float(nan), values, weights)


def _typed(name: str, field: Distribution) -> Distribution:
    """Return a distribution with values of the right kind; JSON has no timestamps and no bytes."""
    if field.kind not in TYPES:
        raise ValueError(f"{name}: values of the kind {field.kind.value} have no line")
    if len(field.values) != len(field.weights):
        raise ValueError(f"{name}: {len(field.values)} values have {len(field.weights)} weights")
    values = tuple(msgspec.convert(value, TYPES[field.kind]) for value in field.values)
    if any(not a < b for a, b in pairwise(values)):
        raise ValueError(f"{name}: the values are not in their order")
    return msgspec.structs.replace(field, values=values)


def _events(sample: Iterable[Mapping[str, Any]]) -> Iterable[Event]:
    return (event if isinstance(event, Event) else Event(event) for event in sample)
