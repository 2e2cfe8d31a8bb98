"""The fields of a single event to keys; `batch_keys` does the same for batches."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from fieldfare.events.values import Interval
from fieldfare.matching.store.columns import Attribute, Columns
from fieldfare.matching.store.keys import (
    BYTES_TAG,
    FALSE_TAG,
    MISSING_KEY,
    NAN_TAG,
    NULL_TAG,
    NUMBER_TAG,
    OBJECT_TAG,
    STRING_TAG,
    TIME_TAG,
    TRUE_TAG,
    UNKNOWN_KEY,
    WILD_KEY,
    time_key,
)

_SIGN: Final = 0x7FFFFFFFFFFFFFFF
"""the bits to flip in the key of a negative number; keys then order as the numbers do"""
_TAME: Final = frozenset({type(None), bool, datetime, bytes})
"""kinds of values that never get a wild key, besides numbers and strings"""


class KeyBuffer:
    """A reusable buffer for the keys of an event and for the results: a new buffer would take longer than a match."""

    __slots__ = ("_blank", "_bytes", "_real", "_whole", "found", "keys", "wild")

    def __init__(self, columns: int) -> None:
        self.keys = np.full((max(1, columns), 1), MISSING_KEY, np.int64)
        self.found = np.empty(256, np.int64)
        self.wild = False
        """whether there may be wild keys in the buffer"""
        self._blank = self.keys.tobytes()
        self._bytes = self.keys.data.cast("B")
        self._whole = self._bytes.cast("q")
        self._real = self._bytes.cast("d")

    def write(self, columns: Columns, fields: Mapping[str, object]) -> NDArray[np.int64]:
        """Write and return the keys of an event, valid until the next write."""
        self._bytes[:] = self._blank
        self.wild = _encode(columns, fields, self._whole, self._real)
        return self.keys


def _encode(columns: Columns, fields: Mapping[str, object], whole: memoryview[int], real: memoryview[float]) -> bool:
    """Write the keys of an event into a buffer, seen as integers and as floats; tell whether some may be wild."""
    attributes = columns.attributes
    wild = False
    for path, value in fields.items():
        attribute = attributes.get(path)
        if attribute is None:
            continue
        kind = type(value)
        if kind is float:
            if value == value:
                tag = NUMBER_TAG
                if attribute.number >= 0:
                    real[attribute.number] = value + 0.0  # type: ignore[operator]
                    if value < 0:  # type: ignore[operator]
                        whole[attribute.number] ^= _SIGN
            else:
                tag = NAN_TAG
        elif kind is str:
            tag = STRING_TAG
            if attribute.string >= 0:
                whole[attribute.string] = attribute.strings.get(value, UNKNOWN_KEY)  # type: ignore[call-overload]
            for length, column, numbers in attribute.slices:
                text = value[:length] if length > 0 else value[length:]  # type: ignore[index]
                whole[column] = numbers.get(text, UNKNOWN_KEY)
        elif kind is int and -(2**53) <= value <= 2**53:  # type: ignore[operator]
            tag = NUMBER_TAG
            if attribute.number >= 0:
                real[attribute.number] = value  # type: ignore[call-overload]
                if value < 0:  # type: ignore[operator]
                    whole[attribute.number] ^= _SIGN
        else:
            tag = _encode_rest(attribute, value, whole)
            wild = wild or kind not in _TAME
        if attribute.tag >= 0:
            whole[attribute.tag] = tag
    return wild


def _encode_rest(attribute: Attribute, value: object, whole: memoryview[int]) -> int:
    """Write the keys of a value of a rarer kind and return the tag."""
    match value:
        case None:
            return NULL_TAG
        case bool():
            return TRUE_TAG if value else FALSE_TAG
        case datetime():
            if attribute.time >= 0:
                whole[attribute.time] = time_key(value)
            return TIME_TAG
        case bytes():
            return BYTES_TAG
        case int():
            if attribute.number >= 0:
                whole[attribute.number] = WILD_KEY
            return NUMBER_TAG
        case list() | tuple() | Interval():
            for column in (
                attribute.number,
                attribute.string,
                attribute.time,
                *(c for _, c, _ in attribute.slices),
            ):
                if column >= 0:
                    whole[column] = WILD_KEY
            return WILD_KEY
        case str():
            return _encode_subclass(attribute, str(value), whole)
        case float():
            if attribute.number >= 0:
                whole[attribute.number] = WILD_KEY
            return WILD_KEY
    return OBJECT_TAG


def _encode_subclass(attribute: Attribute, value: str, whole: memoryview[int]) -> int:
    for column in (attribute.string, *(c for _, c, _ in attribute.slices)):
        if column >= 0:
            whole[column] = WILD_KEY
    return STRING_TAG
