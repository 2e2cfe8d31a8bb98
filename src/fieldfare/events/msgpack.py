"""Events as MessagePack maps.

Timestamps and bytes are MessagePack's own. An interval is the extension type 73 ("I"), with the MessagePack array
`[low, high, closed]` as data. The top-level key `$valid` is reserved for the validity period, an interval.

Of two equal keys msgspec keeps the last. An event without equal keys is encoded to the same bytes again, which is cheap
to check; all other data (with a number in a longer form than needed, say) goes to the slow `_check`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final, TypeGuard

import msgspec
from msgspec.msgpack import Ext

from fieldfare.events import encoded, json
from fieldfare.events.event import Event, checked_event, no_name
from fieldfare.events.json import VALID, refuse_reserved
from fieldfare.events.limits import DEFAULT_LIMITS, EventError, Limits
from fieldfare.events.values import Interval, Kind, Value

INTERVAL: Final = 73
"""The extension type of an interval."""


def decode(data: bytes, *, limits: Limits = DEFAULT_LIMITS) -> Event:
    """Return the event in a MessagePack map; an `EventError` names the field with a mistake."""
    if len(data) > limits.bytes:
        raise EventError("", f"{len(data)} bytes, more than the limit of {limits.bytes}")
    if limits is DEFAULT_LIMITS and (quickly := encoded.of_msgpack(data)) is not None:
        return quickly
    try:
        tree = _read(data)
        if _is_plain(tree, data, limits):
            return checked_event(tree, data)
        if _write(tree) != data:
            _check(data)
        tree = _unwrap(tree, "")
    except RecursionError:
        raise EventError("", f"nested deeper than the limit of {limits.depth}") from None
    if not isinstance(tree, dict):
        raise EventError("", "the event must be a MessagePack map")
    valid = None
    if VALID in tree:
        valid = tree.pop(VALID)
        if not (isinstance(valid, Interval) and valid.kind is Kind.TIME):
            raise EventError(VALID, "the validity period must be an interval of timestamps")
    event = Event(tree, valid=valid, limits=limits)
    object.__setattr__(event, "_encoded", data)
    return event


def encode(event: Event) -> bytes:
    r"""Return an event as a MessagePack map; a decoded event as the bytes that came, without any work.

    >>> encode(Event({"a": 1}))
    b'\x81\xa1a\x01'
    """
    if event._encoded is not None:
        return event._encoded
    tree = {name: value if type(value) in _NATIVE else _wrap(value) for name, value in event.tree.items()}
    refuse_reserved(tree)
    if event.valid is not None:
        tree[VALID] = _wrap(event.valid)
    return _write(tree)


def from_json(text: bytes) -> Event:
    """Return the event in a JSON object, with its MessagePack, which must be within the limits, too."""
    quickly = encoded.of_json(text)
    return decode(encode(json.decode(text))) if quickly is None else quickly


_write: Final[Callable[[object], bytes]] = msgspec.msgpack.Encoder().encode
_decode: Final[Callable[[bytes], object]] = msgspec.msgpack.Decoder().decode
_decode_ends: Final = msgspec.msgpack.Decoder(tuple[Any, Any, str]).decode
_NATIVE: Final = frozenset({str, int, float, bool, type(None), bytes, datetime})
_STRINGS: Final = frozenset({str})
_FIX_MAP: Final = 0x80
"""First byte of a map without members; the next fifteen are those of maps with one to fifteen members."""
_beyond_int64: Final = re.compile(rb"\xcf[\x80-\xff]", re.DOTALL).search
"""Finds bytes that may be an integer beyond 64 bits with a sign."""


def _is_plain(tree: Any, data: bytes, limits: Limits) -> TypeGuard[dict[str, Any]]:
    """Tell whether a decoded map has no nesting and nothing to refuse, as most events."""
    return (
        type(tree) is dict
        and _NATIVE.issuperset(map(type, tree.values()))
        and _STRINGS.issuperset(map(type, tree))
        and (len(tree) == data[0] - _FIX_MAP or len(tree) == _head(data, 0)[1])  # no field is named twice
        and len(data) <= limits.string
        and len(tree) <= limits.fields
        and limits.depth > 0
        and VALID not in tree
        and not _beyond_int64(data)
    )


def _wrap(value: Value) -> object:
    """Return a value with intervals as extensions."""
    match value:
        case Interval(low, high, closed):
            return Ext(INTERVAL, _write([low, high, closed]))
        case tuple():
            return [_wrap(item) for item in value]
        case dict():
            return {name: _wrap(item) for name, item in value.items()}
    return value


def _unwrap(node: Any, path: str) -> Any:
    """Return a node with extensions as intervals; dicts are changed in place."""
    kind = type(node)
    if kind is dict:
        for name, item in node.items():
            if type(item) not in _NATIVE:
                node[name] = _unwrap(item, f"{path}.{name}" if path else str(name))
    elif kind is list:
        return [_unwrap(item, path) for item in node]
    elif kind is Ext:
        return _interval(node, path)
    return node


def _interval(ext: Ext, path: str) -> Interval:
    if ext.code != INTERVAL:
        raise EventError(path, f"the MessagePack extension type {ext.code} is unknown")
    try:
        return Interval(*_decode_ends(ext.data))
    except ValueError as error:
        raise EventError(path, f"not an interval: {error}") from None


def _read(data: bytes) -> object:
    try:
        return _decode(data)
    except ValueError as error:
        _check(data)  # names the field, if there is one
        raise EventError("", f"not MessagePack: {error}") from None


def _check(data: bytes) -> None:
    """Raise an error naming the field, if the bytes have a mistake in a field."""
    try:
        _check_value(data, 0, "")
    except IndexError:
        raise EventError("", "not MessagePack: it ends too early") from None


def _check_value(data: bytes, start: int, path: str) -> int:
    """Check the value at `start`, and return the position of the next value."""
    kind, count, at = _head(data, start)
    if kind == "map":
        seen: set[str] = set()
        for _ in range(count):
            key, at = at, _check_value(data, at, path)
            name = _leaf(data[key:at], path)
            if not isinstance(name, str):
                raise no_name(name, path)
            below = f"{path}.{name}" if path else name
            if name in seen:
                raise EventError(below, "named twice")
            seen.add(name)
            at = _check_value(data, at, below)
    elif kind == "array":
        for _ in range(count):
            at = _check_value(data, at, path)
    else:
        at += count
        _leaf(data[start:at], path)
    return at


def _leaf(data: bytes, path: str) -> object:
    try:
        return _decode(data)
    except ValueError as error:
        raise EventError(path, f"not MessagePack: {error}") from None


def _head(data: bytes, at: int) -> tuple[str, int, int]:
    """Return the kind of a value, the number of bytes or items behind the head, and their position."""
    kind, count, size = _HEADS[data[at]]
    start = at + 1 + size
    return kind, count + int.from_bytes(data[at + 1 : start]), start


_HEADS: Final[dict[int, tuple[str, int, int]]] = {
    # first byte: kind, how many bytes or items follow in any case, size of the number that says how many more do
    **dict.fromkeys([*range(0x80), *range(0xE0, 0x100)], ("leaf", 0, 0)),  # small integers
    **{0x80 + n: ("map", n, 0) for n in range(16)},
    **{0x90 + n: ("array", n, 0) for n in range(16)},
    **{0xA0 + n: ("leaf", n, 0) for n in range(32)},  # short strings
    **{0xC0 + n: ("leaf", 0, 0) for n in range(4)},  # nil, one that is never used, false, true
    **{0xC4 + n: ("leaf", 0, 1 << n) for n in range(3)},  # bytes
    **{0xC7 + n: ("leaf", 1, 1 << n) for n in range(3)},  # extensions
    **{0xCA + n: ("leaf", 4 << n, 0) for n in range(2)},  # floats
    **{0xCC + n: ("leaf", 1 << n, 0) for n in range(4)},  # unsigned integers
    **{0xD0 + n: ("leaf", 1 << n, 0) for n in range(4)},  # signed integers
    **{0xD4 + n: ("leaf", 1 + (1 << n), 0) for n in range(5)},  # extensions of fixed size
    **{0xD9 + n: ("leaf", 0, 1 << n) for n in range(3)},  # strings
    **{0xDC + n: ("array", 0, 2 << n) for n in range(2)},
    **{0xDE + n: ("map", 0, 2 << n) for n in range(2)},
}
