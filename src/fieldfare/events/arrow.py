"""Events as Arrow record batches: a column per top-level field, a struct per nested object.

Arrow knows null but not missing, and missing fields are far more common, so a null is read as a missing field unless
the caller asks for `nulls="null"`; in a list a null always stays, because a hole would move the other elements. A
column holds values of one kind; integers among floats become floats if no value changes. An interval is a struct of
`low`, `high` and `closed`, and its field has the metadata `fieldfare: interval`. The column `$valid` is reserved for
validity periods.

Arrow makes and reads the columns. Python looks at each row only for types unknown to Arrow: missing fields, intervals,
decimals and tuples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from itertools import accumulate
from operator import attrgetter, methodcaller
from typing import Any, Final, Literal, TypeAlias, cast

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from fieldfare.events import decimals
from fieldfare.events.event import Event
from fieldfare.events.json import VALID, refuse_reserved
from fieldfare.events.limits import DEFAULT_LIMITS, EventError, Limits
from fieldfare.events.values import Interval, Kind, Value, kind_of

Nulls: TypeAlias = Literal["missing", "null"]
"""The reading of a null in a column: as a missing field, or as null."""

_TIME: Final = pa.timestamp("us", "UTC")
_SCALARS: Final = {Kind.BOOL: pa.bool_(), Kind.STRING: pa.string(), Kind.BYTES: pa.binary(), Kind.TIME: _TIME}
_INTERVAL: Final = {b"fieldfare": b"interval"}
_Column: TypeAlias = tuple[pa.Field, pa.Array]
_Number: TypeAlias = Callable[[Decimal, str], "int | float"]
"""the number for a decimal at a path"""


def to_batch(events: Sequence[Event]) -> pa.RecordBatch:
    """Return events as a record batch, with columns in the order in which the fields first occur.

    >>> to_batch([Event({"symbol": "IBM", "price": 1}), Event({"symbol": "SAP", "price": 1.5})]).to_pydict()
    {'symbol': ['IBM', 'SAP'], 'price': [1.0, 1.5]}
    """
    columns = _columns(list(map(attrgetter("_tree"), events)), "")
    refuse_reserved({field.name for field, _ in columns})
    periods = list(map(attrgetter("valid"), events))
    if any(periods):
        columns.append(_column(periods, VALID, VALID))
    return pa.RecordBatch.from_struct_array(_struct(columns, [False] * len(events)))


def from_batch(batch: pa.RecordBatch, *, nulls: Nulls = "missing", limits: Limits = DEFAULT_LIMITS) -> list[Event]:
    """Return an event for each row; an `EventError` names the column and the row."""
    if VALID in batch.schema.names and not is_interval(batch.schema.field(VALID)):
        raise EventError(VALID, "the column is reserved for validity periods, which are intervals")
    events = []
    for number, row in enumerate(_rows(batch, nulls, _number), 1):
        valid = cast("Interval | None", row.pop(VALID, None))
        try:
            events.append(Event(row, valid=valid, limits=limits))
        except EventError as error:
            raise EventError(error.field, f"{error.problem} (row {number})") from None
    return events


def rows(batch: pa.RecordBatch, *, nulls: Nulls = "missing") -> list[dict[str, Value]]:
    """Return a plain mapping for each row, to match without events; validity periods are in `$valid`.

    A decimal is a number of any length, see `decimals`.
    """
    return _rows(batch, nulls, lambda value, _: decimals.number(value))


def _rows(batch: pa.RecordBatch, nulls: Nulls, number: _Number) -> list[dict[str, Value]]:
    if not batch.num_columns:
        return [{} for _ in range(batch.num_rows)]
    _refuse_equal(batch.schema.names, "")
    columns = [_cast(column, field.name) for column, field in zip(batch.columns, batch.schema, strict=True)]
    found = _to_pylist(pa.RecordBatch.from_arrays(columns, names=batch.schema.names))
    for field, column in zip(batch.schema, columns, strict=True):
        read = _reader(field.with_type(column.type), field.name, nulls, number)
        if read is not None:
            for row in found:
                row[field.name] = read(row[field.name])
    if nulls == "missing" and any(column.null_count for column in columns):
        return [_without_nulls(row) for row in found]
    return found


def _columns(trees: Sequence[Mapping[str, Value]], path: str) -> list[_Column]:
    shapes = dict.fromkeys(map(tuple, trees))  # few shapes, so not every field of every row is looked at
    names = dict.fromkeys(name for shape in shapes for name in shape)
    return [  # `map` and `methodcaller`: no bytecode for each row
        _column(list(map(methodcaller("get", name), trees)), name, f"{path}.{name}" if path else name)
        for name in cast("Iterable[str]", names)
    ]


def _column(values: Sequence[Any], name: str, path: str) -> _Column:
    types = set(map(type, values)) - {type(None)}
    kinds = {cast(Kind, kind_of(next(value for value in values if type(value) is kind))) for kind in types}
    if len(kinds) > 1:
        raise EventError(path, f"a column cannot hold both {' and '.join(sorted(kind.value for kind in kinds))}")
    metadata = None
    match kinds.pop() if kinds else Kind.NULL:
        case Kind.NULL:
            array = pa.nulls(len(values))
        case Kind.NUMBER if types == {int}:
            array = pa.array(values, pa.int64())
        case Kind.NUMBER:
            array = pa.array(_floats(values, path) if int in types else values, pa.float64())
        case Kind.LIST:
            array = _list(values, path)
        case Kind.OBJECT:
            array = _struct(_columns([value or {} for value in values], path), [value is None for value in values])
        case Kind.INTERVAL:
            array, metadata = _intervals(values, path), _INTERVAL
        case kind:
            array = pa.array(values, _SCALARS[kind])
    return pa.field(name, array.type, metadata=metadata), array


def _floats(values: Sequence[Any], path: str) -> list[float | None]:
    for value in values:
        if type(value) is int and int(float(value)) != value:
            raise EventError(path, f"the column holds floats too, and the integer {value} is none exactly")
    return [None if value is None else float(value) for value in values]


def _list(values: Sequence[tuple[Value, ...] | None], path: str) -> pa.Array:
    item, items = _column([item for value in values if value for item in value], "item", path)
    ends = [0, *accumulate(len(value or ()) for value in values)]
    starts = [None if value is None else start for value, start in zip(values, ends[:-1], strict=True)]
    return pa.ListArray.from_arrays(pa.array([*starts, ends[-1]], pa.int32()), items, type=pa.list_(item))


def _struct(columns: Sequence[_Column], missing: list[bool]) -> pa.Array:
    fields = [field for field, _ in columns]
    if not columns:
        return pa.array([None if null else {} for null in missing], pa.struct([]))
    mask = pa.array(missing, pa.bool_()) if any(missing) else None
    return pa.StructArray.from_arrays([array for _, array in columns], fields=fields, mask=mask)


def _intervals(values: Sequence[Interval | None], path: str) -> pa.Array:
    ends = [value and value.low for value in values] + [value and value.high for value in values]
    _, array = _column(ends, "end", path)  # both ends together, so that the types are the same
    closed = pa.array([value and value.closed for value in values], pa.string())
    parts = {"low": array[: len(values)], "high": array[len(values) :], "closed": closed}
    return _struct([(pa.field(name, part.type), part) for name, part in parts.items()], [v is None for v in values])


def _cast(column: pa.Array, path: str) -> pa.Array:
    target = _readable(column.type, path)
    if column.type == target:
        return column
    try:
        return column.cast(options=pc.CastOptions(target_type=target, allow_time_truncate=True))
    except pa.ArrowException as error:
        raise EventError(path, str(error)) from None


def _readable(kind: pa.DataType, path: str) -> pa.DataType:
    """Return the Arrow type to which a column is cast before Python reads the values."""
    if any(test(kind) for test in _AS_IT_IS):
        return kind
    if pt.is_uint64(kind):
        return pa.int64()
    if pt.is_dictionary(kind):
        return _readable(kind.value_type, path)
    if pt.is_timestamp(kind):
        if kind.tz is None:
            raise EventError(path, "the timestamps have no time zone; cast them to one, such as UTC")
        return _TIME
    if pt.is_struct(kind):
        _refuse_equal([field.name for field in kind], path)
        return pa.struct([field.with_type(_readable(field.type, f"{path}.{field.name}")) for field in kind])
    if pt.is_list(kind) or pt.is_large_list(kind) or pt.is_fixed_size_list(kind):
        item = kind.value_field.with_type(_readable(kind.value_type, path))
        return pa.large_list(item) if pt.is_large_list(kind) else pa.list_(item)
    raise EventError(path, f"the Arrow type {kind} is not one a field can hold; cast the column first")


_AS_IT_IS: Final[tuple[Callable[[pa.DataType], bool], ...]] = (
    *(pt.is_string, pt.is_large_string, pt.is_string_view, pt.is_boolean, pt.is_null, pt.is_floating, pt.is_decimal),
    *(pt.is_binary, pt.is_large_binary, pt.is_binary_view, pt.is_fixed_size_binary),
    lambda kind: pt.is_integer(kind) and not pt.is_uint64(kind),
)


def _to_pylist(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    try:
        return cast("list[dict[str, Any]]", batch.to_pylist())
    except (ValueError, OverflowError):  # a timestamp after the year 9999, bytes that are not UTF-8: look for it
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            try:
                column.to_pylist()
            except (ValueError, OverflowError) as error:
                raise EventError(name, f"a value cannot be read: {error}") from None
        raise


def _reader(field: pa.Field, path: str, nulls: Nulls, number: _Number) -> Callable[[Any], Any] | None:
    """Return a function from Arrow's Python objects to values; None if the objects are values already."""
    kind = field.type
    if pt.is_decimal(kind):
        return lambda value: None if value is None else number(value, path)
    if pt.is_struct(kind):
        inner = {part.name: _reader(part, f"{path}.{part.name}", nulls, number) for part in kind}
        if is_interval(field):
            return lambda value: None if value is None else _interval(_object(value, inner, "null"), path)
        return lambda value: None if value is None else _object(value, inner, nulls)
    if pt.is_list(kind) or pt.is_large_list(kind):
        item = _reader(kind.value_field, path, nulls, number)
        return lambda value: None if value is None else tuple(map(item, value) if item else value)
    return None


def _number(value: Decimal, path: str) -> int | float:
    number = decimals.number(value)
    if isinstance(number, decimals.Between):
        raise EventError(path, f"the decimal {value} is no float exactly; cast the column to float64 or string first")
    return number


def _interval(value: Mapping[str, Any], path: str) -> Interval:
    try:
        return Interval(value["low"], value["high"], value["closed"])
    except (ValueError, KeyError) as error:
        raise EventError(path, f"not an interval: {error}") from None


def _object(value: dict[str, Any], inner: Mapping[str, Callable[[Any], Any] | None], nulls: Nulls) -> dict[str, Any]:
    read = {name: reader(value[name]) if (reader := inner[name]) else value[name] for name in value}
    return _without_nulls(read) if nulls == "missing" else read


def _without_nulls(row: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in row.items() if value is not None}


def is_interval(field: pa.Field) -> bool:
    """Tell whether a struct column holds intervals."""
    return (field.metadata or {}).get(b"fieldfare") == b"interval" and pt.is_struct(field.type)


def _refuse_equal(names: Sequence[str], path: str) -> None:
    if len(set(names)) < len(names):
        name = next(name for name in names if names.count(name) > 1)
        raise EventError(f"{path}.{name}" if path else name, "two columns have this name")
