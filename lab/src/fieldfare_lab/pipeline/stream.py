"""Bar 4: a stream follows a node's log, matches it and writes Parquet, while the node is driven at full speed.

The node is first driven alone, then with a stream that reads its log as it grows. Whether the stream keeps up is told
by when the last event was in the Parquet table, and when it was delivered by the node. How long each event took from
the log to the table is read off the table: a micro-batch is there when Spark notes it in the table's own log.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urlparse

import msgspec
import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.pipeline import match_events
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare.pipeline.sources.log import LogSource
from fieldfare_lab.node import fieldfare_node, load
from fieldfare_lab.node.crew import Run, clients
from fieldfare_lab.node.load import FIELDS, Load, family, memory_mb, percentiles
from fieldfare_lab.node.servers import Server, answers, child, free_ports, wait_for
from fieldfare_lab.pipeline.bars import Line, at_least
from fieldfare_lab.pipeline.sessions import started

KEEPS_UP: Final = 0.9
"""of the node's rate: the last micro-batch ends a little after the last event"""
VARIANT: Final = "durable, batches of 100"
SCHEMA: Final = ", ".join(f"{name} {'string' if place % 2 == 0 else 'long'}" for place, name in enumerate(FIELDS))
FIRST: Final = 500
"""events that pass before anything is timed"""


class Followed(NamedTuple):
    """What came of a round with a stream behind the node."""

    node: float
    """seconds from the first event published to the last one delivered"""
    stream: float
    """and to the last one in the table"""
    matches: int
    latencies: NDArray[np.float64]
    """of each event: seconds from the node's log to the table"""


def measure(filters: int, events: int, cores: int, step: Callable[[str], None]) -> list[Line]:
    """The node's rate alone, and both rates while a stream follows; then latency at half of that."""
    made = load.make(1, filters=filters, subscribers=100)
    with tempfile.TemporaryDirectory(prefix="fieldfare-bench-") as name:
        home = Path(name)
        step("the stream: the node alone")
        with _driven(made, home / "alone", events) as run:
            run(FIRST, None)
            alone = events / run(events, None).seconds
        wanted = (Subscription(number, wish.text, str(wish.subscriber)) for number, wish in enumerate(made.wishes))
        catalogue.write_version(home / "wanted", wanted)
        with started(cores) as spark:
            spark.dataSource.register(LogSource)
            step("the stream: following the node")
            full = _follow(spark, made, home / "full", events, None)
            pace = events / full.node / 2
            step(f"the stream: latency at {pace:,.0f} events/s")
            half = _follow(spark, made, home / "half", events, pace)
    for one in (full, half):
        if (found := (len(one.latencies), one.matches)) != (due := (events, events * made.matches)):
            return [Line("answers", f"{found} events and matches are in the table instead of {due}", met=False)]
    node, stream = events / full.node, events / full.stream
    told = f"{filters:,} filters: the stream {stream:,.0f} events/s, the node {node:,.0f} meanwhile, {alone:,.0f} alone"
    return [
        at_least("a stream keeps up with a node", told, stream / node, KEEPS_UP, alone=alone, node=node, stream=stream),
        _latency("from log to table, at full rate", full),
        _latency(f"from log to table, at {pace:,.0f} events/s", half),
    ]


def _latency(name: str, one: Followed) -> Line:
    p50, p99 = percentiles(one.latencies.tolist()) or (0.0, 0.0)
    told = f"50 % of the events in {p50:,.0f} ms, 99 % in {p99:,.0f} ms"
    return Line(f"  {name}", told, figures={"p50_ms": p50, "p99_ms": p99})


@contextlib.contextmanager
def _driven(made: Load, home: Path, most: int) -> Iterator[Run]:
    """A node with its data in a folder, and clients that have it work."""
    home.mkdir()
    variant = next(one for one in fieldfare_node.VARIANTS if one.name == VARIANT)
    with contextlib.ExitStack() as stack:
        (port,) = free_ports(1)
        output = stack.enter_context((home / "output").open("wb"))
        command = [sys.executable, "-m", "fieldfare", "up", "--port", str(port), "--name", "bench"]
        process = stack.enter_context(child([*command, "--data", str(home / "data")], os.environ, home, output))
        wait_for(lambda: answers(port), "the node takes too long to start")
        pids = tuple(family(process.pid))
        server, contender = Server(port, pids, memory_mb(pids)), fieldfare_node.contender(variant)
        yield stack.enter_context(clients(made, contender, server, most=max(most, FIRST), consumers=1))


def _follow(spark: SparkSession, made: Load, home: Path, events: int, pace: float | None) -> Followed:
    """Drive a node, so many events a second or at full speed, with a stream behind it."""
    with _driven(made, home, events) as run:
        run(FIRST, None)
        log = spark.readStream.format("fieldfare_log").load(str(home / "data"))
        table = home / "table"
        writer = _matched(log, home.parent / "wanted").writeStream.format("parquet")
        query = writer.option("checkpointLocation", str(home / "checkpoint")).start(str(table))
        try:
            query.processAllAvailable()
            begin = time.time()
            batch = run(events, pace)
            query.processAllAvailable()
        finally:
            query.stop()
    rows, there = _arrivals(table)
    mine = rows["position"] > FIRST
    _, first = np.unique(rows["position"][mine], return_index=True)
    logged = rows["time"][mine][first].astype("datetime64[us]").astype(np.int64) / 1e6
    end = float(there[mine].max(initial=begin))
    return Followed(batch.seconds, end - begin, int(mine.sum()), there[mine][first] - logged)


def _matched(log: DataFrame, wanted: Path) -> DataFrame:
    """The log's events, read by the JVM, and who wants them."""
    events = log.select("position", "time", F.from_json("event", SCHEMA).alias("event"))
    matched = match_events(events, wanted, columns={name: f"event.{name}" for name in FIELDS})
    return matched.select("position", "time", "subscription", "owner", "snapshot")


class _Added(msgspec.Struct):
    """A line of the log of a table that a stream writes."""

    path: str


def _arrivals(table: Path) -> tuple[dict[str, NDArray[Any]], NDArray[np.float64]]:
    """The rows of a table, and since when each is there."""
    files: dict[Path, float] = {}
    for log in sorted((table / "_spark_metadata").glob("[0-9]*"), key=lambda one: int(one.name.partition(".")[0])):
        for line in log.read_bytes().splitlines()[1:]:
            added = Path(unquote(urlparse(msgspec.json.decode(line, type=_Added).path).path))
            files.setdefault(added, log.stat().st_mtime)  # a log that sums up others names their files again
    parts = [pq.read_table(file, columns=["position", "time"]) for file in files]
    there = np.repeat([*files.values()], [part.num_rows for part in parts])
    return {
        name: np.concatenate([np.zeros(0, kind), *(part[name].to_numpy() for part in parts)])
        for name, kind in (("position", "int64"), ("time", "datetime64[us]"))
    }, there
