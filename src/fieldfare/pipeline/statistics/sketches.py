"""Counts of values in parts: a tally for each batch, and the union of two tallies, until all are united.

A tally is exact while an attribute has few values, and stays small when it has many:

- values with their counts, `VALUES` at most. With more values, each count is reduced by the largest count that is left
  out (the summary of Misra and Gries): a count is too low by no more than `lost`;
- the `HASHES` smallest hashes of values, which estimate the number of different values to about three in a hundred;
- a sample of `SAMPLE` whole events, those with the smallest random numbers: as fair from all parts as from one.

No function here needs Spark.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

import numpy as np
import pandas as pd  # type: ignore[import-untyped]  # it ships no types
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt
from numpy.typing import NDArray

from fieldfare.events.arrow import is_interval
from fieldfare.events.json import VALID
from fieldfare.events.values import Kind
from fieldfare.pipeline.match.fields import as_batch

VALUES: Final = 1000
HASHES: Final = 1024
SAMPLE: Final = 8192
Value = bool | int | float | str | bytes | Any
"""Any: a datetime"""


@dataclass(frozen=True)
class Tally:
    """Counts of the values of an attribute."""

    kind: Kind
    present: int = 0
    nan: int = 0
    low: Value = None
    high: Value = None
    counts: Mapping[Value, int] = field(default_factory=dict)
    lost: int = 0
    hashes: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))

    @property
    def distinct(self) -> int:
        """The number of different values; an estimate, if there are many."""
        if not self.lost:
            return len(self.counts)
        if len(self.hashes) < HASHES:
            return len(self.hashes)
        return round((HASHES - 1) * 2.0**64 / float(self.hashes[-1]))

    def __or__(self, other: Tally) -> Tally:
        counts, lost = _few(Counter(self.counts) + Counter(other.counts))
        return Tally(
            self.kind,
            self.present + other.present,
            self.nan + other.nan,
            *_ends(self, other),
            counts,
            self.lost + other.lost + lost,
            np.unique(np.concatenate([self.hashes, other.hashes]))[:HASHES],
        )


@dataclass(frozen=True)
class Count:
    """Counts of some events: tallies, a sample, and matches."""

    events: int = 0
    tallies: Mapping[str, Tally] = field(default_factory=dict)
    sample: pa.Table | None = None
    chances: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    """the random number of each event of the sample"""
    passed: Counter[str | int] = field(default_factory=Counter)
    """the number of events that match each subscription"""

    @property
    def bar(self) -> float:
        """The random number below which an event comes into the sample."""
        return float(self.chances.max()) if len(self.chances) >= SAMPLE else math.inf

    def __or__(self, other: Count) -> Count:
        tallies = {**self.tallies, **other.tallies}
        for path in self.tallies.keys() & other.tallies.keys():
            tallies[path] = self.tallies[path] | other.tallies[path]
        sample, chances = _least(
            [one for one in (self.sample, other.sample) if one is not None],
            np.concatenate([self.chances, other.chances]),
        )
        passed = self.passed.copy()
        passed.update(other.passed)
        return Count(self.events + other.events, tallies, sample, chances, passed)


def count(batch: pa.RecordBatch, chance: np.random.Generator, bar: float = math.inf, *, intervals: bool) -> Count:
    """Count a batch with the columns `fields`, `rest` and `wanted`, the lists of matching subscriptions."""
    fields = batch.column("fields")
    columns = as_batch(fields, None, intervals=intervals)
    tallies = {path: _tally(kind, array) for path, kind, array in _leaves("", columns.schema, columns.columns)}
    chances = chance.random(batch.num_rows)
    chosen = np.flatnonzero(chances < bar)
    sample, least = None, np.empty(0)
    if len(chosen):
        table = pa.Table.from_batches([batch.select(["fields", "rest"]).take(pa.array(chosen))])
        sample, least = _least([table], chances[chosen])
    wanted = pc.value_counts(batch.column("wanted").flatten())
    passed = Counter(dict(zip(*(wanted.field(part).to_pylist() for part in ("values", "counts")), strict=True)))
    return Count(batch.num_rows, tallies, sample, least, passed)


def _least(tables: list[pa.Table], chances: NDArray[np.float64]) -> tuple[pa.Table | None, NDArray[np.float64]]:
    """Return the events with the smallest random numbers."""
    if not tables:
        return None, chances
    table = pa.concat_tables(tables)
    if len(chances) <= SAMPLE:
        return table, chances
    places = np.argpartition(chances, SAMPLE)[:SAMPLE]
    return table.take(pa.array(places)), chances[places]


def _leaves(above: str, fields: Any, arrays: list[pa.Array]) -> Iterator[tuple[str, Kind, pa.Array]]:
    """Yield the attributes of a batch that are no objects."""
    for part, array in zip(fields, arrays, strict=True):
        kind = part.type
        if is_interval(part):
            if part.name != VALID:
                yield above + part.name, Kind.INTERVAL, array
        elif pt.is_struct(kind):
            yield from _leaves(f"{above}{part.name}.", kind, array.flatten())
        else:
            yield above + part.name, next((known for test, known in _KINDS if test(kind)), Kind.LIST), array


_KINDS: Final = (
    (pt.is_boolean, Kind.BOOL),
    (lambda kind: pt.is_integer(kind) or pt.is_floating(kind), Kind.NUMBER),
    (lambda kind: pt.is_string(kind) or pt.is_large_string(kind), Kind.STRING),
    (pt.is_timestamp, Kind.TIME),
    (lambda kind: pt.is_binary(kind) or pt.is_large_binary(kind), Kind.BYTES),
)


def _tally(kind: Kind, array: pa.Array) -> Tally:
    values = array.drop_null()
    present = len(values)
    if pt.is_floating(values.type):
        values = values.filter(pc.invert(pc.is_nan(values)))
    nan = present - len(values)
    if kind in (Kind.LIST, Kind.INTERVAL) or not len(values):
        return Tally(kind, present, nan)
    found = values.value_counts()
    different, numbers = found.field("values"), found.field("counts").to_numpy()
    low, high = (end.as_py() for end in pc.min_max(different).values())
    hashes = _hashes(different)
    if len(hashes) > HASHES:
        hashes = np.partition(hashes, HASHES)[:HASHES]
    lost = 0
    if len(numbers) > VALUES:
        lost = int(np.partition(numbers, -VALUES - 1)[-VALUES - 1])
        different, numbers = different.filter(pa.array(numbers > lost)), numbers[numbers > lost] - lost
    counts = dict(zip(different.to_pylist(), numbers.tolist(), strict=True))
    return Tally(kind, present, nan, low, high, counts, lost, np.unique(hashes))


def _hashes(values: pa.Array) -> NDArray[np.uint64]:
    """Return hashes that are the same for the same values in every process."""
    if pt.is_timestamp(values.type):
        values = values.cast(pa.int64())
    plain = values.to_numpy(zero_copy_only=False)
    return cast("NDArray[np.uint64]", pd.util.hash_array(plain, categorize=False))


def _few(counts: Counter[Value]) -> tuple[dict[Value, int], int]:
    """Return at most `VALUES` of the counts, and the number that each has lost."""
    if len(counts) <= VALUES:
        return dict(counts), 0
    lost = sorted(counts.values())[-VALUES - 1]
    return {value: number - lost for value, number in counts.items() if number > lost}, lost


def _ends(one: Tally, other: Tally) -> tuple[Value, Value]:
    lows = [end for end in (one.low, other.low) if end is not None]
    highs = [end for end in (one.high, other.high) if end is not None]
    return min(lows, default=None), max(highs, default=None)
