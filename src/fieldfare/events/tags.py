"""Typed values in JSON: a type unknown to JSON is an object with a single key, the tag.

{"$time": "2026-11-15T09:30:00Z"}   a timestamp
{"$bytes": "AQI="}                  bytes, in base64
{"$float": "NaN"}                   NaN, Infinity or -Infinity
{"$interval": [100, 110, "[)"]}     an interval; null is no bound, ends may be tagged, "[]" may be left out
{"$literal": {"$time": 1}}          an object (or a string in `time`) in the form of a tag, but without its meaning

Every other object is an ordinary object, `{"$ref": 1}` too.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Collection
from datetime import datetime
from typing import Any, Final, cast

from fieldfare.events.limits import EventError, Limits
from fieldfare.events.values import Interval, Ordered, Value, format_timestamp, parse_timestamp


def tag(value: Value) -> object:
    """Return a value in types known to JSON."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if kind is float:
        number = cast(float, value)
        return number if math.isfinite(number) else {"$float": _FLOAT_NAMES[str(number)]}
    match value:
        case datetime():
            return {"$time": format_timestamp(value)}
        case bytes():
            return {"$bytes": base64.b64encode(value).decode()}
        case Interval(low, high, closed):
            return {"$interval": [tag(low), tag(high)] if closed == "[]" else [tag(low), tag(high), closed]}
        case tuple():
            return [tag(item) for item in value]
        case dict():
            tagged = {name: tag(item) for name, item in value.items()}
            return {"$literal": tagged} if tagged.keys() <= _READERS.keys() and len(tagged) == 1 else tagged
    raise AssertionError(f"{value!r} is not a frozen value")


def untag(value: object, path: str, depth: int, limits: Limits, timestamps: Collection[str] = ()) -> object:
    """Return the value behind the tags, `depth` levels down; see `untag_fields` for `timestamps`."""
    if isinstance(value, dict):
        if len(value) == 1:
            ((name, content),) = value.items()
            if name == "$literal" and not isinstance(content, dict):
                return content
            if name == "$literal":
                return untag_fields(content, path, depth, limits, timestamps)
            if name in _READERS:
                return _read(name, content, path)
        return untag_fields(value, path, depth, limits, timestamps)
    if isinstance(value, list):
        if depth >= limits.depth:
            raise EventError(path, f"nested deeper than the limit of {limits.depth}")
        return [untag(item, path, depth + 1, limits) for item in value]
    return value


def untag_fields(
    tree: dict[str, Any], path: str, depth: int, limits: Limits, timestamps: Collection[str] = ()
) -> dict[str, Any]:
    """Untag the values of an object in place, and return the object, which must be no tag.

    RFC 3339 strings in the fields named in `timestamps` become timestamps.
    """
    if depth >= limits.depth:
        raise EventError(path, f"nested deeper than the limit of {limits.depth}")
    for name, value in tree.items():
        kind = type(value)
        if kind is str:
            if timestamps and (f"{path}.{name}" if path else name) in timestamps:
                tree[name] = as_timestamp(value) or value
        elif kind is dict or kind is list:
            tree[name] = untag(value, f"{path}.{name}" if path else name, depth + 1, limits, timestamps)
    return tree


def read_interval(content: object, end: Callable[[object], object]) -> Interval:
    """Return the interval in `[low, high, closed]`, with ends read by the function `end`."""
    match content:
        case [low, high]:
            closed: object = "[]"
        case [low, high, closed]:
            pass
        case _:
            raise ValueError(f"{_shown(content)} is not a list such as [low, high, '[)']")
    low, high = (None if value is None else cast(Ordered, end(value)) for value in (low, high))
    return Interval(low, high, cast(str, closed))


def read_time(content: object) -> datetime:
    """Return the timestamp in an RFC 3339 string; ValueError if there is none."""
    return parse_timestamp(_string(content))


def read_bytes(content: object) -> bytes:
    """Return the bytes in a Base64 string; ValueError if the string is no Base64."""
    text = _string(content)
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"{_shown(text)} is not base64: {error}") from None


def as_timestamp(text: str) -> datetime | None:
    """Return the timestamp in a text, or None if the text is no RFC 3339 timestamp."""
    try:
        return parse_timestamp(text)
    except ValueError:
        return None


def _read(name: str, content: object, path: str) -> Value:
    try:
        return _READERS[name](content)
    except ValueError as error:
        raise EventError(path, f"{name}: {error}") from None


def _read_float(content: object) -> float:
    number = _FLOATS.get(_string(content))
    if number is None:
        raise ValueError(f"{_shown(content)} is none of {', '.join(_FLOATS)}")
    return number


def _read_end(content: object) -> object:
    if isinstance(content, dict) and len(content) == 1:
        ((name, inner),) = content.items()
        if name in ("$time", "$bytes", "$float"):
            return _READERS[name](inner)
    return content


def _string(content: object) -> str:
    if isinstance(content, str):
        return content
    raise ValueError(f"{_shown(content)} is not a string")


def _shown(content: object) -> str:
    text = repr(content)
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


_SHOWN: Final = 40
_PLAIN: Final = frozenset({str, int, bool, type(None)})
_FLOAT_NAMES: Final = {"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}
_FLOATS: Final = {name: float(text) for text, name in _FLOAT_NAMES.items()}
_READERS: Final[dict[str, Callable[[object], Value]]] = {
    "$time": read_time,
    "$bytes": read_bytes,
    "$float": _read_float,
    "$interval": lambda content: read_interval(content, _read_end),
    "$literal": lambda content: cast(Value, content),  # read by `untag`; the key is here so that `tag` escapes it, too
}
