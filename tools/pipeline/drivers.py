"""Drivers in processes of their own, to be killed or to lose their executors: `python -m tools.pipeline.drivers …`.

`batch` matches a table with subscriptions that are sent to the machines of a cluster, then takes away the driver's copy
before any job runs. `stream` matches files that appear in a folder with a catalogue, into Parquet, until a file `stop`
appears; then it does what is left and writes down what the table holds. `patterns` detects patterns in such files.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.query import StreamingQuery

from fieldfare.pipeline import detect, match_events
from fieldfare.pipeline.spark import spark_session
from tools.waiting import PATIENCE

CLUSTER = "local-cluster[2,1,1024]"
"""two executors of one core, each a process"""
_SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.minBatchesToRetain": "100000",  # the checkpoint tells of all
    # killed while it writes its first offsets, Spark leaves a draft and then refuses to go on, as not all is empty
    "spark.sql.streaming.verifyCheckpointDirectoryEmptyOnStart": "false",
}


def main(*masters_and_more: str) -> None:
    """The driver: a master, a folder, and what to do there."""
    master, folder, *tasks = masters_and_more
    spark = spark_session(master, _SETTINGS)
    for task in tasks:
        {"batch": batch, "stream": stream, "patterns": patterns}[task](spark, Path(folder))
    spark.stop()


def batch(spark: SparkSession, folder: Path) -> None:
    """Match where the driver's copy of the subscriptions cannot be seen."""
    tempfile.tempdir = str(folder / "driver")
    Path(tempfile.tempdir).mkdir()
    events = spark.read.json(str(folder / "events.json")).repartition(4)
    deliveries = match_events(
        events, spark.read.schema("id string, filter string").json(str(folder / "subscriptions.json"))
    )
    gone = [path for path in Path(tempfile.tempdir).iterdir() if path.is_dir()]
    for path in gone:
        shutil.rmtree(path)
    found = [(row.n, row.subscription) for row in deliveries.collect()]
    _write(folder / "batch.json", {"gone": len(gone), "found": found})


def stream(spark: SparkSession, folder: Path) -> None:
    """Match files as they appear."""
    events = spark.readStream.schema("n long, x int").option("maxFilesPerTrigger", 2).json(str(folder / "in"))
    query = (
        match_events(events, folder / "catalogue")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(folder / "checkpoint"))
        .start(str(folder / "out"))
    )
    _until_stopped(query, folder)
    rows = spark.read.parquet(str(folder / "out")).collect()
    _write(folder / "deliveries.json", [(row.n, row.subscription, row.snapshot) for row in rows])


def patterns(spark: SparkSession, folder: Path) -> None:
    """Detect the patterns of a file in files as they appear; a sink of its own replaces the rows of a batch."""
    events = (
        spark.readStream.schema("n long, x long, k long, at double")
        .option("maxFilesPerTrigger", 2)
        .json(str(folder / "in"))
    )
    texts = json.loads((folder / "patterns.json").read_text())
    found = detect(events.withColumn("time", F.timestamp_seconds("at")), texts, keep=["n"], delay="5 seconds")

    def put(rows: DataFrame, number: int) -> None:
        told = [(row.id, row.pattern, [one.event.n for one in row.constituents]) for row in rows.collect()]
        _write(folder / "found" / f"{number}.json", told)

    (folder / "found").mkdir(exist_ok=True)
    query = found.writeStream.foreachBatch(put).option("checkpointLocation", str(folder / "checkpoint")).start()
    _until_stopped(query, folder)
    parts = [json.loads(path.read_text()) for path in (folder / "found").glob("*.json")]
    _write(folder / "detections.json", [one for part in parts for one in part])


def _until_stopped(query: StreamingQuery, folder: Path) -> None:
    """Let a stream run until a file `stop` appears, then do what is left."""
    (folder / "started").touch()
    while not (folder / "stop").exists():
        if query.awaitTermination(1):
            raise RuntimeError("the stream has ended by itself")
    query.processAllAvailable()
    query.stop()


