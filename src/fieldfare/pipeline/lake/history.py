"""The event table as history: replay past events, and count the events of a new subscription in the past.

    found = replay(events, "symbol = 'IBM' AND price > 100", since, until)
    replay_to_file(found, "ibm.jsonl")
    replay_to_node(found, "ws://127.0.0.1:7400")
    retroactive(events, subscriptions, since, until)    # the number of past events of each subscription

A period begins with `since` and ends before `until`; an event without a time is in none. Where the table has intervals,
an event matches if the intervals overlap the filter's values, as in a node, or with `mode="cover"` if they lie inside.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ArrayType, DataType, StructType

from fieldfare.events import Event, cloudevents, json
from fieldfare.filters import Filter, parse
from fieldfare.pipeline.lake.pushdown import moment, necessary
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.fields import as_batch
from fieldfare.pipeline.match.operator import ADDED, matches_of, unfold
from fieldfare.pipeline.match.subscriptions import read_subscriptions
from fieldfare.pipeline.match.ways import MATCHES
from fieldfare.pipeline.table.schema import TableError, is_interval
from fieldfare.pipeline.table.undeclared_fields import together

Mode: TypeAlias = Literal["overlap", "cover"]
ORDER: Final = ("time", "source", "sequence", "id")
"""the columns that give the order of a replay"""
_udf: Final[Any] = arrow_udf  # its stubs know only the form without type hints, of which it warns
_LINES: Final = (".jsonl", ".ndjson", ".json")


def replay(
    events: DataFrame,
    filter: str | Filter,
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    mode: Mode = "overlap",
) -> DataFrame:
    """Return the events of a period that match a filter, in the order of time."""
    wanted = parse(filter) if isinstance(filter, str) else filter
    if wanted.is_empty:
        return events.limit(0)
    possible = necessary(wanted, field_types(events), rest="rest" if "rest" in events.columns else None)
    near = within(events, since, until).where(possible)
    one = events.sparkSession.createDataFrame([(0, str(wanted))], "id long, filter string")
    return match_table(near, one, mode=mode).drop(*ADDED).orderBy(*ORDER)


def received(
    events: DataFrame,
    subscriptions: DataFrame | str | Path,
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    mode: Mode = "overlap",
) -> DataFrame:
    """Return the events that each subscription would have received in a period, a row for each delivery."""
    return match_table(within(events, since, until), subscriptions, mode=mode)


def retroactive(
    events: DataFrame,
    subscriptions: DataFrame | str | Path,
    since: datetime | None = None,
    until: datetime | None = None,
    *,
    mode: Mode = "overlap",
) -> DataFrame:
    """Return how many events each subscription would have received in a period.

    Returns:
        `subscription`, `owner`, the number of `events`, and the times of the `first` and the `last` event; also for a
        subscription without events.
    """
    found = received(events, subscriptions, since, until, mode=mode)
    counted = found.groupBy("subscription").agg(
        F.count("*").alias("events"), F.min("time").alias("first"), F.max("time").alias("last")
    )
    everyone = listed(events.sparkSession, subscriptions)
    return everyone.join(counted, "subscription", "left").fillna(0, ["events"])


def within(events: DataFrame, since: datetime | None, until: datetime | None) -> DataFrame:
    """Return the events of a period."""
    found = events if since is None else events.where(F.col("time") >= moment(since))
    return found if until is None else found.where(F.col("time") < moment(until))


def as_json(events: DataFrame) -> DataFrame:
    """Add the column `event` with each event as a text: in Fieldfare's JSON, or as a CloudEvent."""
    return events.withColumn("event", _text(events))


def replay_to_file(found: DataFrame, path: str | Path) -> None:
    """Write events in their order to a file of JSON lines, or, without the ending .jsonl, to a folder of Parquet.

    The lines pass through the driver, part by part. The file appears when all lines are written.
    """
    target = Path(path)
    if target.suffix.lower() not in _LINES:
        found.write.parquet(str(path))
        return
    if target.exists():
        raise FileExistsError(f"{path} exists already: remove it, or write to another file")
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        with draft.open("w", encoding="utf-8") as file:
            for row in as_json(found).select("event").toLocalIterator(prefetchPartitions=True):
                file.write(row.event + "\n")
        draft.rename(target)
    finally:
        draft.unlink(missing_ok=True)


