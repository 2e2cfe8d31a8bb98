"""Parquet files as descriptors: the plan of Spark tells which files an event table is, and workers read them.

A descriptor names a file and some of its row groups. The workers read a file with pyarrow only where Spark would give
the same values: each column has the type in the file that Spark's plan has, and no other operator stands between.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
from pyspark.sql.types import DataType, StructType, TimestampType

from fieldfare.pipeline.spark import is_remote

_ROWS: Final = 16_384
_TASKS: Final = 4
"""tasks for each core, so that a slow task delays the end by little"""
_SMALLEST: Final = 1 << 20
_LEGACY: Final = (b"org.apache.spark.legacyDateTime", b"org.apache.spark.legacyINT96")
"""marks of files whose days are counted by another calendar, which Spark converts"""


class Piece(NamedTuple):
    """Some row groups of a file."""

    path: str
    first: int
    end: int
    bytes: int


@dataclass(frozen=True)
class Scan:
    """Files for workers to read: a list of pieces for each task, the columns, and the types."""

    tasks: tuple[tuple[Piece, ...], ...]
    schema: Any
    """the Arrow schema of the columns, as Spark would hand them to a worker"""

    def batches(self, task: int) -> Iterator[Any]:
        """Read the pieces of a task as record batches."""
        names = self.schema.names
        for piece in self.tasks[task]:
            with pq.ParquetFile(piece.path, coerce_int96_timestamp_unit="us") as file:
                columns = names or file.schema_arrow.names[:1]  # a batch without columns would have no length
                groups = range(piece.first, piece.end)
                for batch in file.iter_batches(_ROWS, row_groups=groups, columns=columns, use_threads=False):
                    yield _as_spark(batch, self.schema)


def scan_of(events: DataFrame, names: Sequence[str]) -> Scan | str:
    """Return the scan that gives these columns of a DataFrame; else the reason why Spark must read the events."""
    if events.isStreaming:
        return "the events are a stream"
    if is_remote(events.sparkSession):
        return "through Spark Connect, the plan of the events is not known here"
    if reason := _operators(events, names):
        return reason
    paths = [*map(urlparse, sorted(events.inputFiles()))]
    if not paths:
        return "there are no files"
    if other := next((path.scheme for path in paths if path.scheme != "file"), None):
        return f"the files are not in a folder of this machine, but in {other}:"
    wanted = StructType([events.schema[name] for name in names])
    pieces: list[Piece] = []
    for path in paths:
        with pq.ParquetFile(unquote(path.path), coerce_int96_timestamp_unit="us") as file:
            if reason := _difference(file, wanted):
                return f"{path.path}: {reason}"
            about = file.metadata
            sizes = [about.row_group(number).total_byte_size for number in range(about.num_row_groups)]
            pieces += [Piece(unquote(path.path), at, at + 1, size) for at, size in enumerate(sizes)]
    schema = pa.schema([(one.name, to_arrow_type(one.dataType, timezone="UTC")) for one in wanted])
    return Scan(_shared(pieces, events.sparkSession.sparkContext.defaultParallelism), schema)


def _operators(events: DataFrame, names: Sequence[str]) -> str | None:
    """Return why a plan is more than a scan of Parquet files; None for a scan."""
    try:
        node: Any = events._jdf.queryExecution().optimizedPlan()
    except PySparkException as error:
        return error.getMessage() or str(error)
    while (kind := node.getClass().getSimpleName()) == "Project":
        columns = node.projectList()
        for at in range(columns.size()):
            if columns.apply(at).getClass().getSimpleName() != "AttributeReference":
                return f"Spark computes the column {columns.apply(at).name()}"
        node = node.child()
    if kind == "InMemoryRelation":
        return "Spark holds the events in its cache"
    if kind != "LogicalRelation":
        return f"Spark runs another operator between the files and the matching: {kind}"
    relation = node.relation()
    if relation.getClass().getSimpleName() != "HadoopFsRelation":
        return "the events come from no files"
    if (form := relation.fileFormat().getClass().getSimpleName()) != "ParquetFileFormat":
        return f"the files are no plain Parquet: {form}"
    if not relation.partitionSchema().isEmpty():
        return "the names of folders are columns of the events"
    stored = {field.name: field.dataType for field in StructType.fromJson(json.loads(relation.dataSchema().json()))}
    changed = [name for name in names if stored.get(name) != events.schema[name].dataType]
    return f"the files have no column {changed[0]} of this type" if changed else None


def _difference(file: Any, wanted: StructType) -> str | None:
    """Return why pyarrow would read other values than Spark; None for the same values."""
    if any(mark in (file.metadata.metadata or {}) for mark in _LEGACY):
        return "its times are of an older Spark, which Spark converts"
    stored = file.schema_arrow
    leaves = {file.schema.column(number).path: file.schema.column(number) for number in range(len(file.schema))}
    for field in wanted:
        places = stored.get_all_field_indices(field.name)
        if len(places) != 1:
            return f"it has no column {field.name}"
        if not _same(stored.field(places[0]).type, field.dataType, leaves.get(field.name)):
            return f"its column {field.name} is {stored.field(places[0]).type}, not {field.dataType.simpleString()}"
    return None


def _same(stored: Any, wanted: DataType, leaf: Any) -> bool:
    if isinstance(wanted, TimestampType) and leaf is not None and leaf.physical_type == "INT96":
        return True
    if pa.types.is_dictionary(stored):
        stored = stored.value_type
    try:
        return from_arrow_type(stored).simpleString() == wanted.simpleString()  # but for nullability
    except PySparkException:
        return False


def _shared(pieces: list[Piece], cores: int) -> tuple[tuple[Piece, ...], ...]:
    """Deal the pieces to tasks of about the same size, in order; neighbours in a file become a single piece."""
    target = max(_SMALLEST, sum(piece.bytes for piece in pieces) // (_TASKS * cores))
    tasks: list[list[Piece]] = []
    size = target
    for piece in pieces:
        if size >= target:
            tasks.append([])
            size = 0
        task = tasks[-1]
        if task and task[-1].path == piece.path and task[-1].end == piece.first:
            task[-1] = Piece(piece.path, task[-1].first, piece.end, task[-1].bytes + piece.bytes)
        else:
            task.append(piece)
        size += piece.bytes
    return tuple(map(tuple, tasks))


def _as_spark(batch: Any, schema: Any) -> Any:
    """Return a batch with the columns and types that Spark would hand to a worker."""
    columns = []
    for field in schema:
        column = batch.column(field.name)
        if pa.types.is_timestamp(field.type) and column.type.tz is None and field.type.tz is not None:
            column = column.cast(pa.timestamp("us")).cast(field.type)  # INT96 is in UTC, and does not say so
        columns.append(column if column.type == field.type else column.cast(field.type))
    if not columns:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * batch.num_rows, pa.struct([])))
    return pa.RecordBatch.from_arrays(columns, schema=schema)
