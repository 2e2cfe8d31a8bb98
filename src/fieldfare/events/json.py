"""Events as JSON objects, and as lines of JSON.

Types unknown to JSON are tagged, see `tags`. The top-level key `$valid` is reserved for the validity period of the
event: `[from, until, "[)"]`. The field `time` is a timestamp without a tag, as in CloudEvents.

msgspec reads JSON fast, but keeps the last of two equal keys and names no field in errors. A text with a mistake, or
perhaps with a mistake, is therefore read again by the slow and exact `_read_exactly`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from datetime import datetime
from typing import Any, Final, cast

import msgspec

from fieldfare.events import encoded
from fieldfare.events.encoded import EncodedEvent
from fieldfare.events.event import Event
from fieldfare.events.limits import DEFAULT_LIMITS, EventError, Limits
from fieldfare.events.tags import as_timestamp, read_interval, read_time, tag, untag_fields
from fieldfare.events.values import Interval, format_timestamp

VALID: Final = "$valid"
"""The reserved top-level key of the validity period."""

Timestamps = Collection[str]


def decode(data: bytes | str, *, limits: Limits = DEFAULT_LIMITS, timestamps: Timestamps = ("time",)) -> Event:
    """Return the event in a JSON object. RFC 3339 strings in the fields named in `timestamps` become timestamps.

    >>> decode('{"symbol": "IBM", "price": {"$interval": [100, 110]}}')
    Event({'symbol': 'IBM', 'price': Interval('[100, 110]')})
    """
    tree = read_object(data, limits)
    valid = _read_valid(tree.pop(VALID)) if VALID in tree else None
    return Event(untag_fields(tree, "", 0, limits, timestamps), valid=valid, limits=limits)


def encode(event: Event) -> bytes:
    """Return an event as a JSON object.

    >>> encode(Event({"price": 1.5, "digest": b"AB"}))
    b'{"price":1.5,"digest":{"$bytes":"QUI="}}'
    """
    if type(event) is EncodedEvent and (quickly := encoded.to_json(event)) is not None:
        return quickly
    tree = {name: tag(value) for name, value in event.tree.items()}
    refuse_reserved(tree)
    if (time := event.time) is not None:
        tree["time"] = format_timestamp(time)
    elif isinstance(text := tree.get("time"), str) and as_timestamp(text):
        tree["time"] = {"$literal": text}
    if event.valid is not None:
        low, high = (end and format_timestamp(cast(datetime, end)) for end in (event.valid.low, event.valid.high))
        tree[VALID] = [low, high, event.valid.closed]
    return write(tree)


def decode_lines(
    lines: Iterable[bytes | str], *, limits: Limits = DEFAULT_LIMITS, timestamps: Timestamps = ("time",)
) -> Iterator[Event]:
    """Yield an event for each line; blank lines are skipped. An error names the number of the line."""
    for number, line in enumerate(lines, 1):
        if line and not line.isspace():
            try:
                event = decode(line, limits=limits, timestamps=timestamps)
            except EventError as error:
                raise EventError(error.field, f"{error.problem} (line {number})") from None
            yield event


def encode_lines(events: Iterable[Event]) -> Iterator[bytes]:
    r"""Yield a line for each event, with `\n` at the end."""
    return (encode(event) + b"\n" for event in events)


write: Final[Callable[[object], bytes]] = msgspec.json.Encoder().encode
"""Write the result of `tag` as bytes."""

_read: Final[Callable[[bytes], object]] = msgspec.json.Decoder().decode
_split: Final[Callable[[bytes], list[msgspec.Raw]]] = msgspec.json.Decoder(list[msgspec.Raw]).decode


def read_object(data: bytes | str, limits: Limits) -> dict[str, Any]:
    """Return a JSON object with tags still unread. A repeated key, or a number without a value, is an error."""
    raw = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    if len(raw) > limits.bytes:
        raise EventError("", f"{len(raw)} bytes, more than the limit of {limits.bytes}")
    try:
        tree = _read_quickly(raw)
        if tree is None:
            tree = _read_exactly(raw)
    except RecursionError:
        raise EventError("", f"nested deeper than the limit of {limits.depth}") from None
    if not isinstance(tree, dict):
        raise EventError("", "the event must be a JSON object")
    return tree


def read_array(data: bytes | str) -> list[bytes]:
    """Return the text of each element of a JSON array."""
    raw = data.encode(errors="surrogatepass") if isinstance(data, str) else data
    try:
        return [bytes(item) for item in _split(raw)]
    except RecursionError:
        raise EventError("", "not a JSON array of events: nested too deep") from None
    except ValueError as error:
        _read_exactly(raw)  # names the field, if there is one
        raise EventError("", f"not a JSON array: {error}") from None


def refuse_reserved(tree: Collection[str]) -> None:
    """Raise an error for a field with the name of the validity period."""
    if VALID in tree:
        raise EventError(VALID, "the name is reserved for the validity period")


def _read_quickly(raw: bytes) -> object:
    """Return the content of a text, or None if the text may have a mistake.

    Every key ends in `":`. If `":` occurs as often as there are keys, no key is lost: strings can only raise the
    count. A key with a space before the colon would be missed, and leaves the text to the exact reader.
    """
    try:
        tree = _read(raw)
    except ValueError:  # of msgspec, or a UnicodeDecodeError
        return None
    return tree if raw.count(b'":') == _keys(tree) and not _SPACE_AFTER_KEY.search(raw) else None


_SPACE_AFTER_KEY: Final = re.compile(rb'"[ \t\r\n]+:')


def _keys(node: object) -> int:
    if isinstance(node, dict):
        return len(node) + sum(_keys(item) for item in node.values() if type(item) in _CONTAINERS)
    if isinstance(node, list):
        return sum(_keys(item) for item in node if type(item) in _CONTAINERS)
    return 0


_CONTAINERS: Final = frozenset({dict, list})


def _read_valid(content: object) -> Interval:
    try:
        return read_interval(content, read_time)
    except ValueError as error:
        raise EventError(VALID, str(error)) from None


class _Object(list[tuple[str, object]]):
    """The members of an object as pairs, equal keys included."""


class _Wrong(str):
    """A number without a value; the string is the reason."""

    __slots__ = ()


def _read_exactly(raw: bytes) -> object:
    try:
        text = raw.decode(errors="surrogateescape")
        node = json.loads(text, object_pairs_hook=_Object, parse_int=_int, parse_float=_float, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise EventError("", f"not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    return _checked(node, "")


def _checked(node: object, path: str) -> object:
    """Return a node without `_Object` and `_Wrong`; an `EventError` names the field."""
    if isinstance(node, _Object):
        tree: dict[str, object] = {}
        for name, value in node:
            if _SURROGATE.search(name):
                raise EventError(path, f"the field name {name[:40]!r} {_NOT_UNICODE}")
            below = f"{path}.{name}" if path else name
            if name in tree:
                raise EventError(below, "named twice")
            tree[name] = _checked(value, below)
        return tree
    if isinstance(node, list):
        return [_checked(item, path) for item in node]
    if isinstance(node, _Wrong):
        raise EventError(path, node)
    if isinstance(node, str) and _SURROGATE.search(node):
        raise EventError(path, f"the string {_NOT_UNICODE}")
    return node


_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_NOT_UNICODE: Final = "is not Unicode: bytes that are not UTF-8, or a lone surrogate"
_LONGEST_INT: Final = len(str(-(2**63)))


def _int(text: str) -> object:
    return int(text) if len(text) <= _LONGEST_INT else _Wrong(f"the integer {text[:40]} does not fit in 64 bits")


def _float(text: str) -> object:
    number = float(text)
    return number if abs(number) != float("inf") else _Wrong(f"the number {text[:40]} is too large for a float")


def _constant(text: str) -> object:
    return _Wrong(f'{text} is not JSON; write {{"$float": "{text}"}}')
