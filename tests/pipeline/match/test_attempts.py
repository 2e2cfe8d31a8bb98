"""Files of deliveries exactly once: tasks that fail after they wrote, tasks that run twice, a driver that dies."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tools.pipeline.drivers import CLUSTER
from tools.waiting import PATIENCE

from fieldfare.pipeline import Subscription
from fieldfare.pipeline.match import catalogue

pytestmark = pytest.mark.long
DRIVER = """
import os, sys, time
from pathlib import Path
from pyspark import TaskContext
from fieldfare.pipeline import spark_session, write_deliveries
from fieldfare.pipeline.match import deliveries, scan

place, master, trouble = Path(sys.argv[1]), sys.argv[2], sys.argv[3]
real = deliveries._writing
scan._SMALLEST = 1  # a task for each few row groups

def writing(read, staging, form):
    run = real(read, staging, form)
    def tried(batches):
        made = list(run(batches))  # the file is written
        context = TaskContext.get()
        (place / "attempts" / f"{context.partitionId()}-{context.attemptNumber()}").touch()
        if context.attemptNumber() == 0 and context.partitionId() == 1:
            if trouble == "fail":
                raise RuntimeError("after writing")
            if trouble == "slow":
                time.sleep(300)
        yield from made
    return tried

deliveries._writing = writing
if trouble == "die":
    deliveries.committed = lambda *_: os._exit(9)
settings = {
    "spark.speculation": "true", "spark.speculation.interval": "100ms", "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5", "spark.speculation.minTaskRuntime": "100ms", "spark.driver.memory": "512m",
}
spark = spark_session(master, settings)
out = write_deliveries(spark.read.parquet(str(place / "events")), place / "wanted", place / "out")
assert out.way.kind == "descriptors"
print(out.files, out.rows)
"""

SINKS = """
import sys, time
from pathlib import Path
from pyspark import TaskContext
from fieldfare.pipeline import spark_session
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.match.operator import Matched, numbered
from fieldfare.pipeline.match.ways import matched_before
from fieldfare.pipeline.sinks import SinkSettings, make

place, master, trouble, kind = Path(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]

def troubled(run):
    def tried(batches):
        made = list(run(batches))  # the files are written
        context = TaskContext.get()
        step = f"{context.stageId()}-{context.partitionId()}-{context.attemptNumber()}"
        (place / "attempts" / step).touch()
        if context.attemptNumber() == 0 and context.partitionId() == 0:
            if trouble == "fail":
                raise RuntimeError("after writing")
            time.sleep(300)
        yield from made
    return tried

spark = spark_session(master, {
    "spark.speculation": "true", "spark.speculation.interval": "100ms", "spark.speculation.quantile": "0.5",
    "spark.speculation.multiplier": "1.5", "spark.speculation.minTaskRuntime": "100ms", "spark.driver.memory": "512m",
    "spark.speculation.task.duration.threshold": "3s", "spark.sql.adaptive.enabled": "false",
})
events = spark.read.parquet(str(place / "events")).repartition(3)
found, plan, id = numbered(events, place / "wanted", columns=["x"])
frame = type(found)
real = frame.mapInArrow
frame.mapInArrow = lambda self, run, *rest: real(self, troubled(run), *rest)
sink = make(SinkSettings(kind, "deliveries", {"path": str(place / "out")}))
matched = Matched(matched_before(found, plan), plan, id)
assert sink.rows_because(matched) is None
for _ in range(2):  # the second time changes nothing
    sink.write_matched(matched, Batch("w", 0))
"""


@pytest.mark.parametrize(
    ("trouble", "master"), [("fail", "local[2,3]"), ("slow", CLUSTER), ("die", "local[2]"), ("none", "local[2]")]
)
def test_every_delivery_is_there_once(tmp_path: Path, trouble: str, master: str) -> None:
    events: list[dict[str, Any]] = [{"n": n, "x": n % 7} for n in range(400)]
    (tmp_path / "events").mkdir()
    (tmp_path / "attempts").mkdir()
    pq.write_table(pa.Table.from_pylist(events), tmp_path / "events" / "a.parquet", row_group_size=50)
    catalogue.write_version(tmp_path / "wanted", [Subscription(n, f"x > {n}") for n in range(7)])
    first = run(tmp_path, master, trouble)
    if trouble == "die":
        assert first.returncode == 9
        assert not (tmp_path / "out").exists()
        assert [*tmp_path.rglob("part-*.parquet")], "files that nobody committed"
        first = run(tmp_path, master, "none")
    assert first.returncode == 0, first.stderr[-3000:]
    attempts = sorted(file.name for file in (tmp_path / "attempts").iterdir())
    assert ("1-1" in attempts) == (trouble in {"fail", "slow"}), attempts
    rows = pq.read_table(tmp_path / "out").to_pylist()
    expected = Counter((event["n"], id) for event in events for id in range(7) if event["x"] > id)
    assert Counter((row["n"], row["subscription"]) for row in rows) == expected
    assert first.stdout.split() == [str(len([*(tmp_path / "out").glob("part-*")])), str(len(rows))]


@pytest.mark.parametrize("kind", ["lake", "parquet", "subscribers"])
@pytest.mark.parametrize(("trouble", "master"), [("fail", "local[2,3]"), ("slow", CLUSTER)])
def test_every_delivery_is_in_a_sink_once(tmp_path: Path, kind: str, trouble: str, master: str) -> None:
    when = datetime(2026, 11, 15, tzinfo=UTC)
    events: list[dict[str, Any]] = [
        {"n": n, "x": n % 7, "type": f"t{n % 2}", "time": when + timedelta(hours=n)} for n in range(60)
    ]
    (tmp_path / "events").mkdir()
    (tmp_path / "attempts").mkdir()
    pq.write_table(pa.Table.from_pylist(events), tmp_path / "events" / "a.parquet", row_group_size=20)
    catalogue.write_version(tmp_path / "wanted", [Subscription(n, f"x > {n}", f"o{n % 3}") for n in range(7)])
    done = run(tmp_path, master, trouble, SINKS, kind)
    assert done.returncode == 0, done.stderr[-3000:]
    attempts = {file.name.rpartition("-")[2] for file in (tmp_path / "attempts").iterdir()}
    assert attempts >= {"0", "1"}, "a task has run twice"
    if kind == "lake":
        found = DeltaTable(tmp_path / "out").to_pyarrow_table()
    else:
        files = [file for file in (tmp_path / "out").rglob("*.parquet") if "_staging" not in str(file)]
        found = pa.concat_tables([pq.ParquetFile(file).read() for file in files])
    expected = Counter((event["n"], id) for event in events for id in range(7) if event["x"] > id)
    assert Counter(zip(found["n"].to_pylist(), found["subscription"].to_pylist(), strict=True)) == expected


def run(place: Path, master: str, trouble: str, driver: str = DRIVER, *more: str) -> subprocess.CompletedProcess[str]:
    """Run a driver to its end."""
    command = [sys.executable, "-c", driver, str(place), master, trouble, *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=4 * PATIENCE, check=False)
