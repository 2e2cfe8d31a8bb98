"""Declared pipelines end to end: files in, tables out, each row once, whatever happens in between."""

from __future__ import annotations

import json
import os
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import pytest
from pyspark.sql import DataFrame, SparkSession
from tools.waiting import PATIENCE, wait_until

from fieldfare import Event, parse
from fieldfare.node.pipeline_reports import PipelineReport
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.job import report
from fieldfare.pipeline.job.config import PipelineError, read
from fieldfare.pipeline.job.run import Plan, ready, run
from fieldfare.pipeline.lake.table import read_table
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import SubscriptionError
from fieldfare.pipeline.sinks.folders import folder_of
from fieldfare.pipeline.sinks.table import TableSink

PIPELINE = """
name = "market"
state = "state"
[source]
kind = "files"
path = "in"
max_files = 1
[normalise]
fields = "symbol string, price double, at timestamp"
time = "fields.at"
late = "1000 days"
duplicates = "1 hour"
[match]
subscriptions = "wanted.csv"
[[sink]]
kind = "lake"
path = "deliveries"
[[sink]]
kind = "lake"
of = "events"
path = "events"
[[sink]]
kind = "lake"
of = "quarantine"
path = "bad"
[[sink]]
kind = "parquet"
of = "late"
path = "late"
[[sink]]
kind = "subscribers"
path = "owners"
"""
WANTED = {"a": "price < 20", "b": "symbol IN ('S1', 'S2')", "c": "extra = 3"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "pipeline.toml").write_text(PIPELINE)
    rows = [f'{id},"{text}",owner {id}' for id, text in WANTED.items()]
    (tmp_path / "wanted.csv").write_text("\n".join(["id,filter,owner", *rows]))
    return tmp_path


def _events(first: int) -> list[dict[str, Any]]:
    events: list[dict[str, Any]] = [
        {"id": f"e{n}", "symbol": f"S{n % 4}", "price": float(n % 50)} for n in range(first, first + 40)
    ]
    events[3]["extra"] = 3
    events[5]["at"] = {"$time": "2001-01-01T00:00:00Z"}
    return events


def _put(folder: Path, name: str, lines: list[str]) -> None:
    (folder / ".draft").write_text("\n".join(lines))
    (folder / ".draft").rename(folder / "in" / name)


def _run(folder: Path) -> list[PipelineReport]:
    told: list[PipelineReport] = []
    with ready(read(folder / "pipeline.toml")) as plan:
        run(plan, once=True, told=told.append)
    return told


