"""`Event`: an immutable mapping of field names to typed values.

An event is made from a (possibly nested) mapping. Nested objects are addressed by dotted paths: `{"user": {"id": 7}}`
has the fields `user` (an object) and `user.id`. Lists of objects are looked through: `{"items": [{"sku": 1}, {"sku":
2}]}` has `items.sku` = (1, 2). `id`, `source`, `type` and `time` are ordinary fields with the meaning of
CloudEvents.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import cast

from fieldfare.events.decimals import Between
from fieldfare.events.limits import DEFAULT_LIMITS, EventError, Limits
from fieldfare.events.values import (
    INT64_MAX,
    INT64_MIN,
    Interval,
    Kind,
    Ordered,
    Value,
    kind_of,
    utc,
)


class Event(Mapping[str, Value]):
    """An immutable mapping of dotted field names to values, optionally valid for a period of time.

    >>> event = Event({"symbol": "IBM", "price": Interval(100, 110), "venue": {"id": 7}}, type="quote")
    >>> event["venue.id"], event.type
    (7, 'quote')
    """

    __slots__ = ("_encoded", "_fields", "_tree", "valid")

    valid: Interval | None
    """The period in which the event holds; None for an event without duration."""

    def __init__(
        self,
        tree: Mapping[str, object] | None = None,
        /,
        *,
        valid: Interval | None = None,
        limits: Limits = DEFAULT_LIMITS,
        **attributes: object,
    ) -> None:
        if valid is not None and valid.kind is not Kind.TIME:
            raise EventError("", f"the validity period must be an interval of timestamps, not {valid!r}")
        if isinstance(tree, Event):
            tree = tree._tree  # an Event maps the flat fields, in which nested fields occur twice
        given = {**(tree or {}), **attributes}
        frozen = cast("dict[str, Value]", _freeze_object(given, "", 0, limits))
        object.__setattr__(self, "_tree", frozen)
        object.__setattr__(self, "_fields", _flatten(frozen, limits))
        object.__setattr__(self, "valid", valid)
        object.__setattr__(self, "_encoded", None)

    _encoded: bytes | None
    """The MessagePack from which the event was decoded; `events.msgpack` gives the same bytes again."""
    _tree: dict[str, Value]
    _fields: dict[str, Value]

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("an Event is immutable; make a new one with Event({**event.tree, ...})")

    @property
    def tree(self) -> Mapping[str, Value]:
        """The fields in their nested form, with values checked and frozen."""
        return MappingProxyType(self._tree)

    @property
    def fields(self) -> Mapping[str, Value]:
        """Every field by dotted path, nested objects included. The mapping is no copy: do not change it."""
        return self._fields

    @property
    def id(self) -> str | None:
        """The CloudEvents attribute `id`; None if the field is missing or no string."""
        return self._text("id")

    @property
    def source(self) -> str | None:
        """The CloudEvents attribute `source`; None if the field is missing or no string."""
        return self._text("source")

    @property
    def type(self) -> str | None:
        """The CloudEvents attribute `type`; None if the field is missing or no string."""
        return self._text("type")

    @property
    def time(self) -> datetime | None:
        """The CloudEvents attribute `time`; None if the field is missing or no timestamp."""
        value = self._fields.get("time")
        return value if isinstance(value, datetime) else None

    def _text(self, name: str) -> str | None:
        value = self._fields.get(name)
        return value if isinstance(value, str) else None

    def __getitem__(self, path: str) -> Value:
        return self._fields[path]

    def __iter__(self) -> Iterator[str]:
        return iter(self._fields)

    def __len__(self) -> int:
        return len(self._fields)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Event):
            if not isinstance(other, Mapping):
                return NotImplemented
            try:  # a dict with the same fields equals the event
                other = Event(other)
            except EventError:
                return False
        return self.valid == other.valid and _key(self._tree) == _key(other._tree)

    def __hash__(self) -> int:
        return hash((self.valid, _key(self._tree)))

    def __repr__(self) -> str:
        valid = "" if self.valid is None else f", valid={self.valid!r}"
        return f"Event({self._tree!r}{valid})"

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (self._tree, self.valid)


def checked_event(fields: dict[str, Value], encoded: bytes) -> Event:
    """Return an event of fields without nesting which a decoder has checked, with the bytes that came."""
    event = unread_event(Event, encoded)
    _set_tree(event, fields)
    _set_fields(event, fields)
    return event


def unread_event(kind: type[Event], encoded: bytes) -> Event:
    """Return an event without tree and fields, which the given kind of event makes from the bytes when asked."""
    event = _new(kind)
    _set_valid(event, None)
    _set_encoded(event, encoded)
    return event


def frozen_tree(tree: dict[str, object]) -> dict[str, Value]:
    """Return the content of an event that a decoder has checked, immutable."""
    return cast("dict[str, Value]", _freeze_object(tree, "", 0, _NO_LIMITS))


def flat_fields(tree: dict[str, Value]) -> dict[str, Value]:
    """Return every dotted path of an event that a decoder has checked, with the value."""
    return _flatten(tree, _NO_LIMITS)


_new = object.__new__
_set_tree, _set_fields, _set_valid, _set_encoded = (
    vars(Event)[name].__set__ for name in ("_tree", "_fields", "valid", "_encoded")
)


def _rebuild(tree: dict[str, Value], valid: Interval | None) -> Event:
    return Event(tree, valid=valid, limits=_NO_LIMITS)


_NO_LIMITS = Limits(bytes=sys.maxsize, fields=sys.maxsize, depth=sys.maxsize, string=sys.maxsize)


def fields_of(event: Mapping[str, object]) -> Mapping[str, object]:
    """Return the flat fields of an `Event` or of any mapping; a flat mapping is returned unchanged and unchecked."""
    if isinstance(event, Event):
        return event._fields
    for value in event.values():
        if type(value) in _FLAT:
            continue
        return Event(event)._fields
    return event


_FLAT = frozenset({str, int, float, bool, type(None), bytes})


def freeze(value: object, path: str = "", limits: Limits = DEFAULT_LIMITS) -> Value:
    """Return a value checked and made immutable; an `EventError` names `path`."""
    return _freeze(value, path, 0, limits)


def _freeze(value: object, path: str, depth: int, limits: Limits) -> Value:
    match kind_of(value):
        case Kind.STRING:
            return _text(cast(str, value), path, limits)
        case Kind.BYTES:
            data = bytes(cast(bytes, value))
            if len(data) > limits.string:
                raise EventError(path, f"{len(data)} bytes, more than the limit of {limits.string}")
            return data
        case Kind.NUMBER:
            if isinstance(value, float):
                return value if isinstance(value, Between) else float(value)
            number = int(cast(int, value))
            if not INT64_MIN <= number <= INT64_MAX:
                shown = str(number) if number.bit_length() <= _SHOWN_BITS else f"of {number.bit_length()} bits"
                raise EventError(path, f"the integer {shown} does not fit in 64 bits")
            return number
        case Kind.LIST:
            if depth >= limits.depth:
                raise EventError(path, f"nested deeper than the limit of {limits.depth}")
            items = cast("list[object]", value)
            if len(items) > limits.fields:
                raise EventError(path, f"a list of {len(items)} elements, more than the limit of {limits.fields}")
            return tuple(_freeze(item, path, depth + 1, limits) for item in items)
        case Kind.OBJECT:
            return _freeze_object(cast("Mapping[str, object]", value), path, depth, limits)
        case Kind.TIME:
            try:
                return utc(cast(datetime, value))
            except ValueError as error:
                raise EventError(path, str(error)) from None
        case Kind.INTERVAL:
            interval = cast(Interval, value)
            low, high = (_freeze(end, path, depth, limits) for end in (interval.low, interval.high))
            return Interval(cast("Ordered | None", low), cast("Ordered | None", high), interval.closed)
        case None:
            raise EventError(path, f"a value of type {type(value).__name__} is not one a field can hold")
        case _:
            return cast(Value, value)


def _freeze_object(tree: Mapping[str, object], path: str, depth: int, limits: Limits) -> Mapping[str, Value]:
    if depth >= limits.depth:
        raise EventError(path, f"nested deeper than the limit of {limits.depth}")
    longest = limits.string
    frozen: dict[str, Value] = {}
    for name, value in tree.items():
        if not (type(name) is str and name.isascii() and len(name) <= longest):
            name = _name(name, path, limits)  # noqa: PLW2901
        kind = type(value)
        if (  # most values by far, accepted without a call
            kind in _UNBOUNDED
            or (kind is str and value.isascii() and len(value) <= longest)  # type: ignore[attr-defined,arg-type]
            or (kind is int and INT64_MIN <= value <= INT64_MAX)  # type: ignore[operator]
        ):
            frozen[name] = value  # type: ignore[assignment]
        else:
            frozen[name] = _freeze(value, f"{path}.{name}" if path else name, depth + 1, limits)
    return frozen


_UNBOUNDED = frozenset({float, bool, type(None)})
_SHOWN_BITS = 256


def no_name(name: object, path: str) -> EventError:
    """Return the error of a field name that is no string; the address of an object tells nobody anything."""
    return EventError(path, f"the field name {_ADDRESS.sub('', repr(name))} is not a string")


_ADDRESS = re.compile(" object at 0x[0-9a-f]+")


def _name(name: object, path: str, limits: Limits) -> str:
    if not isinstance(name, str):
        raise no_name(name, path)
    try:
        return _text(name, path, limits)
    except EventError as error:
        raise EventError(path, f"the field name {name[:40]!r}: {error.problem}") from None


def _text(text: str, path: str, limits: Limits) -> str:
    if len(text) > limits.string:
        raise EventError(path, f"{len(text)} characters, more than the limit of {limits.string}")
    if not text.isascii() and not _encodable(text):
        raise EventError(path, "the string holds a lone surrogate and cannot be written as UTF-8")
    return text if type(text) is str else str.__str__(text)


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _flatten(tree: dict[str, Value], limits: Limits) -> dict[str, Value]:
    """Return every dotted path with the value; the tree itself when nothing is nested."""
    if _NESTED.isdisjoint(map(type, tree.values())):
        flat = tree
    else:
        flat = {}
        for name, value in tree.items():
            _flatten_into(flat, name, value)
    if len(flat) > limits.fields:
        raise EventError("", f"the event has {len(flat)} fields, more than the limit of {limits.fields}")
    return flat


_NESTED = frozenset({dict, tuple})


def _flatten_into(flat: dict[str, Value], path: str, value: Value) -> None:
    _refuse_second(flat, path)
    if isinstance(value, tuple):
        elements = tuple(_elements(value))
        flat[path] = elements
        gathered: dict[str, list[Value]] = {}
        for element in elements:
            if isinstance(element, dict):
                below: dict[str, Value] = {}
                for name, item in element.items():
                    _flatten_into(below, name, item)
                for name, item in below.items():
                    gathered.setdefault(name, []).extend(item if isinstance(item, tuple) else (item,))
        for name, items in gathered.items():
            _refuse_second(flat, f"{path}.{name}")
            flat[f"{path}.{name}"] = tuple(items)
    else:
        flat[path] = value
        if isinstance(value, dict):
            for name, item in value.items():
                _flatten_into(flat, f"{path}.{name}", item)


def _refuse_second(flat: dict[str, Value], path: str) -> None:
    if path in flat:
        raise EventError(path, "named twice, once with a dot in its name and once by nesting")


def _elements(items: tuple[Value, ...]) -> Iterator[Value]:
    """Yield the elements of a list, and of lists inside, as every matcher of JSON does."""
    for item in items:
        if isinstance(item, tuple):
            yield from _elements(item)
        else:
            yield item


def _key(value: Value) -> object:
    """Return a hashable key, equal for equal values only: `True` is not `1`."""
    if isinstance(value, dict):
        return frozenset((name, _key(item)) for name, item in value.items())
    if isinstance(value, tuple):
        return tuple(_key(item) for item in value)
    return kind_of(value), value
