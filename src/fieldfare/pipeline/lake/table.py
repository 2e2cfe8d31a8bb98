"""The event table: a Delta table by type and day, written in batches or by a stream, each batch exactly once.

    write_stream(normalise(stream, fields), "lake", quarantine="bad", checkpoint="state").start()
    read_table(spark, "lake", since=…, types=["trade"])

A place is a folder, or a URL such as `s3://bucket/lake`. Spark's Python workers write Parquet from Arrow, and the
driver commits the files (see `files` and `delta`), so no jar is needed. A reader needs none either: the files of a
version are a DataFrame, read by Spark or, at `s3://`, by Python workers.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from itertools import groupby
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from fieldfare.events.values import utc
from fieldfare.objects import absolute, is_url
from fieldfare.pipeline.batch import Batch, query_id
from fieldfare.pipeline.hadoop import hadoop_path
from fieldfare.pipeline.lake import delta
from fieldfare.pipeline.lake.delta import DAY, KIND, PARTITION, Listed, commit
from fieldfare.pipeline.lake.files import File, write_file
from fieldfare.pipeline.lake.folders import folder, folder_name
from fieldfare.pipeline.lake.rows import read_rows
from fieldfare.pipeline.table.normalisation import Normalised
from fieldfare.pipeline.table.schema import TableError
from fieldfare.pipeline.workers import check_workers

TIMELESS: Final = "none"
"""the day of events without a time"""
FILES: Final = "path string, rows long, bytes long, partition map<string, string>, stats string"


def write_table(
    events: DataFrame,
    path: str | Path,
    *,
    batch: Batch | None = None,
    kind: Column | None = None,
    time: Column | None = None,
) -> bool:
    """Add events to a table; False if the batch is empty, or if the table has the batch already.

    Args:
        events: a batch, of the event table's form or any other.
        path: the folder or URL of the table, which is made if need be.
        batch: the name of the batch, by which a repetition is recognised.
        kind: the column that sorts the files, by default the type.
        time: the time whose day sorts the files, by default the time of the event.
    """
    table = delta.find(path)
    if table is not None and delta.has(table, batch):
        return False
    delta.widened(table, events.schema)  # a column that does not fit is an error before any work
    files = _written(
        events.withColumns(
            {
                KIND: _kind(folder(F.col("type") if kind is None else kind)),
                DAY: F.coalesce(day_of(F.col("time") if time is None else time), F.lit(TIMELESS)),
            }
        ),
        absolute(path),
    )
    return committed(path, files, events.schema, batch)


def write_stream(
    table: Normalised, path: str | Path, *, quarantine: str | Path, checkpoint: str | Path
) -> DataStreamWriter:
    """Return a stream that adds events to a table and bad records to another, with a single decoding; start it.

    Each batch is in each table exactly once, wherever the stream is killed, as long as the checkpoint is kept.
    """
    place = hadoop_path(table.records.sparkSession, str(checkpoint))

    def write(records: DataFrame, number: int) -> None:
        batch = Batch(query_id(place), number)
        records.persist()
        try:
            records.count()  # also if both tables have it already: Spark wants every batch to be computed
            split = Normalised(records)
            write_table(split.events, path, batch=batch)
            write_table(split.quarantine, quarantine, batch=batch, kind=F.lit("quarantine"), time=F.col("at"))
        finally:
            records.unpersist()

    return table.records.writeStream.foreachBatch(write).option("checkpointLocation", place)


def read_table(
    spark: SparkSession,
    path: str | Path,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    types: Collection[str | None] | None = None,
    version: int | datetime | None = None,
) -> DataFrame:
    """Read a table, or the events of a period, the end excluded, and of some types.

    Only files of these days and types are opened. The rows are of the present version of the table, or of another
    `version`, by number or by time. Files that are compacted away later are still read, see `clean`. Spark reads a
    folder, and a URL for which there are jars, such as `s3a://`; Python workers read `s3://`.
    """
    table = delta.find(path, version)
    if table is None:
        raise TableError(f"{path} has no table: no commit was made there")
    names = None if types is None else {partition_name(value) for value in types}
    first, last = (None if bound is None else utc(bound).date().isoformat() for bound in (since, until))
    wanted = [
        file
        for file in delta.files_of(table)
        if (names is None or file.kind in names)
        and (first is None or first <= file.day != TIMELESS)
        and (last is None or file.day <= last)
    ]
    columns = StructType([field for field in delta.schema_of(table) if field.name not in PARTITION])
    found = _read(spark, wanted, columns)
    if types is not None:
        found = found.where(F.col("type").isin([*types]) | (F.col("type").isNull() & F.lit(None in types)))
    if since is not None:
        found = found.where(F.col("time") >= F.lit(since))
    return found if until is None else found.where(F.col("time") < F.lit(until))


def partition_name(value: str | None) -> str:
    """Return the value of the partition for a type; `~` would not be the same in a URL.

    >>> partition_name("trade"), partition_name("a/b"), partition_name(None)
    ('trade', '-a_b-c14cddc033f64b9dea80ea675cf280a0', '-')
    """
    return folder_name(value).replace("~", "-")


def _kind(name: Column) -> Column:
    return F.translate(name, "~", "-")


def _read(spark: SparkSession, files: Sequence[Listed], schema: StructType) -> DataFrame:
    if not files:
        return spark.createDataFrame([], schema)
    paths = [file.path for file in files]
    if is_url(paths[0]) and paths[0].startswith("s3://"):
        check_workers(spark)
        return read_rows(spark, paths, schema)
    return spark.read.schema(schema).parquet(*map(_literal, paths))


def _literal(path: str) -> str:
    """Return a path in which Spark sees no pattern."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


