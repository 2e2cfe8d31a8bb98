"""The table function without Spark: what it makes of rows as Spark hands them over."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from pyspark.sql import Row
from pyspark.sql.types import ArrayType, MapType, StringType, StructType, TimestampNTZType, TimestampType

from fieldfare.pipeline.match import catalogue, sql
from fieldfare.pipeline.match.catalogue import Subscription, SubscriptionError


@pytest.fixture
def in_new_york(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with monkeypatch.context() as changed:
        changed.setenv("TZ", "America/New_York")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("in_new_york")
def test_times_are_those_of_the_table_wherever_the_machine_is(tmp_path: Path) -> None:
    """The second moment is half past one for the second time that night: summer time has ended."""
    moments = [datetime(2026, 7, 15, 12, tzinfo=UTC), datetime(2026, 11, 1, 6, 30, tzinfo=UTC)]
    paths = ["t", "deep.t", "ANY many", "map.k"]
    wanted = [(path, f"{path} = TIMESTAMP '{moments[1].isoformat()}'") for path in paths]
    wanted.append(("wall", "wall = TIMESTAMP '2026-11-01T06:30:00Z'"))
    version = catalogue.write_version(tmp_path, [Subscription(id, text) for id, text in wanted])
    kind = (
        StructType()
        .add("t", TimestampType())
        .add("deep", StructType().add("t", TimestampType()))
        .add("many", ArrayType(TimestampType()))
        .add("map", MapType(StringType(), TimestampType()))
        .add("wall", TimestampNTZType())
        .add("none", TimestampType())
    )
    given = [(at, {"t": at}, [at], {"k": at}, at.replace(tzinfo=None), None) for at in moments]
    function = sql._Match(sql._Analysed(kind, path=str(tmp_path), version=version, row=kind))
    for row in given:
        as_in_a_worker = kind.fromInternal(kind.toInternal(row))
        assert isinstance(as_in_a_worker, Row)
        assert [*function.eval(as_in_a_worker, "")] == []
    found = [*function.terminate()]
    assert sorted(row[-3] for row in found) == sorted([*paths, "wall"])
    assert all(kind.toInternal(row[:-3]) == kind.toInternal(given[1]) for row in found)


@pytest.mark.parametrize(
    ("column", "problem"),
    [
        ({"id": ["a", None]}, "row 2: a subscription needs an id"),
        ({"filter": ["x = 1", None]}, r"subscription 'b' \(row 2\): a filter .* is a text, not null"),
        ({"dialect": [None, "klingon"]}, r"subscription 'b' \(row 2\): 'klingon' is not a valid Dialect"),
    ],
)
def test_a_bad_subscription_in_a_file_is_named(tmp_path: Path, column: dict[str, Any], problem: str) -> None:
    file = tmp_path / "wanted.parquet"
    pa.parquet.write_table(pa.table({"id": ["a", "b"], "filter": ["x = 1", "x = 2"]} | column), file)
    with pytest.raises(SubscriptionError, match=problem):
        sql._catalogue(str(file))
