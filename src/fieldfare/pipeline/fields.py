"""Columns to fields: what Spark hands to Python as Arrow, made into what the engine takes.

A struct is an object, its fields have dotted paths; of a map, the keys are taken that some filter looks at. A decimal
becomes an integer or the nearest float, a date the midnight it begins with in UTC, a timestamp without a zone is taken
to be in UTC. Columns of other types are no fields. A null is a missing field.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

_TIME: Final = pa.timestamp("us", "UTC")
_INTERVAL: Final = {"fieldfare": "interval"}
_ENDS: Final = ({"low", "high"}, {"low", "high", "closed"})
_DIGITS: Final = 18
"""of a decimal that surely fits in 64 bits"""


def as_batch(columns: Any, wanted: Iterable[str] | None, *, intervals: bool = False) -> pa.RecordBatch:
    """The struct array of a batch of events as the record batch of their fields.

    `wanted` are the paths that filters look at, None for all. With `intervals`, a struct of low, high and perhaps
    closed is an interval.
    """
    paths = None if wanted is None else frozenset(wanted)
    parts = zip(columns.type, columns.flatten(), strict=True)
    found = [one for field, array in parts if (one := _field("", field.name, array, paths, intervals=intervals))]
    if not found:
        return pa.RecordBatch.from_struct_array(pa.array([{}] * len(columns), pa.struct([])))
    return pa.RecordBatch.from_arrays([array for _, array in found], schema=pa.schema([field for field, _ in found]))


_Field = tuple[pa.Field, pa.Array]


def _field(above: str, name: str, array: Any, wanted: frozenset[str] | None, *, intervals: bool) -> _Field | None:
    """A field below a path that ends in a dot, with its values; None for a type that no field has."""
    kind = array.type
    if pt.is_map(kind):
        return _map(above, name, array, wanted, intervals=intervals)
    if pt.is_struct(kind):
        if intervals and {field.name for field in kind} in _ENDS:
            return _interval(name, array)
        parts = zip(kind, array.flatten(), strict=True)
        below = [_field(f"{above}{name}.", field.name, part, wanted, intervals=intervals) for field, part in parts]
        return _object(name, [one for one in below if one is not None], array)
    if pt.is_decimal(kind):
        whole = kind.scale == 0 and kind.precision <= _DIGITS
        array = array.cast(pa.int64() if whole else pa.float64(), safe=False)
    elif pt.is_date(kind) or (pt.is_timestamp(kind) and kind.tz is None):
        array = array.cast(pa.timestamp("us")).cast(_TIME)
    elif not _holds_values(kind):
        return None
    return pa.field(name, array.type), array


def _map(above: str, name: str, array: Any, wanted: frozenset[str] | None, *, intervals: bool) -> _Field | None:
    """A map as an object, of the keys that filters look at."""
    if not pt.is_string(array.type.key_type):
        return None
    below = f"{above}{name}."
    if wanted is None:
        keys = pc.unique(array.keys).to_pylist()
    else:
        keys = sorted({key for one in wanted if one.startswith(below) for key in _starts(one.removeprefix(below))})
    values = ((key, pc.map_lookup(array, pa.scalar(key), "last")) for key in keys)
    found = [_field(below, key, value, wanted, intervals=intervals) for key, value in values]
    return _object(name, [one for one in found if one is not None], array)


def _starts(path: str) -> Iterable[str]:
    """The keys that a path below a map may begin with: `zone.name` is that key, or the field `name` of `zone`."""
    steps = path.split(".")
    return (".".join(steps[:count]) for count in range(1, len(steps) + 1))


def _object(name: str, parts: list[_Field], array: Any) -> _Field:
    mask = array.is_null() if array.null_count else None
    if parts:
        values = pa.StructArray.from_arrays(
            [part for _, part in parts], fields=[field for field, _ in parts], mask=mask
        )
    else:
        values = pa.array([None if null else {} for null in array.is_null().to_pylist()], pa.struct([]))
    return pa.field(name, values.type), values


def _interval(name: str, array: Any) -> _Field:
    low, high = (array.field(array.type.get_field_index(end)) for end in ("low", "high"))
    closed = array.type.get_field_index("closed")
    how = array.field(closed) if closed >= 0 else pa.array(["[]"] * len(array), pa.string())
    fields = [pa.field("low", low.type), pa.field("high", high.type), pa.field("closed", pa.string())]
    nothing = pc.and_(low.is_null(), high.is_null())  # without any end it is no interval, but a missing field
    mask = pc.or_(array.is_null(), nothing)
    values = pa.StructArray.from_arrays([low, high, how.fill_null("[]")], fields=fields, mask=mask)
    return pa.field(name, values.type, metadata=_INTERVAL), values


def _holds_values(kind: Any) -> bool:
    if pt.is_list(kind) or pt.is_large_list(kind):
        return _holds_values(kind.value_type) or (
            pt.is_struct(kind.value_type) and all(_holds_values(field.type) for field in kind.value_type)
        )
    return bool(
        pt.is_boolean(kind)
        or pt.is_integer(kind)
        or pt.is_floating(kind)
        or pt.is_string(kind)
        or pt.is_large_string(kind)
        or pt.is_binary(kind)
        or pt.is_large_binary(kind)
        or pt.is_timestamp(kind)
        or pt.is_null(kind)
    )
