"""The kind `subscribers`: a folder for each owner."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812
from tests.pipeline.lake.test_table import HOSTILE
from tests.pipeline.sinks.suite import SinkSuite

from fieldfare.pipeline.lake.folders import folder, folder_name
from fieldfare.pipeline.sinks import OptionError, SinkSettings, make
from fieldfare.pipeline.sinks.folders import folder_of, write_by_subscriber

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
