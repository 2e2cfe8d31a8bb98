"""Timestamps in columns of JSON: strings in the usual form become timestamps all at once, in Arrow."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from fieldfare.pipeline.table.event_columns import TIME


def with_strings(kind: pa.DataType) -> pa.DataType:
    """Return a type with strings in place of timestamps, because JSON has no timestamps."""
    if pt.is_struct(kind):
        return pa.struct([part.with_type(with_strings(part.type)) for part in kind])
    return pa.string() if pt.is_timestamp(kind) else kind


def with_times(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """Return an array with timestamps in place of strings; ValueError for a string in an unusual form."""
    if pt.is_timestamp(kind):
        usual = pc.match_substring_regex(array, _USUAL_TIME)
        times = array.cast(kind)
        far = pc.or_(pc.less(times, _FIRST), pc.greater(times, _LAST))
        if pc.all(usual).as_py() is False or pc.any(far).as_py():
            raise ValueError("not a timestamp in its usual form")
        return times
    if pt.is_struct(kind) and array.type != kind:
        parts = [with_times(part, to.type) for part, to in zip(_children(array), kind, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null() if array.null_count else None)
    return array


def _children(array: pa.Array) -> list[pa.Array]:
    return [array.field(number) for number in range(array.type.num_fields)]


_USUAL_TIME: Final = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?(Z|[+-]\d\d:\d\d)$"
_FIRST: Final = pa.scalar(datetime(1, 1, 2, tzinfo=UTC), TIME)
_LAST: Final = pa.scalar(datetime(9999, 12, 30, tzinfo=UTC), TIME)
"""Arrow has years that Python lacks; a day is left for time zones"""
