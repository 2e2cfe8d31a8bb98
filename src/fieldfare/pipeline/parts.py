"""Parquet files that Python workers write, and that count only if the driver commits them.

    parts = staged(rows_of_descriptors)         # the tasks write; Spark returns the descriptors of finished attempts
    publish(folder, parts)                      # or a commit of a table, which names the files

A task writes a file with a name that no other attempt has, and returns a `Part`: name, rows and bytes. Spark gives the
driver the result of a single attempt of each task. So the file of an attempt that failed, or that was the slower of
two, is named by nobody, and a driver that dies before the commit leaves files that belong to nothing.
"""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark import TaskContext
from pyspark.sql import DataFrame

PARTS: Final = "path string, rows bigint, bytes bigint"
STAGING: Final = "_staging"
"""the folder of files without a commit, below the folder of the table; readers skip its name"""
DONE: Final = "_SUCCESS"
"""the mark of a folder that is whole, as Spark's own writers leave it"""


class Part(NamedTuple):
    """A Parquet file without a commit yet."""

    path: str
    """the name of the file, in the folder that the task was given"""
    rows: int
    bytes: int


def written(folder: Path, batches: Iterable[Any]) -> Iterator[Any]:
    """Write the batches of a task to a file, a row group each; yield the descriptor. No file for a task without rows.

    To be called in a worker, in `mapInArrow` with the schema `PARTS`. A dictionary column becomes a plain column of
    Parquet with dictionary encoding.
    """
    context: Any = TaskContext.get()
    attempt = f"{context.partitionId():05}-{context.taskAttemptId()}" if context is not None else "0"
    name = f"part-{attempt}-{uuid.uuid4().hex}.parquet"
    rows = 0
    writer = None
    try:
        for batch in batches:
            if batch.num_rows:
                if writer is None:
                    folder.mkdir(parents=True, exist_ok=True)
                    writer = _writer(folder / name, batch.schema)
                writer.write_table(pa.Table.from_batches([batch]), row_group_size=batch.num_rows)
                rows += batch.num_rows
    finally:
        if writer is not None:
            writer.close()
    if rows:
        _synced(folder / name)
        yield pa.record_batch({"path": [name], "rows": [rows], "bytes": [(folder / name).stat().st_size]})


def _writer(path: Path, schema: Any) -> Any:
    """Open a file. Repeated texts have no statistics, which would cost more than all else, and cut off nothing."""
    repeated = [pa.types.is_dictionary(one.type) and pa.types.is_string(one.type.value_type) for one in schema]
    some = [name for name, text in zip(schema.names, repeated, strict=True) if not text]
    return pq.ParquetWriter(path, schema, compression="snappy", store_schema=False, write_statistics=some)


def staged(descriptors: DataFrame) -> list[Part]:
    """Run the tasks, and return the files of the finished attempts, one of each task."""
    return [Part(*row) for row in descriptors.select("path", "rows", "bytes").collect()]


def publish(staging: Path, parts: Sequence[Part], target: Path) -> None:
    """Let a folder with just these files appear in one step; an existing folder is replaced.

    The files move to a fresh folder first: an attempt without hope may still write to the old folder.
    """
    draft = staging.with_name(f"{staging.name}-draft")
    draft.mkdir(parents=True)
    for part in parts:
        (staging / part.path).replace(draft / part.path)
    (draft / DONE).touch()
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        old = staging.with_name(f"{staging.name}-old")
        target.replace(old)
        draft.replace(target)
        shutil.rmtree(old, ignore_errors=True)
    else:
        draft.replace(target)
    _synced(target.parent)


def is_published(target: Path) -> bool:
    """Tell whether a folder is there as a whole."""
    return (target / DONE).exists()


def discard(staging: Path) -> None:
    """Remove files without a commit, and the folder of all staging if empty."""
    for left in (staging, staging.with_name(f"{staging.name}-draft")):
        shutil.rmtree(left, ignore_errors=True)
    if staging.parent.is_dir() and not any(staging.parent.iterdir()):
        staging.parent.rmdir()


def _synced(path: Path) -> None:
    """Wait until a file or the names in a folder are on disk, since a commit outlives the machine's memory."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
