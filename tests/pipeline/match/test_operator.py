"""`match_events` on Spark against the engine and brute force, on the same data."""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from fieldfare import Event, Index, Interval, parse
from fieldfare.filters import Filter
from fieldfare.pipeline import SubscriptionError, match_events, publish_subscriptions
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Subscription
from fieldfare.pipeline.match.operator import matches_of, unfold
from fieldfare.pipeline.match.sql import register
from fieldfare.pipeline.match.ways import MATCHES
from fieldfare_lab.bench.workloads import generate

Pairs = Counter[tuple[Any, Any]]


def brute(
    events: Iterable[tuple[Any, dict[str, Any]]], filters: Iterable[tuple[Any, str]], mode: Any = "overlaps"
) -> Pairs:
    wanted = [(id, parse(text)) for id, text in filters]
    return Counter((n, id) for n, event in events for id, filter in wanted if filter.matches(Event(event), mode))


def found(deliveries: DataFrame, key: str = "n") -> Pairs:
    return Counter((row[key], row.subscription) for row in deliveries.select(key, "subscription").collect())


def test_a_batch_gives_what_the_engine_and_brute_force_give(spark: SparkSession, tmp_path: Path) -> None:
    work = generate("stock", 300, 400)
    filters = [(f"s{n}", text) for n, text in enumerate(work.filters)]
    events = [{"n": n, **event} for n, event in enumerate(work.events)]
    owned = spark.createDataFrame(
        [(id, text, f"o{id}") for id, text in filters], "id string, filter string, owner string"
    )
    frame = spark.createDataFrame(events).repartition(3)
    deliveries = match_events(frame, owned).cache()
    expected = brute(((event["n"], event) for event in events), filters)
    assert found(deliveries) == expected
    assert sum(expected.values()) > 100
    assert {(row.subscription, row.owner) for row in deliveries.collect()} <= {(id, f"o{id}") for id, _ in filters}
    assert deliveries.columns == [*frame.columns, "subscription", "owner", "snapshot"]
    owned.write.parquet(str(tmp_path / "subscriptions.parquet"))
    register(spark)
    frame.createOrReplaceTempView("events")
    asked = spark.sql(f"SELECT * FROM fieldfare_match(TABLE(events), '{tmp_path}/subscriptions.parquet')")
    assert asked.columns == deliveries.columns
    assert found(asked) == expected
    deliveries.unpersist()


def test_nested_columns_maps_decimals_dates_and_lists_are_fields(spark: SparkSession) -> None:
    frame = spark.sql(
        """SELECT 1 n, named_struct('user', named_struct('id', 7, 'labels', map('zone', 'eu', 'a.b', 'x'))) deep,
                  map('price', 3) m, CAST(12.30 AS DECIMAL(10,2)) d, DATE'2026-01-02' day, array('x', 'y') tags,
                  TIMESTAMP_NTZ'2026-01-02 03:04:05' ntz, X'4142' raw, CAST(NULL AS INT) nothing, INTERVAL 3 DAYS i
           UNION ALL SELECT 2, named_struct('user', NULL), map(), NULL, NULL, array(), NULL, NULL, 5, NULL"""
    )
    wanted = {
        "nested": "deep.user.id = 7",
        "key": "deep.user.labels.zone = 'eu'",
        "dotted": "deep.user.labels.a.b = 'x'",
        "map": "m.price < 4",
        "decimal": "d = 12.3",
        "day": "day = TIMESTAMP '2026-01-02T00:00:00Z'",
        "ntz": "ntz > TIMESTAMP '2026-01-02T03:00:00Z'",
        "list": "ANY tags = 'y'",
        "missing": "NOT EXISTS deep.user.id",
        "no map": "NOT EXISTS m.price",
        "null": "nothing = 5",
        "exists": "EXISTS raw",
        "anywhere": "PATH('//labels', zone = 'eu')",
    }
    subscriptions = spark.createDataFrame(list(wanted.items()), "id string, filter string")
    one = ("nested", "key", "dotted", "map", "decimal", "day", "ntz", "list", "exists", "anywhere")
    expected = Counter([*((1, id) for id in one), *((2, id) for id in ("missing", "no map", "null"))])
    assert found(match_events(frame, subscriptions)) == expected
    few = subscriptions.where("id IN ('map', 'key', 'decimal')")  # pruned: only the columns that these look at
    assert found(match_events(frame, few)) == Counter({(1, "map"): 1, (1, "key"): 1, (1, "decimal"): 1})
    renamed = match_events(frame, few, columns={"d": "m.price", "m.price": F.lit(1), "unused": "n"})
    assert found(renamed) == Counter({(1, "map"): 1, (2, "map"): 1})
    assert found(match_events(frame, subscriptions, columns=["m"])) == Counter(
        {(1, "map"): 1, (1, "missing"): 1, (2, "missing"): 1, (2, "no map"): 1}
    )


