"""Patterns on Spark itself: a history beside a detector, and a pipeline beside the history of its events."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from fieldfare.patterns import Detector, Occurrence, parse_pattern
from fieldfare.patterns.stamps import microseconds
from fieldfare.pipeline import detect, match_events
from fieldfare.pipeline.detection.layout import DetectError
from fieldfare.pipeline.job.config import read
from fieldfare.pipeline.job.run import ready, run
from fieldfare.pipeline.lake.history import field_columns
from fieldfare.pipeline.lake.table import read_table

START = datetime(2026, 1, 1, tzinfo=UTC)
FRAUD = """
small: [amount < 10] large: [amount > 500]
(at least 2 small followed by large) within 1 hour
for each card
select card as card, count(small) as tries, large.amount as amount, avg(small.amount) as mean
"""
PATTERNS = {
    "fraud": FRAUD,
    "quiet": "a: [amount > 500] b: [amount > 500] a followed by not b within 25s for each card",
    "row": "x: [amount > 500] x{3} within 1 min",
}
STORY = [("a7", 5.0), ("b2", 7.0), ("a7", 6.0), ("a7", 900.0), ("b2", 800.0), ("b2", 3.0), ("b2", 4.0), ("b2", 600.0)]


def payments(count: int) -> list[dict[str, Any]]:
    """Payments, ten seconds apart."""
    told = [STORY[number % len(STORY)] for number in range(count)]
    return [
        {"n": number, "time": START + timedelta(seconds=10 * number), "card": card, "amount": amount}
        for number, (card, amount) in enumerate(told)
    ]


def expected(events: list[dict[str, Any]], until: datetime) -> list[tuple[Any, ...]]:
    """What a detector tells: pattern, interval, selected fields, and the numbers of the events."""
    detector = Detector({name: parse_pattern(text) for name, text in PATTERNS.items()}, kernels="numpy")
    story = [Occurrence(microseconds(one["time"]), microseconds(one["time"]), one, "", one["n"]) for one in events]
    found = []
    for one in detector.step(story, until.timestamp()):
        event = detector.event(one)
        chosen = tuple(event.get(name) for name in ("card", "tries", "amount", "mean"))
        numbers = [part.event["n"] for _, part in one.match.events]
        found.append((one.pattern, event["ts_lo"], event["ts_hi"], event.type, *chosen, numbers))
    return sorted(found, key=repr)


def test_a_history_tells_what_a_detector_tells(spark: SparkSession) -> None:
    events = payments(24)
    frame = spark.createDataFrame(events, "n long, time timestamp, card string, amount double")
    found = detect(frame.repartition(3), PATTERNS, order=["time", "n"], keep=["n"], detector="oslo").cache()
    told = [
        (
            *(row.pattern, row.ts_lo.astimezone(UTC), row.ts_hi.astimezone(UTC), row.type),
            *(row.card, row.tries, row.amount, row.mean),
            [one.event.n for one in row.constituents],
        )
        for row in found.collect()
    ]
    assert sorted(told, key=repr) == expected(events, events[-1]["time"])
    assert {one[0] for one in told} == {"fraud", "quiet", "row"}
    asked = spark.createDataFrame(
        [("s", "pattern = 'fraud' AND tries >= 2 AND detector = 'oslo'")], "id string, filter string"
    )
    assert match_events(found, asked).count() == sum(one[0] == "fraud" for one in told)
    with pytest.raises(DetectError, match=r"pattern 'p': the events have no single value crad; did you mean card\?"):
        detect(frame, {"p": "a: [n = 1] a for each crad"})


PIPELINE = """
name = "cards"
state = "state"
source = {kind = "files", path = "in", max_files = 1}
normalise = {fields = "card string, amount double, n long"}
detect = {delay = "20 seconds"}
sink = [{kind = "lake", of = "composites", path = "found"}, {kind = "lake", of = "events", path = "events"}]
"""


def test_a_pipeline_detects_patterns(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    tables = "".join(f"[patterns.{name}]\ntext = {json.dumps(text)}\n" for name, text in PATTERNS.items())
    (tmp_path / "cards.toml").write_text(PIPELINE + tables)
    events = payments(16)
    events[5], events[6] = events[6], events[5]  # 10 seconds late
    silence = {"n": 99, "time": events[-1]["time"] + timedelta(hours=2), "card": "z", "amount": 50.0}
    for number, some in enumerate((events[:6], [*events[6:], silence])):
        lines = [json.dumps({**one, "id": str(one["n"]), "time": one["time"].isoformat()}) for one in some]
        (tmp_path / "in" / f"{number}.jsonl").write_text("\n".join(lines))
        pipeline = read(tmp_path / "cards.toml")
        with ready(pipeline) as plan:
            run(plan, once=True)
    told = [
        (
            *(row.fields.pattern, row.fields.ts_lo.astimezone(UTC), row.fields.ts_hi.astimezone(UTC), row.type),
            *(row.fields.card, row.fields.tries, row.fields.amount, row.fields.mean),
            [one.event.n for one in row.fields.constituents],
        )
        for row in read_table(spark, str(tmp_path / "found")).collect()
    ]
    assert sorted(told, key=repr) == expected(sorted(events, key=lambda one: one["n"]), silence["time"])
    assert read_table(spark, str(tmp_path / "events")).count() == len(events) + 1
    assert field_columns(read_table(spark, str(tmp_path / "found")))
