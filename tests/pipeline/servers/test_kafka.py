"""Kafka as a source and a sink of pipelines, with a broker and with Spark's connector."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from tests.pipeline.sinks.suite import FIRST, WRITER, SinkSuite, rows
from tools.servers.kafka import Kafka

from fieldfare.events.cloudevents import decode_any
from fieldfare.events.limits import EventError
from fieldfare.node.bridges import IncomingEvent
from fieldfare.node.bridges.kafka_records import IncomingRule, Record, event_of
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.job.config import parse
from fieldfare.pipeline.job.run import ready, run
from fieldfare.pipeline.sinks import SinkSettings, make
from fieldfare.pipeline.sinks.kafka import ID
from fieldfare.pipeline.sources.kafka import read_kafka

pytestmark = [pytest.mark.long, pytest.mark.needs("Kafka"), pytest.mark.needs("Spark's jars")]
names = (f"pipeline-{number}" for number in itertools.count())


@pytest.fixture
def topic(kafka: Kafka) -> str:
    return kafka.create(next(names), 2)


class TestAtLeastOnce(SinkSuite):
    """A reader tells a record that comes again by its `fieldfare-id`."""

    kind = "kafka"
    delivery = "at-least-once"

    @pytest.fixture
    def place(self, tmp_path: Path, kafka: Kafka, topic: str) -> Iterator[Path]:
        self.kafka, self.topic = kafka, topic
        yield tmp_path  # noqa: PT022

    def settings(self, place: Path) -> SinkSettings:
        options = {"servers": self.kafka.servers, "topic": self.topic, "delivery": self.delivery}
        return SinkSettings(self.kind, self.table, {**options, **self.options})

    def contents(self, place: Path) -> list[str]:
        found = {str(dict(one.headers() or ())[ID]): one.value() for one in self.kafka.all(self.topic)}
        return sorted(json.loads(value or b"")["id"] for value in found.values())


class TestExactlyOnce(TestAtLeastOnce):
    """A reader of committed records has each once."""

    delivery = "exactly-once"

    def contents(self, place: Path) -> list[str]:
        return sorted(json.loads(one.value() or b"")["id"] for one in self.kafka.all(self.topic))

    def test_a_batch_that_fails_leaves_nothing(self, spark: SparkSession, place: Path) -> None:
        with self.made(place) as sink:
            bad = rows(spark, FIRST).selectExpr("* EXCEPT (id)", "IF(id = 'c', raise_error('no'), id) AS id")
            with pytest.raises(Exception, match="no"):
                sink.write(bad, Batch(WRITER, 0))
            assert self.contents(place) == []
            sink.write(rows(spark, FIRST), Batch(WRITER, 0))
        assert self.contents(place) == FIRST


@pytest.mark.parametrize("delivery", ["at-least-once", "exactly-once"])
def test_keys_and_cloudevents(spark: SparkSession, kafka: Kafka, topic: str, delivery: str) -> None:
    options = {"servers": kafka.servers, "topic": topic, "delivery": delivery, "key": "owner", "mode": "binary"}
    sink = make(SinkSettings("kafka", "deliveries", {**options, "kafka.compression.type": "gzip"}))
    sink.write(rows(spark, ["a"]), Batch(WRITER, 0))
    (one,) = kafka.all(topic)
    headers = dict(one.headers() or ())
    assert (one.key(), headers["ce_id"], headers["ce_source"]) == (b"ana", b"a", b"/test")
    assert headers["fieldfare-subscription"] == b"s1"
    assert json.loads(one.value() or b"") == {"n": 0}


def test_a_pipeline_from_topic_to_topic_goes_on_where_it_was(
    spark: SparkSession, kafka: Kafka, topic: str, tmp_path: Path
) -> None:
    out = kafka.create(next(names))
    (tmp_path / "subscriptions.csv").write_text("id,filter\nbig,x > 1\n")
    pipeline = parse(
        f"""
        name = "through"
        state = "{tmp_path}/state"
        source = {{kind = "kafka", servers = "{kafka.servers}", topic = "{topic}"}}
        normalise = {{fields = "x long, place long", id = "key"}}
        match = {{subscriptions = "{tmp_path}/subscriptions.csv"}}
        sink = [{{kind = "kafka", servers = "{kafka.servers}", topic = "{out}", delivery = "exactly-once"}}]
        """
    )
    expected = []
    for begin in (0, 5):
        kafka.produce(topic, [{"value": b'{"x": %d}' % x, "key": b"k%d" % x} for x in range(begin, begin + 5)])
        with ready(pipeline) as plan:
            run(plan, once=True)
        expected += [x for x in range(begin, begin + 5) if x > 1]
        assert sorted(json.loads(one.value() or b"")["x"] for one in kafka.all(out)) == expected


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
json_values = st.recursive(
    st.integers(-(2**53), 2**53) | texts | st.booleans() | st.none(),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(texts, inner, max_size=2),
    max_leaves=4,
)
values = st.one_of(
    json_values.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=8),
    st.sampled_from([b"", b'1, "id": 2', b"1] , [2", b'{"a": 1}{', b"[1", b"'a'", b" 5 ", b"NaN", b"01"]),
)
types = st.sampled_from(["application/json", "Application/X+JSON; charset=utf-8", "text/plain", "image/png", ""])
attributes = st.dictionaries(st.sampled_from(["subject", "dataschema", "region", "data", "Bad"]), texts, max_size=2)


@st.composite
def binary(draw: st.DrawFn) -> dict[str, Any]:
    headers = {"specversion": "1.0", "id": draw(texts), "source": "/s", "type": "t", **draw(attributes)}
    pairs = [(f"ce_{name}", text.encode()) for name, text in headers.items()]
    if kind := draw(types):
        pairs.append(("content-type", kind.encode()))
    return {"value": draw(values), "headers": pairs}


@settings(max_examples=4, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
@given(found=st.lists(binary(), min_size=60, max_size=120))
def test_cloudevents_are_those_of_the_bridge(spark: SparkSession, kafka: Kafka, found: list[dict[str, Any]]) -> None:
    """A record of the binary mode is the same event in Spark, in SQL, as in a node, in Python."""
    topic = kafka.create(next(names))
    found = [{"value": b"1", "headers": [("ce_specversion", b"1.0")] * 2}, *found]
    kafka.produce(topic, found)
    options = {"servers": kafka.servers, "topic": topic}
    ours = read_kafka(spark, options).orderBy("position").collect()
    good, wrong = 0, []
    for one, row in zip(found, ours, strict=True):
        record = Record(topic, one["value"], headers=tuple(one["headers"]))
        expected = event_of(IncomingRule(topic), record)
        try:
            event = None if row.problem else decode_any(row.event)
        except EventError:
            event = None
        wanted = expected.event if isinstance(expected, IncomingEvent) else None
        almost = wanted is not None and "datacontenttype" not in wanted and isinstance(wanted.get("data"), bytes)
        if event != wanted and not (event is None and almost):  # 'a' and 01: almost JSON
            wrong.append((one, row.event, row.problem, expected))
        good += event is not None
    assert not wrong, "\n".join(map(str, wrong[:5]))
    note(f"{good} of {len(found)} are events")


SCHEMA = {
    "type": "record",
    "name": "quote",
    "fields": [{"name": "symbol", "type": "string"}, {"name": "price", "type": ["null", "double"]}],
}


@pytest.mark.parametrize("skip", [0, 5])
def test_values_in_avro(spark: SparkSession, kafka: Kafka, topic: str, tmp_path: Path, skip: int) -> None:
    (tmp_path / "quote.avsc").write_text(json.dumps(SCHEMA))
    good = b"\x00\x00\x00\x00\x07"[:skip] + b"\x06IBM\x02" + b"\x00\x00\x00\x00\x00\x00\x14\x40"
    kafka.produce(topic, [{"value": good, "key": b"a"}, {"value": b"\xff", "key": b"a"}])
    for schema in (str(tmp_path / "quote.avsc"), json.dumps(SCHEMA)):
        options = {"servers": kafka.servers, "topic": topic, "format": "avro", "schema": schema, "skip": skip}
        first, second = read_kafka(spark, options).orderBy("position").collect()
        assert (json.loads(first.event), first.problem) == ({"symbol": "IBM", "price": 5.0}, None)
        assert "not Avro" in second.problem


def test_files_of_avro(spark: SparkSession, tmp_path: Path) -> None:
    spark.sql("SELECT 'IBM' AS symbol, 5.5D AS price").write.format("avro").save(str(tmp_path / "in"))
    pipeline = parse(
        f"""
        name = "files"
        state = "{tmp_path}/state"
        source = {{kind = "files", path = "{tmp_path}/in", format = "avro"}}
        sink = [{{kind = "parquet", of = "events", path = "{tmp_path}/out"}}]
        """
    )
    with ready(pipeline) as plan:
        run(plan, once=True)
    (row,) = spark.read.parquet(str(tmp_path / "out")).collect()
    assert (row.fields.symbol, row.fields.price) == ("IBM", 5.5)


def test_bytes_stay_bytes(spark: SparkSession, kafka: Kafka, topic: str) -> None:
    kafka.produce(topic, [{"value": b"\x00\xff", "headers": [*binary_headers(), ("content-type", b"image/png")]}])
    (row,) = read_kafka(spark, {"servers": kafka.servers, "topic": topic}).collect()
    assert json.loads(row.event)["data_base64"] == base64.b64encode(b"\x00\xff").decode()


def binary_headers() -> list[tuple[str, bytes]]:
    return [("ce_specversion", b"1.0"), ("ce_id", b"1"), ("ce_source", b"/s"), ("ce_type", b"t")]
