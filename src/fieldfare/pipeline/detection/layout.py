"""`Layout`: the columns of composite events, and of events on the way to keys; checked before a job runs.

Each path of a field becomes a column, so that a worker sorts and decodes no more than patterns look at. An error
names the pattern and the field.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from fieldfare.events.values import MISSING
from fieldfare.filters.expressions import UNCERTAIN, Field
from fieldfare.patterns.conditions import Reference, Selection
from fieldfare.pipeline.detection.plan import NAMES, Prepared, references
from fieldfare.pipeline.match.fields import as_batch

TIME: Final = pa.timestamp("us", "UTC")
OURS: Final = frozenset({"key"})
"""columns of the result that no composite event has as a field"""
_WHOLE: Final = 18
"""digits of a decimal that is an integer of 64 bits in any case"""


class DetectError(ValueError):
    """A pattern does not fit the events of a job."""


@dataclass(frozen=True)
class Layout:
    """Arrow types of all columns behind the first filter."""

    fields: Mapping[str, Any]
    """of the fields that keys, conditions and selections look at, by path"""
    selected: Mapping[str, Any]
    """of the fields that patterns select, by name"""
    keys: tuple[str, ...]
    """all fields of keys"""
    kept: Any
    """the struct of an event in the list of constituents"""


def layout(prepared: Prepared, given: Any, kept: Any, known: Sequence[str] = ()) -> Layout:
    """Return the layout of a job; `given` and `kept` are struct types of Arrow. DetectError names a mistake.

    `known` are all fields of the events, and `given` has the fields in patterns.
    """
    fields: dict[str, Any] = {}
    empty = as_batch(pa.array([], given), prepared.references)
    for path in prepared.references:
        array = column_at(empty, path)
        if array is not None:
            fields[path] = array.type
    keys = tuple(dict.fromkeys(path for group in prepared.keys for path in group))
    for one in prepared.sought:
        if len(one.pattern.names) > NAMES:
            raise DetectError(f"pattern {one.name!r} has more than {NAMES} names of events")
        looked = [*one.pattern.keys, *(reference.path for reference in references(one.pattern) if reference.path)]
        for path in looked:
            if path not in fields:
                raise DetectError(f"pattern {one.name!r}: {_unknown(path, known or [part.name for part in given])}")
        for path in one.pattern.keys:
            if not _is_key(column_at(empty, path, cast=False).type):
                raise DetectError(f"pattern {one.name!r}: {path} is a {fields[path]}, which is no key; cast it")
    return Layout(fields, _selected(prepared, fields), keys, kept)


def _unknown(path: str, names: Sequence[str]) -> str:
    near = get_close_matches(path, names, 1)
    meant = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
    return f"the events have no single value {path}; {meant}"


def _is_key(kind: Any) -> bool:
    return not (pt.is_nested(kind) or pt.is_null(kind) or (pt.is_decimal(kind) and _column_type(kind) == pa.float64()))


def column_at(batch: Any, path: str, *, cast: bool = True) -> Any:
    """Return the values at a path of a record batch of fields; None where there is no column of single values."""
    found = _at(dict(zip(batch.schema.names, batch.columns, strict=True)), path)
    if found is None or pt.is_struct(found.type):
        return None
    kind = _column_type(found.type)
    return found.cast(kind) if cast and kind != found.type else found


def _at(columns: Mapping[str, Any], path: str) -> Any:
    if path in columns:
        return columns[path]
    for dot, letter in enumerate(path):
        above = columns.get(path[:dot]) if letter == "." else None
        if above is not None and pt.is_struct(above.type):
            inner = {part.name: pc.struct_field(above, [at]) for at, part in enumerate(above.type)}
            found = _at(inner, path[dot + 1 :])
            if found is not None:
                return found
    return None


def _column_type(kind: Any) -> Any:
    """Return the type of a field in conditions: a decimal is a number, as in an event."""
    if pt.is_decimal(kind):
        return pa.int64() if kind.scale == 0 and kind.precision <= _WHOLE else pa.float64()
    return kind


# Types of selected fields


def _selected(prepared: Prepared, fields: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    of: dict[str, str] = {}
    for one in prepared.sought:
        for selection in one.pattern.selections:
            name, kind = selection.name, _type_of(selection, fields)
            if name in OURS:
                raise DetectError(f"pattern {one.name!r} selects a field {name!r}, which is a column of the result")
            known = found.get(name, kind)
            joined = _joined(known, kind)
            if joined is None:
                problem = f"select {name} as {known}, and as {kind}: give one of them another name"
                raise DetectError(f"the patterns {of[name]!r} and {one.name!r} {problem}")
            found[name] = joined
            of.setdefault(name, one.name)
    return found


def _joined(one: Any, other: Any) -> Any:
    if one == other:
        return one
    if all(pt.is_integer(kind) or pt.is_floating(kind) for kind in (one, other)):
        return pa.int64() if pt.is_integer(one) and pt.is_integer(other) else pa.float64()
    return None


def _type_of(selection: Selection, fields: Mapping[str, Any]) -> Any:
    kinds = {reference.text: _reference_type(reference, fields) for reference in selection.references}
    if isinstance(selection.value, Field) and len(kinds) == 1:
        return next(iter(kinds.values()))
    value = selection.value.evaluate({text: _sample(kind) for text, kind in kinds.items()})
    return _kind_of(value)


def _reference_type(reference: Reference, fields: Mapping[str, Any]) -> Any:
    kind = fields.get(reference.path)
    match reference.function:
        case "count":
            return pa.int64()
        case "avg":
            return pa.float64()
        case "sum":
            return pa.int64() if kind is not None and pt.is_integer(kind) else pa.float64()
    if kind is not None and pt.is_integer(kind):
        return pa.int64()
    return pa.float64() if kind is not None and pt.is_floating(kind) else kind


def _sample(kind: Any) -> object:
    """Return a value of a type."""
    if pt.is_integer(kind):
        return 2
    if pt.is_floating(kind):
        return 2.5
    if pt.is_boolean(kind):
        return True
    if pt.is_timestamp(kind):
        return datetime(2000, 1, 1, tzinfo=UTC)
    if pt.is_binary(kind) or pt.is_large_binary(kind):
        return b"a"
    return ("a",) if pt.is_nested(kind) else "a"


def _kind_of(value: object) -> Any:
    """Return the type of a computed value; a computed number may be a fraction."""
    if isinstance(value, bool):
        return pa.bool_()
    if isinstance(value, (int, float)):
        return pa.float64()
    if isinstance(value, datetime):
        return TIME
    if isinstance(value, bytes):
        return pa.binary()
    return pa.string()


def selected_array(values: Sequence[object], kind: Any) -> Any:
    """Return selected values as a column; a missing value is null."""
    plain = [None if value is MISSING or value is UNCERTAIN else value for value in values]
    if pt.is_floating(kind):
        return pa.array([None if value is None else float(value) for value in plain], kind)  # type: ignore[arg-type]
    return pa.array(plain, kind)
