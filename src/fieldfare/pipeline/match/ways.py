"""The ways of events to the workers that match them, and the choice among them.

descriptors   workers read Parquet files themselves; only the names of files pass through Spark
arrow         Spark reads the events, and their columns cross to the workers as Arrow
rows          only lists of matches come back to Spark, which unfolds them beside its own rows of the events

Where the result is said to have some columns only, or goes to files, the workers make the result, and the first way is
taken if the events are nothing but files. `rows` is for a DataFrame with all columns of the events: Spark leaves out
what a later `select` does not need, which no Python function allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark import SparkFiles
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.types import StructType

from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Opened
from fieldfare.pipeline.match.forms import Found, found
from fieldfare.pipeline.match.pairs import Mode, Pairs, matched
from fieldfare.pipeline.match.scan import Scan, scan_of
from fieldfare.pipeline.match.subscriptions import Place

Batches = Iterator[Any]
Kind = Literal["descriptors", "arrow", "rows"]
MATCHES: Final = "fieldfare matches"
"""the name of a column that no event has"""
_MOMENT: Final = "fieldfare moment"
_TOLD: Final[Mapping[Kind, str]] = {
    "descriptors": "workers read the files; only names of files pass through Spark",
    "arrow": "Spark reads the events, and the columns cross to the workers as Arrow",
    "rows": "lists of matches come back to Spark, which unfolds them beside the rows of the events",
}


class Way(NamedTuple):
    """A way, with a reason."""

    kind: Kind
    why: str

    def __str__(self) -> str:
        """Return the way and the reason in two lines."""
        return f"{self.kind}: {_TOLD[self.kind]}\n{'because':<12}{self.why}"


@dataclass(frozen=True)
class MatchPlan:
    """The data of a worker for matching."""

    place: Place
    version: int | None
    """None in a stream over a catalogue, which pins a version for each micro-batch"""
    mode: Mode
    json: str | None

    def opened(self, moment: int) -> Opened:
        """Return the subscriptions of the batch with this time, in a worker."""
        return self.of(self.version or catalogue.pinned(self._path, moment))

    def of(self, version: int) -> Opened:
        """Return a version of the subscriptions, in a worker."""
        return catalogue.opened(self._path, version)

    @property
    def _path(self) -> str:
        path = self.place.path
        if self.place.shipped and not Path(path).is_dir():  # on another machine than the driver
            return SparkFiles.get(self.place.shipped)
        return path


class Layout(NamedTuple):
    """The places of columns in the batches that workers get."""

    fields: tuple[tuple[str, int], ...]
    """of the fields that filters look at"""
    kept: tuple[tuple[str, int], ...]
    """of the columns that the result has"""
    text: int | None = None
    """of the event as a text, instead of fields"""

    def found(self, plan: MatchPlan, batch: Any, opened: Opened) -> Iterator[Found]:
        """Match a batch of these columns, and yield the columns of the result beside the matches."""
        kept = _picked(batch, self.kept)
        given = batch.column(self.text) if self.text is not None else _struct(_picked(batch, self.fields))
        return found(opened, kept, matched(opened, given, mode=plan.mode, json=plan.json))


@dataclass(frozen=True)
class Source:
    """The events on their way: a DataFrame whose batches a function turns into matches, in a worker."""

    frame: DataFrame
    read: Callable[[Batches], Iterator[Found]]
    way: Way
    kept: StructType
    """the columns of the events that the result has"""


def source(
    events: DataFrame,
    plan: MatchPlan,
    fields: Mapping[str, str | Column],
    kept: Sequence[str],
    *,
    descriptors: bool = True,
) -> Source:
    """Choose the way of events to workers; with `descriptors` False, Spark reads the events in any case."""
    sent, layout = _layout(fields, kept, plan.json)
    columns = StructType([events.schema[name] for name in kept])
    scan = _scan(events, plan, sent) if descriptors else "it was asked for"
    if isinstance(scan, Scan):
        return _of_files(events, plan, layout, scan, columns)
    moment = F.unix_micros(F.current_timestamp()).alias(_MOMENT)
    frame = events.select(*(_column(one).alias(f"c{at}") for at, one in enumerate(sent)), moment)

    def read(batches: Batches) -> Iterator[Found]:
        for batch in batches:
            if batch.num_rows:
                yield from layout.found(plan, batch, plan.opened(batch.column(len(sent))[0].as_py()))

    return Source(frame, read, Way("arrow", scan), columns)


def matched_before(events: DataFrame, plan: MatchPlan) -> Source:
    """Return the events whose matches are known: in the column `MATCHES`, lists of numbers of subscriptions."""
    kept = [name for name in events.columns if name != MATCHES]
    columns = (F.col(quoted(name)).alias(f"c{at}") for at, name in enumerate(kept))
    frame = events.select(*columns, F.col(f"`{MATCHES}`.snapshot"), F.col(f"`{MATCHES}`.matches"))

    def read(batches: Batches) -> Iterator[Found]:
        for batch in batches:
            yield from _listed(plan, kept, batch)

    way = Way("arrow", "the events were matched before")
    return Source(frame.where(F.size("matches") > 0), read, way, StructType([events.schema[name] for name in kept]))


def _listed(plan: MatchPlan, kept: Sequence[str], batch: Any) -> Iterator[Found]:
    """Yield the matches in a batch of events with their lists, a piece for each run of events of a version."""
    events = _picked(batch, [(name, at) for at, name in enumerate(kept)])
    versions, lists = batch.column(len(kept)).to_numpy(), batch.column(len(kept) + 1)
    counts = lists.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    numbers = lists.flatten().to_numpy().astype(np.int64)
    ends = np.concatenate([[0], np.cumsum(counts)])
    breaks = [0, *(np.flatnonzero(np.diff(versions)) + 1).tolist(), len(versions)]
    for start, end in pairwise(breaks):
        if start < end:
            pairs = Pairs(counts[start:end], numbers[ends[start] : ends[end]])
            yield Found(plan.of(int(versions[start])), events.slice(start, end - start), pairs)


def _of_files(events: DataFrame, plan: MatchPlan, layout: Layout, scan: Scan, kept: StructType) -> Source:
    frame = events.sparkSession.range(0, len(scan.tasks), numPartitions=len(scan.tasks))

    def read(batches: Batches) -> Iterator[Found]:
        for batch in batches:
            for task in batch.column(0).to_pylist():
                opened = plan.opened(0)
                for part in scan.batches(task):
                    yield from layout.found(plan, part, opened)

    files = len({piece.path for task in scan.tasks for piece in task})
    why = f"the events are {files:,} Parquet files, read as they are; tasks: {len(scan.tasks):,}"
    return Source(frame, read, Way("descriptors", why), kept)


def _scan(events: DataFrame, plan: MatchPlan, sent: Sequence[str | Column]) -> Scan | str:
    if plan.version is None:
        return "the events are a stream"
    names = [one for one in sent if isinstance(one, str)]
    if len(names) < len(sent):
        return "fields of the events are computed by Spark"
    return scan_of(events, names)


def _layout(
    fields: Mapping[str, str | Column], kept: Sequence[str], json: str | None
) -> tuple[list[str | Column], Layout]:
    """Return the columns that go to workers, each once, and their places."""
    sent: list[str | Column] = list(dict.fromkeys(kept))
    place: dict[str, int] = {name: at for at, name in enumerate(sent) if isinstance(name, str)}

    def at(column: str | Column) -> int:
        if not isinstance(column, str):
            sent.append(column)
            return len(sent) - 1
        if column not in place:
            place[column] = len(sent)
            sent.append(column)
        return place[column]

    text = None if json is None else at(json)
    looked_at = () if json is not None else tuple((name, at(column)) for name, column in fields.items())
    return sent, Layout(looked_at, tuple((name, place[name]) for name in kept), text)


def _column(one: str | Column) -> Column:
    return F.col(quoted(one)) if isinstance(one, str) else one


def quoted(name: str) -> str:
    """Return a name in backquotes, as Spark reads any name."""
    return f"`{name.replace('`', '``')}`"


def _picked(batch: Any, places: Sequence[tuple[str, int]]) -> Any:
    if not places:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
    return pa.RecordBatch.from_arrays([batch.column(at) for _, at in places], names=[name for name, _ in places])


def _struct(batch: Any) -> Any:
    if not batch.num_columns:
        return pa.array([{}] * batch.num_rows, pa.struct([]))
    return pa.StructArray.from_arrays(batch.columns, names=batch.schema.names)
