"""Compaction: small files of a table are merged into large files, while others read and write the table.

The rows of a partition's small files are written to new files, and a single commit adds the new files and removes the
old: so every reader sees each row exactly once, and a crash leaves at worst files without a commit. The old files stay
for readers that began before, until `clean` deletes them.
"""

from __future__ import annotations

import math
import shutil
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Final

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.pipeline.lake.commits import Commit, File, State, commit, load
from fieldfare.pipeline.lake.table import DAY, KIND, STAGING, read, stage
from fieldfare.pipeline.table.schema import TableError

_MB: Final = 1 << 20


def compact(spark: SparkSession, path: str | Path, *, target_mb: float = 128, before: date | None = None) -> int:
    """Merge files that are smaller than half of the target; return by how many files the table has shrunk.

    Args:
        spark: the Spark session.
        path: the folder of the table.
        target_mb: the size of the merged files.
        before: only days before this day, such as today, to which streams still write.
    """
    table = Path(path)
    fewer = 0
    for small in _small(load(table), target_mb * _MB / 2, before):
        wanted = max(1, round(sum(file.bytes for file in small) / (target_mb * _MB)))
        if wanted < len(small):
            fewer += _merge(spark, table, small, wanted)
    return fewer


def clean(path: str | Path, *, older: timedelta = timedelta(days=1)) -> int:
    """Delete files that were compacted away, or left by a crash, longer ago than `older`; return their number.

    Readers and writers are assumed to have begun later.
    """
    table = Path(path)
    limit = time.time() - older.total_seconds()
    gone = tuple(name for name, at in load(table).removed.items() if at < limit)
    for name in gone:
        (table / name).unlink(missing_ok=True)
    commit(table, lambda _: Commit(forget=gone) if gone else None)
    return len(gone) + sum(map(_deleted, list(_left(table, limit))))


def _small(state: State, limit: float, before: date | None) -> Iterator[list[File]]:
    """Yield the small files of each partition with more than one of them."""
    found: dict[tuple[str, str], list[File]] = defaultdict(list)
    for file in state.files.values():
        if file.bytes < limit and (before is None or file.day < before.isoformat()):
            found[file.kind, file.day].append(file)
    return (files for _, files in sorted(found.items()) if len(files) > 1)


def _merge(spark: SparkSession, table: Path, small: Sequence[File], wanted: int) -> int:
    rows = read(spark, table, load(table), small).coalesce(wanted)
    made = stage(rows.withColumns({KIND: F.lit(small[0].kind), DAY: F.lit(small[0].day)}), table)
    before, after = (sum(file.rows for file in files) for files in (small, made))
    if before != after:
        raise TableError(f"{table}: merging files of {before} rows gave {after}; nothing was changed")
    old = tuple(file.path for file in small)

    def change(now: State) -> Commit | None:
        return Commit(tuple(made), old) if now.files.keys() >= set(old) else None  # or somebody else merged them

    if commit(table, change):
        return len(small) - len(made)
    for file in made:
        (table / file.path).unlink()
    return 0


def _left(table: Path, limit: float) -> Iterator[Path]:
    """Return files and folders without a commit that are too old for a commit on its way."""
    found = [*table.glob("kind=*/day=*/*.parquet"), *(table / STAGING).glob("*")]  # first: then a new file is known
    state = load(table)
    known = {table / name for name in (*state.files, *state.removed)}
    return (path for path in found if path not in known and _changed(path) < limit)


def _changed(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except FileNotFoundError:  # its writer has just finished with it
        return math.inf


def _deleted(path: Path) -> bool:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
    return True
