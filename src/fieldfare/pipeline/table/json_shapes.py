"""Shapes of JSON objects: the names of the members and the types of their values, with a plan for each plain shape.

An object of a plain shape becomes columns without a step in Python for a value. A plan lists the few conditions that
the shape does not decide, and that are checked for each object: duplicate names, integers that are too large, limits.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, TypeAlias, cast

import pyarrow as pa
import pyarrow.types as pt

from fieldfare.events import cloudevents
from fieldfare.events.limits import Limits
from fieldfare.events.values import INT64_MAX, INT64_MIN
from fieldfare.pipeline.match.fields import is_interval
from fieldfare.pipeline.table.event_columns import ATTRIBUTES, Unknown

Shape: TypeAlias = "tuple[tuple[str, ...], tuple[Any, ...]]"


def shape_of(tree: dict[str, Any]) -> Shape:
    """Return the names of an object and the types of its values: for an object its shape, for a list a set of types."""
    kinds = tuple(map(type, tree.values()))
    if dict in kinds or list in kinds:
        kinds = tuple(map(_inner_shape, tree.values()))
    return tuple(tree), kinds


def _inner_shape(value: Any) -> Any:
    kind = type(value)
    if kind is dict:
        return shape_of(value)
    return frozenset(map(type, value)) if kind is list else kind


class Plan(NamedTuple):
    """The conditions that an object of a plain shape must satisfy."""

    quotes: int
    """the number of quotes in a text without duplicate names and escaped quotes; -1 for a shape that is not plain"""
    longest: int
    """bytes of a text that cannot exceed a limit"""
    unknown: tuple[str, ...] = ()
    lists: tuple[str, ...] = ()
    """lists of strings, each of which has quotes of its own"""
    integers: tuple[str, ...] = ()
    """members whose integers no column checks"""
    texts: tuple[str, ...] = ()
    """attributes that must not be empty"""

    def fits(self, tree: dict[str, Any], text: bytes) -> bool:
        """Tell whether an object satisfies all conditions, so that Arrow reads it correctly."""
        quotes = self.quotes
        for name in self.lists:
            quotes += 2 * len(tree[name])
        return (
            text.count(b'"') == quotes  # a name that occurs twice has quotes too, and is only once in the tree
            and len(text) <= self.longest
            and all(INT64_MIN <= tree[name] <= INT64_MAX for name in self.integers)
            and (not self.texts or (all(map(tree.get, self.texts)) and tree["specversion"] == "1.0"))
        )


DOUBTFUL: Final = Plan(-1, -1)
_NONE: Final = type(None)
_CLOUD_EVENT_TEXTS: Final = ("id", "source", "type", "subject", "datacontenttype", "dataschema")
_ATTRIBUTE_NAME: Final = re.compile("[a-z0-9]+")


def planned(shape: Shape, fields: pa.StructType, unknown: Unknown, limits: Limits, *, timestamps: bool) -> Plan:
    """Return the plan for a shape, or `DOUBTFUL` for a shape whose objects are read one by one.

    Args:
        shape: the shape, see `shape_of`.
        fields: the declared fields.
        unknown: the choice for fields that are not declared.
        limits: the limits of an event; the plan has a number of bytes below which no limit can be exceeded.
        timestamps: whether the string `time` is read as a timestamp, which a CloudEvent needs.
    """
    names, kinds = shape
    is_cloud_event = "specversion" in names
    if is_cloud_event and not (timestamps and _is_plain_cloud_event(dict(zip(names, kinds, strict=True)))):
        return DOUBTFUL
    declared = {part.name: part.type for part in fields}
    quotes, undeclared, lists, integers = 0, [], [], []
    for name, kind in zip(names, kinds, strict=True):
        if name not in declared:
            wanted = ATTRIBUTES.get(name)
            if unknown == "quarantine" or kind not in (_PLAIN if wanted is None else (str, _NONE)):
                return DOUBTFUL
            undeclared.append(name)
            if kind is int:
                integers.append(name)
        if type(kind) is frozenset and str in kind:
            if kind != {str}:
                return DOUBTFUL
            lists.append(name)
        counted = _quotes(name, kind, declared.get(name), limits.depth - 1)
        if counted is None:
            return DOUBTFUL
        quotes += counted
    return Plan(
        quotes,
        # every element and every field takes two bytes at least
        min(limits.bytes, limits.string, 2 * limits.fields),
        tuple(undeclared) if unknown == "keep" else (),
        tuple(lists),
        tuple(integers),
        tuple(name for name in _CLOUD_EVENT_TEXTS if name in names) if is_cloud_event else (),
    )


def _quotes(name: str, kind: Any, declared: pa.DataType | None, depth: int) -> int | None:
    """Return the number of quotes in a member of an object; None if the value is not plainly of the declared type."""
    if name.startswith("$") or "." in name or '"' in name:
        return None
    if type(kind) is tuple:  # an object
        if declared is None or not pt.is_struct(declared) or depth < 1:
            return None
        below = {part.name: part.type for part in declared}
        if not below.keys() >= set(kind[0]) or is_interval(declared):
            return None
        parts = [
            None if type(inner) is frozenset else _quotes(inner_name, inner, below[inner_name], depth - 1)
            for inner_name, inner in zip(*kind, strict=True)
        ]
        return None if None in parts else 2 + sum(cast("list[int]", parts))
    if type(kind) is frozenset:  # a list
        if declared is None or not pt.is_list(declared) or depth < 1 or pt.is_timestamp(declared.value_type):
            return None
        return 2 if all(_is_plainly(item, declared.value_type) for item in kind) else None
    if declared is not None and not _is_plainly(kind, declared):
        return None
    return 4 if kind is str else 2


_PLAIN: Final = frozenset({str, int, float, bool, _NONE})


def _is_plainly(kind: Any, declared: pa.DataType) -> bool:
    if kind is _NONE:
        return True
    if pt.is_string(declared) or pt.is_timestamp(declared):
        return kind is str
    if pt.is_boolean(declared):
        return kind is bool
    if pt.is_int64(declared):
        return kind is int
    return pt.is_float64(declared) and (kind is float or kind is int)


def _is_plain_cloud_event(kinds: Mapping[str, Any]) -> bool:
    """Tell whether the shape is that of a valid CloudEvent; other CloudEvents are checked one by one."""
    attributes = {name: kind for name, kind in kinds.items() if name != "data"}
    return (
        attributes.keys() >= {"id", "source", "type"}
        and attributes.keys().isdisjoint({"data_base64", cloudevents.VALIDITY})
        and all(map(_ATTRIBUTE_NAME.fullmatch, attributes))
        and set(attributes.values()) <= {str, bool}
    )
