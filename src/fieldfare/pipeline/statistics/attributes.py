"""Statistics of an event table: the distribution of each attribute, and the selectivity of each filter, in one pass.

    known = attribute_statistics(events, subscriptions)
    known.attributes["price"].quantiles(4), known.attributes["symbol"].top(10), known.selectivity["s1"]
    one.merge_imperfect(other, known)                   # and tables merge with Merging(statistics=known)

Every partition is counted where it is, see `sketches`, and only counts are sent. Exact counts give exact answers; of an
attribute with very many values, the frequent values are counted and the others are estimated from a sample.
"""

from __future__ import annotations

import math
import pickle
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import or_
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.events.values import Kind
from fieldfare.filters.branch import Dimension
from fieldfare.filters.constraint import Constraint
from fieldfare.filters.distributions import SAMPLE, Distribution, Distributions
from fieldfare.filters.statistics import Sample
from fieldfare.filters.valueset import ValueSet
from fieldfare.pipeline.lake.history import events_of, field_types, has_intervals, listed, table_matches
from fieldfare.pipeline.statistics.sketches import Count, Tally, Value, count
from fieldfare.pipeline.workers import check_workers

_MERGERS: Final = 4
"""tasks that unite the counts of the partitions"""
_SURE: Final = 10
"""a value is frequent if its count is so many times its possible error"""
_UNSORTED: Final = (Kind.LIST, Kind.INTERVAL)


@dataclass(frozen=True)
class Attribute:
    """How the values of an attribute are distributed."""

    tally: Tally
    events: int
    """the number of events, with and without the attribute"""
    sampled: tuple[Value, ...]
    """values in a sample of events"""

    @property
    def kind(self) -> Kind:
        """The kind of the values."""
        return self.tally.kind

    @property
    def presence(self) -> float:
        """The share of events with the attribute."""
        return self.tally.present / self.events

    @property
    def distinct(self) -> int:
        """The number of different values."""
        return self.tally.distinct

    def top(self, most: int = 10) -> list[tuple[Value, int]]:
        """Return the most frequent values with their counts; lower bounds, if there were too many values to count."""
        return sorted(self.tally.counts.items(), key=lambda pair: -pair[1])[:most]

    def quantiles(self, parts: int = 4) -> list[Value]:
        """Return the values that cut the attribute into parts with equally many events, both ends included."""
        values, below = self.line.values, self.line.below
        if not values:
            return []
        inner = [values[min(len(values) - 1, bisect_left(below, below[-1] * n / parts) - 1)] for n in range(1, parts)]
        return [self.tally.low, *inner, self.tally.high]

    def histogram(self, bins: int = 16) -> list[tuple[float, float, int]]:
        """Of numbers: equally wide ranges, and how many events lie in each."""
        if self.kind is not Kind.NUMBER or self.tally.low is None:
            return []
        low, high = float(self.tally.low), float(self.tally.high)
        if not math.isfinite(high - low):
            return []
        values, below = self.line.values, self.line.below
        edges = [low + (high - low) * n / bins for n in range(bins + 1)] if high > low else [low, low]
        places = [0, *(bisect_left(values, edge) for edge in edges[1:-1]), len(values)]
        return [(edges[n], edges[n + 1], round(below[places[n + 1]] - below[places[n]])) for n in range(len(edges) - 1)]

    def count(self, wanted: ValueSet) -> float:
        """Return how many events have a value in a set, or no value, if the set includes missing."""
        return self.line.count(wanted)

    @cached_property
    def line(self) -> Distribution:
        """The values in their order, with the number of events that have each: frequent values, and samples between."""
        tally = self.tally
        weights = {v: n + tally.lost / 2 for v, n in tally.counts.items() if n >= _SURE * tally.lost}
        others = [value for value in self.sampled if value not in weights] if tally.lost else []
        left = max(0.0, tally.present - tally.nan - sum(weights.values()))
        counts = Counter[Value](weights)
        for value in others:
            counts[value] += left / len(others)  # type: ignore[assignment]  # weights are no whole numbers
        pairs = sorted(counts.items())
        missing = float(self.events - tally.present)
        values, weighed = tuple(value for value, _ in pairs), tuple(float(weight) for _, weight in pairs)
        return Distribution(tally.kind, missing, float(tally.nan), values, weighed)


