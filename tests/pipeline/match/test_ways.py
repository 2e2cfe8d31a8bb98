"""The ways of events to workers: the same answers on each, and the reasons for the choice."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from tests.pipeline.match.test_operator import brute, found

from fieldfare.pipeline import explain_match, match_events, write_deliveries
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare.pipeline.match.operator import made_by_workers, question
from fieldfare.pipeline.match.scan import Piece, _shared

FILTERS = {
    **{n: f"x > {n}" for n in range(6)},
    6: "s = 'a' OR deep.a = 2",
    7: "d BETWEEN -1.4 AND 0.7",
    8: "NOT EXISTS x",
    9: "at >= TIMESTAMP '2026-01-02T00:00:00Z'",
    10: "x = 99",
}
COLUMNS = ("n", "x", "s", "d", "deep", "at")


@pytest.fixture(scope="module")
def rows() -> list[dict[str, Any]]:
    dice = random.Random(5)
    return [
        {
            "n": n,
            "x": dice.choice([None, *range(8)]),
            "s": dice.choice([None, "a", "b"]),
            "d": dice.choice([None, Decimal("0.70"), Decimal("0.71"), Decimal("-1.40")]),
            "deep": dice.choice([None, {"a": None}, {"a": 2}]),
        }
        for n in range(60)
    ]


@pytest.fixture
def events(spark: SparkSession, rows: list[dict[str, Any]], tmp_path: Path) -> DataFrame:
    """Files that Spark has written, with its own timestamps, and one without rows."""
    kinds = "n int, x int, s string, d decimal(8, 2), deep struct<a: int>"
    frame = spark.createDataFrame([tuple(row[name] for name in COLUMNS[:5]) for row in rows], kinds)
    timed = frame.selectExpr("*", "timestamp_seconds(1767312000 + n * 3600) AS at")  # 2026-01-02 at first
    timed.where("n < 40").coalesce(1).write.parquet(str(tmp_path / "in"))
    timed.where("n >= 40").coalesce(1).write.mode("append").parquet(str(tmp_path / "in"))
    timed.limit(0).write.mode("append").parquet(str(tmp_path / "in"))
    return spark.read.parquet(str(tmp_path / "in"))


@pytest.fixture
def wanted(tmp_path: Path) -> Path:
    catalogue.write_version(tmp_path / "wanted", (Subscription(n, text, f"o{n}") for n, text in FILTERS.items()))
    return tmp_path / "wanted"


def expected(rows: list[dict[str, Any]]) -> Counter[tuple[Any, Any]]:
    known = [(row["n"], _present(row)) for row in rows]
    return brute(known, ((n, text) for n, text in FILTERS.items() if n != 9)) + Counter((row["n"], 9) for row in rows)


def _present(row: dict[str, Any]) -> dict[str, Any]:
    event = {name: value for name, value in row.items() if value is not None and name not in {"d", "deep"}}
    if row["d"] is not None:
        event["d"] = float(row["d"])  # as the literal in a filter is read
    return {**event, "deep": {"a": 2}} if row["deep"] == {"a": 2} else event


def test_each_form_is_the_same_on_each_way(
    spark: SparkSession, events: DataFrame, wanted: Path, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    due = expected(rows)
    counts = Counter(id for _, id in due.elements())
    assert found(match_events(events, wanted)) == due
    lists: list[Any] = []
    for descriptors in (True, False):

        def made(form: Any, keep: Any = None, descriptors: bool = descriptors) -> DataFrame:
            return made_by_workers(question(events, wanted, form=form, keep=keep), descriptors=descriptors)

        assert found(made("rows", ["n"])) == due
        whole = made("rows").collect()
        assert Counter((row.n, row.subscription) for row in whole) == due
        assert {(row.n, row.x, row.s, row.d) for row in whole} <= {
            (row["n"], row["x"], row["s"], row["d"]) for row in rows
        }
        assert all(row.owner == f"o{row.subscription}" and row.snapshot == 1 for row in whole)
        lists = made("lists", ["n", "at"]).collect()
        assert {row.n: sorted(row.subscriptions) for row in lists} == {
            row["n"]: sorted(id for n, id in due if n == row["n"]) for row in rows
        }
        assert Counter({row.subscription: row.events for row in made("counts").collect()}) == counts
    asked = match_events(events, wanted, form="lists").select("n", "at", "subscriptions").collect()
    assert sorted((row.n, row.at, row.subscriptions) for row in asked) == sorted(map(tuple, _without_version(lists)))


def _without_version(rows: list[Any]) -> list[Any]:
    return [(row.n, row.at, row.subscriptions) for row in rows]


def test_workers_write_what_spark_reads(
    spark: SparkSession, events: DataFrame, wanted: Path, rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    due = expected(rows)
    for name, given, kind in (("a", events, "descriptors"), ("b", events.where("n >= 0"), "arrow")):
        out = write_deliveries(given, wanted, tmp_path / name)
        read = spark.read.parquet(str(tmp_path / name))
        assert (out.way.kind, out.rows) == (kind, sum(due.values()))
        assert read.schema.simpleString() == match_events(events, wanted).schema.simpleString()
        assert sorted(map(str, read.collect())) == sorted(map(str, match_events(events, wanted).collect()))
        lists = write_deliveries(given, wanted, tmp_path / f"{name}-lists", form="lists", keep=["n"])
        assert lists.rows == len(rows)
        lists_read = spark.read.parquet(str(tmp_path / f"{name}-lists"))
        assert Counter((row.n, id) for row in lists_read.collect() for id in row.subscriptions) == due
    assert not (tmp_path / "_staging").exists()
    with pytest.raises(FileExistsError, match="exists already"):
        write_deliveries(events, wanted, tmp_path / "a")


def test_nothing_to_deliver_is_a_table_without_rows(spark: SparkSession, events: DataFrame, tmp_path: Path) -> None:
    catalogue.write_version(tmp_path / "none", [Subscription("a", "x = 99")])
    catalogue.write_version(tmp_path / "empty", [])
    for name in ("none", "empty"):
        assert write_deliveries(events, tmp_path / name, tmp_path / f"{name}-out").rows == 0
        assert spark.read.parquet(str(tmp_path / f"{name}-out")).columns == [
            *COLUMNS,
            "subscription",
            "owner",
            "snapshot",
        ]
        assert match_events(events, tmp_path / name, form="counts").count() == 0
    assert match_events(events.limit(0), tmp_path / "none", form="lists", keep=["n"]).count() == 0


def test_the_reason_for_a_way_is_told(spark: SparkSession, events: DataFrame, wanted: Path, tmp_path: Path) -> None:
    def told(given: DataFrame, **options: Any) -> str:
        return explain_match(given, wanted, **{"form": "counts", **options})

    assert told(events).startswith("descriptors: ")
    assert "2 Parquet files" in told(events)  # the third has no rows
    assert told(events.select("x", "s", "d", "deep", "at"), form="lists", keep=["x"]).startswith("descriptors: ")
    assert told(events, form="rows").startswith("rows: ")
    others: dict[str, Callable[[], str]] = {
        "another operator between the files and the matching: Filter": lambda: told(events.where("x > 1")),
        "Spark computes the column x": lambda: told(events.selectExpr("x + 1 AS x", "s", "d", "deep", "at")),
        "fields of the events are computed": lambda: told(events, columns={"x": events["x"] + 1}),
        "no plain Parquet: CSVFileFormat": lambda: told(spark.read.schema("x int").csv(str(tmp_path / "in"))),
        "matching: LogicalRDD": lambda: told(spark.createDataFrame([(1,)], "x int").where("x > 0")),
    }
    for reason, ask in others.items():
        assert ask().startswith("arrow: ")
        assert reason.rpartition(": ")[0] in ask()
    events.write.partitionBy("s").parquet(str(tmp_path / "by"))
    assert "names of folders are columns" in told(spark.read.parquet(str(tmp_path / "by")))
    pq.write_table(pa.table({"x": pa.array([1], pa.int64()), "n": [1]}), tmp_path / "other.parquet")
    pq.write_table(pa.table({"x": pa.array([1], pa.int32()), "n": [1]}), tmp_path / "same.parquet")
    both = spark.read.schema("x int, n long").parquet(str(tmp_path / "other.parquet"), str(tmp_path / "same.parquet"))
    assert "its column x is int64, not int" in told(both)
    with pytest.raises(ValueError, match="form must be one of 'rows', 'lists', 'counts'"):
        told(events, form="pairs")
    with pytest.raises(ValueError, match="there is no column 'price'"):
        told(events, form="rows", keep=["price"])


def test_pieces_are_dealt_to_tasks_of_about_the_same_size() -> None:
    pieces = [Piece(f"f{n // 4}", n % 4, n % 4 + 1, 1 << 20) for n in range(32)]
    tasks = _shared(pieces, 2)
    assert len(tasks) == 8
    assert all(sum(piece.bytes for piece in task) == 4 << 20 for task in tasks)
    assert tasks[0] == (Piece("f0", 0, 4, 4 << 20),)
    assert _shared([], 2) == ()