def committed(path: str | Path, found: Sequence[Row], columns: StructType, batch: Batch | None) -> bool:
    """Commit the files in rows of the form `FILES`; False without files, or if the table has the batch already."""
    files = [msgspec.convert(row.asDict(), File) for row in found]
    return commit(path, files, columns, batch) and bool(files)


def _written(placed: DataFrame, place: str) -> list[Row]:
    """Let workers write rows with a kind and a day into files of a table, file after file."""
    check_workers(placed.sparkSession)

    def write(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for partition, rows in groupby(_parts(batches), key=lambda part: part[0]):
            file = write_file(place, dict(zip(PARTITION, partition, strict=True)), (batch for _, batch in rows))
            if file is not None:
                yield pa.RecordBatch.from_pylist([msgspec.structs.asdict(file)], FILES_ARROW)

    sorted_rows = placed.hint("rebalance", KIND, DAY).sortWithinPartitions(KIND, DAY)
    return sorted_rows.mapInArrow(write, FILES).collect()


FILES_ARROW: Final = pa.schema(
    [
        ("path", pa.string()),
        ("rows", pa.int64()),
        ("bytes", pa.int64()),
        ("partition", pa.map_(pa.string(), pa.string())),
        ("stats", pa.string()),
    ]
)


def _parts(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[tuple[str, str], pa.RecordBatch]]:
    """Yield the rows of sorted batches as pieces of a single partition, with the partition apart."""
    for batch in batches:
        columns = [batch.column(name) for name in PARTITION]
        rows = batch.drop_columns([*PARTITION])
        start = 0
        for stop in _ends(columns, batch.num_rows):
            yield (columns[0][start].as_py(), columns[1][start].as_py()), rows.slice(start, stop - start)
            start = stop


def _ends(columns: Sequence[Any], rows: int) -> list[int]:
    """Return where each run of equal rows ends."""
    changes = np.zeros(max(rows - 1, 0), bool)
    for column in columns:
        changes |= np.asarray(pc.not_equal(column[1:], column[:-1]))
    return [*(int(place) + 1 for place in np.flatnonzero(changes)), rows] if rows else []


def day_of(time: Column) -> Column:
    """Return the day in UTC, whatever the zone of the Spark session is."""
    return F.date_from_unix_date(F.floor(F.unix_seconds(time) / 86_400).cast("int")).cast("string")
