"""Topics of Kafka as raw records, in a batch or as a stream, through Spark's own connector.

The offsets of a stream are in its checkpoint: a batch that runs again has the same records. A CloudEvent in binary mode
becomes JSON without a step through Python: its headers are the attributes, its value is `data`. Values may be Avro.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from fieldfare.pipeline.options import texts
from fieldfare.pipeline.table.normalisation import PROBLEM

OWN: Final = frozenset({"servers", "topic", "format", "schema", "skip"})
"""options of the source; all others are options of Spark's connector"""
FORMATS: Final = ("json", "avro")


class KafkaError(ValueError):
    """Topics that cannot be read, with advice."""


def read_kafka(spark: SparkSession, options: Mapping[str, object], *, stream: bool = False) -> DataFrame:
    """Read the records of topics: `event`, `problem`, `topic`, `partition`, `position`, `time`, `key`.

    Args:
        spark: the Spark session.
        options: `servers`; `topic`, or several with commas; `format`, `json` or `avro`; for Avro `schema`, a file or
            the schema itself, and `skip`, the number of bytes before the Avro data (5 with a schema registry). All
            others go to Spark's connector, such as `startingOffsets`, by default `earliest`.
        stream: whether to go on with records that are written later.
    """
    form = str(options.get("format", "json"))
    if form not in FORMATS:
        raise KafkaError(f"{form!r} is no format of values, but {' and '.join(FORMATS)} are")
    if form == "avro" and "schema" not in options:
        raise KafkaError("values in Avro need the option `schema`: a file, or the schema as JSON")
    rest = {key: value for key, value in options.items() if key not in OWN}
    told = {"startingOffsets": "earliest", "includeHeaders": "true", **texts(rest)}
    reader = (spark.readStream if stream else spark.read).format("kafka").options(**told)
    reader = reader.option("kafka.bootstrap.servers", str(options["servers"]))
    try:
        records = reader.option("subscribe", str(options["topic"])).load()
        event, problem = _avro(options) if form == "avro" else _json()
        return records.select(
            event.alias("event"),
            problem.alias(PROBLEM),
            *("topic", "partition", F.col("offset").alias("position"), F.col("timestamp").alias("time")),
            F.col("key").cast("string").alias("key"),
        )
    except PySparkException as error:
        raise KafkaError(_advice(spark, error)) from None


def missing_jar(name: str, version: str) -> str:
    """Return the advice for a jar that Spark does not bring.

    >>> missing_jar("avro", "4.3.0")
    'set spark.jars.packages to org.apache.spark:spark-avro_2.13:4.3.0, or spark.jars to the files, when Spark starts'
    """
    package = f"org.apache.spark:spark-{name}_2.13:{version}"
    return f"set spark.jars.packages to {package}, or spark.jars to the files, when Spark starts"


def _advice(spark: SparkSession, error: PySparkException) -> str:
    said = str(error)
    if "Failed to find data source: kafka" in said or "DATA_SOURCE_NOT_FOUND" in said:
        return f"Kafka needs a jar that Spark does not bring: {missing_jar('sql-kafka-0-10', spark.version)}"
    if "AVRO_NOT_LOADED" in said:
        return f"Avro needs a jar that Spark does not bring: {missing_jar('avro', spark.version)}"
    return said.splitlines()[0]


def _json() -> tuple[Column, Column]:
    """Return the text of an event, and the problem of a record.

    A CloudEvent in binary mode is put together as text: the decoder judges the result, as that of any other text. Spark
    reads more as JSON than the decoder does, such as 'a': without a content type such data end in the quarantine.
    """
    value = F.col("value")
    text = value.cast("string")
    kind = F.expr("cast(try_element_at(filter(headers, h -> h.key = 'content-type'), -1).value AS string)")
    media = F.lower(F.trim(F.substring_index(kind, ";", 1)))
    says_json = (media == "application/json") | media.endswith("+json")
    # Both stop reading at their own bracket, so only a single whole value satisfies both.
    listed = F.json_array_length(F.concat(F.lit("["), text, F.lit("]"))) == 1
    named = F.json_object_keys(F.concat(F.lit('{"data":'), text, F.lit("}"))).isNotNull()
    is_json = F.coalesce(listed & named, F.lit(False))
    is_text = media.startswith("text/") & F.call_function("is_valid_utf8", text)
    data = (
        F.when(F.length(value) == 0, F.lit(""))
        .when(is_json & F.coalesce(says_json, F.lit(True)), F.concat(F.lit(',"data":'), text))
        .when(F.coalesce(is_text, F.lit(False)), F.concat(F.lit(',"data":'), _quoted(text)))
        .otherwise(F.concat(F.lit(',"data_base64":"'), F.translate(F.base64(value), "\r\n", ""), F.lit('"')))
    )
    attributes = F.transform(
        F.filter("headers", lambda one: one["key"].startswith("ce_")),
        lambda one: F.concat(
            _quoted(F.substring(one["key"], 4, _LONG)), F.lit(":"), _quoted(one["value"].cast("string"))
        ),
    )
    media_type = F.when(kind.isNotNull(), F.concat(F.lit(',"datacontenttype":'), _quoted(kind)))
    joined = F.concat(
        F.lit("{"),
        F.array_join(attributes, ","),
        F.coalesce(media_type, F.lit("")),
        F.coalesce(data, F.lit("")),
        F.lit("}"),
    )
    is_binary = F.coalesce(F.exists("headers", lambda one: one["key"] == "ce_specversion"), F.lit(False))
    not_json = is_binary & says_json & ~is_json & (F.length(value) > 0)
    body = F.exists("headers", lambda one: one["key"].isin(*_BODY))
    problem = F.when(not_json, F.lit("the data are not JSON, as the content type says")).when(
        is_binary & body, F.lit("data and datacontenttype have no headers of their own")
    )
    return F.when(is_binary, joined).otherwise(text), problem


_BODY: Final = ("ce_data", "ce_data_base64", "ce_datacontenttype")
_LONG: Final = 2**31 - 1


def _quoted(text: Column) -> Column:
    """Return a text as a string of JSON."""
    listed = F.to_json(F.array(text))
    return F.substring(listed, F.lit(2), F.length(listed) - 2)


def _text(value: Column) -> Column:
    return value.cast("string")


def _avro(options: Mapping[str, object]) -> tuple[Column, Column]:
    """Return the text of an event in Avro, and the problem of a record."""
    given = str(options["schema"])
    schema = given if given.lstrip()[:1] in '{["' else Path(given).read_text(encoding="utf-8")
    value = F.expr(f"substring(value, {int(str(options.get('skip', 0))) + 1})")
    permissive = F.create_map(F.lit("mode"), F.lit("PERMISSIVE"))
    text = F.to_json(F.call_function("from_avro", value, F.lit(schema), permissive))
    wrong = F.col("value").isNotNull() & (text.isNull() | (text == "{}"))  # Spark gives nulls for bytes it cannot read
    return text, F.when(wrong, F.lit("the value is not Avro of the schema, or has no field with a value"))
