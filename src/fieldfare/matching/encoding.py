"""From the fields of one event to keys: what `batches` does for many."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from fieldfare.events.values import Interval
from fieldfare.matching.columns import Attribute, Columns
from fieldfare.matching.keys import (
    BYTES_TAG,
    FALSE_TAG,
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


def encode(columns: Columns, fields: Mapping[str, object], blank: bytes) -> bytearray:
    """The keys of one event, numbers as raw floats that kernels turn into keys. `blank` has all keys missing."""
    keys = bytearray(blank)
    whole = memoryview(keys).cast("q")
    real = memoryview(keys).cast("d")
    attributes = columns.attributes
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
        else:
            tag = _encode_rest(attribute, value, whole)
        if attribute.tag >= 0:
            whole[attribute.tag] = tag
    return keys


def _encode_rest(attribute: Attribute, value: object, whole: memoryview[int]) -> int:
    """The tag of a value of the rarer kinds, after its keys are written."""
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
