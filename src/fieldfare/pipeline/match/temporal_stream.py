"""Streams of profiles and of queries: each row is matched with the rows of the other side that still hold.

    follow_profiles(profiles, queries, state="state", out="pairs").trigger(processingTime="1 second").start()

A row holds from the start of its period, or from its arrival if that is later, to the end of its period. So a stream
finds the pairs that `match_profiles` would find in the whole stream, with periods cut to the known part; a pair is
written once, when the later row arrives. A row with the id of an earlier row replaces the earlier row and is matched
anew; a row whose period is over withdraws it. In a micro-batch only the last row of an id counts.

Spark's own state is kept by key (`applyInPandasWithState`; `transformWithState` needs protobuf, which PySpark does not
bring), and here is no key: any profile may meet any query, so that a single process would hold everything. The state is
therefore an index of queries that all workers map, and a table of profiles that all workers scan:

    state/
      batches/0000000012.json    the state after a micro-batch: the time reached, and the names of parts
      profiles/12                the profiles of a micro-batch, as Parquet
      queries/12                 the queries of a micro-batch
      index/                     a catalogue of the queries, for new profiles
      asked/                     a catalogue of the newest queries, for the profiles that hold
      checkpoint/                Spark's: which input belongs to which micro-batch

Each pair is written exactly once. The record of a micro-batch appears last, by a rename; a micro-batch with a record is
not repeated. Without a record, a repeated micro-batch starts from the same parts, changes the index to its present
content, and writes the same pairs over its own. A row that is over matches nothing any more, because time is in the
filters, so that it need not be removed at once: it is removed when parts are merged.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial, reduce
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec.structs import replace
from pyspark.sql import Column, DataFrame, Row, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.streaming.readwriter import DataStreamWriter

from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.operator import match_events
from fieldfare.pipeline.match.subscriptions import subscriptions_in
from fieldfare.pipeline.match.temporal import (
    ALWAYS,
    FROM,
    HOLDS,
    UNTIL,
    Fields,
    Mode,
    bounded,
    checked,
    with_ends,
    with_period,
)

Side = Literal["profiles", "queries"]
_SIDES: Final[tuple[Side, ...]] = ("profiles", "queries")
_TIME: Final = "$time"
_SINCE: Final = "$since"
_OWN: Final = (FROM, UNTIL, _TIME, _SINCE)
_PARTS: Final = 16
"""parts of a side at most; more are merged"""
_MICROSECOND: Final = timedelta(microseconds=1)


class _Record(msgspec.Struct, frozen=True):
    """The state after a micro-batch."""

    batch: int = -1
    reached: int = ALWAYS[0]
    """the time reached: periods that end before are over"""
    parts: Mapping[Side, list[str]] = msgspec.field(default_factory=lambda: {side: [] for side in _SIDES})
    """the parts with the rows of each side"""


@dataclass(frozen=True)
class _Plan:
    state: Path
    out: str
    mode: Mode
    fields: Fields
    delay: int


def follow_profiles(
    profiles: DataFrame,
    queries: DataFrame,
    *,
    state: str | Path,
    out: str | Path,
    mode: Mode = "overlap",
    columns: Fields = None,
    time: str | None = None,
    delay: timedelta = timedelta(0),
) -> DataStreamWriter:
    """Match a stream of profiles with a stream of queries, and write each pair once; the caller starts the stream.

    Args:
        profiles: a stream of rows as for `match_profiles`, with an `id`.
        queries: a stream of rows as for `match_profiles`.
        state: a folder that all machines see, for this stream alone; after a restart the stream goes on from there.
        out: the folder for the pairs, as Parquet in a folder for each micro-batch: the columns of the profiles, and
            `subscription` (the id of the query) and `owner`.
        mode: "overlap" or "cover".
        columns: the columns of profiles that are fields, as for `match_events`.
        time: the column of both streams with the time of announcement; without it, a row is announced when read.
        delay: the time by which rows may be out of order; a later row is announced when read.
    """
    plan = _Plan(Path(state).absolute(), str(out), checked(mode), with_ends(profiles, columns), delay // _MICROSECOND)
    sides = _packed(profiles, "profiles", time), _packed(queries, "queries", time)
    both = sides[0].unionByName(sides[1], allowMissingColumns=True)
    writer = both.writeStream.foreachBatch(partial(_step, plan))
    return writer.option("checkpointLocation", str(plan.state / "checkpoint"))


def _packed(rows: DataFrame, side: Side, time: str | None) -> DataFrame:
    moment = F.current_timestamp() if time is None else F.col(time).cast("timestamp")  # Spark logs what its clock said
    return with_period(rows, side).withColumn(_TIME, F.unix_micros(moment)).select(F.struct("*").alias(side))


def _step(plan: _Plan, batch: DataFrame, number: int) -> None:
    """A micro-batch: put into parts and into the index, told as pairs, and recorded."""
    spark = batch.sparkSession
    before = _recorded(plan.state)
    if number <= before.batch:
        return
    before = _merged(spark, plan.state, before, number)
    batch = batch.persist()
    seen = _counted(batch, number)
    new = {
        side: _put(_arrived(batch, side, before.reached), plan.state / side, number) for side in _SIDES if seen[side]
    }
    batch.unpersist()
    pairs = [*_pairs(spark, plan, before, new.get("profiles"), _asked(plan.state, new.get("queries")))]
    if pairs:
        told = reduce(DataFrame.unionByName, pairs).drop(*_OWN, "snapshot")
        told.write.mode("overwrite").parquet(f"{plan.out}/batch={number}")
    reached = before.reached if seen.latest is None else max(before.reached, seen.latest - plan.delay)
    parts = {side: [*before.parts[side], *([str(number)] if side in new else [])] for side in _SIDES}
    _record(plan.state, _Record(number, reached, parts))


def _counted(batch: DataFrame, number: int) -> Row:
    """How many there are of each side, and the latest time of any."""
    seen = batch.agg(
        *(F.count(side).alias(side) for side in _SIDES),
        F.count("profiles.id").alias("named"),
        F.max(F.greatest(*(F.col(f"{side}.{_TIME}") for side in _SIDES))).alias("latest"),
    ).collect()[0]
    if seen.named < seen.profiles:
        raise ValueError(f"micro-batch {number}: {seen.profiles - seen.named} of {seen.profiles} profiles have no id")
    return seen


def _arrived(batch: DataFrame, side: Side, reached: int) -> DataFrame:
    """Return the last row of each id on a side of a micro-batch, which does not hold before its arrival."""
    rows = batch.where(F.col(side).isNotNull()).select(f"{side}.*")
    timed = rows.withColumn(FROM, F.greatest(FROM, _TIME, F.lit(reached)))
    last = _last(timed, F.struct(_TIME, F.to_json(F.struct("*"))))  # of those of one time, always the same
    return last if side == "profiles" else bounded(last)


def _put(rows: DataFrame, folder: Path, number: int) -> DataFrame:
    """Rows as the part of a micro-batch."""
    path = str(folder / str(number))
    part = rows.withColumn(_SINCE, F.lit(number))
    part.write.mode("overwrite").parquet(path)
    return part.sparkSession.read.schema(part.schema).parquet(path)


def _asked(state: Path, queries: DataFrame | None) -> bool:
    """Put new queries into the index, and into an index of their own; False if no new query holds."""
    if queries is None:
        return False
    asked = [*subscriptions_in(queries.where(HOLDS))]
    if catalogue.is_catalogue(state / "index"):
        gone = queries.where(f"NOT {HOLDS}").select("id").collect()
        catalogue.amend(state / "index", asked, [row.id for row in gone], keep=2)
    elif asked:
        catalogue.write_version(state / "index", asked, keep=2)
    if asked:
        catalogue.write_version(state / "asked", asked, keep=2)
    return bool(asked)


def _pairs(
    spark: SparkSession, plan: _Plan, before: _Record, profiles: DataFrame | None, asked: bool
) -> Iterator[DataFrame]:
    """Return new profiles with all queries, and older profiles, unless replaced, with new queries."""
    if profiles is not None and catalogue.is_catalogue(plan.state / "index"):
        yield match_events(profiles.where(HOLDS), plan.state / "index", columns=plan.fields, mode=plan.mode)
    if asked and before.parts["profiles"]:
        held = _held(spark, plan.state, "profiles", before)
        if profiles is not None:
            held = held.join(profiles.select("id"), "id", "left_anti")
        yield match_events(held, plan.state / "asked", columns=plan.fields, mode=plan.mode)


def _held(spark: SparkSession, state: Path, side: Side, record: _Record) -> DataFrame:
    """Return the rows of a side that still hold."""
    rows = spark.read.option("mergeSchema", "true").parquet(*(str(state / side / part) for part in record.parts[side]))
    return _last(rows, F.col(_SINCE)).where(f"{HOLDS} AND `{UNTIL}` > {record.reached}")


def _last(rows: DataFrame, by: Column) -> DataFrame:
    """The last row of each id."""
    return rows.groupBy("id").agg(F.max_by(F.struct(*rows.columns), by).alias("row")).select("row.*")


def _merged(spark: SparkSession, state: Path, before: _Record, number: int) -> _Record:
    """Merge the parts of a side into few, without rows that are over; rebuild the index if half of it is over."""
    for side in _SIDES:
        if len(before.parts[side]) > _PARTS:
            name = f"{number}-merged"
            path = str(state / side / name)
            _held(spark, state, side, before).write.mode("overwrite").parquet(path)
            before = replace(before, parts={**before.parts, side: [name]})
            if side == "queries":
                held = spark.read.parquet(path)
                if 2 * held.count() < _rows_in(state / "index"):
                    catalogue.write_version(state / "index", subscriptions_in(held), keep=2)
    return before


def _rows_in(index: Path) -> int:
    """Return the number of rows in a catalogue, with the removed rows."""
    return len(catalogue.opened(str(index), catalogue.current(index)).ids)


def _recorded(state: Path) -> _Record:
    """Return the last record, or an empty record."""
    found = sorted((state / "batches").glob("[0-9]*.json"))
    return msgspec.json.decode(found[-1].read_bytes(), type=_Record) if found else _Record()


def _record(state: Path, record: _Record) -> None:
    """Write the record of a micro-batch, which makes the batch count, and delete parts without use."""
    folder = state / "batches"
    folder.mkdir(exist_ok=True)
    draft = folder / ".draft"
    draft.write_bytes(msgspec.json.encode(record))
    draft.rename(folder / f"{record.batch:010d}.json")
    for older in sorted(folder.glob("[0-9]*.json"))[:-1]:
        older.unlink()
    for side, parts in record.parts.items():
        for part in (state / side).glob("*"):
            if part.name not in parts:
                shutil.rmtree(part)
