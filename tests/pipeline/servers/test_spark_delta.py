"""Spark with Delta's own jar reads a lake that Fieldfare wrote, and Fieldfare goes on with what Spark wrote."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from pyspark.sql.pandas.types import from_arrow_schema
from tools.servers import cache, spark_delta

from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.delta import clean, commit, compact, files_of
from fieldfare.pipeline.lake.files import write_file

pytestmark = [pytest.mark.long, pytest.mark.needs("Spark with Delta")]
SCHEMA = pa.schema([
    ("id", pa.string()),
    ("fields", pa.struct([("symbol", pa.string()), ("price", pa.float64())])),
    ("at", pa.timestamp("us", "UTC")),
])  # fmt: skip
AT = datetime(2026, 11, 15, 12, 30, tzinfo=UTC)
KINDS = ["trade", "a kind/with=odd%signs-é", "none"]


def rows(number: int) -> list[list[object]]:
    """The rows of a batch, as Spark prints them: one for each kind."""
    day = f"2026-11-{15 + number}"
    at = (AT + timedelta(days=number)).replace(tzinfo=None).isoformat()
    return [[f"{number}/{n}", kind, day, "IBM", 1.5 * n, at] for n, kind in enumerate(KINDS)]


def write(lake: str, number: int) -> bool:
    files = []
    for id, kind, day, symbol, price, _ in rows(number):
        row = {"id": id, "fields": {"symbol": symbol, "price": price}, "at": AT + timedelta(days=number)}
        file = write_file(lake, {"kind": str(kind), "day": str(day)}, [pa.RecordBatch.from_pylist([row], SCHEMA)])
        assert file is not None
        files.append(file)
    return commit(lake, files, from_arrow_schema(SCHEMA), Batch("example", number))


def test_spark_reads_writes_and_deletes(tmp_path: Path) -> None:
    lake, cleaned = str(tmp_path / "lake"), str(tmp_path / "cleaned")
    for place in (lake, cleaned):
        for number in (0, 1, 1, 2):
            write(place, number)
        extra = write_file(place, {"kind": "trade", "day": "2026-11-15"}, [_row("0/9")])
        assert extra is not None
        assert commit(place, [extra], from_arrow_schema(SCHEMA), Batch("another", 0))
        assert compact(place) == 1
    assert clean(cleaned, older=timedelta(0)) >= 2
    found = in_spark(lake, cleaned)
    more: list[object] = ["0/9", "trade", "2026-11-15", None, None, AT.replace(tzinfo=None).isoformat()]
    assert (
        found["rows"] == found["cleaned"] == sorted([*rows(0), *rows(1), *rows(2), more], key=lambda row: str(row[0]))
    )
    assert found["first"] == rows(0) + rows(1)
    assert found["operations"][0] == "CREATE TABLE"
    assert (found["day"], found["opened"]) == (3, 3)
    assert (found["a batch that comes again"], found["a new batch"], found["left"]) == (0, 1, 10)
    assert not write(lake, 3), "Spark has written the batch with this number"
    assert write(lake, 4)
    table = DeltaTable(lake)
    assert len(table.to_pyarrow_table()) == sum(file.rows for file in files_of(table)) == 13


def in_spark(lake: str, cleaned: str) -> dict[str, Any]:
    command = [sys.executable, spark_delta.__file__, lake, cleaned, ",".join(map(str, cache.delta_jars()))]
    environment = {**os.environ, "PYTHONPATH": str(cache.spark_of_delta()), "SPARK_LOCAL_IP": "127.0.0.1"}
    environment |= {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"}
    environment.pop("SPARK_HOME", None)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    assert lines, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(lines[0])
    return found


def _row(id: str) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([{"id": id, "fields": None, "at": AT}], SCHEMA)
