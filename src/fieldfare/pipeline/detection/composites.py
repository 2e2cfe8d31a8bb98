"""Composite events as columns: a row for each detection, with constituents from the columns of the events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from typing import Any, Final

import numpy as np
import pyarrow as pa

from fieldfare.events.values import MISSING
from fieldfare.patterns.definition import Pattern
from fieldfare.patterns.machine import Match
from fieldfare.patterns.runs import Composite, Item, primitive
from fieldfare.pipeline.detection.layout import TIME, Layout, selected_array
from fieldfare.pipeline.detection.plan import Prepared
from fieldfare.pipeline.detection.running import Found
from fieldfare.pipeline.detection.segments import FIELD, KEPT

NUMBER: Final = "fieldfare number"
"""the column with the number of the pattern, for which Spark puts name, type and text"""


def schema(layout: Layout) -> pa.Schema:
    """Return the columns of composite events, as workers make the columns."""
    item = pa.struct([("name", pa.string()), ("ts_lo", TIME), ("ts_hi", TIME), ("event", layout.kept)])
    key = pa.struct([(path, layout.fields[path]) for path in layout.keys] or [("none", pa.null())])
    return pa.schema(
        [
            (NUMBER, pa.int32()),
            ("id", pa.string()),
            ("ts_lo", TIME),
            ("ts_hi", TIME),
            *([("key", key)] if layout.keys else []),
            *layout.selected.items(),
            ("constituents", pa.list_(item)),
        ]
    )


def composites(prepared: Prepared, layout: Layout, table: Any, found: Iterable[Found]) -> Any:
    """Return a batch with a row for each detection; constituents and keys are rows of a table of events."""
    all_found = list(found)
    events = [match.events for _, _, match in all_found]
    names = [name for some in events for name, _ in some]
    parts = [event for some in events for _, event in some]
    offsets = np.concatenate([[0], np.cumsum([len(some) for some in events])])
    kept = _taken(table[KEPT], [event.number for event in parts])
    low, high = (pa.array([event[end] for event in parts], pa.int64()).cast(TIME) for end in (0, 1))
    wanted = schema(layout)
    item = wanted.field("constituents").type.value_type
    items = pa.StructArray.from_arrays([pa.array(names, pa.string()), low, high, kept], fields=list(item))
    stamps = [pa.array([match.stamp[end] for _, _, match in all_found], pa.int64()).cast(TIME) for end in (0, 1)]
    columns: dict[str, Any] = {
        NUMBER: pa.array([number for number, _, _ in all_found], pa.int32()),
        "id": pa.array(_ids(prepared, table, all_found), pa.string()),
        "ts_lo": stamps[0],
        "ts_hi": stamps[1],
        "constituents": pa.ListArray.from_arrays(
            pa.array(offsets, pa.int32()), items, type=wanted.field("constituents").type
        ),
    }
    if layout.keys:
        columns["key"] = _keys(prepared, layout, table, all_found, wanted.field("key").type)
    values = [dict(selected(prepared.sought[number].pattern, match)) for number, _, match in all_found]
    for name, kind in layout.selected.items():
        columns[name] = selected_array([one.get(name, MISSING) for one in values], kind)
    return pa.RecordBatch.from_arrays([columns[name] for name in wanted.names], schema=wanted)


def _taken(column: Any, rows: list[int]) -> Any:
    taken = column.take(pa.array(rows, pa.int64()))
    return taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken


def _keys(prepared: Prepared, layout: Layout, table: Any, found: list[Found], kind: Any) -> Any:
    """Return the keys; fields outside of the key of a pattern are null."""
    columns = []
    for path in layout.keys:
        mine = [path in prepared.sought[number].pattern.keys for number, _, _ in found]
        rows = pa.array([row if own else None for (_, row, _), own in zip(found, mine, strict=True)], pa.int64())
        taken = table[FIELD + path].take(rows)
        columns.append(taken.combine_chunks() if isinstance(taken, pa.ChunkedArray) else taken)
    return pa.StructArray.from_arrays(columns, fields=list(kind))


def selected(pattern: Pattern, match: Match) -> Iterable[tuple[str, Any]]:
    """Yield the selected fields of a match."""
    bindings = pattern.bindings
    for one in pattern.selections if bindings is not None else ():
        assert bindings is not None
        yield one.name, one.value.evaluate(bindings.accumulators.fields(one.references, match.values))


def _ids(prepared: Prepared, table: Any, found: list[Found]) -> list[str]:
    """Return ids made of the detections and nothing else: a repeated batch has the same ids."""
    paths = {path for number, _, _ in found for path in prepared.sought[number].pattern.keys}
    values = {path: _taken(table[FIELD + path], [row for _, row, _ in found]).to_pylist() for path in paths}
    seen: Counter[str] = Counter()
    ids = []
    for at, (number, _, match) in enumerate(found):
        sought = prepared.sought[number]
        key = [values[path][at] for path in sought.pattern.keys]
        stamps = [(name, event.low, event.high) for name, event in primitive(match.items)]
        told = repr((sought.name, sought.type, key, match.stamp, stamps))
        seen[told] += 1
        ids.append(blake2b(f"{told}{seen[told]}".encode(), digest_size=12).hexdigest())
    return ids


def renumbered(match: Match, places: Mapping[int, int]) -> Match:
    """Return a match with other numbers for the events, by identity: the rows of a table."""
    return match._replace(items=_renumbered(match.items, places))


def _renumbered(items: Iterable[Item], places: Mapping[int, int]) -> tuple[Item, ...]:
    found = []
    for name, what in items:
        if isinstance(what, Composite):
            found.append(Item(name, what._replace(items=_renumbered(what.items, places))))
        else:
            found.append(Item(name, what._replace(number=places[id(what)])))
    return tuple(found)
