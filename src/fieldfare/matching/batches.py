"""Arrow record batches to keys, column by column, without a Python loop over the rows.

A number column is copied; a string column is looked up, text by text, in a hash table of the constants that filters
mention (in a compiled kernel, straight from Arrow's buffers). What is not a point (lists, decimals, integers too long
for a float) gets the wild key, and is left to verification. As in `fieldfare.events.arrow`, a null is a missing field.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fieldfare.events import arrow
from fieldfare.matching.columns import Attribute, Columns
from fieldfare.matching.keys import (
    BYTES_TAG,
    FALSE_TAG,
    MISSING_KEY,
    NAN_TAG,
    NUMBER_TAG,
    OBJECT_TAG,
    STRING_TAG,
    TIME_TAG,
    TRUE_TAG,
    UNKNOWN_KEY,
    WILD_KEY,
)

Ints = NDArray[np.int64]


class TextTable:
    """The numbers of some texts, as a hash table over their bytes that kernels read. Made anew when it has grown."""

    def __init__(self, numbers: dict[str, int], kernels: ModuleType, before: TextTable | None = None) -> None:
        self.size = len(numbers)
        known = before.size if before else 0
        added = pa.array(list(itertools.islice(numbers, known, self.size)), pa.large_string())
        offsets, data = _buffers(added)
        self.offsets: Ints = np.concatenate([before.offsets, offsets[1:] + before.offsets[-1]]) if before else offsets
        self.data: NDArray[np.uint8] = np.concatenate([before.data, data]) if before else data
        self.slots = np.full(1 << max(4, (2 * self.size).bit_length()), -1, np.int32)
        kernels.text_insert(self.slots, self.offsets, self.data, 0, self.size)


def _buffers(texts: Any) -> tuple[Ints, NDArray[np.uint8]]:
    """Offsets and bytes of an Arrow array of large strings without nulls."""
    _, offsets, data = texts.buffers()
    bounds = (
        np.frombuffer(offsets, np.int64)[texts.offset : texts.offset + len(texts) + 1]
        if len(texts)
        else np.zeros(1, np.int64)
    )
    return bounds, np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)


class Encoder:
    """Encodes batches for a set of columns; keeps the text tables between batches."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._tables: dict[int, TextTable] = {}

    def encode(self, batch: Any, kernels: ModuleType | None) -> Ints:
        """The keys of a batch, columns × rows; numbers as raw floats."""
        keys = np.full((len(self._columns), batch.num_rows), MISSING_KEY, np.int64)
        for path, array, simple in _leaves(batch):
            attribute = self._columns.attributes.get(path)
            if attribute is not None:
                self._fill(attribute, array, keys, kernels, simple=simple)
        return keys

    def _fill(self, attribute: Attribute, array: Any, keys: Ints, kernels: ModuleType | None, *, simple: bool) -> None:
        valid = None if array.null_count == 0 else np.asarray(array.is_valid())
        kind = array.type
        tag: Any
        if not simple:
            tag = _wild(attribute, array, keys, valid)
        elif (pa.types.is_dictionary(kind) and _is_text(kind.value_type)) or _is_text(kind):
            tag = self._texts(attribute, array, keys, kernels, valid)
        elif pa.types.is_floating(kind) or pa.types.is_integer(kind):
            tag = _numbers(attribute, array, keys, valid)
        elif pa.types.is_boolean(kind):
            tag = np.where(np.asarray(array.fill_null(False)), TRUE_TAG, FALSE_TAG)
        elif pa.types.is_timestamp(kind) and kind.tz is not None:
            tag = TIME_TAG
            if attribute.time >= 0:
                times = array.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
                _put(keys, attribute.time, np.asarray(times.fill_null(0)), valid)
        elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            tag = BYTES_TAG
        elif pa.types.is_struct(kind):
            tag = OBJECT_TAG
        elif pa.types.is_null(kind):
            return
        else:
            tag = _wild(attribute, array, keys, valid)
        _put(keys, attribute.tag, tag, valid)

    def _texts(self, attribute: Attribute, array: Any, keys: Ints, kernels: ModuleType | None, valid: Any) -> int:
        indices = None
        if pa.types.is_dictionary(array.type):
            indices = np.asarray(array.indices.fill_null(0))
            array = array.dictionary
        else:
            array = array.cast(pa.large_string())
            array = array.fill_null("") if array.null_count else array
        for length, column, numbers in ((0, attribute.string, attribute.strings), *attribute.slices):
            if column < 0:
                continue
            found = np.full(len(array), UNKNOWN_KEY, np.int64)
            if kernels is not None:
                table = self._table(column, numbers, kernels)
                offsets, data = _buffers(array.cast(pa.large_string()))
                kernels.text_keys(table.slots, table.offsets, table.data, length, offsets, data, found)
            else:
                cut = slice(None) if not length else slice(length) if length > 0 else slice(length, None)
                found[:] = [numbers.get(text[cut], UNKNOWN_KEY) for text in array.to_pylist()]
            _put(keys, column, found if indices is None else found[indices] if len(found) else indices, valid)
        return STRING_TAG

    def _table(self, column: int, numbers: dict[str, int], kernels: ModuleType) -> TextTable:
        table = self._tables.get(column)
        if table is None or table.size != len(numbers):
            table = self._tables[column] = TextTable(numbers, kernels, table)
        return table


