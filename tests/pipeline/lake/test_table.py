"""The table on disk is what was written, each batch once, whatever the types are called and whoever is killed."""

from __future__ import annotations

import os
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pyspark.sql import DataFrame, SparkSession

from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake import table as lake
from fieldfare.pipeline.lake.delta import Listed, files_of, find
from fieldfare.pipeline.lake.table import partition_name, read_table, write_stream, write_table
from fieldfare.pipeline.table.normalisation import normalise
from fieldfare.pipeline.table.schema import TableError

HOSTILE = [
    "trade",
    "",
    "a/b",
    "..",
    ".",
    "_log",
    "x" * 300,
    "日本語",
    "a\nb",
    "%2F",
    "k=v",
    "~",
    "com.example.sale",
    None,
]
START = datetime(2026, 11, 15, 23, 30, tzinfo=UTC)
SCHEMA = "id string, source string, sequence long, time timestamp, type string, fields struct<a: bigint>, rest string"


class Killed(BaseException):
    """As if the process were gone."""


def events_of(
    spark: SparkSession, rows: list[tuple[str, datetime | None, str | None]], schema: str = SCHEMA
) -> DataFrame:
    return spark.createDataFrame([(id, "s", 1, time, type, (7,), None) for id, time, type in rows], schema)


def ids(frame: DataFrame) -> list[str]:
    return sorted(row.id for row in frame.select("id").collect())


def files(place: Path | str) -> list[Listed]:
    table = find(place)
    return [] if table is None else files_of(table)


def test_hostile_types_round_trip_and_prune(spark: SparkSession, tmp_path: Path) -> None:
    rows: list[tuple[str, datetime | None, str | None]] = [
        (f"{number}-{hour}", START + timedelta(hours=hour), type)
        for number, type in enumerate(HOSTILE)
        for hour in (0, 1)
    ]
    rows += [
        ("timeless", None, "trade"),
        ("ancient", datetime(1, 1, 1, tzinfo=UTC), "trade"),
        ("dawn", datetime(1969, 12, 31, 23, tzinfo=UTC), "trade"),
    ]
    write_table(events_of(spark, rows), tmp_path)
    found = read_table(spark, tmp_path).select("id", "type").collect()
    assert Counter((row.id, row.type) for row in found) == Counter((id, type) for id, _, type in rows)
    days = {file.day for file in files(tmp_path)}
    assert days == {"2026-11-15", "2026-11-16", "none", "0001-01-01", "1969-12-31"}
    for type in ("", "a/b", None, "trade"):
        some = read_table(spark, tmp_path, types=[type])
        assert ids(some) == sorted(id for id, _, own in rows if own == type)
        assert all(f"kind={partition_name(type)}/" in file for file in some.inputFiles())
    midnight = datetime(2026, 11, 16, tzinfo=UTC)
    before, after = (
        read_table(spark, tmp_path, until=midnight),
        read_table(spark, tmp_path, since=midnight, types=HOSTILE),
    )
    assert ids(after) == sorted(id for id, time, _ in rows if time and time >= midnight)
    assert ids(before) == sorted(id for id, time, _ in rows if time and time < midnight)
    assert all("day=2026-11-16" in file for file in after.inputFiles())


