"""The kind `subscribers`: a folder for each owner."""

from __future__ import annotations

import tempfile
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from tests.examples import few
from tests.pipeline.lake.test_table import HOSTILE
from tests.pipeline.sinks.suite import WRITER, SinkSuite
from tests.pipeline.sinks.test_table import matched

from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.folders import folder, folder_name
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare.pipeline.match.forms import Found
from fieldfare.pipeline.match.pairs import Pairs
from fieldfare.pipeline.sinks import OptionError, SinkSettings, make
from fieldfare.pipeline.sinks.folders import FolderSink, folder_of, write_by_subscriber
from fieldfare.pipeline.sinks.formats import subscriber_files

OWNERS = [*HOSTILE, "_staging", "A", "trade\n", "a_b", "~a_b~c14cddc033f64b9dea80ea675cf280a0"]


def test_each_owner_has_a_folder_with_its_rows_alone(spark: SparkSession, tmp_path: Path) -> None:
    rows = [(owner, number) for number, owner in enumerate(OWNERS * 3)]
    frame = spark.createDataFrame(rows, "owner string, event long")
    for batch in (0, 1, 1):  # the second comes again
        assert write_by_subscriber(frame, tmp_path, batch=batch) == len(OWNERS)
    for owner in OWNERS:
        found = pq.read_table(folder_of(tmp_path, owner)).to_pylist()
        assert Counter((row["owner"], row["event"]) for row in found) == Counter(
            {row: 2 for row in rows if row[0] == owner}
        )
    names = spark.createDataFrame([(owner,) for owner in OWNERS], "owner string").select(
        "owner", folder(F.col("owner")).alias("name")
    )
    assert [row.name for row in names.collect()] == [folder_name(owner) for owner in OWNERS]


@given(st.text(st.characters(exclude_categories=["Cs"])), st.text(st.characters(exclude_categories=["Cs"])))
def test_two_values_have_two_names_that_every_disk_takes(one: str, other: str) -> None:
    name = folder_name(one)
    assert (name == folder_name(other)) == (one == other)
    assert len(name) <= 64
    assert name.isascii()
    assert name[0] not in "._"
    assert not set(name) & set('/\\:*?"<>|%= ')


class TestFolders(SinkSuite):
    kind = "subscribers"

    def contents(self, place: Path) -> list[str]:
        found = pq.read_table(folder_of(place / "out", "ana"))
        return sorted(found.column("id").to_pylist())


def test_only_deliveries_have_subscribers(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="only deliveries have subscribers"):
        make(SinkSettings("subscribers", "late", {"path": str(tmp_path)}))


def test_deliveries_that_workers_write_are_those_that_spark_writes(spark: SparkSession, tmp_path: Path) -> None:
    sink, other = (FolderSink(str(tmp_path / name), "owner") for name in ("out", "rows"))
    deliveries = matched(spark, tmp_path, range(12))
    assert sink.rows_because(deliveries) is None
    assert "column type" in str(FolderSink("", "type").rows_because(deliveries))
    for _ in range(2):  # the second replaces the files
        sink.write_matched(deliveries, Batch(WRITER, 0))
    other.write(deliveries.rows(), Batch(WRITER, 0))
    assert not (tmp_path / "out" / "_staging").exists()
    for owner, rows in (("ana", 12), (None, 6)):
        mine, theirs = (
            pq.read_table(folder_of(tmp_path / name, owner), coerce_int96_timestamp_unit="us")
            for name in ("out", "rows")
        )
        assert mine.column_names == theirs.column_names
        theirs = theirs.cast(mine.schema)  # Spark writes times as INT96, without a zone
        assert mine.num_rows == rows
        assert sorted(map(repr, mine.to_pylist())) == sorted(map(repr, theirs.to_pylist()))
    names = [
        sorted(str(file.relative_to(tmp_path / name)) for file in (tmp_path / name).rglob("*.parquet"))
        for name in ("out", "rows")
    ]
    assert names[0] == names[1]
    sink.write_matched(matched(spark, tmp_path, range(0)), Batch(WRITER, 1))


@few(30)
@given(st.lists(st.lists(st.sets(st.integers(0, 5)), min_size=1, max_size=5), max_size=4), st.integers(1, 3))
def test_the_pairs_of_an_owner_are_gathered_from_all_chunks(pieces: list[list[set[int]]], tasks: int) -> None:
    owners = ["ana", None, "a/b", "ana", "", "bo"]
    opened = _opened(owners)
    expected: dict[str, list[tuple[str, int]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        names, chunks = subscriber_files._Owners(tasks), []
        for at, piece in enumerate(pieces):
            kept = pa.record_batch({"event": [f"{at}.{number}" for number in range(len(piece))]})
            numbers = np.array([number for some in piece for number in sorted(some)], np.int64)
            pairs = Pairs(np.array([*map(len, piece)], np.int64), numbers)
            if len(numbers):
                chunks.append(subscriber_files.cut(Found(opened, kept, pairs), names, Path(folder)))
            for number, some in enumerate(piece):
                for one in sorted(some):
                    expected[folder_name(owners[one])].append((f"{at}.{number}", one))
        found: dict[str, list[tuple[str, int]]] = {}
        for task in range(tasks):
            for name, parts in subscriber_files.gathered(lambda _: opened, Path(folder), chunks, task):
                assert name not in found, "an owner falls to a single task"
                found[name] = [pair for part in parts for pair in _pairs(part)]
    assert {name: sorted(pairs) for name, pairs in found.items()} == {
        name: sorted(pairs) for name, pairs in expected.items()
    }


def _pairs(part: Found) -> list[tuple[str, int]]:
    events = np.repeat(np.array(part.kept["event"].to_pylist(), object), part.pairs.counts)
    return [*zip(events.tolist(), part.pairs.numbers.tolist(), strict=True)]


def _opened(owners: list[str | None]) -> catalogue.Opened:
    with tempfile.TemporaryDirectory() as folder:
        catalogue.write_version(folder, [Subscription(n, "x > 0", owner) for n, owner in enumerate(owners)])
        return catalogue.opened(folder, 1)
