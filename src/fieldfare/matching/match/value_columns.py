"""Columns of values that were decoded one by one: a column holds the values of the most frequent kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

import pyarrow as pa
from msgspec import UNSET, UnsetType

_TYPES: Final = {
    str: pa.large_string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_(),
    datetime: pa.timestamp("us", "UTC"),
}  # fmt: skip
_EXACT: Final = 2**53


def column_of(values: Sequence[Any], odd: set[int]) -> Any:
    """Return values as an Arrow array, and add the rows to `odd` that the array cannot hold.

    UNSET is a missing value, and becomes a null. Odd are lists, objects, nulls, and values of another kind than most.

    >>> rows = set()
    >>> column_of([1, 2.5, UNSET, "x"], rows).to_pylist(), rows
    ([1.0, 2.5, None, None], {3})
    """
    kinds = _kinds(values)
    if int in kinds and float in kinds:
        values = [float(value) if type(value) is int and abs(value) <= _EXACT else value for value in values]
        kinds = _kinds(values)
    missing = kinds.pop(UnsetType, 0)
    chosen = max((kind for kind in kinds if kind in _TYPES), key=kinds.__getitem__, default=None)
    if len(kinds) > (chosen is not None):
        odd.update(row for row, value in enumerate(values) if value is not UNSET and type(value) is not chosen)
    if chosen is None:
        return pa.nulls(len(values))
    if missing or len(kinds) > 1:
        values = [value if type(value) is chosen else None for value in values]
    return pa.array(values, _TYPES[chosen])


def _kinds(values: Sequence[Any]) -> Counter[type]:
    """Count the values of each type; a column of one type is the rule, and needs no counting."""
    kinds = set(map(type, values))
    return Counter(map(type, values)) if len(kinds) > 1 else Counter(kinds)
