"""Delta tables: files become rows of a table by a commit, each batch exactly once; compaction, cleaning, versions.

    commit("lake", files, schema, Batch(writer, number))

A commit is Delta's, through `deltalake`, so all readers of Delta read the table: Spark with a jar, DuckDB, Polars,
Trino. The batch is the application transaction of the commit: `txn` with the writer as application and the number as
version. A commit looks at a version of the table and takes the next version, or fails: without a lock, two writers
never undo each other, and a repeated batch is recognised.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

import pyarrow as pa
from deltalake import DeltaTable, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError
from deltalake.transaction import AddAction, CommitProperties, Transaction, create_table_with_add_actions
from pyspark.sql.types import StringType, StructField, StructType

from fieldfare.objects import absolute, is_url
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.files import File
from fieldfare.pipeline.table.schema import TableError, merged

KIND: Final = "kind"
DAY: Final = "day"
PARTITION: Final = (KIND, DAY)
"""the columns that sort the files of a table"""
_MB: Final = 1 << 20
_UNREADABLE: Final = {"deletionVectors", "columnMapping"}
"""features of a table under which its files alone do not tell its rows"""
_OLD: Final = "_log"
"""the folder with the commits of lakes before they were Delta tables"""


class Listed(NamedTuple):
    """A file of a version of a table."""

    path: str
    kind: str
    day: str
    rows: int
    bytes: int


def commit(
    place: str | Path,
    files: Sequence[File],
    schema: StructType,
    batch: Batch | None = None,
    *,
    partition: Sequence[str] = PARTITION,
) -> bool:
    """Add files to a table, old or new; False if the table has the batch already, or nothing changes.

    Args:
        place: the folder or URL of the table.
        files: files below the place, as from `write_file`.
        schema: the columns of the rows, without `partition`; new columns are added to the table.
        batch: the name of the batch, by which a repetition is recognised.
        partition: the columns in the names of the files.
    """
    own = uuid.uuid4().hex
    for attempt in range(_ATTEMPTS):
        table = find(place)
        if attempt and table is not None and _has_own(table, own):
            return True  # the store has said otherwise: it lost an answer, and was asked again
        if table is not None and has(table, batch):
            return False
        whole = widened(table, schema, partition)
        if table is not None and not files:
            return False  # a table without rows has its columns, and no more is to be said
        try:
            if table is None:
                _create(place, files, whole, partition, _properties(batch, own))
            elif whole != schema_of(table):
                _widen(table, whole, partition)
                continue
            else:
                actions: list[Any] = [_added(file) for file in files]
                table.create_write_transaction(
                    actions, "append", _delta(whole), [*partition], commit_properties=_properties(batch, own)
                )
        except CommitFailedError:
            continue  # another writer was quicker
        except DeltaError:
            if table is not None or find(place) is None:
                raise
            continue  # another writer has made the table
        return True
    raise TableError(f"{place}: {_ATTEMPTS} attempts to commit have failed, as other writers were quicker")


def find(place: str | Path, version: int | datetime | None = None) -> DeltaTable | None:
    """Open the present table, or the table at a version or a time; None without a table."""
    where = absolute(place)
    if not is_url(where) and not (Path(where) / "_delta_log").is_dir():
        if (Path(where) / _OLD).is_dir():
            raise TableError(
                f"{where} is a lake from before lakes were Delta tables: read its files with"
                f' spark.read.parquet("{where}/kind=*/day=*") and write them to a new place with write_table'
            )
        return None
    try:
        table = DeltaTable(where, version if isinstance(version, int) else None)
    except TableNotFoundError:
        return None
    if isinstance(version, datetime):
        table.load_as_version(version)
    return table


def has(table: DeltaTable, batch: Batch | None) -> bool:
    """Tell whether a table has a batch."""
    if batch is None:
        return False
    last = table.transaction_version(batch.writer)
    return last is not None and last >= batch.number


def schema_of(table: DeltaTable) -> StructType:
    """Return the columns of a table, with the columns of the partition."""
    return StructType.fromJson(json.loads(table.schema().to_json()))


def widened(table: DeltaTable | None, schema: StructType, partition: Sequence[str] = PARTITION) -> StructType:
    """Return the schema of a table with the new columns added; TableError for a column of another type."""
    if taken := {name.lower() for name in schema.names} & {*partition}:
        raise TableError(f"the column {min(taken)} is the table's own, for its files: rename it")
    if table is not None:
        return merged(schema_of(table), schema)
    return StructType([*merged(StructType(), schema), *(StructField(name, StringType()) for name in partition)])


def files_of(table: DeltaTable) -> list[Listed]:
    """Return the files of a version of a table of ours, with whole paths."""
    features = {*(table.protocol().reader_features or ())} & _UNREADABLE
    if features or table.metadata().partition_columns != [*PARTITION]:
        what = f"with {' and '.join(sorted(features))}" if features else "of another form"
        raise TableError(
            f"{table.table_uri} is a table {what}, whose files alone do not tell its rows: read it with Delta's jar,"
            ' spark.read.format("delta")'
        )
    found = pa.table(table.get_add_actions(flatten=True))
    names = ("path", f"partition.{KIND}", f"partition.{DAY}", "num_records", "size_bytes")
    root = unquote(table.table_uri).removeprefix("file://").rstrip("/")
    rows = zip(*(found.column(name).to_pylist() for name in names), strict=True)
    return [Listed(f"{root}/{unquote(path)}", *rest) for path, *rest in rows]


def compact(place: str | Path, *, target_mb: float = 128, before: date | None = None) -> int:
    """Merge small files of a table; return by how many files the table has shrunk. Readers and writers may go on.

    Args:
        place: the folder or URL of the table.
        target_mb: the size of the merged files.
        before: only days before this day; streams still write to today's.
    """
    filters: Any = None if before is None else [(DAY, "<", before.isoformat())]
    done = _existing(place).optimize.compact(partition_filters=filters, target_size=int(target_mb * _MB))
    return int(done["numFilesRemoved"] - done["numFilesAdded"])


def clean(place: str | Path, *, older: timedelta = timedelta(days=7)) -> int:
    """Delete files that were compacted away, or left by a crash, longer ago than `older`; return how many.

    Readers and writers are assumed to have begun later. Versions of the table with deleted files cannot be read any
    more.
    """
    hours = older.total_seconds() / 3600
    return _cleaned(_existing(place), int(hours) if hours == int(hours) else int(hours) + 1)


def _cleaned(table: DeltaTable, hours: int) -> int:
    return len(table.vacuum(hours, dry_run=False, enforce_retention_duration=False, full=True))


def _existing(place: str | Path) -> DeltaTable:
    table = find(place)
    if table is None:
        raise TableError(f"{place} has no table: no commit was made there")
    return table


_OWN: Final = "fieldfare"
_LAST: Final = 20
_ATTEMPTS: Final = 100


def _properties(batch: Batch | None, own: str) -> CommitProperties:
    """Return a commit for a single try: the library's own second try would not look for the batch again."""
    transactions = [] if batch is None else [Transaction(batch.writer, batch.number)]
    return CommitProperties(custom_metadata={_OWN: own}, max_commit_retries=0, app_transactions=transactions)


def _has_own(table: DeltaTable, own: str) -> bool:
    """Tell whether any of the last commits bears a mark."""
    return any(entry.get(_OWN) == own for entry in table.history(_LAST))


def _create(
    place: str | Path, files: Sequence[File], schema: StructType, partition: Sequence[str], properties: Any
) -> None:
    if not is_url(place):
        Path(place).mkdir(parents=True, exist_ok=True)
    create_table_with_add_actions(
        absolute(place),
        _delta(schema),
        [_added(file) for file in files],
        partition_by=[*partition],
        commit_properties=properties,
    )


def _widen(table: DeltaTable, schema: StructType, partition: Sequence[str]) -> None:
    """Add columns to a table in a separate commit without rows."""
    nothing = pa.schema(_delta(schema).to_arrow()).empty_table()
    write_deltalake(table, nothing, mode="append", schema_mode="merge", partition_by=[*partition])


def _delta(schema: StructType) -> Schema:
    try:
        return Schema.from_json(schema.json())
    except (DeltaError, ValueError) as error:
        raise TableError(f"a Delta table has no such columns: {error}") from None


def _added(file: File) -> AddAction:
    return AddAction(file.path, file.bytes, file.partition, int(time.time() * 1000), data_change=True, stats=file.stats)
