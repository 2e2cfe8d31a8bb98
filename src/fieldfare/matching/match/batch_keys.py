"""Arrow record batches to keys, column by column, without a Python loop over the rows.

Kernels read numbers and strings straight from Arrow's buffers; strings are looked up in a hash table of the constants
of all filters. A value that is no point (lists, decimals and integers too long for a float) gets the wild key, and is
left to verification. As in `fieldfare.events.arrow`, a null is a missing field.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fieldfare.events import arrow
from fieldfare.matching.match import decimal_keys
from fieldfare.matching.store.columns import Attribute, Columns
from fieldfare.matching.store.keys import (
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
    """The numbers of some texts, as a hash table over their bytes that kernels read; rebuilt when texts are added."""

    def __init__(self, numbers: dict[str, int], kernels: ModuleType, before: TextTable | None = None) -> None:
        known = before.size if before else 0
        added = pa.array(list(numbers)[known:], pa.large_string())  # listed at once: a writer may add some meanwhile
        self.size: int = known + len(added)
        offsets, data = _buffers(added)
        self.offsets: Ints = np.concatenate([before.offsets, offsets[1:] + before.offsets[-1]]) if before else offsets
        self.data: NDArray[np.uint8] = np.concatenate([before.data, data]) if before else data
        self.heads = np.empty(self.size, np.uint64)
        self.slots = np.full(1 << max(4, (4 * self.size).bit_length()), -1, np.int32)
        self.address = self.data.ctypes.data
        limit = self.address + len(self.data)
        kernels.text_insert(self.slots, self.offsets, self.heads, self.address, limit, 0, self.size)


def _buffers(texts: Any) -> tuple[Ints, NDArray[np.uint8]]:
    """Return the offsets and bytes of an Arrow array of large strings without nulls."""
    _, offsets, data = texts.buffers()
    return (
        np.frombuffer(offsets, np.int64)[: len(texts) + 1] if len(texts) else np.zeros(1, np.int64),
        np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8),
    )


class Encoder:
    """The encoder of batches for a set of columns; text tables are kept between batches."""

    def __init__(self, columns: Columns) -> None:
        self._columns = columns
        self._tables: dict[int, TextTable] = {}

    def chunks(self, batch: Any, size: int, rows: int, kernels: ModuleType | None) -> Iterator[Ints]:
        """Yield the keys of a batch, some rows at a time: columns × rows, valid until the next chunk.

        IndexError if a column is not among the first `size`.
        """
        batch_keys = _BatchKeys(batch.num_rows, size, kernels)
        for path, array, simple in leaves(batch):
            attribute = self._columns.attributes.get(path)
            if attribute is not None:
                self._fill(attribute, array, batch_keys, simple=simple)
        return batch_keys.chunks(rows)

    def _fill(self, attribute: Attribute, array: Any, batch_keys: _BatchKeys, *, simple: bool) -> None:
        kind = array.type
        tag: Any
        if simple and kind.id in _NUMBERS:
            _numbers(attribute, array, batch_keys)
            return
        if simple and pa.types.is_decimal(kind):
            numbers, unsure = decimal_keys.numbers(array)
            _numbers(attribute, numbers, batch_keys, unsure)
            return
        if not simple:
            tag = _wild(attribute, array, batch_keys)
        elif is_text(kind):
            self._texts(attribute, array, batch_keys)
            tag = STRING_TAG
        elif pa.types.is_boolean(kind):
            tag = np.where(np.asarray(array.fill_null(False)), TRUE_TAG, FALSE_TAG)
        elif pa.types.is_timestamp(kind) and kind.tz is not None:
            tag = TIME_TAG
            if attribute.time >= 0:
                times = array.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.int64())
                batch_keys.put(attribute.time, np.asarray(times.fill_null(0)), array)
        elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            tag = BYTES_TAG
        elif pa.types.is_struct(kind):
            tag = OBJECT_TAG
        elif pa.types.is_null(kind):
            return
        else:
            tag = _wild(attribute, array, batch_keys)
        batch_keys.put(attribute.tag, tag, array)

    def _texts(self, attribute: Attribute, array: Any, batch_keys: _BatchKeys) -> None:
        """Turn strings, and their prefixes and suffixes, into numbers."""
        places = None
        if pa.types.is_dictionary(array.type):
            places, texts = np.asarray(array.indices.fill_null(0)), array.dictionary
        else:
            texts = array
        if pa.types.is_string_view(texts.type):
            texts = texts.cast(pa.large_string())
        for length, column, numbers in ((0, attribute.string, attribute.strings), *attribute.slices):
            if column < 0:
                continue
            if batch_keys.kernels is None:
                found = _looked_up(texts, length, numbers)
            elif places is None:
                batch_keys.put_texts(column, self._table(column, numbers, batch_keys.kernels), length, texts)
                continue
            else:
                few = _BatchKeys(len(texts), 1, batch_keys.kernels)
                few.put_texts(0, self._table(column, numbers, batch_keys.kernels), length, texts)
                found = np.concatenate([_NO_KEYS, *(keys[0] for keys in few.chunks(len(texts) or 1))])
            batch_keys.put(column, found if places is None else found[places] if len(found) else places, array)

    def _table(self, column: int, numbers: dict[str, int], kernels: ModuleType) -> TextTable:
        table = self._tables.get(column)
        if table is None or table.size != len(numbers):
            table = self._tables[column] = TextTable(numbers, kernels, table)
        return table


class _BatchKeys:
    """The keys of a batch under construction: finished columns, and the buffers that kernels will read."""

    def __init__(self, rows: int, size: int, kernels: ModuleType | None) -> None:
        self._rows = rows
        self._size = size
        self.kernels = kernels
        self._ready: list[tuple[int, Any]] = []
        self._numbers: list[tuple[int, ...]] = []
        self._texts: list[tuple[int, TextTable, int, Ints]] = []
        self._held: list[Any] = []
        """arrays whose addresses are in use"""

    def put(self, column: int, found: Any, array: Any) -> None:
        """Set the keys of a column, or a key for all rows, where an array has values."""
        if column >= self._size:
            raise IndexError(column)
        if column >= 0:
            self._ready.append((column, _where(array, found)))

    def put_numbers(self, column: int, tags: int, array: Any, *, real: bool) -> None:
        """Add the keys and tags of an array of 64-bit numbers."""
        if max(column, tags) >= self._size:
            raise IndexError(column)
        valid, values = array.buffers()
        self._held.append(array)
        bits, offset = 0 if valid is None else valid.address, array.offset
        self._numbers.append((values.address + 8 * offset, bits, offset, real, column, tags))

    def put_texts(self, column: int, table: TextTable, length: int, array: Any) -> None:
        """Add the numbers of an array of strings in a table, or of their affixes."""
        if column >= self._size:
            raise IndexError(column)
        valid, offsets, data = array.buffers()
        self._held.append(array)
        width = 8 if pa.types.is_large_string(array.type) else 4
        begin, size = (0, 0) if data is None else (data.address, data.size)
        bits = 0 if valid is None else valid.address
        source = (offsets.address + width * array.offset, width, begin, begin + size, bits, array.offset)
        self._texts.append((column, table, length, np.array(source, np.int64)))

    def chunks(self, rows: int) -> Iterator[Ints]:
        """Yield the keys of `rows` rows at a time; each chunk is overwritten by the next."""
        numbers = np.array(self._numbers, np.int64).reshape(-1, 6)
        keys = np.zeros((0, 0), np.int64)
        for start in range(0, self._rows, rows):
            count = min(rows, self._rows - start)
            blank = count != keys.shape[1]
            if blank:
                keys = np.full((self._size, count), MISSING_KEY, np.int64)  # as the columns that are not in the batch
            for column, found in self._ready:
                keys[column] = found[start : start + count]
            if self.kernels is not None:
                self.kernels.put_numbers(numbers, start, keys, blank)
                for column, table, length, source in self._texts:
                    self.kernels.put_texts(
                        table.slots, table.offsets, table.heads, table.address, source, length, start, keys, column
                    )
            yield keys


_NO_KEYS: Final = np.zeros(0, np.int64)
_WIDE: Final = frozenset({pa.int64().id, pa.float64().id})
_NUMBERS: Final = _WIDE | {
    kind().id
    for kind in (pa.int8, pa.int16, pa.int32, pa.uint8, pa.uint16, pa.uint32, pa.uint64, pa.float16, pa.float32)
}


def _looked_up(texts: Any, length: int, numbers: dict[str, int]) -> Ints:
    """Return the numbers of strings, or of their affixes, without kernels."""
    cut = slice(None) if not length else slice(length) if length > 0 else slice(length, None)
    known = ((text or "")[cut] for text in texts.to_pylist())
    return np.fromiter((numbers.get(text, UNKNOWN_KEY) for text in known), np.int64, len(texts))


def _where(array: Any, found: Any) -> Any:
    """Return keys where an array has values, and missing keys elsewhere."""
    if array.null_count == 0:
        return np.broadcast_to(found, len(array))
    return np.where(np.asarray(array.is_valid()), found, MISSING_KEY)


def leaves(batch: Any) -> Iterator[tuple[str, Any, bool]]:
    """Yield every column by dotted path, columns in structs and lists too, with a flag for single values."""
    for place, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        if column.type.num_fields:
            yield from _below(batch.schema.field(place), name, column)
        else:
            yield name, column, True


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
    """Yield the paths below the elements of a list; the values at these paths are lists."""
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _gathered(kind.value_type)
    elif pa.types.is_struct(kind):
        for i in range(kind.num_fields):
            name = kind.field(i).name
            yield name
            yield from (f"{name}.{below}" for below in _gathered(kind.field(i).type))


def _wild(attribute: Attribute, array: Any, batch_keys: _BatchKeys) -> int:
    for column in (attribute.number, attribute.string, attribute.time, *(c for _, c, _ in attribute.slices)):
        batch_keys.put(column, WILD_KEY, array)
    return WILD_KEY


def without_views(batch: Any) -> Any:
    """Return the batch with string views as strings, since Arrow cannot take rows of views."""
    views = [pa.types.is_string_view(field.type) for field in batch.schema]
    if not any(views):
        return batch
    fields = [
        field.with_type(pa.large_string()) if view else field for field, view in zip(batch.schema, views, strict=True)
    ]
    return batch.cast(pa.schema(fields))


def is_text(kind: Any) -> bool:
    """Tell whether a column of the type holds strings."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def distinct_texts(array: Any) -> tuple[list[str | None], Ints]:
    """Return the distinct strings of a column, and the place of each row's string among them; -1 for a null."""
    if pa.types.is_dictionary(array.type) and len(array.dictionary) > 2 * len(array):  # a slice of something large
        array = array.dictionary_decode()
    if not pa.types.is_dictionary(array.type):
        array = array.cast(pa.large_string()).dictionary_encode()
    return array.dictionary.to_pylist(), np.asarray(array.indices.fill_null(-1)).astype(np.int64)


