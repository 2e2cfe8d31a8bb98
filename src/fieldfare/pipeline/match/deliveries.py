"""Deliveries as Parquet files that the workers write, straight from the engine: `write_deliveries`.

    write_deliveries(spark.read.parquet("events"), "subscriptions", "deliveries")

Of events that are Parquet files, nothing but names of files passes through Spark: a task gets the names of files and
row groups, reads, matches and writes, and returns the name of its file, which the driver commits. Of other events,
their columns cross to the workers as Arrow, and no delivery crosses back. See `ways` and `parts`.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DateType,
    DecimalType,
    MapType,
    NumericType,
    StringType,
    StructType,
    TimestampNTZType,
    TimestampType,
)

from fieldfare.pipeline.match import forms
from fieldfare.pipeline.match.forms import Found
from fieldfare.pipeline.match.operator import Columns, id_type, question, result_columns
from fieldfare.pipeline.match.pairs import PAIRS, Mode
from fieldfare.pipeline.match.ways import Batches, Source, Way
from fieldfare.pipeline.parts import PARTS, STAGING, Part, discard, publish, staged, written

FileForm = Literal["rows", "lists"]
_KEPT_BYTES: Final = 1 << 26
"""bytes of events that a worker holds at most, before it writes their deliveries"""
_PLAIN: Final = (
    *(BooleanType, NumericType, StringType, BinaryType, DateType),
    *(TimestampType, TimestampNTZType, DecimalType),
)


class Written(NamedTuple):
    """The outcome of `write_deliveries`."""

    files: int
    rows: int
    bytes: int
    way: Way


def write_deliveries(
    events: DataFrame,
    subscriptions: DataFrame | str | Path,
    path: str | Path,
    *,
    columns: Columns = None,
    json: str | None = None,
    mode: Mode = "point",
    form: FileForm = "rows",
    keep: Sequence[str] | None = None,
) -> Written:
    """Match events, and let the workers write the result to a new folder of Parquet files.

    The folder appears in one step when all is written. All machines must see it. The arguments and the columns of the
    files are those of `match_events`; the owner of a subscription is only in rows.
    """
    target = Path(path).absolute()
    if target.exists():
        raise FileExistsError(f"{path} exists already: remove it, or write to another folder")
    asked = question(events, subscriptions, columns=columns, json=json, mode=mode, form=form, keep=keep)
    source = asked.source()
    if wrong := unwritable(source.kept):
        raise ValueError(f"workers cannot write the column {wrong}: leave it out with `keep`, or write match_events()")
    schema = result_columns(source.kept, id_type(asked.opened), form)
    staging = target.parent / STAGING / uuid.uuid4().hex
    try:
        parts = stage(source, staging, form)
        committed(staging, parts, target, schema)
    finally:
        discard(staging)
    return Written(len(parts), sum(part.rows for part in parts), sum(part.bytes for part in parts), source.way)


def stage(source: Source, staging: Path, form: FileForm = "rows") -> list[Part]:
    """Let the workers write the deliveries of a source as files, and return the files for a commit.

    The caller commits: `committed` makes a folder of files, a table names files in the log.
    """
    return staged(source.frame.mapInArrow(_writing(source.read, staging, form), PARTS))


def committed(staging: Path, parts: Sequence[Part], target: Path, schema: StructType) -> None:
    """Publish a folder with some parts; without parts, with a file of the columns, for readers of the folder."""
    if not parts:
        staging.mkdir(parents=True, exist_ok=True)
        empty = pa.schema([(one.name, to_arrow_type(one.dataType, timezone="UTC")) for one in schema]).empty_table()
        pq.write_table(empty, staging / "part-empty.parquet", store_schema=False)
        parts = [Part("part-empty.parquet", 0, 0)]
    publish(staging, parts, target)


def unwritable(columns: StructType) -> str | None:
    """Return the first column that pyarrow would write in another type than Spark; None without such a column."""
    return next((f"{one.name} {one.dataType.simpleString()}" for one in columns if not _writable(one.dataType)), None)


def _writable(kind: DataType) -> bool:
    match kind:
        case ArrayType():
            return _writable(kind.elementType)
        case MapType():
            return _writable(kind.keyType) and _writable(kind.valueType)
        case StructType():
            return len(kind) > 0 and all(_writable(one.dataType) for one in kind)
    return isinstance(kind, _PLAIN)


def _writing(read: Callable[[Batches], Iterator[Found]], staging: Path, form: FileForm) -> Callable[[Batches], Batches]:
    """Return the function of a worker for writing the matches of another function."""

    def run(batches: Batches) -> Batches:
        if form == "lists":
            return written(staging, (forms.lists(one, coded=True) for one in full(read(batches))))
        matched = (forms.without_rest(one) for one in read(batches))
        return written(staging, (rows for one in full(matched) for rows in forms.coded_rows(one)))

    return run


def full(found: Iterable[Found]) -> Iterator[Found]:
    """Join matches to pieces of the size of a row group of Parquet."""
    waiting: list[Found] = []
    pairs = size = 0
    for one in found:
        if waiting and one.opened is not waiting[0].opened:
            yield forms.together(waiting)
            waiting, pairs, size = [], 0, 0
        waiting.append(one)
        pairs += len(one.pairs.numbers)
        size += one.kept.nbytes
        if pairs >= PAIRS or size >= _KEPT_BYTES:
            yield forms.together(waiting)
            waiting, pairs, size = [], 0, 0
    if waiting:
        yield forms.together(waiting)
