"""Ways to find the matching rules of events: the index, Spark, a node, and SQLite with the queries of pySigma.

A way gets filters and events once, and then matches all events as often as asked; the result is the number of
matches, and the CPU time: of this process, of Spark with its workers, or of the node's process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import tempfile
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare import connect
from fieldfare.filters import Filter
from fieldfare.matching import Index
from fieldfare.pipeline import match_events
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare_lab.node import fieldfare_node
from fieldfare_lab.node.load import cpu_seconds
from fieldfare_lab.pipeline.clock import Spent, timed
from fieldfare_lab.pipeline.spark_sessions import started
from fieldfare_lab.sigma import sqlite_rules
from fieldfare_lab.sigma.corpus import Event

FILES: Final = 2
SESSIONS: Final = 20
"""sessions that share the rules at a node"""
BATCH: Final = 100


class Corpus(NamedTuple):
    """Rules and events, and the folder of the rules for engines with a loader of rules."""

    rules: Mapping[str, Filter]
    events: Sequence[Event]
    folder: Path


Publish = Callable[[Sequence[Event], int], Coroutine[Any, Any, int]]
"""publishes events, waits for so many deliveries, and returns how many have come"""
Round = Callable[[], tuple[int, Spent]]
Way = Callable[[Corpus], contextlib.AbstractContextManager[Round]]


@contextlib.contextmanager
def single(corpus: Corpus) -> Iterator[Round]:
    """Match event by event, with the index in memory."""
    index = Index(corpus.rules.items())
    yield lambda: timed(lambda: sum(len(index.match(event)) for event in corpus.events))


@contextlib.contextmanager
def lines(corpus: Corpus) -> Iterator[Round]:
    """Match lines of JSON, decoding included."""
    index = Index(corpus.rules.items())
    text = "\n".join(map(json.dumps, corpus.events)).encode()
    yield lambda: timed(lambda: int(index.match_json_lines(text).num_rows))


@contextlib.contextmanager
def on_spark(corpus: Corpus) -> Iterator[Round]:
    """Count matches by rule in a whole job on Spark, from Parquet."""
    with tempfile.TemporaryDirectory(prefix="fieldfare-bench-") as name, started(FILES) as spark:
        folder = Path(name)
        catalogue.write_version(folder / "rules", [Subscription(*rule) for rule in corpus.rules.items()])
        keys = dict.fromkeys(key for event in corpus.events for key in event)
        table = pa.table({key: pa.array([event.get(key) for event in corpus.events], pa.string()) for key in keys})
        (folder / "events").mkdir()
        rows = -(-len(corpus.events) // FILES)
        for number in range(FILES):
            pq.write_table(table.slice(number * rows, rows), folder / "events" / f"{number}.parquet")
        found = match_events(spark.read.parquet(str(folder / "events")), folder / "rules", form="counts")
        yield lambda: timed(lambda: int(found.agg(F.coalesce(F.sum("events"), F.lit(0))).collect()[0][0]))


@contextlib.contextmanager
def in_a_node(corpus: Corpus) -> Iterator[Round]:
    """Publish the events at a node with the rules as subscriptions of sessions, and wait for all deliveries.

    The cost is the CPU time of the node's process, which receives, logs, matches and sends.
    """
    index = Index(corpus.rules.items())
    expected = sum(len(index.match(event)) for event in corpus.events)
    with fieldfare_node.running(durable=True) as server, asyncio.Runner() as runner:
        found = runner.run(_subscribed(server.port, corpus.rules))

        def once() -> tuple[int, Spent]:
            before = cpu_seconds(server.pids)
            count, spent = timed(lambda: runner.run(found(corpus.events, expected)))
            return count, Spent(spent.wall, cpu_seconds(server.pids) - before)

        yield once


async def _subscribed(port: int, rules: Mapping[str, Filter]) -> Publish:
    """Subscribe to the rules; return a function to publish events and count the deliveries."""
    kept: list[object] = []
    count = 0
    moved = asyncio.Event()

    async def listen(events: object) -> None:
        nonlocal count
        async for _ in events:  # type: ignore[attr-defined]  # a subscription
            count += 1
            moved.set()

    address = f"ws://127.0.0.1:{port}"
    for number in range(SESSIONS):
        client = await connect(address, session=f"rules-{number}").__aenter__()
        kept.append(client)
        for name, filter in list(rules.items())[number::SESSIONS]:
            events = await client.subscribe(filter, id=name).__aenter__()
            kept.append(asyncio.create_task(listen(events)))
    publisher = await connect(address).__aenter__()
    kept.append(publisher)

    async def publish(events: Sequence[Event], expected: int) -> int:
        nonlocal count
        assert kept
        count = 0
        for start in range(0, len(events), BATCH):
            await publisher.publish_batch(events[start : start + BATCH])
        while count < expected:
            moved.clear()
            await moved.wait()
        return count

    return publish


@contextlib.contextmanager
def in_sqlite(corpus: Corpus) -> Iterator[Round]:
    """Count the events of each rule by a separate query, over a table in memory."""
    wanted = sqlite_rules.queries(corpus.folder, corpus.rules)
    with sqlite_rules.table(corpus.events, wanted) as database:
        yield lambda: timed(lambda: sum(sqlite_rules.counted(database, query) for query in wanted))


WAYS: Final[Mapping[str, Way]] = {
    "single": single,
    "lines": lines,
    "spark": on_spark,
    "node": in_a_node,
    "sqlite": in_sqlite,
}
OURS: Final = frozenset(WAYS) - {"sqlite"}
"""ways whose answers must be the same"""


def missing(name: str) -> str | None:
    """Return a message about a missing requirement of a way, or None."""
    return sqlite_rules.missing() if name == "sqlite" else None