def test_decimals_compare_as_exact_numbers(spark: SparkSession) -> None:
    texts = ["0.70", "0.71", "-1.40", "-1.41", "0.700000000000000001", "123456789012345678.9"]
    rows = ", ".join(
        f"({n}, TRY_CAST({text} AS DECIMAL(8, 2)), TRY_CAST({text} AS DECIMAL(38, 18)))" for n, text in enumerate(texts)
    )
    frame = spark.sql(f"SELECT * FROM VALUES {rows} AS t(n, short, long)")
    both = {"between": "{} BETWEEN -1.4 AND 0.7", "equal": "{} = 0.7", "more": "{} > 0.7", "in": "{} IN (-1.4, 0.71)"}
    wanted = [(f"{name} {column}", text.format(column)) for name, text in both.items() for column in ("short", "long")]
    sql = {id: frame.where(text).select("n").collect() for id, text in wanted}  # Spark's literals are decimals, too
    expected = Counter((row.n, id) for id, rows in sql.items() for row in rows)
    assert found(match_events(frame, spark.createDataFrame(wanted, "id string, filter string"))) == expected
    assert (0, "between short") in expected
    assert (4, "between long") not in expected


def test_cloudevents_and_plain_objects_in_json(spark: SparkSession) -> None:
    sale = {"specversion": "1.0", "id": "a", "source": "/till", "type": "sale", "data": {"sum": 5}}
    texts = [json.dumps(sale), '{"sum": 5, "type": "sale"}', None]
    frame = spark.createDataFrame([(n, text) for n, text in enumerate(texts)], "n int, value string")
    wanted = spark.createDataFrame(
        [(1, "data.sum < 10 AND type = 'sale'", None), (2, '{"sum": [5]}', "ruler"), (3, "type LIKE 's%'", "cesql")],
        "id int, filter string, dialect string",
    )
    assert found(match_events(frame, wanted, json="value")) == Counter({(0, 1): 1, (0, 3): 1, (1, 2): 1, (1, 3): 1})
    for wrong in ("{", " "):  # a blank text is no event, though a blank line among lines is skipped
        bad = spark.createDataFrame([(1, wrong)], "n int, value string")
        with pytest.raises(Exception, match=r"'value': row 1 of the batch is no event"):
            match_events(bad, wanted, json="value").collect()


def test_fields_that_are_in_the_rest_are_fields(spark: SparkSession) -> None:
    rows = [(1, (5, None), '{"b": "x"}'), (2, (5, None), None), (3, (None, ("y",)), '{"deep": {"more": 1}, "b": "z"}')]
    frame = spark.createDataFrame(rows, "n int, fields struct<a: int, deep: struct<c: string>>, rest string")
    texts = ["a = 5", "a = 5 AND b = 'x'", "NOT EXISTS b", "deep.more = 1 AND deep.c = 'y'", "b = 'z' OR a = 5"]
    wanted = spark.createDataFrame(list(enumerate(texts)), "id int, filter string")
    columns = {"a": "fields.a", "deep": "fields.deep"}
    matched = unfold(frame.withColumn(MATCHES, matches_of(frame, wanted, columns=columns, rest="rest")))
    events: list[tuple[int, dict[str, Any]]] = [
        (1, {"a": 5, "b": "x"}),
        (2, {"a": 5}),
        (3, {"deep": {"c": "y", "more": 1}, "b": "z"}),
    ]
    assert found(matched) == brute(events, enumerate(texts))


@pytest.mark.parametrize("mode", ["overlap", "cover"])
def test_intervals_overlap_or_are_covered(spark: SparkSession, mode: Any) -> None:
    dice = random.Random(7)
    filters = [(str(n), f"x BETWEEN {(low := dice.randrange(50))} AND {low + dice.randrange(30)}") for n in range(60)]
    events: list[tuple[int, dict[str, Any]]] = []
    rows = []
    for n in range(40):
        low = dice.randrange(50)
        closed = dice.choice(["[]", "[)", "(]", "()", None])
        high = low + 1 + dice.randrange(20) if dice.random() < 0.9 else None
        rows.append((n, (low, high, closed)))
        events.append((n, {"x": Interval(low, high, closed or "[]")}))
    frame = spark.createDataFrame(rows, "n int, x struct<low: int, high: int, closed: string>")
    subscriptions = spark.createDataFrame(filters, "id string, filter string")
    expected = brute(events, filters, "overlaps" if mode == "overlap" else "covers")
    assert found(match_events(frame, subscriptions, mode=mode)) == expected
    assert 0 < len(expected) < 60 * 40