def start(folder: Path, master: str, *tasks: str) -> subprocess.Popen[bytes]:
    """A driver in a process group of its own, whose Javas start fast rather than run fast."""
    command = [sys.executable, "-m", "tools.pipeline.drivers", master, str(folder), *tasks]
    settings = {"JAVA_TOOL_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC", "SPARK_HOME": str(_home(folder))}
    (folder / "started").unlink(missing_ok=True)
    with (folder / "driver.log").open("ab") as log:
        return subprocess.Popen(command, env=os.environ | settings, stdout=log, stderr=log, start_new_session=True)


def _home(folder: Path) -> Path:
    """Spark as it is installed, but in a folder of the test, because executors work below it."""
    home = folder / "spark"
    if not home.exists():
        home.mkdir()
        for part in ("bin", "jars"):
            (home / part).symlink_to(Path(pyspark.__file__).parent / part)
    return home


def kill(driver: subprocess.Popen[bytes]) -> None:
    """End a driver, its Java included, in the middle of whatever it does."""
    os.killpg(driver.pid, signal.SIGKILL)
    driver.wait()


def executors(driver: subprocess.Popen[bytes]) -> list[int]:
    """The processes that are executors of a driver."""
    listed = subprocess.run(["ps", "-axwwo", "pid=,ppid=,command="], capture_output=True, text=True, check=True).stdout
    rows = [line.split(None, 2) for line in listed.splitlines()]
    parents = {int(pid): int(parent) for pid, parent, *_ in rows}

    def above(pid: int) -> Iterator[int]:
        while pid in parents:
            yield pid
            pid = parents[pid]

    return [
        int(pid)
        for pid, _, command in (row for row in rows if len(row) == 3)
        if "CoarseGrainedExecutorBackend" in command and "java" in command.split()[0] and driver.pid in above(int(pid))
    ]


def wait(
    driver: subprocess.Popen[bytes], folder: Path, until: Callable[[], Any], seconds: float = 3 * PATIENCE
) -> None:
    """Wait for something to be so while a driver lives."""
    end = time.monotonic() + seconds
    while not until():
        if driver.poll() is not None or time.monotonic() > end:
            log = (folder / "driver.log").read_text()[-3000:]
            raise AssertionError(f"the driver (exit code {driver.poll()}) did not get so far; it said:\n{log}")
        time.sleep(0.02)


def put(folder: Path, name: str, events: Sequence[Mapping[str, float]]) -> None:
    """A file that appears whole."""
    draft = folder / f".{name}"
    draft.write_text("\n".join(map(json.dumps, events)))
    draft.rename(folder / "in" / name)


def committed(folder: Path) -> int:
    """How many micro-batches are done."""
    return len(list((folder / "checkpoint" / "commits").glob("[0-9]*")))


def batches(folder: Path) -> dict[str, int]:
    """In which micro-batch each file was read: the first whose offset reaches the entry of the source's log."""
    log = folder / "checkpoint" / "sources" / "0"
    lines = [line for path in log.glob("[0-9]*") for line in path.read_text().splitlines()[1:]]
    entries = {Path(entry["path"]).name: entry["batchId"] for entry in map(json.loads, lines)}
    offsets = sorted(
        (json.loads(path.read_text().splitlines()[2])["logOffset"], int(path.name))
        for path in (folder / "checkpoint" / "offsets").glob("[0-9]*")
    )
    return {name: offsets[bisect_left(offsets, (entry, -1))][1] for name, entry in entries.items()}


def twice(counts: Counter[Any]) -> int:
    """How many more there are than there should be of each."""
    return sum(count - 1 for count in counts.values())


def _write(path: Path, found: object) -> None:
    draft = path.with_suffix(".draft")
    draft.write_text(json.dumps(found))
    draft.rename(path)


if __name__ == "__main__":
    main(*sys.argv[1:])