@dataclass(frozen=True)
class EventStatistics:
    """Statistics of events, of the form that the merging of filters uses (`Statistics`)."""

    events: int
    attributes: Mapping[str, Attribute]
    selectivity: Mapping[str | int, float]
    """the share of events that match each subscription"""
    sample: Sample
    """a uniform sample of the events"""

    @cached_property
    def distributions(self) -> Distributions:
        """The statistics as a value for a file, which a node reads (`[routing] merging_statistics`)."""
        sorted_ = {path: one.line for path, one in self.attributes.items() if one.kind not in _UNSORTED}
        return Distributions(self.events, sorted_, self.sample)

    def share(self, dimension: Dimension, wanted: Constraint, within: Constraint) -> float:
        """Return the share of the events that match `wanted`, a part of `within`, among those that match `within`."""
        return self.distributions.share(dimension, wanted, within)

    def save(self, file: str | Path) -> None:
        """Write the statistics to a file for nodes; the sample is cut short."""
        step = max(1, -(-len(self.sample.events) // SAMPLE))
        short = msgspec.structs.replace(self.distributions, sample=Sample(self.sample.events[::step]))
        Path(file).write_bytes(short.text())

    def rows(self) -> list[dict[str, Any]]:
        """A row for each attribute, for a table or a page."""
        return [
            {
                "attribute": path,
                "kind": one.kind.value,
                "presence": one.presence,
                "distinct": one.distinct,
                "low": one.tally.low,
                "high": one.tally.high,
                "quantiles": one.quantiles(),
                "top": one.top(),
            }
            for path, one in sorted(self.attributes.items())
        ]


def attribute_statistics(
    events: DataFrame, subscriptions: DataFrame | str | Path | None = None, *, seed: int = 1
) -> EventStatistics:
    """Count the values of an event table, and the matches of subscriptions, if given."""
    whole = counted(events, subscriptions, seed=seed)
    everyone = [] if subscriptions is None else listed(events.sparkSession, subscriptions).toArrow()[0].to_pylist()
    return known(whole, everyone, intervals=has_intervals(field_types(events)))


def counted(events: DataFrame, subscriptions: DataFrame | str | Path | None = None, *, seed: int = 1) -> Count:
    """Return the count that statistics are made of; counts of several tables are united with `|`."""
    check_workers(events.sparkSession)
    wanted = F.lit(None).cast("array<string>")
    if subscriptions is not None:
        wanted = table_matches(events, subscriptions).getField("matches").getField("subscription")
    rest = F.col("rest") if "rest" in events.columns else F.lit(None).cast("string")
    intervals = has_intervals(field_types(events))
    columns = events.select("fields", rest.alias("rest"), wanted.alias("wanted"))
    counts = columns.mapInArrow(_counting(seed, intervals=intervals), "count binary")
    few = counts.repartition(_MERGERS).mapInArrow(_merging, "count binary").toArrow()
    return _united(few.column("count").to_pylist())


def known(whole: Count, subscriptions: Iterable[str | int] = (), *, intervals: bool = False) -> EventStatistics:
    """Return the statistics of a count."""
    sampled = []
    if whole.sample is not None:
        fields, rest = (whole.sample.column(name).combine_chunks() for name in ("fields", "rest"))
        sampled = list(events_of(fields, rest.to_pylist(), intervals=intervals))
    attributes = {
        path: Attribute(tally, whole.events, tuple(_values(sampled, path)) if tally.lost else ())
        for path, tally in whole.tallies.items()
    }
    shares = {id: whole.passed[id] / max(1, whole.events) for id in subscriptions}
    return EventStatistics(whole.events, attributes, shares, Sample(sampled))


def _values(events: Iterable[Mapping[str, Any]], path: str) -> Iterator[Value]:
    """Return the values of an attribute without NaN, which is counted apart."""
    return (value for event in events if (value := event.get(path)) is not None and value == value)


def _counting(seed: int, *, intervals: bool) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Return the function that workers run: the batches of a partition to a single count."""

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        context = TaskContext.get()
        chance = np.random.default_rng([seed, context.partitionId() if context else 0])
        whole = Count()
        for batch in batches:
            whole |= count(batch, chance, whole.bar, intervals=intervals)
        yield _packed(whole)

    return run


def _merging(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    yield _packed(_united(text for batch in batches for text in batch.column("count").to_pylist()))


def _united(counts: Iterable[bytes]) -> Count:
    return reduce(or_, map(pickle.loads, counts), Count())


def _packed(count: Count) -> pa.RecordBatch:
    return pa.record_batch({"count": pa.array([pickle.dumps(count)], pa.binary())})
