"""The event table on disk: Parquet by type and day, written in batches or by a stream, each batch exactly once.

    write_stream(normalise(stream, fields), "lake", quarantine="bad", checkpoint="state").start()
    read_table(spark, "lake", since=…, types=["trade"])

Spark's own file sink keeps a log, too, but only a single stream can add to that log: files can never be merged, and two
writers exclude each other. So the table has a log of its own, see `commits`: files are written aside, moved to
`kind=<type>/day=<day>/`, and belong to the table as soon as a commit names them. The commit also has the number of the
batch, so that a batch which runs again after a crash adds nothing.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec
import pyarrow.parquet as pq
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

from fieldfare.events.values import utc
from fieldfare.pipeline.batch import Batch, query_id
from fieldfare.pipeline.lake.commits import Commit, File, State, commit, load
from fieldfare.pipeline.lake.folders import folder, folder_name, move, partitions, remove
from fieldfare.pipeline.table.normalisation import Normalised
from fieldfare.pipeline.table.schema import TableError, merged

STAGING: Final = "_staging"
TIMELESS: Final = "none"
"""the day of events without a time"""


def write_table(
    events: DataFrame,
    path: str | Path,
    *,
    batch: Batch | None = None,
    kind: Column | None = None,
    time: Column | None = None,
) -> bool:
    """Add events to the table in a folder; False if the batch is empty, or if the table has the batch already.

    Args:
        events: a batch, of the event table's form or any other.
        path: the folder, which is made if need be.
        batch: the name of the batch, by which a repetition is recognised.
        kind: the column that sorts the files, by default the type.
        time: the time whose day sorts the files, by default the time of the event.
    """
    table = Path(path)
    state = load(table)
    if _is_there(state, batch):
        return False
    schema = _schema(state, events)
    placed = events.withColumns(
        {
            KIND: folder(F.col("type") if kind is None else kind),
            DAY: F.coalesce(_day(F.col("time") if time is None else time), F.lit(TIMELESS)),
        }
    )
    files = stage(placed.hint("rebalance", KIND, DAY), table)

    def change(now: State) -> Commit | None:
        if _is_there(now, batch) or not (files or now.schema is None):  # a table without rows has its columns
            return None
        about = Commit(tuple(files), schema=_schema(now, events) if now.schema != state.schema else schema)
        return about if batch is None else msgspec.structs.replace(about, writer=batch.writer, batch=batch.number)

    return commit(table, change)


def write_stream(
    table: Normalised, path: str | Path, *, quarantine: str | Path, checkpoint: str | Path
) -> DataStreamWriter:
    """Return a stream that adds events to a table and bad records to another, with a single decoding; start it.

    Each batch is in each table exactly once, wherever the stream is killed, as long as the checkpoint is kept.
    """

    def write(records: DataFrame, number: int) -> None:
        batch = Batch(query_id(Path(checkpoint)), number)
        records.persist()
        try:
            records.count()  # also if both tables have it already: Spark wants every batch to be computed
            split = Normalised(records)
            write_table(split.events, path, batch=batch)
            write_table(split.quarantine, quarantine, batch=batch, kind=F.lit("quarantine"), time=F.col("at"))
        finally:
            records.unpersist()

    return table.records.writeStream.foreachBatch(write).option("checkpointLocation", str(checkpoint))


def read_table(
    spark: SparkSession,
    path: str | Path,
    *,
    since: datetime | None = None,
    until: datetime | None = None,
    types: Collection[str | None] | None = None,
) -> DataFrame:
    """Read the present table, or the events of a period, the end excluded, and of some types.

    Only files of these days and types are opened. Rows that are added later are not seen, and files that are compacted
    away later are still read, see `clean`.
    """
    table = Path(path)
    state = load(table)
    if state.schema is None:
        raise TableError(f"{path} has no table: no commit was made there")
    names = None if types is None else {folder_name(value) for value in types}
    first, last = (None if bound is None else utc(bound).date().isoformat() for bound in (since, until))
    wanted = [
        file
        for file in state.files.values()
        if (names is None or file.kind in names)
        and (first is None or first <= file.day != TIMELESS)
        and (last is None or file.day <= last)
    ]
    found = read(spark, table, state, wanted)
    if types is not None:
        found = found.where(F.col("type").isin([*types]) | (F.col("type").isNull() & F.lit(None in types)))
    if since is not None:
        found = found.where(F.col("time") >= F.lit(since))
    return found if until is None else found.where(F.col("time") < F.lit(until))


def read(spark: SparkSession, table: Path, state: State, files: Iterable[File]) -> DataFrame:
    """Read some files of a table, with all columns of the table."""
    schema = StructType.fromJson(msgspec.json.decode(state.schema or ""))
    paths = [_literal(str(table / file.path)) for file in files]
    return spark.read.schema(schema).parquet(*paths) if paths else spark.createDataFrame([], schema)


def _literal(path: str) -> str:
    """Return a path in which Spark sees no pattern."""
    return re.sub(r"([][{}*?\\])", r"\\\1", path)


def stage(placed: DataFrame, table: Path) -> list[File]:
    """Write rows with a kind and a day into files of a table, still without a commit."""
    aside = table / STAGING / uuid.uuid4().hex
    try:
        placed.write.partitionBy(KIND, DAY).parquet(str(aside))
        return [
            _moved(file, table, values[KIND], values[DAY], f"{aside.name}-{number}.parquet")
            for number, (values, file) in enumerate(partitions(aside))
        ]
    finally:
        remove(aside)


KIND: Final = "_kind"
DAY: Final = "_day"


def _moved(file: Path, table: Path, kind: str, day: str, name: str) -> File:
    place = Path(f"kind={kind}", f"day={day}", name)
    about = File(place.as_posix(), kind, day, pq.read_metadata(file).num_rows, file.stat().st_size)
    move(file, table / place)
    return about


def _is_there(state: State, batch: Batch | None) -> bool:
    return batch is not None and state.batches.get(batch.writer, -1) >= batch.number


def _schema(state: State, events: DataFrame) -> str:
    """Return the schema of the table with the new columns added, as JSON."""
    mine = StructType() if state.schema is None else StructType.fromJson(msgspec.json.decode(state.schema))
    return merged(mine, events.schema).json()


def _day(time: Column) -> Column:
    """Return the day in UTC, whatever the zone of the Spark session is."""
    return F.date_from_unix_date(F.floor(F.unix_seconds(time) / 86_400).cast("int")).cast("string")
