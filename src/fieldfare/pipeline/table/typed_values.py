"""Values of an event in the declared types, converted exactly: a value that does not fit is an EventError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import pyarrow as pa
import pyarrow.types as pt

from fieldfare.events import EventError, Interval, parse_timestamp
from fieldfare.events.values import INT64_MAX, INT64_MIN, Kind, Ordered, Value, kind_of
from fieldfare.pipeline.match.fields import is_interval
from fieldfare.pipeline.table.event_columns import TIME


def fit_object(tree: Mapping[str, Value], kind: pa.StructType, path: str) -> tuple[dict[str, object], dict[str, Value]]:
    """Return an object as Arrow reads a struct, and the members that the struct does not have."""
    declared = {part.name: part.type for part in kind}
    fitted: dict[str, object] = {}
    left: dict[str, Value] = {}
    for name, value in tree.items():
        if name in declared:
            fitted[name], over = _fit(value, declared[name], f"{path}.{name}" if path else name)
            if over is not None:
                left[name] = over
        else:
            left[name] = value
    return fitted, left


def _fit(value: Value, kind: pa.DataType, path: str) -> tuple[object, Value]:
    """Return a value as Arrow reads its type, and the undeclared rest; EventError if the value does not fit."""
    if value is None:
        return None, None
    if is_interval(kind):
        if isinstance(value, Interval):
            value = {"low": value.low, "high": value.high, "closed": value.closed}
        if isinstance(value, Mapping) and value.keys() == {"low", "high", "closed"}:
            return _fit_interval(value, kind, path), None
    elif pt.is_struct(kind):
        if isinstance(value, Mapping):
            fitted, left = fit_object(value, kind, path)
            return fitted, left or None
    elif pt.is_list(kind):
        if isinstance(value, tuple):
            pairs = [_fit(item, kind.value_type, path) for item in value]
            kept = value if any(left is not None for _, left in pairs) else None  # the whole list: a place has no name
            return [item for item, _ in pairs], kept
    elif (scalar := _scalar(value, kind)) is not None:
        return scalar, None
    raise EventError(path, f"declared as {_named(kind)}, and it is {_shown(value)}")


def _fit_interval(value: Mapping[str, Value], kind: pa.StructType, path: str) -> dict[str, object]:
    """Return an interval, or an object with the ends of an interval, as a struct."""
    low, high = (cast("Ordered | None", _fit(value[end], kind.field(end).type, path)[0]) for end in ("low", "high"))
    try:
        Interval(low, high, cast(str, value["closed"]))
    except ValueError as error:
        raise EventError(path, f"declared as an interval, and {error}") from None
    return {"low": low, "high": high, "closed": value["closed"]}


def _scalar(value: Value, kind: pa.DataType) -> object | None:
    """Return a value in a scalar type; None if the type does not have the value."""
    match kind_of(value):
        case Kind.BOOL:
            return value if pt.is_boolean(kind) else None
        case Kind.NUMBER:
            return _number(cast("int | float", value), kind)
        case Kind.STRING:
            if pt.is_timestamp(kind):
                try:
                    return parse_timestamp(cast(str, value))
                except ValueError:
                    return None
            return value if pt.is_string(kind) else None
        case Kind.TIME:
            return value if pt.is_timestamp(kind) else None
        case Kind.BYTES:
            return value if pt.is_binary(kind) else None
        case _:
            return None


def _number(value: int | float, kind: pa.DataType) -> int | float | None:
    """Return a number in another type; None if the number would change."""
    if pt.is_int64(kind):
        if isinstance(value, float) and not (value.is_integer() and INT64_MIN <= value <= INT64_MAX):
            return None
        number = int(value)
        return number if INT64_MIN <= number <= INT64_MAX else None
    if pt.is_float64(kind):
        return float(value) if isinstance(value, float) or int(float(value)) == value else None
    return None


def first_path(left: Mapping[str, Value]) -> str:
    """Return the path of the first value in a tree, to name an undeclared field of an event."""
    name, value = next(iter(left.items()))
    return f"{name}.{first_path(value)}" if isinstance(value, Mapping) and value else name


def _named(kind: pa.DataType) -> str:
    if pt.is_struct(kind):
        return "an interval" if is_interval(kind) else "an object"
    if pt.is_list(kind):
        return "a list"
    return f"a {_NAMES.get(kind, kind)}"


_NAMES: Final = {
    pa.int64(): "long",
    pa.float64(): "double",
    TIME: "timestamp",
    pa.bool_(): "boolean",
    pa.binary(): "binary",
}
_SHOWN: Final = 60


def _shown(value: Value) -> str:
    text = repr(value)
    return f"the {cast(Kind, kind_of(value)).value} {text if len(text) <= _SHOWN else text[:_SHOWN] + '…'}"