def test_a_saved_index_is_a_table_of_subscriptions(spark: SparkSession, tmp_path: Path) -> None:
    filters = [("a", "x > 3"), ("b", "x < 5"), ("c", "lower(s) = 'y'")]
    Index(filters).save(tmp_path / "wanted.ff")
    events = [(n, {"x": n, "s": "Y" if n % 2 else "n"}) for n in range(10)]
    frame = spark.createDataFrame([(n, event["x"], event["s"]) for n, event in events], "n int, x int, s string")
    assert found(match_events(frame, tmp_path / "wanted.ff")) == brute(events, filters)


def test_an_event_that_all_want_is_one_long_list(spark: SparkSession, tmp_path: Path) -> None:
    count = 40_000
    catalogue.write_version(tmp_path / "all", (Subscription(n, _anything(), None) for n in range(count)))
    frame = spark.createDataFrame([(n, n % 2) for n in range(4)], "n int, x int")
    deliveries = match_events(frame, tmp_path / "all")
    assert deliveries.groupBy("n").agg(F.countDistinct("subscription").alias("c")).where(f"c = {count}").count() == 2


def _anything() -> Filter:
    return _ONE


_ONE = parse("x = 1")


def test_what_is_wrong_is_named(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.createDataFrame([(1, 2)], "n int, owner int")
    good = spark.createDataFrame([("a", "n = 1")], "id string, filter string")
    with pytest.raises(ValueError, match="the events have a column 'owner' already"):
        match_events(frame, good)
    events = frame.drop("owner")
    with pytest.raises(ValueError, match="there is no column 'price'; there are n"):
        match_events(events, good, columns=["price"])
    with pytest.raises(SubscriptionError, match=r"subscription 'b' \(row 2\): column 4: expected"):
        match_events(events, good.union(spark.createDataFrame([("b", "n = ")], "id string, filter string")))
    with pytest.raises(SubscriptionError, match="subscription 'a' is there twice, in rows 1 and 2"):
        match_events(events, good.union(good))
    with pytest.raises(SubscriptionError, match="there is no 'filter' among id"):
        match_events(events, good.select("id"))
    with pytest.raises(SubscriptionError, match=r"subscription 'a' \(row 1\): the dialect is none of native"):
        match_events(events, good.withColumn("dialect", F.lit("klingon")))
    with pytest.raises(ValueError, match="mode must be one of 'point'"):
        match_events(events, good, mode="all")  # type: ignore[arg-type]


def test_a_stream_takes_up_changes_between_micro_batches(spark: SparkSession, tmp_path: Path) -> None:
    """Random micro-batches, a new version now and then, restarts: every batch is matched with one version, exactly once."""
    dice = random.Random(3)
    folder, subscriptions, out = tmp_path / "in", tmp_path / "catalogue", tmp_path / "out"
    folder.mkdir()
    filters = {f"s{n}": f"x > {n}" for n in range(20)}
    held = {1: dict(filters)}
    publish_subscriptions(spark.createDataFrame(list(filters.items()), "id string, filter string"), subscriptions)
    expected: Pairs = Counter()
    number = 0
    for step in range(4):
        for _ in range(dice.randint(1, 3)):
            lines = []
            for _ in range(dice.randint(0, 20)):
                lines.append(json.dumps({"n": number, "x": dice.randrange(25)}))
                expected += brute([(number, json.loads(lines[-1]))], filters.items())
                number += 1
            (folder / f"{number}-{dice.random()}.json").write_text("\n".join(lines))
        events = spark.readStream.schema("n long, x int").option("maxFilesPerTrigger", 2).json(str(folder))
        deliveries = match_events(events, subscriptions)
        query = (
            deliveries.writeStream.format("parquet")
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start(str(out))
        )
        query.awaitTermination()
        gone, new = dice.choice(sorted(filters)), f"t{step}"
        version = catalogue.amend(
            subscriptions, [Subscription(new, f"x < {step}"), Subscription("s3", f"x = {step}")], [gone], keep=3
        )
        filters = {**{id: text for id, text in filters.items() if id != gone}, new: f"x < {step}", "s3": f"x = {step}"}
        held[version] = dict(filters)
    rows = spark.read.parquet(str(out)).collect()
    assert Counter((row.n, row.subscription) for row in rows) == expected
    assert {row.snapshot for row in rows} == set(range(1, 5))
    assert all(row.subscription in held[row.snapshot] for row in rows)


def test_a_repeated_micro_batch_uses_the_version_it_had(tmp_path: Path) -> None:
    catalogue.write_version(tmp_path, [Subscription("a", "x = 1")])
    assert catalogue.pinned(tmp_path, 17) == 1
    for n in range(9):
        catalogue.amend(tmp_path, [Subscription("b", f"x = {n}")], keep=2)
    assert catalogue.pinned(tmp_path, 17) == 1
    assert catalogue.pinned(tmp_path, 18) == 10
    assert catalogue.opened(str(tmp_path), 1).about.count == 1
    assert catalogue.versions(tmp_path) == [1, 9, 10]
