"""`EncodedEvent`: an event that is still MessagePack. Everything is checked, and fields are made only if somebody asks.

A node logs and sends the bytes of an event, and its filters look at few of the fields. msgspec reads all of a nested
event in the time in which Python makes a field or two; so an event is read for the check alone, and forgotten. What
the check cannot judge at once goes to the full readers of `json` and `msgpack`, which name every mistake.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from msgspec import Meta
from msgspec.msgpack import Ext

from fieldfare.events.event import Event, checked_event, flat_fields, frozen_tree, unread_event
from fieldfare.events.limits import DEFAULT_LIMITS
from fieldfare.events.tags import as_timestamp
from fieldfare.events.values import INT64_MAX, INT64_MIN, format_timestamp


class EncodedEvent(Event):
    """An event in MessagePack, without intervals and without a period of validity; made by the functions below."""

    __slots__ = ()

    @property
    def encoded(self) -> bytes:
        """The MessagePack of the event."""
        return self._encoded  # type: ignore[return-value]

    def __getattr__(self, name: str) -> Any:
        """Make the fields, which are not there yet."""
        if name == "_tree":
            value = frozen_tree(_decode(self.encoded))
        elif name == "_fields":
            value = flat_fields(self._tree)
        else:
            raise AttributeError(name)
        object.__setattr__(self, name, value)
        return value


def of_msgpack(data: bytes) -> Event | None:
    """Return the event in a MessagePack map; None if there may be something to refuse, or something rare."""
    if len(data) > DEFAULT_LIMITS.string:
        return None
    for read, inside in _msgpack_readers or _made(_msgpack_readers, msgspec.msgpack.Decoder, Ext):
        try:
            tree = read(data)
        except (ValueError, RecursionError):
            continue
        if _write(tree) != data:  # a name may be there twice
            return None
        return _event(tree, data) if _names(tree, inside) <= DEFAULT_LIMITS.fields else None
    return None


def of_json(text: bytes) -> Event | None:
    """Return the event in a JSON object, with its MessagePack; None if there may be something to refuse, or a tag."""
    if len(text) > DEFAULT_LIMITS.string:
        return None
    for read, inside in _json_readers or _made(_json_readers, msgspec.json.Decoder):
        try:
            tree = read(text)
        except (ValueError, RecursionError):
            continue
        names = _names(tree, inside)
        if names > DEFAULT_LIMITS.fields or not _are_all_names(text, names):
            return None
        if type(time := tree.get("time")) is str:
            tree["time"] = as_timestamp(time) or time
        data = _write(tree)
        return _event(tree, data) if len(data) <= DEFAULT_LIMITS.string else None
    return None


def to_json(event: EncodedEvent) -> bytes | None:
    """Return an event as a JSON object; None if a value may need a tag."""
    data = event.encoded
    tree = _decode(data)
    time = tree.get("time")
    if len(_UNLIKE_JSON.findall(data)) > (type(time) is datetime):
        return None
    if type(time) is datetime:
        tree["time"] = format_timestamp(time)
    elif type(time) is str and as_timestamp(time) is not None:
        return None
    return _write_json(tree)


def _event(tree: dict[str, Any], data: bytes) -> Event:
    """Return an event whose bytes are checked. One without nesting is its own fields."""
    if _FLAT.issuperset(map(type, tree.values())):
        return checked_event(tree, data)
    return unread_event(EncodedEvent, data)


def _are_all_names(text: bytes, names: int) -> bool:
    """Tell whether a JSON text has no more names than were read, hence none twice.

    A colon follows each name, and colons in strings can only raise the count. Most texts with such colons have no space
    before the others.
    """
    return text.count(b":") == names or (text.count(b'":') == names and not _SPACE_AFTER_NAME.search(text))


def _names(tree: dict[str, Any], inside: frozenset[type]) -> int:
    """Return the number of names in an object and in what is inside; beyond all limits if there is a doubt.

    A name with a dot may meet a nested one, and a name with a dollar sign may be a tag or the period of validity.
    """
    names = "".join(tree)
    count = _DOUBTFUL if "." in names or "$" in names else len(tree)
    for value in tree.values():
        kind = type(value)
        if kind in inside:
            count += _names(value, inside) if kind is dict else _names_in_list(value, inside)
        elif kind is Ext and not _is_timestamp(value):
            count += _DOUBTFUL
    return count


def _names_in_list(items: list[Any], inside: frozenset[type]) -> int:
    count = 0
    for item in items:
        kind = type(item)
        if kind in inside:
            count += _names(item, inside) if kind is dict else _names_in_list(item, inside)
        elif kind is Ext and not _is_timestamp(item):
            count += _DOUBTFUL
    return count


def _is_timestamp(ext: Ext) -> bool:
    """Tell whether an extension is a timestamp of the years 1 to 9999."""
    try:
        return type(_decode(_write(ext))) is not Ext
    except ValueError:
        return False


_decode: Final[Callable[[bytes], Any]] = msgspec.msgpack.Decoder().decode
_write: Final[Callable[[object], bytes]] = msgspec.msgpack.Encoder().encode
_write_json: Final[Callable[[object], bytes]] = msgspec.json.Encoder().encode
_UNLIKE_JSON: Final = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]|[\xd6\xd7]\xff|\xc7\x0c\xff")
"""bytes that may be a number without a value, or a timestamp"""
_SPACE_AFTER_NAME: Final = re.compile(rb'"[ \t\r\n]+:')
_DOUBTFUL: Final = 1 << 60
"""a number of names that every limit forbids"""
_FLAT: Final = frozenset({str, int, float, bool, type(None)})
_Reader: TypeAlias = tuple[Callable[[bytes], Any], frozenset[type]]
_LEVELS: Final = 10
"""levels of nesting that are checked here, fewer than the limit of events"""


def _made(readers: list[_Reader], make: Callable[[Any], Any], other: Any = None) -> list[_Reader]:
    """Add decoders of objects to a list, each with the kinds of values in which there may be objects or `other` values.

    The first refuses both in lists, so that nobody needs to look for them in long lists of numbers.
    """
    flat: Any = list[_SCALAR]
    shallow: Any = _SCALAR | other
    deep: Any = _SCALAR | other
    for _ in range(_LEVELS):
        shallow = _SCALAR | other | Annotated[flat, _LENGTH] | dict[str, shallow]
        flat = list[_SCALAR | Annotated[flat, _LENGTH]]
        deep = _SCALAR | other | Annotated[list[deep], _LENGTH] | dict[str, deep]
    readers[:] = [
        (make(dict[str, shallow]).decode, frozenset({dict})),
        (make(dict[str, deep]).decode, frozenset({dict, list})),
    ]
    return readers


_LENGTH: Final = Meta(max_length=DEFAULT_LIMITS.fields)
_SCALAR: Final[Any] = str | float | bool | None | Annotated[int, Meta(ge=INT64_MIN, le=INT64_MAX)]
_json_readers: Final[list[_Reader]] = []
_msgpack_readers: Final[list[_Reader]] = []
"""made by the first event: they take 60 ms of CPU time each, a third of the start of every command"""
