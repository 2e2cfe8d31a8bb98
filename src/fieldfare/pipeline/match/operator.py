"""`match_events`: every event of a DataFrame with every subscription that matches, in batch and in streams.

    from fieldfare.pipeline import match_events
    deliveries = match_events(events, subscriptions)

The subscriptions become a version of a catalogue, which each worker maps. Only the columns in filters cross from the
JVM to Python, as Arrow, and only lists of matches cross back; the events stay in the JVM, and Spark puts the lists
beside the events. An event with a hundred thousand matches is a long list, not a hundred thousand copies of the event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pyspark import SparkFiles
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.functions import arrow_udf
from pyspark.sql.types import StructType

from fieldfare.events import EventError
from fieldfare.events.cloudevents import decode_any
from fieldfare.filters.constraint import Mode as Reading
from fieldfare.pipeline.match import catalogue
from fieldfare.pipeline.match.catalogue import Opened
from fieldfare.pipeline.match.fields import as_batch
from fieldfare.pipeline.match.subscriptions import Place, placed
from fieldfare.pipeline.table.undeclared_fields import together, undecided

Ints = NDArray[np.int64]
Mode = Literal["point", "overlap", "cover"]
ADDED: Final = ("subscription", "owner", "snapshot")
"""the columns that a match adds to those of the event"""
_READING: Final[Mapping[Mode, Reading]] = {"point": "overlaps", "overlap": "overlaps", "cover": "covers"}
MATCHES: Final = "fieldfare matches"
"""the name of a column that no event has"""
_udf: Final[Any] = arrow_udf  # its stubs know only the form without type hints, of which it warns
_JOINED: Final = 2_000_000
"""subscriptions at most whose ids Spark joins by number"""
_ENDS: Final = {"low", "high"}
_PAIRS: Final = 1 << 20
"""matches that a worker returns at once"""
_FEWEST: Final = 64
"""rows that are matched at first, while their number of matches is unknown"""
_MANY: Final = 250_000


@dataclass(frozen=True)
class _Plan:
    """The data that a worker needs for matching."""

    place: Place
    version: int | None
    """None in a stream over a catalogue, which pins a version for each micro-batch"""
    mode: Mode
    json: str | None
    named: bool = True
    """whether workers return ids and owners, or numbers"""


def match_events(
    events: DataFrame,
    subscriptions: DataFrame | str | Path,
    *,
    columns: Sequence[str] | Mapping[str, str | Column] | None = None,
    json: str | None = None,
    mode: Mode = "point",
) -> DataFrame:
    """Return the events with the subscriptions that match: a row for each match.

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

    Returns:
        The columns of the events, and `subscription`, `owner` and `snapshot`, the version of the subscriptions.
    """
    plan, opened = _planned(events, subscriptions, json, mode)
    if mode != "point" and json is None:
        columns = _closed(events, _named(events, columns))
    if plan.version is None or opened.about.count > _JOINED:
        return unfold(events.withColumn(MATCHES, _column(events, plan, opened, columns)))
    numbered = events.withColumn(MATCHES, _column(events, replace(plan, named=False), opened, columns))
    return _joined(numbered, opened)


def matches_of(
    events: DataFrame,
    subscriptions: DataFrame | str | Path,
    *,
    columns: Sequence[str] | Mapping[str, str | Column] | None = None,
    rest: str | None = None,
    json: str | None = None,
    mode: Mode = "point",
) -> Column:
    """Return the matches of each event as a column: a struct of `snapshot` and the list `matches`. See `match_events`.

    `rest` is a column of undeclared fields, as JSON, in an event table.
    """
    plan, opened = _planned(events, subscriptions, json, mode)
    return _column(events, plan, opened, columns, rest)


def _planned(
    events: DataFrame, subscriptions: DataFrame | str | Path, json: str | None, mode: Mode
) -> tuple[_Plan, Opened]:
    """Return the plan for workers, and the subscriptions as of now."""
    taken = [name for name in events.columns if name.lower() in {*ADDED, MATCHES}]  # Spark does not mind the case
    if taken:
        raise ValueError(f"the events have a column {taken[0]!r} already, which match() adds: rename it before")
    if mode not in _READING:
        raise ValueError(f"mode must be one of {', '.join(map(repr, _READING))}, not {mode!r}")
    place = placed(events.sparkSession, subscriptions)
    live = events.isStreaming and not isinstance(subscriptions, DataFrame) and catalogue.is_catalogue(subscriptions)
    opened = catalogue.opened(place.path, catalogue.current(place.path))
    return _Plan(place, None if live else opened.about.version, mode, json), opened


def _column(
    events: DataFrame,
    plan: _Plan,
    opened: Opened,
    columns: Sequence[str] | Mapping[str, str | Column] | None,
    rest: str | None = None,
) -> Column:
    looked_at = None if plan.version is None else opened.about.fields
    given = F.col(plan.json) if plan.json is not None else _fields(events, columns, looked_at)
    id_type = "bigint" if pa.types.is_int64(opened.ids.type) else "string"
    match = f"struct<subscription: {id_type}, owner: string>" if plan.named else "int"
    returned = f"struct<snapshot: bigint, matches: array<{match}>>"
    more = F.lit(None).cast("string") if rest is None else F.col(rest)
    found = _udf(_matching(plan), returned).asNondeterministic()  # or Spark may run it once to filter, once to select
    return cast(Column, found(given, more, F.unix_micros(F.current_timestamp())))


def _joined(events: DataFrame, opened: Opened) -> DataFrame:
    """Return a row for each match, from events with the numbers of their subscriptions; Spark joins ids and owners."""
    kept = [quoted(name) for name in events.columns if name != MATCHES]
    numbered = events.select(*kept, F.explode(f"`{MATCHES}`.matches").alias(MATCHES))
    numbers = pa.array(np.arange(len(opened.ids)), pa.int32())
    known = pa.table({MATCHES: numbers, "subscription": opened.ids, "owner": opened.owners})
    table = F.broadcast(events.sparkSession.createDataFrame(known))
    version = F.lit(opened.about.version).alias("snapshot")
    return numbered.join(table, MATCHES).select(*kept, "subscription", "owner", version)


def unfold(events: DataFrame) -> DataFrame:
    """A row for each match, from events with the column `MATCHES`."""
    kept = [quoted(name) for name in events.columns if name != MATCHES]
    return events.select(*kept, F.inline(f"`{MATCHES}`.matches"), f"`{MATCHES}`.snapshot")


def _fields(
    events: DataFrame, columns: Sequence[str] | Mapping[str, str | Column] | None, looked_at: list[str] | None
) -> Column:
    """Return the fields of events as a struct of the columns in filters."""
    named = _named(events, columns)
    wanted = {
        name for name in named if looked_at is None or any(f"{path}.".startswith(f"{name}.") for path in looked_at)
    }
    fields = [column.alias(name) for name, column in named.items() if name in wanted]
    return F.struct(*fields) if fields else F.struct(F.lit(None).alias("nothing"))


def _named(events: DataFrame, columns: Sequence[str] | Mapping[str, str | Column] | None) -> dict[str, Column]:
    """Return the fields of events by name, with their columns."""
    if isinstance(columns, Mapping):
        return {name: F.col(column) if isinstance(column, str) else column for name, column in columns.items()}
    for column in columns or ():
        if column not in events.columns:
            raise ValueError(f"there is no column {column!r}; there are {', '.join(events.columns)}")
    return {name: F.col(quoted(name)) for name in (events.columns if columns is None else columns)}


def _closed(events: DataFrame, named: Mapping[str, Column]) -> dict[str, Column]:
    """Return a struct with `closed` added where an interval lacks it: both ends belong to the interval then."""
    kinds = events.select(*(column.alias(name) for name, column in named.items())).schema
    ends = [kind.name for kind in kinds if isinstance(kind.dataType, StructType) and set(kind.dataType.names) == _ENDS]
    made = {
        name: F.when(
            named[name].isNotNull(), F.struct(named[name]["low"], named[name]["high"], F.lit("[]").alias("closed"))
        )
        for name in ends
    }
    return {**named, **made}


def quoted(name: str) -> str:
    """Return a name in backquotes, as Spark reads any name."""
    return f"`{name.replace('`', '``')}`"


def _matching(plan: _Plan) -> Callable[..., Any]:
    """Return the function that workers run: batches of fields to batches of matches."""

    def run(batches: Iterator[tuple[pa.Array, pa.Array, pa.Array]]) -> Iterator[pa.Array]:
        path = plan.place.path
        if plan.place.shipped and not Path(path).is_dir():  # on another machine than the driver
            path = SparkFiles.get(plan.place.shipped)
        for given, more, moments in batches:
            if len(given):
                version = plan.version or catalogue.pinned(path, moments[0].as_py())
                opened = catalogue.opened(path, version)
                yield from matches(opened, given, more, mode=plan.mode, json=plan.json, named=plan.named)

    return run


def matches(
    opened: Opened,
    given: Any,
    more: Any = None,
    *,
    mode: Mode = "point",
    json: str | None = None,
    named: bool = True,
) -> Iterator[pa.Array]:
    """Yield the matches of an array of structs or texts, some rows at a time, so that memory bounds the fan-out."""
    reading = _READING[mode]
    if json is not None:
        pairs = _in_texts(opened, given, json, reading)
    else:
        pairs = _in_fields(opened, as_batch(given, opened.about.fields, intervals=mode != "point"), more, reading)
    counts: list[Ints] = []
    numbers: list[Ints] = []
    waiting = 0
    for count, number in pairs:
        counts.append(count)
        numbers.append(number)
        waiting += len(number)
        if waiting >= _PAIRS:
            yield _lists(opened, counts, numbers, named=named)
            counts, numbers, waiting = [], [], 0
    if counts:
        yield _lists(opened, counts, numbers, named=named)


def _in_fields(opened: Opened, batch: Any, more: Any, reading: Reading) -> Iterator[tuple[Ints, Ints]]:
    """Return the number of matching subscriptions of each row, and their numbers, for some rows."""
    start, step = 0, _FEWEST
    while start < batch.num_rows:
        part = batch.slice(start, step)
        rest = more.slice(start, step) if more is not None else None
        found = opened.index.match_batch(part, reading)
        event, number = found["event"].to_numpy(), found["id"].to_numpy()
        if rest is not None and (chosen := undecided(part, rest, opened.about.fields)):
            rows = pa.array(chosen)
            whole = together(part.take(rows), rest.take(rows).to_pylist())
            exact = opened.index.match_many([*whole], reading)
            keep = ~np.isin(event, chosen)
            event = np.concatenate([event[keep], np.repeat(chosen, [*map(len, exact)])])
            order = np.argsort(event, kind="stable")
            event = event[order]
            number = np.concatenate([number[keep], np.array([*chain.from_iterable(exact)], np.int64)])[order]
        yield np.bincount(event, minlength=part.num_rows), number
        start, step = start + step, _next(step, len(number), opened.about.count)


def _in_texts(opened: Opened, texts: Any, column: str, reading: Reading) -> Iterator[tuple[Ints, Ints]]:
    """Return the same counts and numbers for events that are texts; a null is an event without fields."""
    start, step = 0, _FEWEST
    while start < len(texts):
        part = ["{}" if text is None else text for text in texts.slice(start, step).to_pylist()]
        try:
            found = opened.index.match_json_lines(part, reading, cloudevents=True)
        except EventError:
            raise _refusal(texts, column) from None
        if not all(map(str.strip, part)):  # an empty line among lines, and no event here
            raise _refusal(texts, column)
        number = found["id"].to_numpy()
        start, step = start + step, _next(step, len(number), opened.about.count)
        yield np.bincount(found["event"].to_numpy(), minlength=len(part)), number


def _refusal(texts: Any, column: str) -> EventError:
    """Return the error of the first text that is no event, which stops the job: the text would be lost otherwise."""
    for row, text in enumerate(texts.to_pylist(), 1):
        try:
            if text is not None:
                decode_any(text)
        except EventError as error:
            return EventError(column, f"row {row} of the batch is no event: {error}; normalise() first")
    raise AssertionError("every text is an event")


def _lists(opened: Opened, counts: list[Ints], numbers: list[Ints], *, named: bool) -> pa.Array:
    """Return the matches of rows as lists of subscriptions, beside the version."""
    lengths = np.concatenate(counts)
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    found = pa.array(np.concatenate(numbers, dtype=np.int32, casting="unsafe"))
    if named:
        parts = [opened.ids.take(found), opened.owners.take(found)]
        found = pa.StructArray.from_arrays(parts, names=["subscription", "owner"])
    versions = pa.array(np.full(len(lengths), opened.about.version))
    return pa.StructArray.from_arrays(
        [versions, pa.ListArray.from_arrays(offsets, found)], names=["snapshot", "matches"]
    )


def _next(rows: int, matches: int, subscriptions: int) -> int:
    """Return the number of rows to match next, after some rows with some matches.

    The number is bounded so that the matches fit in memory even if each row matches all subscriptions.
    """
    most = 512 if subscriptions <= _MANY else 256
    return min(most, 2 * rows) if matches <= _PAIRS else max(_FEWEST, rows // 2)
