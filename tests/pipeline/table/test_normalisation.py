"""Every raw record becomes an event or is quarantined, with what the decoder and the source say about it."""

from __future__ import annotations

import hashlib
import os
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import to_arrow_type
from tests.pipeline.table.test_json_columns import cut, garbage, texts, twice

from fieldfare.pipeline.table.json_columns import Decoder
from fieldfare.pipeline.table.normalisation import Normalised, deduplicate, late, normalise
from fieldfare.pipeline.table.schema import TableError, declared

FIELDS = "id string, type string, a bigint, c string, time timestamp, f struct<a: bigint>"
NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)
NEW_YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def many(count: int) -> list[bytes]:
    """As many texts as hypothesis makes in one go: a Spark job for each example would take minutes."""
    made: list[bytes] = []

    @settings(max_examples=count, phases=[Phase.generate], derandomize=True, database=None)
    @given(texts | twice | cut | garbage)
    def collect(text: bytes) -> None:
        made.append(text)

    collect()
    return made


def raw_of(spark: SparkSession, rows: list[dict[str, Any]], schema: str) -> DataFrame:
    return spark.createDataFrame([Row(**row) for row in rows], schema)


def attributes(row: Row) -> tuple[Any, ...]:
    """The first columns; Spark gives times in the zone of the machine."""
    return tuple(value.astimezone(UTC) if isinstance(value, datetime) else value for value in row[:5])


def test_nothing_is_lost_and_nothing_is_fatal(spark: SparkSession) -> None:
    rows = [*many(200), None]
    raw = spark.createDataFrame([(number, row) for number, row in enumerate(rows)], "position long, bytes binary")
    raw = raw.select("position", F.col("bytes").cast("string").alias("event"))
    table = normalise(raw, FIELDS)
    table.records.persist()
    events = table.events.count()
    bad = table.quarantine.select("position", "reason", F.col("record").cast("binary").alias("record")).collect()
    table.records.unpersist()
    decoder = Decoder(to_arrow_type(declared(FIELDS), timezone="UTC"))
    reasons = {number: reason for number, row in enumerate(rows) if (reason := decoder.row(row)["reason"]) is not None}
    assert {row.position: row.reason for row in bad} == reasons
    assert [row.record for row in bad] == [rows[row.position] for row in bad], "to the byte"
    assert events + len(bad) == len(rows)
    assert min(events, len(bad)) > 20


def test_attributes_come_from_the_event_the_source_or_are_made(spark: SparkSession) -> None:
    schema = "event string, position long, publisher string, sequence long, time timestamp, file string"
    own = '{"id": "7", "type": "sale", "time": "2026-01-01T00:00:00Z", "source": "/till", "a": 1}'
    about = {"position": 1, "publisher": "p", "sequence": 5, "time": NOON, "file": "f"}
    raw = raw_of(
        spark,
        [{"event": own, **about}, {"event": '{"a": 2}', **about}, {"event": '{"a": 3}', **about, "position": 2}],
        schema,
    )
    first, second, third = normalise(raw, FIELDS).events.orderBy("fields.a").collect()
    assert attributes(first) == ("7", "/till", 5, NEW_YEAR, "sale")
    assert msgspec.json.decode(first.rest) == {"source": "/till"}
    assert attributes(second)[1:] == ("p", 5, NOON, None)
    digest = hashlib.sha256(b'{"file":"f","publisher":"p","position":1}').hexdigest()
    assert second.id == digest[:32] != third.id
    given_ones = normalise(raw, FIELDS, id="fields.a", source="file", sequence=F.col("position") + 10, type=F.lit("x"))
    assert [attributes(row) for row in given_ones.events.orderBy("id").collect()] == [
        ("1", "f", 11, NEW_YEAR, "x"),
        ("2", "f", 11, NOON, "x"),
        ("3", "f", 12, NOON, "x"),
    ]
    content = normalise(raw.select("event"), FIELDS).events.orderBy("fields.a").collect()
    assert [row.id for row in content[1:]] == [hashlib.sha256(b'{"a": %d}' % n).hexdigest()[:32] for n in (2, 3)]


