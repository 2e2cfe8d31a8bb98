"""Real nodes in a thread, for tests in which Spark has the main one; and streams that run until nothing is left."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from tests.client.nodes import node
from tools.waiting import PATIENCE

from fieldfare.events import msgpack
from fieldfare.node.storage.log import Log


@contextlib.contextmanager
def node_elsewhere(
    folder: Path | None = None, port: int = 0, settings: Mapping[str, Any] = MappingProxyType({})
) -> Iterator[str]:
    """A node in a thread of its own: its URL."""
    loop = asyncio.new_event_loop()
    found: list[str] = []
    ready, over = threading.Event(), asyncio.Event()

    async def main() -> None:
        try:
            async with node(folder, port, settings) as service:
                found.append(service.hood.url)
                ready.set()
                await over.wait()
        finally:
            ready.set()

    thread = threading.Thread(target=lambda: loop.run_until_complete(main()))
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        yield found[0]
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join()
        loop.close()


def logged(folder: Path) -> list[dict[str, Any]]:
    """The events in the folder of a node that has stopped."""
    return [dict(msgpack.decode(entry.event).tree) for entry in Log(folder / "log").read(1)]


def run(stream: DataFrame, sink: str, checkpoint: Path, options: Mapping[str, str]) -> int:
    """Let a stream process what is available; gives how many batches there were."""
    query = (
        stream.writeStream.format(sink)
        .options(**options)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return len([progress for progress in query.recentProgress if progress["numInputRows"]])


def collected(spark: SparkSession, stream: DataFrame, out: Path) -> tuple[list[tuple[Any, ...]], int]:
    """All rows that a stream has brought to a folder so far, this time included; and the batches of this time."""
    batches = run(stream, "parquet", out.with_name(f"{out.name}-checkpoint"), {"path": str(out)})
    rows = spark.read.parquet(str(out)).sort("position").collect()
    return [tuple(row) for row in rows], batches
