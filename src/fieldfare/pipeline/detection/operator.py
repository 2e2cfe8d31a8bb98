"""`detect`: the composite events of many patterns over a history, or in a stream.

    from fieldfare.pipeline import detect
    found = detect(events, {"fraud": "small: [amount < 10] large: [amount > 500] ... for each card"})

Over a history, events without a matching atom are left out columnwise, and the others go to tasks by key (`touching`).
A task sorts the events of each key, drops the segments in which no detection is possible (`segments`), and runs the
automata of a node over the others (`running`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

import pyarrow as pa
import pyarrow.types as pt
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_type

from fieldfare.patterns import parse_pattern
from fieldfare.patterns.bounds import Bounds, Unbounded, check
from fieldfare.patterns.definition import Pattern
from fieldfare.patterns.stamps import microseconds
from fieldfare.pipeline.detection import composites, touching
from fieldfare.pipeline.detection.layout import DetectError, Layout, layout
from fieldfare.pipeline.detection.plan import DetectPlan, Prepared
from fieldfare.pipeline.detection.running import detections
from fieldfare.pipeline.detection.segments import FIELD, GROUP, HIGH, KEPT, LOW, TIE, arranged, forever, segments
from fieldfare.pipeline.detection.stream import streamed
from fieldfare.pipeline.detection.touching import GIVEN, REST
from fieldfare.pipeline.lake.history import ORDER, field_columns
from fieldfare.pipeline.match.ways import quoted
from fieldfare.pipeline.workers import check_workers

Patterns = Mapping[str, Pattern | str] | Pattern | str | DataFrame
PLACE: Final = "fieldfare place"
_SINGLE: Final = "pattern"
"""the name of a pattern that is given without a name"""


class Question(NamedTuple):
    """The arguments of `detect`, checked."""

    plan: DetectPlan
    layout: Layout
    frame: DataFrame
    """the events as the workers get them"""
    columns: pa.Schema
    """of the events on their way to their keys"""


def detect(
    events: DataFrame,
    patterns: Patterns,
    *,
    by: str | Sequence[str] = (),
    order: str | Sequence[str] | None = None,
    begin: str | None = None,
    until: datetime | None = None,
    columns: Mapping[str, str | Column] | Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
    detector: str = "spark",
    delay: str | None = None,
) -> DataFrame:
    """Return the composite events of patterns, a row for each detection.

    Args:
        events: a DataFrame with the fields of events as columns, or an event table (`read_table`, `normalise`).
        patterns: patterns by name, as texts or `Pattern`; one pattern; or a DataFrame with the columns `name` and
            `pattern`, a text.
        by: fields added to the key of every pattern: each value is a separate history.
        order: the column with the time of the events, by default `time`, and columns to decide between events of the
            same time. With such columns events of a key follow each other, as in a node; without, events of the same
            time are simultaneous, and neither is before the other.
        begin: the column with the time at which an event began, if an event is an interval; `order` has the ends.
        until: the end of the history, up to which the timers of `not ... within` strike behind the last event; by
            default the time of the last event of all.
        columns: names of the columns with fields, or a mapping of fields to columns, as for `match_events`.
        keep: the columns of the events in the list of constituents, by default all.
        detector: the field `detector` of the composite events.
        delay: of a stream, how late events may come, such as `10 seconds`; by default the longest `allow ... of
            disorder` of the patterns. Later events are left out.

    Returns:
        `id`, `pattern`, `type`, `time`, `ts_lo`, `ts_hi`, `detector`, `expr`, `key` (a struct of the fields of keys),
        the selected fields of all patterns, and `constituents`, a list of structs of `name`, `ts_lo`, `ts_hi`, `event`.
    """
    asked = question(events, patterns, by=by, order=order, begin=begin, columns=columns, keep=keep)
    prepared = asked.plan.prepared()
    if events.isStreaming:
        if until is not None:
            raise DetectError("a stream has no end: `until` is for a history")
        found = _streamed(asked, prepared, delay)
    else:
        end = _end(asked, prepared, until)
        made = from_arrow_schema(composites.schema(asked.layout))
        found = touched(asked).repartition(PLACE).drop(PLACE).mapInArrow(_detecting(asked, end), made)
    return named(found, prepared, detector)


def _streamed(asked: Question, prepared: Prepared, delay: str | None) -> DataFrame:
    """Return the composite events of a stream; a pattern with a state without bound is refused."""
    for one in prepared.sought:
        try:
            check(one.pattern, Bounds())
        except Unbounded as error:
            raise DetectError(f"pattern {one.name!r}: {error}") from None
    wait = delay or f"{max(one.disorder for one in prepared.sought)} microseconds"
    return streamed(touched(asked, clock=True), PLACE, asked.plan, asked.layout, asked.columns, wait)


def question(
    events: DataFrame,
    patterns: Patterns,
    *,
    by: str | Sequence[str] = (),
    order: str | Sequence[str] | None = None,
    begin: str | None = None,
    columns: Mapping[str, str | Column] | Sequence[str] | None = None,
    keep: Sequence[str] | None = None,
) -> Question:
    """Check the arguments of `detect`, and choose the columns for workers."""
    check_workers(events.sparkSession)
    plan = DetectPlan(texts_of(patterns), (by,) if isinstance(by, str) else tuple(by))
    prepared = plan.prepared()
    table = columns is None and {"fields", "rest", "id"} <= {*events.columns}
    ordered = [order] if isinstance(order, str) else [*(order or (ORDER if table else ("time",)))]
    for name in (*ordered, *([begin] if begin else []), *(keep or ())):
        if name not in events.columns:
            raise DetectError(f"there is no column {name!r}; there are {', '.join(events.columns)}")
    fields = field_columns(events) if table else _fields(events, columns)
    looked = _looked_at(fields, prepared)
    given = (
        F.struct(*(column.alias(name) for name, column in looked.items()))
        if looked
        else F.struct(F.lit(None).alias("nothing"))
    )
    if table and keep is None:
        kept = F.col("fields")
    else:
        kept = F.struct(*(F.col(quoted(name)) for name in (events.columns if keep is None else keep)))
    high = _micros(ordered[0])
    sent = events.select(
        given.alias(GIVEN),
        (high if begin is None else _micros(begin)).alias(LOW),
        high.alias(HIGH),
        *(F.col(quoted(name)).alias(f"{TIE}{at}") for at, name in enumerate(ordered[1:])),
        kept.alias(KEPT),
        *([F.col("rest").alias(REST)] if table else []),
    )
    kinds = {field.name: to_arrow_type(field.dataType, timezone="UTC") for field in sent.schema}
    found = layout(prepared, kinds[GIVEN], kinds[KEPT], [*fields])
    ties = [kinds[f"{TIE}{at}"] for at in range(len(ordered) - 1)]
    return Question(plan, found, sent, touching.schema(found, ties))


def texts_of(patterns: Patterns) -> tuple[tuple[str, str], ...]:
    """Return names and texts of patterns; an error names the pattern."""
    if isinstance(patterns, DataFrame):
        rows = patterns.select("name", "pattern").collect()
        given: Mapping[str, Pattern | str] = {row.name: row.pattern for row in rows}
        if len(given) < len(rows):
            raise DetectError("two patterns have the same name")
    elif isinstance(patterns, Mapping):
        given = patterns
    else:
        given = {_SINGLE: patterns}
    if not given:
        raise DetectError("there is no pattern")
    found = []
    for name, one in given.items():
        try:
            found.append((name, (parse_pattern(one) if isinstance(one, str) else one).text))
        except ValueError as error:
            raise DetectError(f"pattern {name!r}: {error}") from None
    return tuple(found)


def _fields(events: DataFrame, columns: Mapping[str, str | Column] | Sequence[str] | None) -> dict[str, Column]:
    if isinstance(columns, Mapping):
        return {name: F.col(one) if isinstance(one, str) else one for name, one in columns.items()}
    names = events.columns if columns is None else columns
    return {name: F.col(quoted(name)) for name in names}


def _looked_at(fields: Mapping[str, Column], prepared: Prepared) -> dict[str, Column]:
    """Return the fields that patterns look at."""
    atoms = prepared.opened.about.fields
    if atoms is None:
        return dict(fields)
    paths = [f"{path}." for path in (*atoms, *prepared.references)]
    return {name: column for name, column in fields.items() if any(path.startswith(f"{name}.") for path in paths)}


def _micros(name: str) -> Column:
    return F.unix_micros(F.col(quoted(name)).cast("timestamp"))


def touched(asked: Question, *, clock: bool = False) -> DataFrame:
    """Return the events with a matching atom and the place of the key; with a `clock`, also the time of each batch."""
    plan, found, wanted = asked.plan, asked.layout, asked.columns

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        prepared = plan.prepared()
        for batch in batches:
            if batch.num_rows:
                yield touching.touching(prepared, found, wanted, batch)
                if clock and batch.column(HIGH).null_count < batch.num_rows:
                    yield touching.clock(wanted, batch)

    frame = asked.frame.mapInArrow(run, from_arrow_schema(wanted))
    return frame.withColumn(PLACE, _place(plan.prepared(), found))


def _place(prepared: Prepared, found: Layout) -> Column:
    """Return a hash of the key, which brings the events of a key together; other keys may come along."""
    place = F.xxhash64(F.col(quoted(GROUP)))
    for number, keys in enumerate(prepared.keys):
        if keys:
            hashed = F.xxhash64(F.col(quoted(GROUP)), *(_hashable(path, found) for path in keys))
            place = F.when(F.col(quoted(GROUP)) == number, hashed).otherwise(place)
    return place


def _hashable(path: str, found: Layout) -> Column:
    """Return a column in which 0.0 and -0.0 are the same."""
    column = F.col(quoted(FIELD + path))
    return column + F.lit(0.0) if pt.is_floating(found.fields[path]) else column


def _detecting(asked: Question, until: int | None) -> Callable[[Iterator[Any]], Iterator[Any]]:
    plan, found, wanted = asked.plan, asked.layout, asked.columns

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        events = [batch for batch in batches if batch.num_rows]
        if events:
            yield history(plan.prepared(), found, pa.Table.from_batches(events).cast(wanted), until)

    return run


def history(prepared: Prepared, found: Layout, events: Any, until: int | None) -> Any:
    """Return the composite events of whole keys: the work of a task, without Spark."""
    rows = arranged(prepared, events)
    some = segments(prepared, rows, forever(until))
    return composites.composites(prepared, found, rows.table, detections(prepared, rows, some))


def _end(asked: Question, prepared: Prepared, until: datetime | None) -> int | None:
    """Return the time up to which timers strike behind the last event; asks Spark only if a detection depends on it."""
    if until is not None:
        return microseconds(until)
    if not any(one.shape.timed for one in prepared.sought):
        return None
    row = asked.frame.agg(F.max(quoted(HIGH))).first()
    return None if row is None else row[0]


def named(found: DataFrame, prepared: Prepared, detector: str) -> DataFrame:
    """Return composite events with name, type and text of their patterns."""
    about = pa.table(
        {
            composites.NUMBER: pa.array(range(len(prepared.sought)), pa.int32()),
            "pattern": pa.array([one.name for one in prepared.sought], pa.string()),
            "type": pa.array([one.type for one in prepared.sought], pa.string()),
            "expr": pa.array([one.text for one in prepared.sought], pa.string()),
        }
    )
    table = F.broadcast(found.sparkSession.createDataFrame(about))
    rest = [quoted(name) for name in found.columns[4:]]
    front: list[Column | str] = ["id", "pattern", "type", F.col("ts_hi").alias("time"), "ts_lo", "ts_hi"]
    return found.join(table, composites.NUMBER).select(*front, F.lit(detector).alias("detector"), "expr", *rest)


def as_table(found: DataFrame) -> DataFrame:
    """Return composite events as an event table: as any events, for `write_table`, `replay` and the sinks."""
    taken = {"id", "time", "type", "key"}
    fields = [quoted(name) for name in found.columns if name not in taken]
    nothing = F.lit(None)
    return found.select(
        "id",
        F.col("detector").alias("source"),
        nothing.cast("bigint").alias("sequence"),
        "time",
        "type",
        F.struct(*fields).alias("fields"),
        nothing.cast("string").alias("rest"),
    )


__all__ = ["DetectError", "as_table", "detect"]
