from __future__ import annotations

import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tests.pipeline.lake.test_table import START, Killed, events_of, ids

from fieldfare.pipeline.lake import compaction, table
from fieldfare.pipeline.lake.commits import Commit, commit, load
from fieldfare.pipeline.lake.compaction import clean, compact
from fieldfare.pipeline.lake.table import read_table, write_table


def test_readers_see_every_row_once_wherever_it_is_killed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        write_table(
            events_of(spark, [(f"{number}", START, "t"), (f"{number}'", START + timedelta(days=1), "t")]), tmp_path
        )
    expected = ids(read_table(spark, tmp_path))
    reader = read_table(spark, tmp_path)
    for place, step in ((table, "partitions"), (table, "move"), (compaction, "commit")):

        def kill(*_: Any) -> None:
            raise Killed

        with monkeypatch.context() as patch:
            patch.setattr(place, step, kill)
            with pytest.raises(Killed):
                compact(spark, tmp_path)
        assert ids(read_table(spark, tmp_path)) == expected
    assert compact(spark, tmp_path, before=date(2026, 11, 16)) == 2
    assert sorted(file.day for file in load(tmp_path).files.values()) == ["2026-11-15", *["2026-11-16"] * 3]
    assert compact(spark, tmp_path) == 2
    assert compact(spark, tmp_path) == 0
    assert ids(read_table(spark, tmp_path)) == expected == ids(reader), "who began before reads what was there"

    assert clean(tmp_path) == 0
    assert clean(tmp_path, older=timedelta(0)) == 7, "three files of each day, and one that the last kill left"
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.parquet")} == set(load(tmp_path).files)
    assert ids(read_table(spark, tmp_path)) == expected


def test_what_somebody_else_merged_is_left(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2):
        write_table(events_of(spark, [(f"{number}", START, "t")]), tmp_path)
    real = table.stage

    def slow(*given: Any) -> Any:
        made = real(*given)
        with monkeypatch.context() as patch:
            patch.setattr(compaction, "stage", real)
            assert compact(spark, tmp_path) == 1
        write_table(events_of(spark, [("2", START, "t")]), tmp_path)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(compaction, "stage", slow)
        assert compact(spark, tmp_path) == 0
    assert ids(read_table(spark, tmp_path)) == ["0", "1", "2"]


def test_files_left_by_a_crash_are_deleted_when_they_are_old(tmp_path: Path) -> None:
    commit(tmp_path, lambda _: Commit(schema="{}"))
    left = [tmp_path / "kind=t" / "day=2026-11-15" / "x.parquet", tmp_path / table.STAGING / "half" / "y.parquet"]
    for file in left:
        file.parent.mkdir(parents=True)
        file.touch()
    assert clean(tmp_path) == 0
    long_ago = datetime(2026, 1, 1, tzinfo=UTC).timestamp() - 1e8
    for path in (left[0], left[1].parent):
        os.utime(path, (long_ago, long_ago))
    assert clean(tmp_path) == 2
    assert not any(file.exists() for file in left)
