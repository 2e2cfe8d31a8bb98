"""The first filter: only events with a matching atom of some pattern are shuffled to tasks by key.

Atoms are matched columnwise, by the shared index. An event comes out once for each group of patterns with a
matching atom, if the event has the key of the group, with the fields in patterns and the columns of the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from fieldfare.pipeline.detection.layout import Layout, column_at
from fieldfare.pipeline.detection.plan import Ints, Prepared
from fieldfare.pipeline.detection.segments import ATOMS, FIELD, GROUP, HIGH, KEPT, LOW, TIE
from fieldfare.pipeline.match.fields import as_batch
from fieldfare.pipeline.match.pairs import matched

GIVEN: Final = "fieldfare given"
REST: Final = "fieldfare rest"
CLOCK: Final = -1
"""the group of a row that only tells the time"""


def schema(layout: Layout, ties: Sequence[Any]) -> pa.Schema:
    """Return the columns of events on the way to keys; `ties` are the types of the columns of ties."""
    return pa.schema(
        [
            (GROUP, pa.int32()),
            (ATOMS, pa.list_(pa.int32())),
            (LOW, pa.int64()),
            (HIGH, pa.int64()),
            *((f"{TIE}{at}", kind) for at, kind in enumerate(ties)),
            *((FIELD + path, kind) for path, kind in layout.fields.items()),
            (KEPT, layout.kept),
        ]
    )


def touching(prepared: Prepared, layout: Layout, wanted: pa.Schema, batch: Any) -> Any:
    """Return the events of a batch with a matching atom, in the columns of `schema`.

    The batch has the columns `GIVEN`, a struct of fields, `LOW`, `HIGH`, `KEPT`, columns of ties, and perhaps `REST`.
    """
    given = batch.column(GIVEN)
    more = batch.column(REST) if REST in batch.schema.names else None
    found = [*matched(prepared.opened, given, more)]
    atoms = np.concatenate([one.numbers for one in found]) if found else np.zeros(0, np.int64)
    counts = np.concatenate([one.counts for one in found]) if found else np.zeros(0, np.int64)
    events = np.repeat(np.arange(len(counts)), counts)
    timed = batch.column(HIGH).is_valid().to_numpy(zero_copy_only=False)
    if not timed.all():
        events, atoms = events[timed[events]], atoms[timed[events]]
    places, of = prepared.groups_of.spread(atoms)
    group, event, atom = prepared.groups_of.first[places], events[of], atoms[of]
    fields = {path: _field(layout, path, given) for path in layout.fields} if len(event) else {}
    keep = _keyed(prepared, fields, group, event)
    group, event, atom = group[keep], event[keep], atom[keep]
    order = np.lexsort((atom, group, event))
    group, event, atom = group[order], event[order], atom[order]
    first = (
        np.flatnonzero(np.concatenate([[True], (np.diff(event) != 0) | (np.diff(group) != 0)])) if len(event) else order
    )
    rows = pa.array(event[first])
    lists = pa.ListArray.from_arrays(pa.array(np.append(first, len(atom)), pa.int32()), pa.array(atom, pa.int32()))
    columns: dict[str, Any] = {GROUP: pa.array(group[first], pa.int32()), ATOMS: lists}
    for name in wanted.names[2:]:
        path = name.removeprefix(FIELD)
        if name.startswith(FIELD):
            columns[name] = fields[path].take(rows) if fields else pa.array([], layout.fields[path])
        else:
            columns[name] = batch.column(name).take(rows)
    return pa.RecordBatch.from_arrays(
        [_as(columns[name], kind) for name, kind in zip(wanted.names, wanted.types, strict=True)], schema=wanted
    )


def clock(wanted: pa.Schema, batch: Any) -> Any:
    """Return a row of no group with the latest time of a batch: the time of a stream goes on with every event."""
    latest = pc.max(batch.column(HIGH)).as_py()
    values = {GROUP: CLOCK, ATOMS: [], LOW: latest, HIGH: latest}
    return pa.RecordBatch.from_arrays(
        [pa.array([values.get(name)], kind) for name, kind in zip(wanted.names, wanted.types, strict=True)],
        schema=wanted,
    )


def _as(array: Any, kind: Any) -> Any:
    return array if array.type == kind else array.cast(kind)


def _field(layout: Layout, path: str, given: Any) -> Any:
    """Return the values at a path; the batch of fields has no other field."""
    found = column_at(as_batch(given, [path]), path)
    return pa.nulls(len(given), layout.fields[path]) if found is None else found


def _keyed(prepared: Prepared, fields: dict[str, Any], group: Ints, event: Ints) -> Any:
    """Tell which events have the key of the group: no field is missing, or NaN."""
    keep = np.ones(len(group), np.bool_)
    for number in np.unique(group):
        if not prepared.keys[number]:
            continue
        mine = group == number
        for path in prepared.keys[number]:
            column = fields[path]
            there = column.is_valid()
            if pt.is_floating(column.type):
                there = pc.and_(there, pc.invert(pc.is_nan(column).fill_null(False)))
            keep[mine] &= there.to_numpy(zero_copy_only=False)[event[mine]]
    return keep
