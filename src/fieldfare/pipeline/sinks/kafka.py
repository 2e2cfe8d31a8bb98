"""The kind `kafka`: the events are written to a topic, through Spark's connector or in transactions.

With `delivery = "at-least-once"` Spark's connector writes on all executors; a batch that comes again is written again,
with the same header `fieldfare-id` in each record. With `"exactly-once"` the driver writes a batch in a transaction
together with its number (see `formats.kafka_transactions`); readers must skip aborted transactions
(`isolation.level = read_committed`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

import msgspec
import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.functions import arrow_udf

from fieldfare.events import kafka_binding
from fieldfare.events.kafka_binding import Mode
from fieldfare.events.limits import EventError
from fieldfare.pipeline import options
from fieldfare.pipeline.batch import Batch
from fieldfare.pipeline.lake.history import as_json
from fieldfare.pipeline.sinks.formats import events
from fieldfare.pipeline.sinks.interface import Sink, SinkSettings
from fieldfare.pipeline.sources.kafka import missing_jar

ID: Final = "fieldfare-id"
"""header with the identity of a record: source and id of the event, and the subscription of a delivery"""
_RECORD: Final = "struct<value: binary, headers: array<struct<key: string, value: binary>>>"
_udf: Final[Any] = arrow_udf  # its stubs know only the form without type hints, of which it warns


class KafkaOptions(options.Options, frozen=True):
    """The options of a topic; those that begin with `kafka.` go to the client of Kafka."""

    servers: str
    topic: str
    key: str = ""
    """the column or field whose value is the key, such as `owner` or `fields.symbol`; by default no key"""
    mode: Mode = "json"
    """the event as JSON, or as a CloudEvent in binary or structured mode"""
    source: str = "/fieldfare/spark"
    """the `source` of CloudEvents that are made of events without a source"""
    delivery: Literal["at-least-once", "exactly-once"] = "at-least-once"


@dataclass(frozen=True)
class KafkaSink(Sink):
    """A topic to which events are written."""

    options: KafkaOptions
    client: dict[str, str]
    """settings of Kafka's client"""

    def write(self, rows: DataFrame, batch: Batch) -> None:
        """Write the rows of a batch as records."""
        found = records(rows, self.options)
        if self.options.delivery == "exactly-once":
            from fieldfare.pipeline.sinks.formats import kafka_transactions  # noqa: PLC0415 - needs fieldfare[kafka]

            kafka_transactions.write(found, self.options.servers, self.options.topic, self.client, batch)
            return
        told = {f"kafka.{key}": value for key, value in self.client.items()}
        writer = found.write.format("kafka").options(**told).option("kafka.bootstrap.servers", self.options.servers)
        try:
            writer.option("topic", self.options.topic).save()
        except PySparkException as error:
            if "kafka" not in str(error) or "find" not in str(error):
                raise
            advice = missing_jar("sql-kafka-0-10", rows.sparkSession.version)
            raise options.OptionError(f"kafka needs a jar that Spark does not bring: {advice}") from None


def records(rows: DataFrame, given: KafkaOptions) -> DataFrame:
    """Return rows of a table as records: `key`, `value`, `headers`."""
    found = as_json(rows)
    names = [name for name in ("source", "id", "subscription") if name in found.columns]
    own = {ID: F.concat_ws("/", *(F.coalesce(F.col(name).cast("string"), F.lit("")) for name in names))}
    own |= {f"fieldfare-{name}": F.col(name) for name in ("subscription", "owner") if name in found.columns}
    record = _udf(_records_of(given), returnType=_RECORD)(F.col(events.COLUMN), F.col("id"), F.col("source"))
    ours = F.array(*(F.struct(F.lit(name).alias("key"), _bytes(text).alias("value")) for name, text in own.items()))
    key = _bytes(F.expr(given.key)) if given.key else F.lit(None).cast("binary")
    return found.select(key.alias("key"), record.alias("record"), ours.alias("ours")).select(
        "key", "record.value", F.concat("ours", "record.headers").alias("headers")
    )


def _bytes(text: Column) -> Column:
    return text.cast("string").cast("binary")


def _records_of(given: KafkaOptions) -> Any:
    mode, source = given.mode, given.source

    def made(batches: Iterator[tuple[pa.Array, pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        for texts, ids, sources in batches:
            places = zip(texts.to_pylist(), ids.to_pylist(), sources.to_pylist(), strict=True)
            yield pa.array([_record(text, id, whence or source, mode) for text, id, whence in places], _ARROW)

    return made


_ARROW: Final = pa.struct(
    [
        ("value", pa.binary()),
        ("headers", pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))),
    ]
)


def _record(text: str, id: str, source: str, mode: Mode) -> dict[str, object]:
    event = events.of_text(text)
    if isinstance(event, EventError):  # no row of an event table is so
        raise event
    value, headers = kafka_binding.write(event, id, source, mode)
    return {"value": value, "headers": [{"key": name, "value": text.encode()} for name, text in headers.items()]}


def make(settings: SinkSettings) -> KafkaSink:
    """Make a sink that writes to a topic."""
    if settings.table == "quarantine":
        raise options.OptionError("what is no event cannot be sent as one; keep it in a lake")
    client = {key: value for key, value in options.texts(settings.options).items() if key.startswith("kafka.")}
    own = {key: value for key, value in settings.options.items() if key not in client}
    given = msgspec.structs.replace(settings, options=own).read(KafkaOptions)
    if given.delivery == "exactly-once":
        options.needs("kafka", "confluent_kafka", "kafka")
    return KafkaSink(given, {key.removeprefix("kafka."): value for key, value in client.items()})
