"""The order of rows: by partition, then by ORDER BY. Each key becomes whole numbers in the same order.

Missing values come last, or first on demand; NaN comes after all numbers; texts compare by their UTF-8 bytes. Rows with
equal keys keep the order in which the table has the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from fieldfare.patterns.row_patterns.evaluation import Integers
from fieldfare.patterns.row_patterns.functions import plain

_BITS: Final = 63
_LOWEST: Final = np.iinfo(np.int64).min + 1
_HIGHEST: Final = np.iinfo(np.int64).max


class Key(NamedTuple):
    """A column to sort by."""

    column: str
    descending: bool = False
    nulls_first: bool = False


def codes_of(column: Any, *, descending: bool = False, nulls_first: bool = False) -> Integers:
    """Return whole numbers that sort as the values do.

    >>> codes_of(pa.array([2.5, None, -1.0])).argsort().tolist()
    [2, 0, 1]
    """
    column = plain(column)
    missing = column.is_null().to_numpy(zero_copy_only=False) if column.null_count else None
    codes = _codes(column)
    if descending:
        codes = -codes
    if missing is not None:
        codes = np.where(missing, _LOWEST if nulls_first else _HIGHEST, codes)
    return codes


def _codes(column: Any) -> Integers:
    kind = column.type
    if pa.types.is_floating(kind):
        numbers = pc.fill_null(column.cast(pa.float64()), 0.0).to_numpy(zero_copy_only=False) + 0.0  # no -0.0
        bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
        return np.where(bits < 0, -(bits & _HIGHEST), bits)
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    if kind != pa.uint64() and (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_temporal(kind)):
        whole = pc.fill_null(column.cast(pa.int64()), 0).to_numpy(zero_copy_only=False)
        return np.asarray(np.maximum(whole, _LOWEST))
    unique = pc.unique(column).drop_null()
    ranked = unique.take(pc.sort_indices(unique))
    return np.asarray(pc.fill_null(pc.index_in(column, ranked).cast(pa.int64()), 0).to_numpy(zero_copy_only=False))


def ordered(codes: Sequence[Integers]) -> Integers | None:
    """Return the rows in the order of their codes; None if the rows are in order already."""
    joined = _joined(codes)
    if joined is not None:
        if (joined[1:] >= joined[:-1]).all():
            return None
        return np.argsort(joined, kind="stable")
    return np.lexsort(list(reversed(codes)))


def _joined(codes: Sequence[Integers]) -> Integers | None:
    """Return a single number for each row, in the same order; None if 63 bits are not enough."""
    if not codes or not len(codes[0]):
        return np.zeros(len(codes[0]) if codes else 0, np.int64)
    codes = [_compact(one) for one in codes]
    lows = [int(one.min()) for one in codes]
    sizes = [int(one.max()) - low + 1 for one, low in zip(codes, lows, strict=True)]
    if sum((size - 1).bit_length() for size in sizes) > _BITS:
        return None
    joined = codes[0] - lows[0]
    for one, low, size in zip(codes[1:], lows[1:], sizes[1:], strict=True):
        joined = (joined << (size - 1).bit_length()) | (one - low)
    return joined


def _compact(codes: Integers) -> Integers:
    """Return codes in which missing values stand beside the others, not at the end of all numbers."""
    for place, step in ((_HIGHEST, 1), (_LOWEST, -1)):
        missing = codes == place
        if missing.any() and not missing.all():
            there = codes[~missing]
            codes = np.where(missing, (there.max() if step > 0 else there.min()) + step, codes)
    return codes


def bounds_of(codes: Sequence[Integers], rows: int) -> Integers:
    """Return the first row of each partition, and the end, for rows in order."""
    if not rows:
        return np.zeros(1, np.int64)
    new = np.zeros(rows - 1, np.bool_)
    for one in codes:
        new |= one[1:] != one[:-1]
    return np.concatenate([[0], np.flatnonzero(new) + 1, [rows]]).astype(np.int64)


def in_order(table: pa.Table, partition: Sequence[Key], order: Sequence[Key]) -> tuple[pa.Table, Integers]:
    """Return a table in order, and the bounds of its partitions."""
    table = pa.table([plain(column) for column in table.columns], names=table.column_names)
    groups = [codes_of(table.column(key.column)) for key in partition]
    within = [codes_of(table.column(key[0]), descending=key[1], nulls_first=key[2]) for key in order]
    if not groups and not within:
        return table, bounds_of([], table.num_rows)
    rows = ordered([*groups, *within])
    if rows is not None:
        table = table.take(pa.array(rows))
        groups = [one[rows] for one in groups]
    return table, bounds_of(groups, table.num_rows)
