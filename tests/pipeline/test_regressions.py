"""What a reader of the code has found, each with the case that showed it."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fieldfare.events import Event, msgpack
from fieldfare.events.values import Kind
from fieldfare.node.storage.log import Log, LogError
from fieldfare.pipeline import match_events
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.job import report
from fieldfare.pipeline.job.config import PipelineError, parse
from fieldfare.pipeline.lake.table import read_table, write_table
from fieldfare.pipeline.options import OptionError
from fieldfare.pipeline.sinks import SinkSettings, make
from fieldfare.pipeline.sinks.folders import write_by_subscriber
from fieldfare.pipeline.sources.log import LogStreamReader
from fieldfare.pipeline.statistics.attributes import Attribute
from fieldfare.pipeline.statistics.sketches import Tally
from fieldfare.protocol.journal import JournalEntry

HEAD = 'name = "a"\nstate = "s"\nsource = {kind = "files", path = "in"}\n'


def test_two_sinks_never_share_a_path() -> None:
    sinks = 'sink = [{kind = "lake", of = "events", path = "x"}, {kind = "parquet", of = "quarantine", path = "x"}]'
    with pytest.raises(PipelineError, match="two sinks have the same path: x"):
        parse(HEAD + sinks)


@pytest.mark.parametrize("kind", ["node", "webhooks"])
def test_what_is_no_event_is_not_sent(kind: str) -> None:
    with pytest.raises(OptionError, match="what is no event cannot be sent as one"):
        make(SinkSettings(kind, "quarantine", {"url": "ws://a"}))


def test_numbers_that_no_range_holds_have_no_histogram() -> None:
    for low, high in ((-1e308, 1e308), (0.0, float("inf"))):
        tally = Tally(Kind.NUMBER, 2, 0, low, high, {low: 1, high: 1})
        assert Attribute(tally, 2, ()).histogram() == []
    tally = Tally(Kind.NUMBER, 3, 0, 0.0, 4.0, {0.0: 1, 1.0: 1, 4.0: 1})
    assert Attribute(tally, 3, ()).histogram(2) == [(0.0, 2.0, 2), (2.0, 4.0, 1)]


def test_a_damaged_report_does_not_stop_a_pipeline(tmp_path: Path) -> None:
    (tmp_path / report.FILE).write_text('{"name": "a", "state": "running", "batch": 1, "time": null}')
    assert report.last(tmp_path) is None


def test_a_batch_of_a_log_that_has_lost_its_end_is_an_error(tmp_path: Path) -> None:
    log = Log(tmp_path)
    log.append([JournalEntry(n, 1.0, "p", n, msgpack.encode(Event({"n": n})), b"") for n in range(1, 6)])
    log.close()
    with pytest.raises(LogError, match="ends at position 5, and a batch up to 10 was begun"):
        LogStreamReader(tmp_path, 0, 100, "fail").partitions({"position": 0}, {"position": 10})


def test_names_that_differ_in_their_case_are_one_to_spark(spark: SparkSession) -> None:
    events = spark.createDataFrame([(1, 2)], "n int, Owner int")
    wanted = spark.createDataFrame([("a", "n = 1")], "id string, filter string")
    with pytest.raises(ValueError, match="the events have a column 'Owner' already"):
        match_events(events, wanted)


def test_a_new_state_does_not_overwrite_what_an_old_one_wrote(spark: SparkSession, tmp_path: Path) -> None:
    table = spark.range(3).select(F.col("id").cast("string"), F.lit("ana").alias("owner"))
    for query in ("11111111-first", "22222222-second", "22222222-second"):
        for settings in (
            SinkSettings("parquet", "events", {"path": str(tmp_path / "p")}),
            SinkSettings("subscribers", "deliveries", {"path": str(tmp_path / "s")}),
        ):
            make(settings).write(table, Batch(f"{query}:{settings.table}", 0))
    assert spark.read.parquet(str(tmp_path / "p")).count() == 6
    assert spark.read.parquet(str(tmp_path / "s" / "ana")).count() == 6


def test_rows_per_file_and_paths_like_patterns(spark: SparkSession, tmp_path: Path) -> None:
    spark.conf.set("spark.sql.files.maxRecordsPerFile", "1")
    try:
        rows = spark.range(5).select("id", F.lit("ana").alias("owner")).coalesce(1)
        assert write_by_subscriber(rows, tmp_path / "s") == 1
        assert spark.read.parquet(str(tmp_path / "s" / "ana")).count() == 5
    finally:
        spark.conf.unset("spark.sql.files.maxRecordsPerFile")
    events = spark.sql("SELECT 'a' id, 'trade' type, TIMESTAMP'2026-01-02 03:04:05' time")
    place = tmp_path / "lake [of {all}] *"
    assert write_table(events, place, batch=Batch("w", 0))
    assert [row.id for row in read_table(spark, place).collect()] == ["a"]
