"""`match_events`: every event of a DataFrame with every subscription that matches, in batch and in streams.

    from fieldfare.pipeline import match_events
    deliveries = match_events(events, subscriptions)
    listed = match_events(events, subscriptions, form="lists", keep=["id"])

The subscriptions become a version of a catalogue, which each worker maps. What crosses between Spark and the workers is
the choice of `ways`: only the columns in filters, those of the result, or nothing but the names of files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple, cast

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import ArrayType, DataType, LongType, StringType, StructField, StructType

from fieldfare.pipeline.match import catalogue, forms
from fieldfare.pipeline.match.catalogue import Opened
from fieldfare.pipeline.match.forms import Form
from fieldfare.pipeline.match.pairs import READINGS, Mode, matched
from fieldfare.pipeline.match.subscriptions import placed
from fieldfare.pipeline.match.ways import MATCHES, Batches, MatchPlan, Source, Way, quoted, source

ADDED: Final = forms.ADDED
Columns = Sequence[str] | Mapping[str, str | Column] | None
_udf: Final[Any] = arrow_udf  # its stubs know only the form without type hints, of which it warns
_JOINED: Final = 2_000_000
"""subscriptions at most whose ids Spark joins by number"""
_ENDS: Final = {"low", "high"}
_NEW: Final[Mapping[Form, tuple[str, ...]]] = {"rows": forms.ADDED, "lists": forms.LISTED, "counts": ()}


class Question(NamedTuple):
    """The arguments of `match_events`, checked, with the subscriptions as of now."""

    events: DataFrame
    plan: MatchPlan
    opened: Opened
    columns: Columns
    form: Form
    keep: list[str] | None

    def source(self, *, descriptors: bool = True) -> Source:
        """Choose the way of the events to workers that make the result."""
        looked_at = None if self.plan.version is None else self.opened.about.fields
        given = {} if self.plan.json is not None else _looked_at(_named(self.events, self.columns), looked_at)
        kept = [] if self.form == "counts" else self.events.columns if self.keep is None else self.keep
        return source(self.events, self.plan, given, kept, descriptors=descriptors)


def match_events(
    events: DataFrame,
    subscriptions: DataFrame | str | Path,
    *,
    columns: Columns = None,
    json: str | None = None,
    mode: Mode = "point",
    form: Form = "rows",
    keep: Sequence[str] | None = None,
) -> DataFrame:
    """Return the events with the subscriptions that match: lists, rows or counts.

    Args:
        events: a DataFrame, batch or streaming; each row is an event, and its columns are the fields.
        subscriptions: a DataFrame with the columns `id` and `filter`, and perhaps `owner` and `dialect`; the path of a
            file or table of such rows, or of a snapshot that an `Index` has saved (.ff); or the path of a catalogue
            (see `publish_subscriptions`). A stream over a catalogue uses the current version in each micro-batch.
        columns: the columns that are fields, if not all are; or a mapping of fields to columns, such as
            `{"price": "quote.last", "region": F.upper("country")}`.
        json: the column that holds events as JSON texts, plain objects or CloudEvents, instead of fields.
        mode: "point" if fields are values. Else a struct of just low, high and perhaps closed is an interval, and an
            event matches if the interval overlaps the filter's values ("overlap") or is covered by them ("cover").
        form: "rows", "lists" or "counts", see below; counts of a stream are those of each micro-batch.
        keep: the columns of the events that the result has, by default all. With fewer columns than all the workers
            make the result, and read files of events themselves where they can; see `explain_match`.

    Returns:
        rows: the columns of the events, and `subscription`, `owner` and `snapshot`, the version of the subscriptions;
        a row for each match.
        lists: the columns of the events, `subscriptions`, a list of ids, perhaps empty, and `snapshot`; a row for each
        event.
        counts: `subscription`, `owner`, the number of its `events`, and `snapshot`; a row for each subscription that
        matches an event.
    """
    asked = question(events, subscriptions, columns=columns, json=json, mode=mode, form=form, keep=keep)
    if form != "counts" and keep is None:
        return _beside(asked)
    return made_by_workers(asked)


def explain_match(
    events: DataFrame,
    subscriptions: DataFrame | str | Path,
    *,
    columns: Columns = None,
    json: str | None = None,
    mode: Mode = "point",
    form: Form = "rows",
    keep: Sequence[str] | None = None,
) -> str:
    """Return which way `match_events` takes with these arguments, and why; see `ways`."""
    asked = question(events, subscriptions, columns=columns, json=json, mode=mode, form=form, keep=keep)
    if form != "counts" and keep is None:
        return str(Way("rows", "all columns of the events are in the result: `keep` names those that are needed"))
    return str(asked.source().way)


def question(
    events: DataFrame,
    subscriptions: DataFrame | str | Path,
    *,
    columns: Columns = None,
    json: str | None = None,
    mode: Mode = "point",
    form: Form = "rows",
    keep: Sequence[str] | None = None,
) -> Question:
    """Check the arguments of `match_events`, and find the subscriptions."""
    if form not in _NEW:
        raise ValueError(f"form must be one of {', '.join(map(repr, _NEW))}, not {form!r}")
    if form == "counts" and keep is not None:
        raise ValueError("counts have no columns of events: leave `keep` out")
    for column in keep or ():
        _check_column(events, column)
    kept = events.columns if keep is None else [*keep]
    _check_new(kept, _NEW[form])
    plan, opened = _planned(events, subscriptions, json, mode)
    if mode != "point" and json is None:
        columns = _closed(events, _named(events, columns))
    return Question(events, plan, opened, columns, form, None if keep is None else kept)


def matches_of(
    events: DataFrame,
    subscriptions: DataFrame | str | Path,
    *,
    columns: Columns = None,
    rest: str | None = None,
    json: str | None = None,
    mode: Mode = "point",
) -> Column:
    """Return the matches of each event as a column: a struct of `snapshot` and the list `matches`. See `match_events`.

    `rest` is a column of undeclared fields, as JSON, in an event table.
    """
    _check_new(events.columns, ADDED)
    plan, opened = _planned(events, subscriptions, json, mode)
    return _column(events, plan, opened, columns, rest)


def numbered(
    events: DataFrame, subscriptions: str | Path, *, columns: Columns, rest: str | None = None, mode: Mode = "point"
) -> tuple[DataFrame, MatchPlan, DataType]:
    """Add the column `MATCHES` with numbers of subscriptions; return also the plan and the type of ids."""
    _check_new(events.columns, ADDED)
    plan, opened = _planned(events, subscriptions, None, mode)
    found = _column(events, plan, opened, columns, rest, returned="numbers")
    return events.withColumn(MATCHES, found), plan, id_type(opened)


def _check_new(kept: Sequence[str], new: Sequence[str]) -> None:
    taken = [name for name in kept if name.lower() in {*new, MATCHES}]  # Spark does not mind the case
    if taken:
        raise ValueError(f"the events have a column {taken[0]!r} already, which match() adds: rename it before")


def _planned(
    events: DataFrame, subscriptions: DataFrame | str | Path, json: str | None, mode: Mode
) -> tuple[MatchPlan, Opened]:
    """Return the plan for workers, and the subscriptions as of now."""
    if mode not in READINGS:
        raise ValueError(f"mode must be one of {', '.join(map(repr, READINGS))}, not {mode!r}")
    place = placed(events.sparkSession, subscriptions)
    live = events.isStreaming and not isinstance(subscriptions, DataFrame) and catalogue.is_catalogue(subscriptions)
    opened = catalogue.opened(place.path, catalogue.current(place.path))
    return MatchPlan(place, None if live else opened.about.version, mode, json), opened


# Workers make the result


def made_by_workers(asked: Question, *, descriptors: bool = True) -> DataFrame:
    """Return the result as workers make it; with `descriptors` False, Spark reads the events in any case."""
    matched = Matched(asked.source(descriptors=descriptors), asked.plan, id_type(asked.opened))
    return {"rows": matched.rows, "lists": matched.lists, "counts": matched.counts}[asked.form]()


@dataclass(frozen=True)
class Matched:
    """Events and their matches, of which workers make rows, lists, counts or files."""

    source: Source
    plan: MatchPlan
    id: DataType
    """the type of the ids of subscriptions"""

    def rows(self) -> DataFrame:
        """Return a row for each match."""
        return self.source.frame.mapInArrow(_rows(self.source), result_columns(self.source.kept, self.id, "rows"))

    def lists(self) -> DataFrame:
        """Return a row for each event."""
        return self.source.frame.mapInArrow(_lists(self.source), result_columns(self.source.kept, self.id, "lists"))

    def counts(self) -> DataFrame:
        """Return a row for each subscription that matches an event, with the number of events."""
        subscription, owner, version = result_columns(StructType(), self.id, "rows")
        counted = StructType([subscription, owner, StructField("events", LongType()), version])
        blocks = self.source.frame.mapInArrow(_blocks(self.source), "snapshot bigint, block int, counts binary")
        return blocks.repartition("snapshot", "block").mapInArrow(_sums(self.plan), counted)


def result_columns(kept: StructType, id: DataType, form: Form) -> StructType:
    """Return the columns of a result with these columns of events."""
    subscription, owner, version = forms.ADDED
    last = StructField(version, LongType())
    if form == "lists":
        return StructType([*kept, StructField(forms.LISTED[0], ArrayType(id)), last])
    return StructType([*kept, StructField(subscription, id), StructField(owner, StringType()), last])


def _rows(source: Source) -> Callable[[Batches], Batches]:
    read = source.read

    def run(batches: Batches) -> Batches:
        for one in read(batches):
            yield from forms.rows(one)

    return run


def _lists(source: Source) -> Callable[[Batches], Batches]:
    read = source.read
    return lambda batches: map(forms.lists, read(batches))


def _blocks(source: Source) -> Callable[[Batches], Batches]:
    read = source.read
    return lambda batches: forms.counts(read(batches))


def _sums(plan: MatchPlan) -> Callable[[Batches], Batches]:
    """Return the function that adds the counts of all tasks; the version of a count is on disk as long as its batch."""

    def run(batches: Batches) -> Batches:
        for (version, block), total in forms.summed(batches).items():
            yield forms.named_counts(plan.of(version), block, total)

    return run


def id_type(opened: Opened) -> DataType:
    """Return the type of the ids of subscriptions."""
    return LongType() if pa.types.is_int64(opened.ids.type) else StringType()


# Lists of matches beside Spark's rows


def _beside(asked: Question) -> DataFrame:
    """Return the result with the events as Spark has them, and only lists of matches from workers."""
    events, plan, opened = asked.events, asked.plan, asked.opened
    if asked.form == "lists":
        found = _column(events, plan, opened, asked.columns, returned="ids")
        listed = events.withColumn(MATCHES, found)
        kept = [quoted(name) for name in events.columns]
        return listed.select(*kept, F.col(f"`{MATCHES}`.matches").alias(forms.LISTED[0]), f"`{MATCHES}`.snapshot")
    if plan.version is None or opened.about.count > _JOINED:
        return unfold(events.withColumn(MATCHES, _column(events, plan, opened, asked.columns)))
    return _joined(events.withColumn(MATCHES, _column(events, plan, opened, asked.columns, returned="numbers")), opened)


def _column(
    events: DataFrame,
    plan: MatchPlan,
    opened: Opened,
    columns: Columns,
    rest: str | None = None,
    *,
    returned: forms.Listed = "named",
) -> Column:
    looked_at = None if plan.version is None else opened.about.fields
    given = F.col(plan.json) if plan.json is not None else _fields(events, columns, looked_at)
    id = id_type(opened).simpleString()
    match = {"named": f"struct<subscription: {id}, owner: string>", "ids": id, "numbers": "int"}[returned]
    more = F.lit(None).cast("string") if rest is None else F.col(rest)
    made = _udf(_matching(plan, returned), f"struct<snapshot: bigint, matches: array<{match}>>")
    found = made.asNondeterministic()  # or Spark may run it once to filter, once to select
    return cast(Column, found(given, more, F.unix_micros(F.current_timestamp())))


def _joined(events: DataFrame, opened: Opened) -> DataFrame:
    """Return a row for each match, from events with the numbers of their subscriptions; Spark joins ids and owners."""
    kept = [quoted(name) for name in events.columns if name != MATCHES]
    numbered = events.select(*kept, F.explode(f"`{MATCHES}`.matches").alias(MATCHES))
    numbers = pa.array(np.arange(len(opened.ids)), pa.int32())
    known = pa.table({MATCHES: numbers, "subscription": opened.ids, "owner": opened.owners})
    table = F.broadcast(events.sparkSession.createDataFrame(known))
    version = F.lit(opened.about.version).cast("bigint").alias("snapshot")
    return numbered.join(table, MATCHES).select(*kept, "subscription", "owner", version)


def unfold(events: DataFrame) -> DataFrame:
    """A row for each match, from events with the column `MATCHES`."""
    kept = [quoted(name) for name in events.columns if name != MATCHES]
    return events.select(*kept, F.inline(f"`{MATCHES}`.matches"), f"`{MATCHES}`.snapshot")


def _matching(plan: MatchPlan, returned: forms.Listed) -> Callable[..., Any]:
    """Return the function that workers run: batches of fields to batches of matches."""

    def run(batches: Iterator[tuple[pa.Array, pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        for given, more, moments in batches:
            if len(given):
                opened = plan.opened(moments[0].as_py())
                yield from matches(opened, given, more, mode=plan.mode, json=plan.json, returned=returned)

    return run


def matches(
    opened: Opened,
    given: Any,
    more: Any = None,
    *,
    mode: Mode = "point",
    json: str | None = None,
    returned: forms.Listed = "named",
) -> Iterator[pa.Array]:
    """Yield the matches of an array of structs or texts, beside the version of the subscriptions."""
    for pairs in matched(opened, given, more, mode=mode, json=json):
        yield forms.column(opened, pairs, returned)


# The fields of events


def _fields(events: DataFrame, columns: Columns, looked_at: list[str] | None) -> Column:
    """Return the fields of events as a struct of the columns in filters."""
    named = _looked_at(_named(events, columns), looked_at)
    fields = [(F.col(quoted(one)) if isinstance(one, str) else one).alias(name) for name, one in named.items()]
    return F.struct(*fields) if fields else F.struct(F.lit(None).alias("nothing"))


def _looked_at(named: Mapping[str, str | Column], looked_at: list[str] | None) -> dict[str, str | Column]:
    """Return the fields that filters look at."""
    return {
        name: column
        for name, column in named.items()
        if looked_at is None or any(f"{path}.".startswith(f"{name}.") for path in looked_at)
    }


def _named(events: DataFrame, columns: Columns) -> dict[str, str | Column]:
    """Return the fields of events by name, each with its column: a name, or an expression."""
    if isinstance(columns, Mapping):
        known = {name for name in events.columns if "." not in name and "`" not in name}
        return {
            name: column if not isinstance(column, str) or column in known else F.col(column)
            for name, column in columns.items()
        }
    for column in columns or ():
        _check_column(events, column)
    return {name: name for name in (events.columns if columns is None else columns)}


def _check_column(events: DataFrame, column: str) -> None:
    if column not in events.columns:
        raise ValueError(f"there is no column {column!r}; there are {', '.join(events.columns)}")


def _closed(events: DataFrame, named: Mapping[str, str | Column]) -> dict[str, str | Column]:
    """Return a struct with `closed` added where an interval lacks it: both ends belong to the interval then."""
    given = {name: F.col(quoted(one)) if isinstance(one, str) else one for name, one in named.items()}
    kinds = events.select(*(column.alias(name) for name, column in given.items())).schema
    ends = [kind.name for kind in kinds if isinstance(kind.dataType, StructType) and set(kind.dataType.names) == _ENDS]
    made = {
        name: F.when(
            given[name].isNotNull(), F.struct(given[name]["low"], given[name]["high"], F.lit("[]").alias("closed"))
        )
        for name in ends
    }
    return {**named, **made}
