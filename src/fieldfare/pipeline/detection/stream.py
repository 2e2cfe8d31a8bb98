"""Detection in a stream: a step for each key, with the rows of a detector as state, and timers of event time.

Events wait in the state until the watermark has passed, so that a stream tells the same as a history, in any order of
arrival; an event behind the watermark is left out. The state of a key is the rows of a detector (`rows`), and the
waiting events; the state ends when no instance is open and no event waits.

Spark keeps the state in a state store, in the same checkpoint as the offsets: a repeated micro-batch begins with the
same state and has the same composite events, with the same ids. Events and composite events pass as Arrow
messages, a single binary column, since Pandas has no types for lists of structs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from hashlib import blake2b
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from fieldfare.events import arrow
from fieldfare.events.event import Event
from fieldfare.events.limits import Limits
from fieldfare.patterns import Detector, Occurrence
from fieldfare.patterns import rows as stored_rows
from fieldfare.patterns.detector import Names
from fieldfare.patterns.runs import NEVER
from fieldfare.pipeline.detection import composites
from fieldfare.pipeline.detection.layout import TIME, Layout
from fieldfare.pipeline.detection.plan import DetectPlan, Prepared
from fieldfare.pipeline.detection.running import Found, Labels
from fieldfare.pipeline.detection.segments import ATOMS, FIELD, GROUP, HIGH, KEPT, Rows, arranged
from fieldfare.pipeline.detection.touching import CLOCK

DATA: Final = "data"
_LIMITS: Final = Limits(bytes=1 << 30, fields=1 << 20, string=1 << 30)


class ChangedPatterns(ValueError):
    """A stream goes on with the state of other patterns."""


class Kept(NamedTuple):
    """The state of a key."""

    waiting: bytes = b""
    """events before which others may still come, as an Arrow message"""
    last: int = -NEVER
    """the time of the last event, which a tie may have moved on"""
    rows: tuple[tuple[str, tuple[Any, ...], Any], ...] = ()
    """the rows of the detector"""
    digest: str = ""
    """of the patterns and columns; a state is of use to no others"""


class Step(NamedTuple):
    """The outcome of a step."""

    kept: Kept | None
    """None for a key whose state ends"""
    wake: int
    """the time at which the key needs another step without events; `NEVER` for none"""
    found: Any
    """composite events, or None"""


def step(  # noqa: PLR0917
    prepared: Prepared, layout: Layout, columns: pa.Schema, kept: Kept, events: Iterable[Any], passed: int
) -> Step:
    """Take in events of a key; the watermark has passed a time, in microseconds. A pure function, without Spark."""
    new = pa.Table.from_batches(list(events), columns)
    new = new.filter(pa.array(new[HIGH].to_numpy() > passed))  # the others are late
    waiting = [new, pa.Table.from_batches([pa.ipc.read_record_batch(kept.waiting, columns)])] if kept.waiting else [new]
    table = pa.concat_tables(waiting).combine_chunks()
    high = table[HIGH].to_numpy()
    due = pa.array(high <= passed)
    rows = arranged(prepared, table.filter(due), after=kept.last)
    detector, found = _fed(prepared, kept, rows, passed)
    later = table.filter(pa.array(high > passed))
    left = detector is not None and bool(detector.machines)
    last = max(int(rows.high.max()), kept.last) if len(rows.high) else kept.last
    wakes = [int(high[high > passed].min())] if later.num_rows else []
    wakes += [detector.deadline] if left and detector is not None else []
    wakes += [last] if last > passed else []
    made = _made(prepared, layout, found) if found else None
    if not left and not later.num_rows and last <= passed:
        return Step(None, NEVER, made)
    told = () if detector is None or not left else tuple(stored_rows.all_rows(detector))
    after = Kept(_message(later), last, tuple((row.kind, row.key, row.value) for row in told))
    return Step(after, min(wakes, default=NEVER), made)


def _fed(prepared: Prepared, kept: Kept, rows: Rows, passed: int) -> tuple[Detector | None, list[Any]]:
    """Return the detector of a key after events and time, with the detections."""
    stored = _stored(kept)
    known = {key[0] for kind in ("pattern-instance", "pattern-state") for key in stored.get(kind, ())}
    touches = [*_touches(prepared, rows)]
    numbers = {number for _, names in touches for number, _ in names}
    wanted = [one for at, one in enumerate(prepared.sought) if at in numbers or one.name in known]
    if not wanted:
        return None, []
    detector = Detector({one.name: one.pattern for one in wanted}, matches=False)
    stored_rows.restore(detector, stored)
    found = []
    for event, names in touches:
        named: Names = [(prepared.sought[number].name, labels) for number, labels in names]
        found += detector.offer(event, named)
    return detector, found + detector.advance(passed + 1)


def _stored(kept: Kept) -> dict[str, dict[tuple[Any, ...], Any]]:
    found: dict[str, dict[tuple[Any, ...], Any]] = {}
    for kind, key, value in kept.rows:
        found.setdefault(kind, {})[tuple(key)] = value
    return found


def _touches(prepared: Prepared, rows: Rows) -> Iterator[tuple[Occurrence, list[tuple[int, frozenset[Any]]]]]:
    """Yield the events, each with patterns and the names in these patterns."""
    if not len(rows.high):
        return
    labels = Labels(prepared)
    fields = [name for name in rows.table.schema.names if name.startswith(FIELD)]
    batch = pa.RecordBatch.from_arrays(
        [_chunk(rows.table[name]) for name in fields], names=[name.removeprefix(FIELD) for name in fields]
    )
    values = arrow.rows(batch) if fields else [{} for _ in rows.high]
    kept = pa.RecordBatch.from_arrays([_chunk(rows.table[KEPT])], names=[KEPT])
    for at, atoms in enumerate(rows.table[ATOMS].to_pylist()):
        entries = prepared.entries(int(rows.group[at]))
        places, _ = entries.spread(np.array(atoms, np.int64))
        bits: dict[int, int] = {}
        for number, bit in zip(entries.first[places].tolist(), entries.second[places].tolist(), strict=True):
            bits[number] = bits.get(number, 0) | 1 << bit
        event = Event({**values[at], KEPT: kept.slice(at, 1).serialize().to_pybytes()}, limits=_LIMITS)
        occurrence = Occurrence(int(rows.low[at]), int(rows.high[at]), event, "", at)
        yield occurrence, [(number, labels.of(number, [some])[0]) for number, some in bits.items()]


def _made(prepared: Prepared, layout: Layout, found: list[Any]) -> Any:
    """Return the composite events of detections; the events hold the columns as messages."""
    numbers = {one.name: number for number, one in enumerate(prepared.sought)}
    events = [event for one in found for _, event in one.match.events]
    places: dict[int, int] = {id(event): at for at, event in enumerate(events)}
    struct = pa.schema([(KEPT, layout.kept)])
    kept = [pa.ipc.read_record_batch(event.event[KEPT], struct).column(0) for event in events]
    columns = {KEPT: pa.concat_arrays(kept)}
    for path, kind in layout.fields.items():
        columns[FIELD + path] = pa.array([event.event.get(path) for event in events], kind)
    rows = [
        Found(numbers[one.pattern], places[id(one.match.events[0][1])], composites.renumbered(one.match, places))
        for one in found
    ]
    return composites.composites(prepared, layout, pa.table(columns), rows)


def _chunk(column: Any) -> Any:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def _message(table: pa.Table) -> bytes:
    """Return a table as an Arrow message without the schema; empty for a table without rows."""
    if not table.num_rows:
        return b""
    batch = table.combine_chunks().to_batches()[0]
    return batch.serialize().to_pybytes()  # type: ignore[no-any-return]


# On Spark


def streamed(  # noqa: PLR0917
    frame: DataFrame, place: str, plan: DetectPlan, layout: Layout, columns: pa.Schema, wait: str
) -> DataFrame:
    """Return the composite events of a stream of events with the place of the key, and of rows with the time.

    Spark wants the watermark behind the last function over batches: rows with the time carry the time of all events.
    """
    packed = frame.mapInArrow(_packing(place, columns), f"place long, {DATA} binary, moment timestamp")
    packed = packed.withWatermark("moment", wait)
    stepping = _stepping(plan, layout, columns)
    stated = packed.groupBy("place").applyInPandasWithState(
        stepping, f"{DATA} binary", "state binary", "append", GroupStateTimeout.EventTimeTimeout
    )
    made = composites.schema(layout)

    def unpacked(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for message in batch.column(0).to_pylist():
                yield pa.ipc.read_record_batch(message, made)

    return stated.mapInArrow(unpacked, from_arrow_schema(made))


def _packing(place: str, columns: pa.Schema) -> Any:
    """Return the function of workers that makes messages of the events of a batch, by place."""

    def run(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            places = batch.column(place).to_numpy()
            order = np.argsort(places, kind="stable")
            sorted_places = places[order]
            table = pa.Table.from_batches([batch.select(columns.names)]).cast(columns).take(pa.array(order))
            starts = np.flatnonzero(np.concatenate([[True], np.diff(sorted_places) != 0])) if len(order) else order
            ends = np.append(starts[1:], len(order))
            high = table[HIGH].to_numpy()
            latest = np.maximum.reduceat(high, starts) if len(starts) else high
            spans = [table.slice(start, end - start) for start, end in zip(starts, ends, strict=True)]
            yield pa.record_batch(
                {
                    "place": pa.array(sorted_places[starts]),
                    DATA: pa.array([_events(span) for span in spans], pa.binary()),
                    "moment": pa.array(latest, pa.int64()).cast(TIME),
                }
            )

    return run


def _events(table: pa.Table) -> bytes | None:
    """Return the events of a place as a message; None for a row with the time alone."""
    return None if table[GROUP][0].as_py() == CLOCK else _message(table)


def _stepping(plan: DetectPlan, layout: Layout, columns: pa.Schema) -> Any:
    """Return the function for a key with events, and for a key after a timer."""
    digest = f"{plan.digest}:{columns.to_string()}"
    digest = blake2b(digest.encode(), digest_size=12).hexdigest()

    def run(_: Any, frames: Iterable[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        kept = msgspec.msgpack.decode(state.get[0], type=Kept) if state.exists else Kept(digest=digest)
        if kept.digest != digest:
            raise ChangedPatterns("the state is of other patterns or columns: begin with a new checkpoint")
        messages = () if state.hasTimedOut else (one for frame in frames for one in frame[DATA] if one is not None)
        events = [pa.ipc.read_record_batch(bytes(one), columns) for one in messages]
        passed = state.getCurrentWatermarkMs()
        done = step(plan.prepared(), layout, columns, kept, events, passed * 1000)
        if done.kept is None:
            if state.exists:
                state.remove()
        else:
            state.update((msgspec.msgpack.encode(done.kept._replace(digest=digest)),))
            if done.wake < NEVER:
                state.setTimeoutTimestamp(max(-(-done.wake // 1000) - 1, passed, 1))
        if done.found is not None:
            yield pd.DataFrame({DATA: [done.found.serialize().to_pybytes()]})

    return run
