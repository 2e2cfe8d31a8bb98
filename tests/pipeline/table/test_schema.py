from __future__ import annotations

from datetime import UTC, datetime
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_type
from pyspark.sql.types import (
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructType,
    TimestampType,
)
from tests.events import strategies as some

from fieldfare.events import Event, Interval, json
from fieldfare.pipeline.match.fields import is_interval as is_interval_in_arrow
from fieldfare.pipeline.table.json_columns import Decoder
from fieldfare.pipeline.table.schema import TableError, declared, infer, inferred, is_interval, merged, schema


def test_every_kind_of_value_has_a_type() -> None:
    noon = datetime(2026, 11, 15, 12, tzinfo=UTC)
    found = inferred(
        [
            Event({"flag": True, "count": 1, "price": 1, "name": "x", "at": noon, "digest": b"x", "tags": ["a"]}),
            Event({"price": 1.5, "venue": {"id": 1}, "span": Interval(noon, None), "nothing": None, "empty": []}),
            Event({"venue": {"city": "B"}, "legs": [{"n": 1}, {"m": 2.5}]}, valid=Interval(noon, None)),
        ]
    )
    assert found.simpleString() == (
        "struct<flag:boolean,count:bigint,price:double,name:string,at:timestamp,digest:binary,tags:array<string>,"
        "venue:struct<id:bigint,city:string>,span:struct<low:timestamp,high:timestamp,closed:string>,"
        "legs:array<struct<n:bigint,m:double>>,$valid:struct<low:timestamp,high:timestamp,closed:string>>"
    )
    assert is_interval(found["span"].dataType)
    assert not is_interval(found["venue"].dataType)
    assert declared(found) == found


def test_an_object_that_looks_like_an_interval_is_none() -> None:
    shop = {"low": 1, "high": 2, "closed": "on Sundays"}
    found = inferred([Event({"shop": shop, "shops": [shop], "day": {"low": 5, "high": 20}, "n": 1})])
    assert found.simpleString() == "struct<day:struct<low:bigint,high:bigint>,n:bigint>"


def test_columns_in_spark_and_in_arrow_are_intervals_by_one_rule() -> None:
    kinds: list[DataType] = [LongType(), DoubleType(), BooleanType(), StringType(), TimestampType(), BinaryType()]
    found: list[DataType] = []
    for low, high, closed in product(kinds, kinds, kinds):
        kind = StructType().add("low", low).add("high", high).add("closed", closed)
        assert is_interval(kind) == is_interval_in_arrow(to_arrow_type(kind, timezone="UTC"))
        found += [low] if is_interval(kind) else []
        assert not is_interval(kind.add("more", low))
    assert found == [kind for kind in kinds if kind != BooleanType()]


def test_the_most_frequent_kind_and_case_win() -> None:
    found = inferred([Event({"v": "n/a", "A": 1}), Event({"v": 1, "a": 1}), Event({"v": 2, "a": 2})])
    assert found.simpleString() == "struct<v:bigint,a:bigint>"


@given(st.lists(some.events, max_size=4))
def test_events_of_one_kind_a_field_fit_what_is_inferred_from_them(events: list[Event]) -> None:
    fields = inferred(events)
    declared(fields)
    if len(events) == 1 and fields.fields:
        row = Decoder(to_arrow_type(fields, timezone="UTC")).row(json.encode(events[0]))
        assert row["reason"] is None or "declared as" in str(row["reason"])  # a list of several kinds, say


@pytest.mark.parametrize(
    ("ddl", "message"),
    [
        ("a int", "the field a is declared as int, and a field holds boolean, bigint"),
        ("a struct<b: array<date>>", "the field a.b is declared as date"),
        ("m map<string, string>", "the field m is declared as map"),
        ("Price double, price double", "the field Price is there twice"),
    ],
)
def test_a_wrong_declaration_is_named(spark: SparkSession, ddl: str, message: str) -> None:
    with pytest.raises(TableError, match=message):
        declared(ddl)


def test_schemas_merge(spark: SparkSession) -> None:
    one, other = (
        StructType.fromDDL(ddl) for ddl in ("a bigint, s struct<x: string>", "b double, s struct<y: array<string>>")
    )
    assert isinstance(one, StructType)
    assert isinstance(other, StructType)
    assert merged(one, other).simpleString() == "struct<a:bigint,s:struct<x:string,y:array<string>>,b:double>"
    with pytest.raises(
        TableError, match=r"the column s is struct<x:string> in the table and string in what is to be added"
    ):
        merged(one, declared("s string"))
    assert schema(one).names == ["id", "source", "sequence", "time", "type", "fields", "rest"]


def test_fields_are_inferred_from_texts(spark: SparkSession) -> None:
    texts = ['{"price": 1, "time": "2026-11-15T09:30:00Z"}', '{"price": 1.5}', "garbage", None]
    raw = spark.createDataFrame([(text,) for text in texts], "event string")
    assert infer(raw).simpleString() == "struct<price:double,time:timestamp>"
    with pytest.raises(TableError, match="no event to infer fields from"):
        infer(raw.where("event = 'garbage'"))
    with pytest.raises(TableError, match="a stream has no samples"):
        infer(spark.readStream.format("rate").load(), "value")