def _numbers(attribute: Attribute, array: Any, batch_keys: _BatchKeys, unsure: Any = None) -> None:
    """Add the keys of numbers with their tags: NaN has a tag of its own. Rows that are unsure get the wild key."""
    real = pa.types.is_floating(array.type)
    if batch_keys.kernels is not None and not pa.types.is_uint64(array.type) and unsure is None:
        if array.type.id not in _WIDE:
            array = array.cast(pa.float64() if real else pa.int64())
        batch_keys.put_numbers(attribute.number, attribute.tag, array, real=real)
        return
    values = np.asarray(array.fill_null(0))
    bits: Ints = (values.astype(np.float64) + 0.0).view(np.int64)  # + 0.0 turns -0.0 into 0.0
    found = bits ^ ((bits >> 63) & 0x7FFFFFFFFFFFFFFF)
    tag: Any = NUMBER_TAG
    if real:
        nan = np.isnan(values)
        found[nan] = MISSING_KEY
        tag = np.where(nan, NAN_TAG, NUMBER_TAG)
    else:
        found[(values > 2**53) | (values < -(2**53))] = WILD_KEY
    if unsure is not None:
        found[unsure] = WILD_KEY
    batch_keys.put(attribute.number, found, array)
    batch_keys.put(attribute.tag, tag, array)
