"""Deliveries as files of a table, written by the workers that make them; the driver commits the files.

Spark brings the events of a type and a day together, with the lists of their subscriptions. There are far fewer events
than deliveries: no delivery passes through Spark.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.objects import absolute
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake import delta
from fieldfare.pipeline.lake.delta import DAY, PARTITION
from fieldfare.pipeline.lake.files import write_file
from fieldfare.pipeline.lake.table import FILES, FILES_ARROW, TIMELESS, committed, day_of, partition_name
from fieldfare.pipeline.match import forms
from fieldfare.pipeline.match.deliveries import full, unwritable
from fieldfare.pipeline.match.forms import Found
from fieldfare.pipeline.match.operator import Matched, result_columns
from fieldfare.pipeline.match.pairs import Pairs
from fieldfare.pipeline.match.ways import Batches

_SORTING: Final = ("type", "time")
_DAY: Final = 86_400_000_000
"""microseconds"""


def rows_because(matched: Matched) -> str | None:
    """Return why Spark must write the rows; None if the workers can."""
    if missing := [name for name in _SORTING if name not in matched.source.kept.names]:
        return f"the events have no column {missing[0]}, by which the files are sorted"
    if matched.source.way.kind == "descriptors":
        return "Spark does not have the events, and the files are sorted by their type and day"
    wrong = unwritable(matched.source.kept)
    return None if wrong is None else f"only Spark can write the column {wrong}"


def add_deliveries(matched: Matched, path: str, batch: Batch) -> bool:
    """Add deliveries to a table; False if there are none, or if the table has the batch already."""
    table = delta.find(path)
    if table is not None and delta.has(table, batch):
        return False
    source = matched.source
    columns = result_columns(source.kept, matched.id, "rows")
    delta.widened(table, columns)  # a column that does not fit is an error before any work
    kind, time = (f"c{source.kept.names.index(name)}" for name in _SORTING)
    placed = source.frame.withColumn(DAY, day_of(F.col(time)))  # after all others, where no reader looks
    found = (
        placed.hint("rebalance", kind, DAY)
        .sortWithinPartitions(kind, DAY)
        .mapInArrow(_writing(source.read, absolute(path)), FILES)
        .collect()
    )
    return committed(path, found, columns, batch)


def _writing(read: Callable[[Batches], Iterator[Found]], place: str) -> Callable[[Batches], Batches]:
    """Return the function of a worker for writing a file for each run of events of a type and a day."""

    def run(batches: Batches) -> Batches:
        pieces = (piece for one in read(batches) for piece in split(forms.without_rest(one)))
        for partition, group in groupby(pieces, key=itemgetter(0)):
            rows = (rows for one in full(found for _, found in group) for rows in forms.coded_rows(one))
            file = write_file(place, dict(zip(PARTITION, partition, strict=True)), rows)
            if file is not None:
                yield pa.RecordBatch.from_pylist([msgspec.structs.asdict(file)], FILES_ARROW)

    return run


def split(found: Found) -> Iterator[tuple[tuple[str, str], Found]]:
    """Cut events where type or day changes; yield the pieces with the values of their partition."""
    opened, kept, (counts, numbers) = found
    if not len(counts):
        return
    kinds, days = kept["type"].dictionary_encode(), kept["time"]
    names = [*map(partition_name, kinds.dictionary.to_pylist()), partition_name(None)]
    kind = np.asarray(kinds.indices.fill_null(len(names) - 1))
    known = np.asarray(days.is_valid())
    day = np.where(known, np.asarray(days.cast(pa.timestamp("us", "UTC")).cast(pa.int64()).fill_null(0)) // _DAY, 0)
    changes = (np.diff(kind) != 0) | (np.diff(day) != 0) | (np.diff(known) != 0)
    ends = np.concatenate([[0], np.cumsum(counts)])
    for start, end in pairwise(_bounds(np.flatnonzero(changes) + 1, len(counts))):
        name = str(np.datetime64(int(day[start]), "D")) if known[start] else TIMELESS
        pairs = Pairs(counts[start:end], numbers[ends[start] : ends[end]])
        yield (names[kind[start]], name), Found(opened, kept.slice(start, end - start), pairs)


def _bounds(changes: Iterable[Any], rows: int) -> list[int]:
    return [0, *map(int, changes), rows]