def _leaves(batch: Any) -> Iterator[tuple[str, Any, bool]]:
    """Every column by its dotted path, those in structs and lists too; and whether its values are single ones."""
    for field, column in zip(batch.schema, batch.columns, strict=True):
        yield from _below(field, field.name, column)


def _below(field: Any, path: str, array: Any) -> Iterator[tuple[str, Any, bool]]:
    kind = array.type
    simple = not arrow.is_interval(field)
    yield path, array, simple
    if simple and pa.types.is_struct(kind):
        for i, child in enumerate(array.flatten()):
            yield from _below(kind.field(i), f"{path}.{kind.field(i).name}", child)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from ((f"{path}.{name}", array, False) for name in _gathered(kind.value_type))


def _gathered(kind: Any) -> Iterator[str]:
    """The paths below the elements of a list, which are lists themselves."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _gathered(kind.value_type)
    elif pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            name = kind.field(i).name
            yield name
            yield from (f"{name}.{below}" for below in _gathered(kind.field(i).type))


def _wild(attribute: Attribute, array: Any, keys: Ints, valid: Any) -> int:
    wild = np.full(len(array), WILD_KEY, np.int64)
    for column in (attribute.number, attribute.string, attribute.time, *(c for _, c, _ in attribute.slices)):
        _put(keys, column, wild, valid)
    return WILD_KEY


def without_views(batch: Any) -> Any:
    """The batch with string views as strings, which Arrow can take rows of."""
    views = [pa.types.is_string_view(field.type) for field in batch.schema]
    if not any(views):
        return batch
    fields = [
        field.with_type(pa.large_string()) if view else field for field, view in zip(batch.schema, views, strict=True)
    ]
    return batch.cast(pa.schema(fields))


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _numbers(attribute: Attribute, array: Any, keys: Ints, valid: Any) -> Any:
    """Keys of numbers, and their tags: NaN has one of its own."""
    if pa.types.is_floating(array.type):
        values = np.asarray(array.cast(pa.float64()).fill_null(0.0))
        nan = np.isnan(values)
        found = (values + 0.0).view(np.int64)  # + 0.0 turns -0.0 into 0.0
        found[nan] = MISSING_KEY
        tag: Any = np.where(nan, NAN_TAG, NUMBER_TAG) if nan.any() else NUMBER_TAG
    else:
        whole = np.asarray(array.fill_null(0))
        found = whole.astype(np.float64).view(np.int64)
        if whole.dtype.itemsize == 8:
            found[(whole > 2**53) | (whole < -(2**53))] = WILD_KEY
        tag = NUMBER_TAG
    _put(keys, attribute.number, found, valid)
    return tag


def _put(keys: Ints, column: int, found: Any, valid: Any) -> None:
    """Write the keys of a column where the rows have a value."""
    if column < 0:
        return
    if valid is None:
        keys[column] = found
    else:
        keys[column] = np.where(valid, found, MISSING_KEY)