def test_each_event_once_in_every_table_with_a_crash_in_between(
    spark: SparkSession, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = _events(0), _events(40)
    lines = [json.dumps(event) for event in first]
    _put(folder, "1.jsonl", [*lines, lines[0], "nonsense", "nonsense", '{"price": "dear"}'])
    assert _run(folder)[-1].state == "ended"
    _put(folder, "2.jsonl", [*(json.dumps(event) for event in second), lines[1]])
    real = TableSink.write

    def crash(sink: TableSink, rows: DataFrame, batch: Batch) -> None:
        if sink.quarantine:
            raise RuntimeError("the disk is gone")
        real(sink, rows, batch)

    monkeypatch.setattr(TableSink, "write", crash)
    with pytest.raises(PipelineError, match=r"market stopped; run it again to go on from there\. .*the disk is gone"):
        _run(folder)
    failed = report.last(folder / "state")
    assert failed is not None
    assert (failed.state, failed.events) == ("failed", 39)
    monkeypatch.undo()
    last = _run(folder)[-1]

    timely = [event for event in (*first, *second) if "at" not in event]
    expected = Counter(
        (event["id"], id) for event in timely for id, text in WANTED.items() if parse(text).matches(Event(event))
    )
    deliveries = read_table(spark, folder / "deliveries").collect()
    assert Counter((row.id, row.subscription) for row in deliveries) == expected
    assert Counter(row.id for row in read_table(spark, folder / "events").collect()) == Counter(e["id"] for e in timely)
    assert sorted(row.record for row in read_table(spark, folder / "bad").collect()) == [
        "nonsense",
        "nonsense",
        '{"price": "dear"}',
    ]
    assert sorted(row.id for row in spark.read.parquet(str(folder / "late")).collect()) == ["e45", "e5"]
    mine = spark.read.parquet(str(folder_of(folder / "owners", "owner a"))).collect()
    assert Counter((row.id, row.subscription) for row in mine) == Counter(
        {k: v for k, v in expected.items() if k[1] == "a"}
    )
    assert (last.events, last.quarantined, last.late) == (78, 3, 2)
    assert last.deliveries == sum(expected.values())
    assert {one.subscription: one.count for one in last.busiest} == Counter(id for _, id in expected.elements())
    assert last.subscriptions == 3


def test_subscriptions_that_change_are_taken_up_and_a_bad_one_is_named(spark: SparkSession, folder: Path) -> None:
    one_sink, _, _ = PIPELINE.partition('[[sink]]\nkind = "lake"\nof = "events"')
    (folder / "pipeline.toml").write_text(one_sink.replace('"wanted.csv"', '"wanted.csv"\nrefresh = 0.1'))
    _put(folder, "1.jsonl", [json.dumps(event) for event in _events(0)])
    told: list[PipelineReport] = []
    with ready(read(folder / "pipeline.toml")) as plan:
        step = 0

        def end() -> bool:
            nonlocal step
            if told and step == 0:
                (folder / "wanted.csv").write_text("id,filter,owner\nnew,price >= 0,zoe")
                wait_until(lambda: catalogue.versions(folder / "state" / "subscriptions")[-1] == 2)
                _put(folder, "2.jsonl", [json.dumps(event) for event in _events(40)])
                step = 1
            return any(report.snapshot == 2 for report in told)

        run(plan, told=told.append, end=end)
    rows = read_table(spark, folder / "deliveries").collect()
    assert {(row.subscription, row.snapshot) for row in rows} >= {("new", 2), ("a", 1)}
    assert sum(row.subscription == "new" for row in rows) == 39
    assert all((row.subscription == "new") == (row.snapshot == 2) for row in rows)
    (folder / "wanted.csv").write_text("id,filter,owner\nbroken,price <,zoe")
    os.utime(folder / "wanted.csv", (1, 1))
    with (
        pytest.raises(SubscriptionError, match=r"subscription 'broken' \(row 1\): column 8: expected"),
        ready(read(folder / "pipeline.toml")),
    ):
        pass


class Hasty:
    """A stream that begins a batch at the very moment of its end, and ends with the batch, as Spark's streams do."""

    isActive = True  # noqa: N815
    problem = ""

    def foreachBatch(self, batch: Callable[[Any, int], None]) -> Self:  # noqa: N802
        self.batch = batch
        return self

    def option(self, *_: str) -> Self:
        return self

    def stop(self) -> None:
        late = threading.Thread(target=self._late_batch, daemon=True)
        late.start()
        late.join(PATIENCE)
        assert not late.is_alive()

    def _late_batch(self) -> None:
        try:
            self.batch(None, 7)
        except RuntimeError as error:
            self.problem = str(error)

    def exception(self) -> None:
        return None

    @property
    def writeStream(self) -> Self:  # noqa: N802
        return self

    queryName = option  # noqa: N815

    def start(self) -> Self:
        return self


def test_a_batch_that_begins_while_the_pipeline_ends_is_left_to_the_next_run(folder: Path) -> None:
    """On a busy machine the pipeline waited for ever: for a stream that waited for the pipeline."""
    pipeline = read(folder / "pipeline.toml")
    Path(pipeline.state).mkdir()
    stream: Any = Hasty()
    run(Plan(pipeline, stream, None, ()), end=lambda: True)
    assert stream.problem == "market was stopped before batch 7: the next run writes it"
