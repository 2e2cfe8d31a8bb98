"""The event table: the form of events in bulk, whatever their source.

    id string, source string, sequence long, time timestamp, type string, fields struct<…>, rest string

`fields` has a type for each name: boolean, long, double, string, timestamp, binary, an array or a struct of these; a
struct of just `low` and `high`, of the same ordered type, and `closed`, a string, is an interval. A missing field and
null are the same there. Undeclared fields of an event are in `rest`, as JSON. The types are declared as DDL, or
inferred from samples.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, cast

from pyspark.sql import DataFrame
from pyspark.sql.functions import col
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    BooleanType,
    DataType,
    DoubleType,
    LongType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from fieldfare.events import Event, EventError, Interval
from fieldfare.events.cloudevents import decode_any
from fieldfare.events.json import VALID
from fieldfare.events.limits import DEFAULT_LIMITS, Limits
from fieldfare.events.values import Kind, kind_of

ATTRIBUTES: Final[Mapping[str, DataType]] = {
    "id": StringType(),
    "source": StringType(),
    "sequence": LongType(),
    "time": TimestampType(),
    "type": StringType(),
}
"""the columns that every event table has"""
SAMPLE: Final = 10_000
_SCALARS: Final[Mapping[Kind, DataType]] = {
    Kind.BOOL: BooleanType(),
    Kind.STRING: StringType(),
    Kind.TIME: TimestampType(),
    Kind.BYTES: BinaryType(),
}
_ORDERED: Final = (LongType, DoubleType, StringType, TimestampType, BinaryType)
_FIELDS: Final = (*_ORDERED, BooleanType)


class TableError(ValueError):
    """A schema that no event table has, or two schemas that contradict each other."""


def schema(fields: StructType) -> StructType:
    """Return all columns of an event table with these fields."""
    columns = [StructField(name, kind) for name, kind in ATTRIBUTES.items()]
    return StructType([*columns, StructField("fields", fields), StructField("rest", StringType())])


def declared(fields: StructType | str) -> StructType:
    """The types of the fields, as a schema or DDL such as `symbol string, price double, tags array<string>`."""
    given = fields if isinstance(fields, StructType) else cast(StructType, StructType.fromDDL(fields))
    _check(given, "")
    return given


def infer(raw: DataFrame, event: str = "event", *, sample: int = SAMPLE, limits: Limits = DEFAULT_LIMITS) -> StructType:
    """Infer the types of the fields from some of the events, which are JSON texts in a column.

    A field with values of several kinds gets the most frequent kind. Left out are fields without a type (null, or an
    empty list or object, in all samples), all but the most frequent of names that differ only in case, which are the
    same name for Spark, and objects whose type would be that of intervals. Left-out fields are in `rest`.
    """
    if raw.isStreaming:
        raise TableError("a stream has no samples to infer the fields from: infer them from a batch, or declare them")
    texts = raw.select(col(event).cast("binary").alias("event")).where("event IS NOT NULL").limit(sample).toArrow()
    found = inferred(_readable(texts.column("event").to_pylist(), limits))
    if not found.fields:
        raise TableError(f"no event to infer fields from in the column {event!r}: declare them instead")
    return found


def inferred(events: Iterable[Event]) -> StructType:
    """The types of the fields of some events.

    >>> inferred([Event({"price": 1, "venue": {"id": 7}}), Event({"price": 1.5})]).simpleString()
    'struct<price:double,venue:struct<id:bigint>>'
    """
    trees: list[Mapping[str, object]] = [
        {**event.tree, VALID: event.valid} if event.valid is not None else event.tree for event in events
    ]
    return _struct(trees)


def merged(one: StructType, other: StructType, path: str = "") -> StructType:
    """Return the schema with the fields of both."""
    fields = {field.name: field for field in one}
    for field in other:
        mine = fields.get(field.name, field)
        kind = _merged(mine.dataType, field.dataType, _below(path, field.name))  # which also lets all be null
        fields[field.name] = StructField(field.name, kind)
    _check_names(list(fields), path)
    return StructType(list(fields.values()))


def is_interval(kind: DataType) -> bool:
    """Does a struct stand for an interval?"""
    if not isinstance(kind, StructType) or sorted(kind.names) != ["closed", "high", "low"]:
        return False
    low, high, closed = (kind[name].dataType for name in ("low", "high", "closed"))
    return low == high and isinstance(low, _ORDERED) and isinstance(closed, StringType)


def _merged(one: DataType, other: DataType, path: str) -> DataType:
    if isinstance(one, StructType) and isinstance(other, StructType):
        return merged(one, other, path)
    if isinstance(one, ArrayType) and isinstance(other, ArrayType):
        return ArrayType(_merged(one.elementType, other.elementType, path))
    if one != other:
        raise TableError(
            f"the column {path} is {one.simpleString()} in the table and {other.simpleString()} in what is to be added:"
            " cast it, or write it to a table of its own"
        )
    return one


def _check(kind: DataType, path: str) -> None:
    if isinstance(kind, StructType):
        _check_names(kind.names, path)
        for field in kind:
            _check(field.dataType, _below(path, field.name))
    elif isinstance(kind, ArrayType):
        _check(kind.elementType, path)
    elif not isinstance(kind, _FIELDS):
        raise TableError(
            f"the field {path} is declared as {kind.simpleString()}, and a field holds boolean, bigint, double, string,"
            " timestamp, binary, or an array or struct of these"
        )


def _check_names(names: Sequence[str], path: str) -> None:
    counted = Counter(name.casefold() for name in names)
    for name in names:
        if counted[name.casefold()] > 1:
            raise TableError(f"the field {_below(path, name)} is there twice: Spark tells no upper case from lower")


def _readable(texts: Iterable[bytes], limits: Limits) -> Iterable[Event]:
    for text in texts:
        try:
            yield decode_any(text, limits=limits)
        except EventError:  # the quarantine's business
            continue


def _struct(trees: Sequence[Mapping[str, object]]) -> StructType:
    counted = Counter(name for tree in trees for name in tree)
    best: dict[str, str] = {}
    for name, count in counted.items():
        other = best.get(name.casefold())
        if other is None or counted[other] < count:
            best[name.casefold()] = name
    names = [name for name in counted if best[name.casefold()] == name]
    kinds = {name: _kind([tree[name] for tree in trees if name in tree]) for name in names}
    return StructType([StructField(name, kind) for name, kind in kinds.items() if kind is not None])


def _kind(values: Sequence[object]) -> DataType | None:
    """Return the type for the most frequent kind of value; None if no type fits."""
    kinds = Counter(kind_of(value) for value in values)
    del kinds[Kind.NULL]
    if not kinds:
        return None
    (kind, _), *_ = kinds.most_common(1)
    chosen = [value for value in values if kind_of(value) is kind]
    match kind:
        case Kind.NUMBER:
            return LongType() if all(isinstance(value, int) for value in chosen) else DoubleType()
        case Kind.LIST:
            item = _kind([item for value in chosen for item in cast("tuple[object, ...]", value)])
            return item and ArrayType(item)
        case Kind.OBJECT:
            inner = _struct(cast("list[Mapping[str, object]]", chosen))
            return inner if inner.fields and not is_interval(inner) else None
        case Kind.INTERVAL:
            intervals = cast("list[Interval]", chosen)
            end = _kind([end for interval in intervals for end in (interval.low, interval.high)])
            assert end is not None
            names: dict[str, DataType] = {"low": end, "high": end, "closed": StringType()}
            return StructType([StructField(name, part) for name, part in names.items()])
        case _:
            return _SCALARS[cast(Kind, kind)]


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
