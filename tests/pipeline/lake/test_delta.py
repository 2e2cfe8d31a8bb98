"""Commits, maintenance and versions of a table, in a folder and in a bucket; no Spark session is needed."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, Schema
from deltalake.exceptions import CommitFailedError
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

from fieldfare.objects import Objects, below
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake import delta
from fieldfare.pipeline.lake.delta import clean, commit, compact, files_of, find
from fieldfare.pipeline.lake.files import File, write_file
from fieldfare.pipeline.table.schema import TableError

ARROW = pa.schema(
    [
        ("id", pa.string()),
        ("n", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("f", pa.struct([("x", pa.float64()), ("s", pa.string())])),
        ("l", pa.list_(pa.int64())),
    ]
)
SCHEMA = from_arrow_schema(ARROW)
WIDER = (
    StructType().add("id", "string").add("f", StructType().add("x", "double").add("y", "long")).add("more", "string")
)
START = datetime(2026, 11, 15, 23, 30, tzinfo=UTC)


class Killed(BaseException):
    """As if the process were gone."""


def written(place: str, *ids: str, day: str = "2026-11-15") -> File:
    rows = [
        {"id": id, "n": number, "at": START, "f": {"x": 1.5, "s": "s" * 100}, "l": [1]} for number, id in enumerate(ids)
    ]
    file = write_file(place, {"kind": "t", "day": day}, [pa.RecordBatch.from_pylist(rows, ARROW)])
    assert file is not None
    return file


def ids(place: str, version: int | datetime | None = None) -> list[str]:
    table = find(place, version)
    assert table is not None
    return sorted(table.to_pyarrow_table(columns=["id"]).column("id").to_pylist())


class TableSuite:
    """The promises of a table, wherever its files lie."""

    def test_a_batch_is_added_once(self, place: str) -> None:
        assert find(place) is None
        assert commit(place, [], SCHEMA)
        assert not commit(place, [], SCHEMA)
        assert commit(place, [written(place, "a", "b")], SCHEMA, Batch("w", 0))
        assert not commit(place, [written(place, "a", "b")], SCHEMA, Batch("w", 0))
        assert commit(place, [written(place, "c")], SCHEMA, Batch("another", 0))
        assert commit(place, [written(place, "d")], SCHEMA, Batch("w", 3))
        assert not commit(place, [written(place, "z")], SCHEMA, Batch("w", 2))
        assert ids(place) == ["a", "b", "c", "d"]
        assert ids(place, 1) == ["a", "b"]

    def test_two_writers_of_the_same_batch(self, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
        for name in ("_create", "_properties"):  # both are called just before a commit: there another one comes first
            here = f"{place}/{name}"
            if name == "_properties":
                commit(here, [], SCHEMA)
            real = getattr(delta, name)
            first = True

            def slower(*given: Any, real: Any = real, here: str = here) -> Any:
                nonlocal first
                if first:
                    first = False
                    assert commit(here, [written(here, "a")], SCHEMA, Batch("w", 0))
                return real(*given)

            with monkeypatch.context() as patch:
                patch.setattr(delta, name, slower)
                assert not commit(here, [written(here, "a")], SCHEMA, Batch("w", 0))
            assert ids(here) == ["a"]

    def test_an_answer_that_was_lost(self, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
        commit(place, [], SCHEMA)
        real = DeltaTable.create_write_transaction

        def lost(*given: Any, **options: Any) -> None:
            real(*given, **options)
            raise CommitFailedError("so says a store that has repeated a request of which it lost the answer")

        with monkeypatch.context() as patch:
            patch.setattr(DeltaTable, "create_write_transaction", lost)
            assert commit(place, [written(place, "a")], SCHEMA)
            assert commit(place, [written(place, "b")], SCHEMA, Batch("w", 0))
        assert ids(place) == ["a", "b"]

    def test_columns_are_added_and_never_changed(self, place: str) -> None:
        commit(place, [written(place, "a")], SCHEMA)
        commit(place, [written(place, "b")], WIDER)
        table = find(place)
        assert table is not None
        found = delta.schema_of(table)
        assert found["f"].dataType.simpleString() == "struct<x:double,s:string,y:bigint>"
        assert found.names == ["id", "n", "at", "f", "l", "kind", "day", "more"]
        with pytest.raises(TableError, match="the column n is bigint in the table and string"):
            commit(place, [], StructType().add("n", "string"))
        with pytest.raises(TableError, match="the column day is the table's own"):
            commit(place, [], StructType().add("Day", "string"))

    def test_readers_see_every_row_once_while_files_are_merged_and_deleted(self, place: str) -> None:
        for number in range(3):
            days = [written(place, f"{number}"), written(place, f"{number}'", day="2026-11-16")]
            commit(place, days, SCHEMA, Batch("w", number))
        commit(place, [written(place, "wide")], WIDER)
        before = find(place)
        assert before is not None
        expected = ids(place)
        assert compact(place, before=date(2026, 11, 16)) == 3
        assert compact(place) == 2
        assert compact(place) == 0
        assert ids(place) == expected
        assert sorted(before.to_pyarrow_table(columns=["id"])["id"].to_pylist()) == expected, "who began before"
        assert not commit(place, [written(place, "0")], SCHEMA, Batch("w", 0)), "a merged batch is there still"
        left = written(place, "of a writer that was killed")
        assert clean(place) == 0
        assert clean(place, older=timedelta(0)) == 7 + 2, "seven that were merged, and two without a commit"
        names = {
            one.name
            for one in Objects(place).listed()
            if one.name.endswith(".parquet") and "_delta_log" not in one.name
        }
        table = find(place)
        assert table is not None
        assert {below(place, name) for name in names} == {file.path for file in files_of(table)}
        assert left.path not in names
        assert ids(place) == expected


class TestFolder(TableSuite):
    @pytest.fixture
    def place(self, tmp_path: Path) -> str:
        return str(tmp_path / "lake")


class TestBucket(TableSuite):
    @pytest.fixture
    def place(self, s3: str) -> str:
        return s3


def test_writers_at_once_lose_no_batch_and_write_none_twice(tmp_path: Path) -> None:
    place = str(tmp_path / "lake")

    def write(job: tuple[str, int]) -> bool:
        writer, number = job
        return commit(place, [written(place, f"{writer}{number}")], SCHEMA, Batch(writer, number))

    def all_of(writer: str) -> int:
        return sum(write((writer, number)) for number in range(6))

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(all_of, ["a", "a", "b", "b"])) == 12
    assert ids(place) == sorted(f"{writer}{number}" for writer in "ab" for number in range(6))


def test_statistics_bound_what_is_there(tmp_path: Path) -> None:
    place = str(tmp_path / "lake")
    commit(place, [written(place, "b", "a")], SCHEMA)
    table = find(place)
    assert table is not None
    (about,) = pa.table(table.get_add_actions(flatten=True)).to_pylist()
    assert (about["min.id"], about["max.id"], about["min.n"], about["max.n"]) == ("a", "b", 0, 1)
    assert about["min.at"] <= START <= about["max.at"]
    assert about["max.f.s"] is None
    assert about.get("min.f.x") is None, "a NaN is largest, and Parquet leaves it out"
    assert about["null_count.f.x"] == 0


def test_a_lake_of_before_is_refused(tmp_path: Path) -> None:
    (tmp_path / "_log").mkdir()
    with pytest.raises(TableError, match=r"from before lakes were Delta tables: read its files with spark\.read"):
        find(tmp_path)


def test_a_table_whose_files_do_not_tell_its_rows_is_refused(tmp_path: Path) -> None:
    DeltaTable.create(str(tmp_path), Schema.from_arrow(pa.schema([("id", pa.string())])), partition_by=[])
    table = find(tmp_path)
    assert table is not None
    with pytest.raises(TableError, match=r"of another form, whose files alone do not tell its rows"):
        files_of(table)


def test_dictionaries_are_plain_columns_in_a_file(tmp_path: Path) -> None:
    rows = pa.record_batch(
        {
            "time": pa.array([datetime(2026, 1, 1, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")).dictionary_encode(),
            "text": pa.array(["x", None]).dictionary_encode(),
            "n": pa.array([1, 2]),
            "deep": pa.array([{"a": 1}, {"a": 3}]),
        }
    )
    file = write_file(str(tmp_path), {"kind": "k"}, [rows])
    assert file is not None
    schema = pq.read_schema(tmp_path / file.path)
    assert [str(field.type) for field in schema] == ["timestamp[us, tz=UTC]", "string", "int64", "struct<a: int64>"]
    told = json.loads(file.stats)
    assert told["minValues"] == {"time": "2026-01-01T00:00:00.000Z", "n": 1, "deep": {"a": 1}}  # none of repeated texts
    assert told["maxValues"]["deep"] == {"a": 3}
