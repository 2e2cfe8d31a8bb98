"""Arrow's decimals as 64-bit numbers, and the rows whose decimal is none of them exactly.

A decimal of at most 15 digits is the only one of so few digits near its float, and the division of two exact floats
is rounded once: such columns need no Python. Longer decimals are looked at one by one.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from fieldfare.events.decimals import Between, number

_SAFE: Final = 10**15
_EXACT_POWERS: Final = 22
"""powers of ten up to this one are floats exactly"""
_DIGITS: Final = 18
"""digits of a decimal that surely fits in 64 bits"""
_WIDEST: Final = 38
_SCALES: Final = (2, 6, 10)
"""scales to try for columns that are wider than their values, as Spark's `decimal(38,18)` is"""


def numbers(array: Any) -> tuple[Any, NDArray[np.bool_] | None]:
    """Return integers or floats for an array of decimals, and the rows that no 64-bit number stands for, if any."""
    kind = array.type
    if kind.scale == 0 and kind.precision <= _DIGITS:
        return array.cast(pa.int64()), None
    values, sure = _divided(array)
    others = np.flatnonzero(~sure)
    if not len(others):
        return _with_nulls(values, array), None
    unsure = np.zeros(len(array), np.bool_)
    for row, value in zip(others.tolist(), array.take(pa.array(others)).to_pylist(), strict=True):
        found = number(value)
        if type(found) is Between or abs(found) > 2**53:
            unsure[row] = True
        else:
            values[row] = found
    return _with_nulls(values, array), unsure if unsure.any() else None


def _with_nulls(values: NDArray[np.float64], array: Any) -> Any:
    return pa.array(values, mask=np.asarray(array.is_null()) if array.null_count else None)


def _divided(array: Any) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the floats of short decimals, and which rows are short or null."""
    array = _narrowed(array)
    scale = array.type.scale
    if not pt.is_decimal128(array.type) or not 0 <= scale <= _EXACT_POWERS:
        return np.zeros(len(array)), np.asarray(array.is_null())
    words = np.frombuffer(array.buffers()[1], np.int64)[2 * array.offset : 2 * (array.offset + len(array))]
    low, high = words[::2], words[1::2]
    short = (high == low >> 63) & (low < _SAFE) & (low > -_SAFE)
    return low / 10.0**scale, short | np.asarray(array.is_null())


def _narrowed(array: Any) -> Any:
    """Return decimals of 128 bits with as small a scale as the values have, if they fit."""
    kind = array.type
    if kind.precision <= len(str(_SAFE)) - 1:
        return array if pt.is_decimal128(kind) else array.cast(pa.decimal128(kind.precision, kind.scale))
    for scale in (*(scale for scale in _SCALES if scale < kind.scale), kind.scale):
        try:
            return array.cast(pa.decimal128(_WIDEST, scale))
        except pa.ArrowInvalid:  # digits would be lost
            continue
    return array
