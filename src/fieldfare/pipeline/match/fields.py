"""Columns to fields: the Arrow arrays that Spark passes to Python, converted for the engine.

A struct is an object whose fields have dotted paths; of a map, only the keys in filters are taken. A decimal stays
exact, a date becomes the midnight in UTC at its beginning, a timestamp without a zone is in UTC; the same in lists,
however deep. Columns of other types are no fields. A null is a missing field.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_TIME: Final = pa.timestamp("us", "UTC")
_CLOSED: Final = pa.array(["[]", "[)", "(]", "()"])


def as_batch(columns: Any, wanted: Iterable[str] | None, *, intervals: bool = False) -> pa.RecordBatch:
    """Return the struct array of a batch of events as the record batch of their fields.

    `wanted` has the paths in filters, None for all paths. With `intervals`, a struct of the form `is_interval` is an
    interval, and where its values are none, such as 3 to 2, or closed as "x", the field is missing.
    """
    paths = None if wanted is None else frozenset(wanted)
    parts = zip(columns.type, columns.flatten(), strict=True)
    found = [_part(field.name, field.name, array, paths, intervals=intervals) for field, array in parts]
    fields = [one for one in found if one is not None]
    if not fields:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(columns), pa.struct([])))
    return pa.RecordBatch.from_arrays([one.values for one in fields], schema=pa.schema([one.field for one in fields]))


def is_interval(kind: pa.DataType) -> bool:
    """Tell whether a struct has just `low` and `high` of an ordered kind, and `closed`, a string."""
    if not pt.is_struct(kind) or {part.name for part in kind} != _ENDS or kind.num_fields != len(_ENDS):
        return False
    low, high, closed = (kind.field(name).type for name in ("low", "high", "closed"))
    return _is_text(closed) and any(test(low) and test(high) for test in _ORDERED)


_ENDS: Final = {"low", "high", "closed"}
_ORDERED: Final = (
    *(pt.is_integer, pt.is_floating, pt.is_decimal, pt.is_timestamp),
    *(pt.is_string, pt.is_large_string, pt.is_binary, pt.is_large_binary),
)


class _Part(NamedTuple):
    """A field with its values."""

    field: pa.Field
    values: pa.Array


def _part(name: str, path: str, array: Any, wanted: frozenset[str] | None, *, intervals: bool) -> _Part | None:
    """Return the values of a batch, a struct or a list under a name; None for a type that no field has."""
    if wanted is not None and path in wanted:
        wanted = None  # who looks at the whole, `path HAS (PATH(…))`, may look at anything below
    kind = array.type
    if pt.is_map(kind):
        return _map(name, path, array, wanted, intervals=intervals)
    if pt.is_struct(kind):
        parts = zip(kind, array.flatten(), strict=True)
        below = [_part(part.name, f"{path}.{part.name}", one, wanted, intervals=intervals) for part, one in parts]
        values = _object([one for one in below if one is not None], array)
        return _interval(name, values) if intervals and is_interval(values.type) else _named(name, values)
    if pt.is_list(kind) or pt.is_large_list(kind):
        item = _part(kind.value_field.name, path, array.flatten(), wanted, intervals=intervals)
        return None if item is None else _named(name, _list(item, array))
    if pt.is_date(kind) or (pt.is_timestamp(kind) and kind.tz is None):
        return _named(name, array.cast(pa.timestamp("us")).cast(_TIME))
    return _named(name, array) if _is_value(kind) else None


def _named(name: str, values: Any) -> _Part:
    return _Part(pa.field(name, values.type), values)


def _map(name: str, path: str, array: Any, wanted: frozenset[str] | None, *, intervals: bool) -> _Part | None:
    """Return a map as an object with the keys in filters."""
    if not pt.is_string(array.type.key_type):
        return None
    above = f"{path}."
    if wanted is None:
        keys = pc.unique(array.keys).to_pylist()
    else:
        keys = sorted({key for one in wanted if one.startswith(above) for key in _starts(one.removeprefix(above))})
    values = ((key, pc.map_lookup(array, pa.scalar(key), "last")) for key in keys)
    found = [_part(key, above + key, value, wanted, intervals=intervals) for key, value in values]
    return _named(name, _object([one for one in found if one is not None], array))


def _starts(path: str) -> Iterable[str]:
    """Return the keys with which a path below a map may begin: `zone.name` is a key, or below the key `zone`."""
    steps = path.split(".")
    return (".".join(steps[:count]) for count in range(1, len(steps) + 1))


def _object(parts: list[_Part], array: Any) -> pa.Array:
    if not parts:
        return pa.array([None if null else {} for null in array.is_null().to_pylist()], pa.struct([]))
    mask = array.is_null() if array.null_count else None
    return pa.StructArray.from_arrays([part.values for part in parts], fields=[part.field for part in parts], mask=mask)


def _list(item: _Part, array: Any) -> pa.Array:
    """The lists of an array with other items, as many as before."""
    ends = np.concatenate([[0], np.cumsum(pc.list_value_length(array).fill_null(0).to_numpy())])
    nothing = np.append(array.is_null().to_numpy(zero_copy_only=False), False)  # a null where a list begins: no list
    if pt.is_large_list(array.type):
        offsets = pa.array(ends, pa.int64(), mask=nothing)
        return pa.LargeListArray.from_arrays(offsets, item.values, type=pa.large_list(item.field))
    return pa.ListArray.from_arrays(pa.array(ends, pa.int32(), mask=nothing), item.values, type=pa.list_(item.field))


def _interval(name: str, values: Any) -> _Part:
    low, high, closed = (values.field(end) for end in ("low", "high", "closed"))
    closed = closed.cast(pa.string()).fill_null("[]")
    point = pc.and_(pc.equal(low, high), pc.not_equal(closed, "[]"))
    wrong = [
        *(values.is_null(), pc.and_(low.is_null(), high.is_null()), pc.invert(pc.is_in(closed, _CLOSED))),
        *(pc.greater(low, high), point),
        *(pc.is_nan(end) for end in (low, high) if pt.is_floating(end.type)),
    ]
    mask = np.any([one.fill_null(False).to_numpy(zero_copy_only=False) for one in wrong], axis=0)
    fields = [pa.field("low", low.type), pa.field("high", high.type), pa.field("closed", pa.string())]
    found = pa.StructArray.from_arrays([low, high, closed], fields=fields, mask=pa.array(mask, pa.bool_()))
    return _Part(pa.field(name, found.type, metadata={"fieldfare": "interval"}), found)


def _is_text(kind: pa.DataType) -> bool:
    return bool(pt.is_string(kind) or pt.is_large_string(kind))


def _is_value(kind: pa.DataType) -> bool:
    return bool(pt.is_boolean(kind) or pt.is_null(kind) or any(test(kind) for test in _ORDERED))