def replay_to_node(found: DataFrame, url: str, *, token: str = "", session: str = "") -> None:
    """Publish events to a running node, in the order of time.

    With a `session`, a second call under the same name after a failure publishes only the missing events.
    """
    from fieldfare.pipeline.sources import register  # noqa: PLC0415 - these need more than Spark does

    register(found.sparkSession)
    writer = as_json(found).select("event", *ORDER).write.format("fieldfare_node").mode("append")
    writer.options(url=url, token=token, session=session, order=",".join(ORDER)).save()


# The event table for the engine


def match_table(events: DataFrame, subscriptions: DataFrame | str | Path, *, mode: Mode = "overlap") -> DataFrame:
    """Match an event table, whose fields are in `fields` and `rest`; see `match_events`."""
    return unfold(events.withColumn(MATCHES, table_matches(events, subscriptions, mode=mode)))


def table_matches(events: DataFrame, subscriptions: DataFrame | str | Path, *, mode: Mode = "overlap") -> Column:
    """Return the matches of an event table as a column; see `matches_of`."""
    rest = "rest" if "rest" in events.columns else None
    return matches_of(events, subscriptions, columns=field_columns(events), rest=rest, mode=mode)


def field_types(events: DataFrame) -> StructType:
    """Return the types of the fields of an event table."""
    kind = events.schema["fields"].dataType if "fields" in events.columns else None
    if not isinstance(kind, StructType):
        raise TableError(f"this is no event table, for it has no struct 'fields' among {', '.join(events.columns)}")
    return kind


def field_columns(events: DataFrame) -> dict[str, Column]:
    """Return the fields of an event table with their columns; no filter looks at the validity period."""
    return {name: F.col("fields").getField(name) for name in field_types(events).names if name != json.VALID}


def has_intervals(kind: DataType) -> bool:
    """Tell whether a type contains an interval."""
    if isinstance(kind, ArrayType):
        return has_intervals(kind.elementType)
    return is_interval(kind) or (isinstance(kind, StructType) and any(has_intervals(field.dataType) for field in kind))


# From rows back to events


def events_of(fields: Any, rest: Iterable[str | None], *, intervals: bool = True) -> Iterator[Event]:
    """Yield the events in an Arrow array of `fields`, each with its `rest`."""
    return together(as_batch(fields, None, intervals=intervals), rest)


def _text(events: DataFrame) -> Column:
    rest = F.col("rest") if "rest" in events.columns else F.lit(None).cast("string")
    column: Column = _udf(_texts, "string")(F.col("fields"), rest)
    return column


def _texts(batches: Iterator[tuple[pa.Array, pa.Array]]) -> Iterator[pa.Array]:
    for fields, rest in batches:
        yield pa.array([_encoded(event) for event in events_of(fields, rest.to_pylist())], pa.string())


def _encoded(event: Event) -> str:
    return (cloudevents.encode(event) if "specversion" in event.tree else json.encode(event)).decode()


def listed(spark: SparkSession, subscriptions: DataFrame | str | Path) -> DataFrame:
    """Return all subscriptions as rows of `subscription` and `owner`."""
    if not isinstance(subscriptions, DataFrame) and catalogue.is_catalogue(subscriptions):
        now = catalogue.opened(str(subscriptions), catalogue.current(subscriptions))
        rows = pa.table({"subscription": now.ids, "owner": now.owners})
        return spark.createDataFrame(rows).where("subscription IS NOT NULL")
    given = subscriptions if isinstance(subscriptions, DataFrame) else read_subscriptions(spark, subscriptions)
    whole = given.schema["id"].dataType.typeName() in ("byte", "short", "integer", "long")
    owner = F.col("owner").cast("string") if "owner" in given.columns else F.lit(None).cast("string")
    return given.select(F.col("id").cast("bigint" if whole else "string").alias("subscription"), owner.alias("owner"))