def test_columns_may_be_added_but_not_changed(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(TableError, match="has no table"):
        read_table(spark, tmp_path)
    write_table(events_of(spark, []), tmp_path)
    assert ids(read_table(spark, tmp_path)) == []
    write_table(events_of(spark, [("1", START, "t")]), tmp_path)
    wider = SCHEMA.replace("a: bigint", "b: bigint")
    write_table(events_of(spark, [("2", START, "t")], wider), tmp_path)
    found = read_table(spark, tmp_path).orderBy("id").select("fields.a", "fields.b").collect()
    assert found == [(7, None), (None, 7)]
    with pytest.raises(TableError, match=r"the column fields\.a is bigint in the table and string"):
        write_table(events_of(spark, [("3", START, "t")], SCHEMA.replace("a: bigint", "a: string")), tmp_path)
    assert ids(read_table(spark, tmp_path, since=START + timedelta(days=9))) == []


def test_a_batch_is_there_once_wherever_its_writer_is_killed(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = events_of(spark, [("1", START, "t"), ("2", START, "u")])
    batch = Batch("w", 0)
    real = lake._written

    def late(*given: Any) -> Any:
        real(*given)
        raise Killed

    def kill(*given: Any) -> None:
        raise Killed

    for step, how in (("_written", kill), ("_written", late), ("commit", kill)):
        with monkeypatch.context() as patch:
            patch.setattr(lake, step, how)
            with pytest.raises(Killed):
                write_table(events, tmp_path, batch=batch)
        assert not files(tmp_path)
    assert write_table(events, tmp_path, batch=batch)
    assert not write_table(events, tmp_path, batch=batch)
    assert ids(read_table(spark, tmp_path)) == ["1", "2"]
    assert write_table(events, tmp_path, batch=Batch("another", 0))
    assert ids(read_table(spark, tmp_path)) == ["1", "1", "2", "2"]


def test_a_stream_that_is_killed_writes_each_batch_once(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, events, bad, state = (tmp_path / name for name in ("in", "events", "bad", "state"))
    source.mkdir()
    for number in range(3):
        lines = [msgspec.json.encode({"id": f"{number}{n}", "type": "t"}) for n in range(5)]
        (source / f"{number}.jsonl").write_bytes(b"\n".join([*lines, b"garbage %d" % number]))

    def run() -> None:
        raw = spark.readStream.option("maxFilesPerTrigger", 1).text(str(source)).withColumnRenamed("value", "event")
        table = normalise(raw, "id string, type string")
        write_stream(table, events, quarantine=bad, checkpoint=state).trigger(
            availableNow=True
        ).start().awaitTermination()

    real = lake.write_table
    calls = 0

    def failing(*given: Any, **options: Any) -> bool:
        nonlocal calls
        calls += 1
        done = real(*given, **options)
        if calls == 3:  # after the events of the second batch, before its bad records
            raise RuntimeError("killed")
        return done

    with monkeypatch.context() as patch:
        patch.setattr(lake, "write_table", failing)
        with pytest.raises(Exception, match="killed"):
            run()
    assert len(ids(read_table(spark, events))) == 10
    run()
    assert ids(read_table(spark, events)) == [f"{number}{n}" for number in range(3) for n in range(5)]
    assert sorted(row.record for row in read_table(spark, bad).collect()) == [
        f"garbage {number}" for number in range(3)
    ]


@pytest.mark.long
def test_a_lake_in_a_bucket_needs_no_jars(spark: SparkSession, s3: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION", "AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"):
        monkeypatch.setitem(spark.sparkContext.environment, name, os.environ[name])  # of a cluster's machines
    lake = f"{s3}/lake"
    rows: list[tuple[str, datetime | None, str | None]] = [("1", START, "t"), ("2", START, "a/b"), ("3", None, None)]
    assert write_table(events_of(spark, rows), lake, batch=Batch("w", 0))
    assert not write_table(events_of(spark, rows), lake, batch=Batch("w", 0))
    wider = SCHEMA.replace("a: bigint", "b: array<struct<c: bigint>>")
    late = spark.createDataFrame([("4", "s", 1, START + timedelta(days=1), "t", ([(1,)],), None)], wider)
    assert write_table(late, lake, batch=Batch("w", 1))
    found = read_table(spark, lake)
    assert found.orderBy("id").select("id", "fields.a", "fields.b").collect() == [
        ("1", 7, None),
        ("2", 7, None),
        ("3", 7, None),
        ("4", None, [(1,)]),
    ]
    assert ids(read_table(spark, lake, types=["a/b", None])) == ["2", "3"]
    assert ids(read_table(spark, lake, since=START + timedelta(hours=1))) == ["4"]
    assert ids(read_table(spark, lake, version=0)) == ["1", "2", "3"]
    with pytest.raises(TableError, match=r"s3://.* has no table"):
        read_table(spark, f"{s3}/nothing")
