"""Bar 4: a stream follows a node's log, matches the events and writes Parquet, while the node runs at full speed.

The node is first loaded alone, then with a stream that reads the growing log. The stream keeps up if the last event is
in the Parquet table soon after its delivery by the node. The latency from log to table comes from the table: a
micro-batch is there as soon as Spark notes the batch in the table's own log.
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
from fieldfare_lab.node.client_processes import Run, clients
from fieldfare_lab.node.load import FIELDS, Load, family, memory_mb, percentiles
from fieldfare_lab.node.servers import Server, answers, child, free_ports, wait_for
from fieldfare_lab.pipeline.bars import Line, at_least
from fieldfare_lab.pipeline.spark_sessions import started

KEEPS_UP: Final = 0.9
"""least share of the node's rate; below 1, because the last micro-batch ends a little after the last event"""
VARIANT: Final = "durable, batches of 100"
SCHEMA: Final = ", ".join(f"{name} {'string' if place % 2 == 0 else 'long'}" for place, name in enumerate(FIELDS))
FIRST: Final = 500
"""number of events before the timing begins"""


class Followed(NamedTuple):
    """The outcome of a round with a stream behind the node."""

    node: float
    """seconds from the first publication to the last delivery"""
    stream: float
    """seconds from the first publication to the last row in the table"""
    matches: int
    latencies: NDArray[np.float64]
    """for each event, seconds from the node's log to the table"""


def measure(filters: int, events: int, cores: int, step: Callable[[str], None]) -> list[Line]:
    """Measure the node's rate alone, both rates while a stream follows, and the stream's latency at half rate."""
    made = load.make(1, filters=filters, subscribers=100)
    with tempfile.TemporaryDirectory(prefix="fieldfare-bench-") as name:
        home = Path(name)
        step("the stream: the node alone")
        with _driven(made, home / "alone", events) as run:
            run(FIRST, None)
            alone = events / run(events, None).seconds
        catalogue.write_version(
            home / "subscriptions",
            (Subscription(number, one.text, str(one.subscriber)) for number, one in enumerate(made.filters)),
        )
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
    """Start a node with its data in a folder, and its clients; yield the function that makes the clients work."""
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
    """Load a node with events, `pace` a second or (None) at full speed, while a stream follows the log."""
    with _driven(made, home, events) as run:
        run(FIRST, None)
        log = spark.readStream.format("fieldfare_log").load(str(home / "data"))
        table = home / "table"
        writer = _matched(log, home.parent / "subscriptions").writeStream.format("parquet")
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


def _matched(log: DataFrame, subscriptions: Path) -> DataFrame:
    """The events of the log, decoded by the JVM, with the subscriptions that match."""
    events = log.select("position", "time", F.from_json("event", SCHEMA).alias("event"))
    matched = match_events(events, subscriptions, columns={name: f"event.{name}" for name in FIELDS})
    return matched.select("position", "time", "subscription", "owner", "snapshot")


class _Added(msgspec.Struct):
    """A line in the log of a streamed table: a file that was added."""

    path: str


def _arrivals(table: Path) -> tuple[dict[str, NDArray[Any]], NDArray[np.float64]]:
    """The rows of a table, and the time at which each row arrived."""
    files: dict[Path, float] = {}
    for log in sorted((table / "_spark_metadata").glob("[0-9]*"), key=lambda one: int(one.name.partition(".")[0])):
        for line in log.read_bytes().splitlines()[1:]:
            added = Path(unquote(urlparse(msgspec.json.decode(line, type=_Added).path).path))
            files.setdefault(added, log.stat().st_mtime)  # a compacted log names the files of earlier logs again
    parts = [pq.read_table(file, columns=["position", "time"]) for file in files]
    there = np.repeat([*files.values()], [part.num_rows for part in parts])
    return {
        name: np.concatenate([np.zeros(0, kind), *(part[name].to_numpy() for part in parts)])
        for name, kind in (("position", "int64"), ("time", "datetime64[us]"))
    }, there