def test_what_is_required_or_out_of_bounds_is_quarantined(spark: SparkSession) -> None:
    rows = [
        ('{"id": "1", "time": "2026-11-15T12:00:00Z"}', None, "1"),
        ('{"time": "2026-11-15T12:00:00Z"}', None, "1"),
        ('{"id": "3", "time": "2026-11-14T12:00:00Z"}', None, "1"),
        ('{"id": "4", "time": "9999-11-15T12:00:00Z"}', None, "1"),
        ('{"id": "5"}', None, "1"),
        ('{"id": "6", "time": "2026-11-15T12:00:00Z"}', None, "x"),
        ("1,2,3", "three cells", "1"),
        ('{"id": "8", "time": "2026-11-15T12:00:00Z", "y": 1}', None, "1"),
    ]
    raw = spark.createDataFrame(rows, "event string, problem string, sequence string")
    start = datetime(2026, 11, 15, tzinfo=UTC)
    bounds = {"since": start, "until": F.lit(start) + F.expr("INTERVAL 1 DAY")}
    table = normalise(raw, FIELDS, require=["id", "time"], unknown="quarantine", **bounds)  # type: ignore[arg-type]
    assert [row.id for row in table.events.collect()] == ["1"]
    bad = table.quarantine
    assert bad.columns == ["reason", "field", "record", "sequence", "at"]
    assert {(row.field, row.reason) for row in bad.collect()} == {
        ("id", "an event needs it, and there is none"),
        ("time", "earlier than events may be"),
        ("time", "later than events may be"),
        ("time", "an event needs it, and there is none"),
        ("sequence", "not a whole number of 64 bits"),
        ("", "three cells"),
        ("y", "the field is not declared"),
    }


def test_columns_that_have_types_are_fields(spark: SparkSession) -> None:
    rows = [(7, 1.5, date(2026, 11, 15), ["x"], NOON), (None, 2.5, None, None, None)]
    raw = spark.createDataFrame(rows, "id int, price float, day date, tags array<string>, time timestamp")
    table = normalise(raw, event=None, require=["id"])
    (row,) = table.events.collect()
    assert attributes(row) == ("7", None, None, NOON, None)
    assert table.events.schema["fields"].dataType.simpleString() == (
        "struct<id:bigint,price:double,day:timestamp,tags:array<string>,time:timestamp>"
    )
    assert row.fields.price == 1.5
    (bad,) = table.quarantine.collect()
    assert (bad.field, bad.record) == ("id", '{"price":2.5}')


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (normalise, "declare the fields"),
        (lambda raw: normalise(raw, "a bigint", event="text"), "there is no column 'text', but event, at"),
        (lambda raw: normalise(raw, "a bigint"), "columns named at of its own"),
        (lambda raw: normalise(raw, "a bigint", event=None), "the columns have types already"),
        (lambda raw: normalise(raw, "a bigint", require=["price"]), "price cannot be required"),
        (lambda raw: normalise(raw.withColumn("fields", F.lit(1)), "a bigint"), "there is a column 'fields' already"),
    ],
)
def test_a_wrong_call_says_what_to_do(spark: SparkSession, call: Any, message: str) -> None:
    with pytest.raises(TableError, match=message):
        call(spark.createDataFrame([], "event string, at timestamp"))


def test_the_texts_are_decoded_once(spark: SparkSession) -> None:
    raw = spark.createDataFrame([('{"a": 1}',)], "event string")
    plan = normalise(raw, FIELDS).events._jdf.queryExecution().executedPlan().toString()
    assert plan.count("ArrowEvalPython") == 1


@pytest.mark.long
def test_a_stream_keeps_late_events_and_drops_copies(spark: SparkSession, tmp_path: Path) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    old = now - timedelta(days=3)
    batches = [[("1", now), ("2", now), ("1", now)], [("2", now), ("3", now)], [("4", old), ("3", now), ("4", old)]]
    (tmp_path / "in").mkdir()
    for number, batch in enumerate(batches):
        lines = [msgspec.json.encode({"id": id, "time": time.isoformat()}) for id, time in batch]
        file = tmp_path / "in" / f"{number}.jsonl"
        file.write_bytes(b"\n".join(lines))
        os.utime(file, (number, number))  # the order in which Spark takes them

    def run(name: str, change: Any) -> list[tuple[Any, ...]]:
        stream = spark.readStream.option("maxFilesPerTrigger", 1).text(str(tmp_path / "in"))
        frame = change(normalise(stream.withColumnRenamed("value", "event"), FIELDS).events)
        writer = frame.writeStream.format("memory").queryName(name).option("checkpointLocation", str(tmp_path / name))
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        return sorted(map(tuple, spark.table(name).collect()))

    kept = run("ours", lambda events: deduplicate(events).select("id", late().alias("late")))
    assert kept == [("1", False), ("2", False), ("3", False), ("4", True)]
    theirs = run(
        "theirs",
        lambda events: (
            events.withWatermark("time", "1 hour").dropDuplicatesWithinWatermark(["source", "id"]).select("id")
        ),
    )
    assert theirs == [("1",), ("2",), ("3",)], "if Spark no longer drops what is late, so much the better"
    copies = spark.createDataFrame(
        [("s", "1"), ("s", "1"), ("t", "1"), (None, "1"), (None, "1")], "source string, id string"
    )
    assert deduplicate(copies).count() == 3


def test_splitting_again_gives_the_two_views(spark: SparkSession) -> None:
    records = normalise(spark.createDataFrame([('{"a": 1}',), ("{",)], "event string"), FIELDS).records
    split = Normalised(records.limit(2))
    assert (split.events.count(), split.quarantine.count()) == (1, 1)
