"""All calls of the pipeline through a Spark Connect server of their own: prints the result of each as JSON.

A process has either classic sessions or remote ones, so the test runs this as a program, in a folder of its own.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from tests.pipeline.nodes import logged, node_elsewhere

from fieldfare.pipeline import (
    amend,
    attribute_statistics,
    clean,
    compact,
    detect,
    explain_match,
    match_events,
    match_profiles,
    match_recognize,
    merge_plan,
    normalise,
    publish_subscriptions,
    read_table,
    replay,
    replay_to_file,
    replay_to_node,
    retroactive,
    spark_session,
    write_deliveries,
    write_table,
)
from fieldfare.pipeline.job.config import parse
from fieldfare.pipeline.job.run import ready
from fieldfare.pipeline.lake.table import write_stream
from fieldfare.pipeline.match import sql
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare.pipeline.match.merge_plan import measured
from fieldfare.pipeline.sinks.folders import folder_of, write_by_subscriber
from fieldfare.pipeline.sources import register
from fieldfare.pipeline.sources.files import read_files
from fieldfare.pipeline.statistics.attributes import EventStatistics
from fieldfare.pipeline.table.normalisation import deduplicate

RAW = ['{"n": 1, "x": 5, "id": "e1", "source": "/s", "time": "2026-01-01T00:00:00Z"}', "{no"]
PERIOD = "named_struct('low', timestamp'2026-01-01', 'high', timestamp'2026-02-01') AS valid"
EXPECTED = {
    "match_events": [[1, "b"], [2, "a"], [2, "b"]],
    "publish_subscriptions": 1,
    "match_events, catalogue": [[1, "b"], [2, "a"], [2, "b"]],
    "match_events, lists": [[1, ["b"]], [2, ["a", "b"]]],
    "match_events, counts": [["a", 1], ["b", 2]],
    "write_deliveries": [3, "arrow"],
    "explain_match": "because     through Spark Connect, the plan of the events is not known here",
    "amend": 2,
    "match_events, stream": [[7, "c"]],
    "sql": [[1, "b"], [2, "b"], [2, "c"]],
    "normalise": [1, 1],
    "write_table": 1,
    "write_stream": 1,
    "compact": 1,
    "clean": 0,
    "read_table, version": 1,
    "deduplicate": 1,
    "replay": ["e1", "e1"],  # of the table and of the stream
    "replay_to_file": 2,
    "replay_to_node": ["e1"],
    "retroactive": [["a", 0], ["b", 2]],
    "attribute_statistics": ["n", "x"],
    "merge_plan": 1,
    "match_profiles": 1,
    "match_recognize": [[5, 50]],
    "detect": [["up", 1]],
    "write_by_subscriber": ["ana", "ben"],
    "read_files": 2,
    "register": None,
    "pipeline": "PipelineError: a pipeline does not run through Spark Connect",
}


def calls(spark: SparkSession, folder: Path) -> dict[str, Callable[[], Any]]:
    """The calls by name, in an order in which each finds what it needs."""
    events = spark.createDataFrame([(1, 5, "a"), (2, 50, "b")], "n int, x int, s string")
    wanted = [("a", "x > 10", "ana"), ("b", "x < 10 OR s = 'b'", "ben")]
    subscriptions = spark.createDataFrame(wanted, "id string, filter string, owner string")
    catalogue, lake = str(folder / "catalogue"), str(folder / "lake")
    table = normalise(spark.createDataFrame([(text,) for text in RAW], "event string"), "n long, x long")

    def past() -> DataFrame:
        return read_table(spark, lake)

    def stream() -> list[Any]:
        (folder / "in").mkdir()
        (folder / "in" / "a.json").write_text('{"n": 7, "x": 50, "s": "q"}\n')
        found = match_events(spark.readStream.schema("n int, x int, s string").json(str(folder / "in")), catalogue)
        writer = found.writeStream.format("parquet").option("checkpointLocation", str(folder / "checkpoint"))
        writer.trigger(availableNow=True).start(str(folder / "out")).awaitTermination()
        return pairs(spark.read.parquet(str(folder / "out")))

    def in_sql() -> list[Any]:
        sql.register(spark)
        events.createOrReplaceTempView("events")
        return pairs(spark.sql(f"SELECT * FROM fieldfare_match(TABLE(events), '{catalogue}')"))

    def written() -> int:
        write_table(table.events, lake)
        return past().count()

    def deliveries() -> list[Any]:
        out = write_deliveries(events, catalogue, folder / "deliveries")
        return [spark.read.parquet(str(folder / "deliveries")).count(), out.way.kind]

    def streamed() -> int:
        (folder / "raw").mkdir()
        (folder / "raw" / "a.txt").write_text("\n".join(RAW))
        lines = spark.readStream.text(str(folder / "raw")).withColumnRenamed("value", "event")
        parts = {"quarantine": str(folder / "bad"), "checkpoint": str(folder / "checkpoint-2")}
        query = write_stream(normalise(lines, "n long, x long"), lake, **parts)
        query.trigger(availableNow=True).start().awaitTermination()
        return past().count() - 1

    def to_node() -> list[str]:
        with node_elsewhere(folder / "node") as url:
            replay_to_node(past().limit(1), url)
        return [event["id"] for event in logged(folder / "node")]

    def to_file() -> int:
        replay_to_file(past(), folder / "past.jsonl")
        return len((folder / "past.jsonl").read_text().splitlines())

    def by_subscriber() -> list[str]:
        found = match_events(events.withColumnRenamed("n", "id"), subscriptions)
        write_by_subscriber(found, str(folder / "folders"))
        return sorted(owner for owner in ("ana", "ben", "eve") if folder_of(folder / "folders", owner).exists())

    def pipeline() -> None:
        text = f'name="p"\nstate="{folder}/state"\nsource={{kind="files", path="{folder}/past.jsonl"}}\n'
        with ready(parse(text + f'sink=[{{kind="parquet", of="events", path="{folder}/x"}}]')):
            pass

    def statistics() -> EventStatistics:
        return attribute_statistics(past(), subscriptions)

    def rises() -> list[Any]:
        clause = "ORDER BY n MEASURES A.x AS low, B.x AS high PATTERN (A B) DEFINE B AS B.x > A.x"
        return [[row.low, row.high] for row in match_recognize(events, clause).collect()]

    def detected() -> list[Any]:
        text = "a: [x = 5] b: [x = 50] a followed by b limit 9 select a.n as first"
        timed = spark.sql("SELECT timestamp'2026-01-01' + make_interval(0, 0, 0, n) AS time, n, x FROM numbered")
        return [[row.pattern, row.first] for row in detect(timed, {"up": text}).collect()]

    events.createOrReplaceTempView("numbered")
    queries = spark.sql(f"SELECT 'q' AS id, 'x > 1' AS filter, {PERIOD}")
    return {
        "match_events": lambda: pairs(match_events(events, subscriptions)),
        "publish_subscriptions": lambda: publish_subscriptions(subscriptions, catalogue),
        "match_events, catalogue": lambda: pairs(match_events(events, catalogue)),
        "match_events, lists": lambda: sorted(
            [row.n, sorted(row.subscriptions)]
            for row in match_events(events, catalogue, form="lists", keep=["n"]).collect()
        ),
        "match_events, counts": lambda: sorted(
            [row.subscription, row.events] for row in match_events(events, catalogue, form="counts").collect()
        ),
        "write_deliveries": deliveries,
        "explain_match": lambda: explain_match(events, catalogue, form="counts").splitlines()[1],
        "amend": lambda: amend(catalogue, [Subscription("c", "x > 10")], ["a"]),
        "match_events, stream": stream,
        "sql": in_sql,
        "normalise": lambda: [table.events.count(), table.quarantine.count()],
        "write_table": written,
        "write_stream": streamed,
        "compact": lambda: compact(lake),
        "clean": lambda: clean(lake),
        "read_table, version": lambda: read_table(spark, lake, version=0).count(),
        "deduplicate": lambda: deduplicate(past(), "1 hour").count(),
        "replay": lambda: [row.id for row in replay(past(), "x = 5").collect()],
        "replay_to_file": to_file,
        "replay_to_node": to_node,
        "retroactive": lambda: sorted(
            [row.subscription, row.events] for row in retroactive(past(), subscriptions).collect()
        ),
        "attribute_statistics": lambda: sorted(statistics().attributes),
        "merge_plan": lambda: measured(merge_plan(subscriptions, statistics()), past()).count(),
        "match_profiles": lambda: match_profiles(spark.sql(f"SELECT 1 AS id, {PERIOD}, 5 AS x"), queries).count(),
        "match_recognize": rises,
        "detect": detected,
        "write_by_subscriber": by_subscriber,
        "read_files": lambda: read_files(spark, folder / "past.jsonl").count(),
        "register": lambda: register(spark),
        "pipeline": pipeline,
    }


def pairs(found: DataFrame) -> list[Any]:
    return sorted([row.n, row.subscription] for row in found.collect())


def attempted(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # noqa: BLE001 - the test wants to hear of all
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"


def main(address: str, folder: str) -> None:
    spark = (
        spark_session(address) if address.startswith("sc://") else SparkSession.builder.remote(address).getOrCreate()
    )
    found = {name: attempted(call) for name, call in calls(spark, Path(folder)).items()}
    sys.stdout.write(f"{json.dumps(found)}\n")
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
