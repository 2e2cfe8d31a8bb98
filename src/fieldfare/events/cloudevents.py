"""CloudEvents 1.0 in JSON, single (structured mode) and in batches.

An event with the field `specversion` *is* a CloudEvent: the top-level fields are the context attributes and `data`.
Decoding always gives such events, so that filters say `type` and `data.user.id`. Encoding wraps any other event: `id`,
`source`, `type` and `time` become attributes, and all other fields become `data`.

Types unknown to JSON are tagged inside `data`, as in `tags`. Attributes are never tagged: CloudEvents writes timestamps
and bytes as plain strings and, except `time`, decoding leaves strings. An attribute with the value null counts as
missing. The validity period is the extension attribute `validity`, such as `[2026-11-15T09:30:00Z/..)`.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from fieldfare.events import json
from fieldfare.events.event import Event
from fieldfare.events.json import Timestamps, read_array, read_object, write
from fieldfare.events.limits import DEFAULT_LIMITS, EventError, Limits
from fieldfare.events.tags import read_bytes, read_time, tag, untag
from fieldfare.events.values import Interval, Value, format_timestamp

VALIDITY: Final = "validity"
"""The extension attribute for the validity period."""

_T = TypeVar("_T")
_REQUIRED: Final = ("id", "source", "type")
_TEXTS: Final = frozenset({*_REQUIRED, "subject", "datacontenttype", "dataschema"})
_NAME: Final = re.compile("[a-z0-9]+")
_INT32: Final = range(-(2**31), 2**31)
_PERIOD: Final = re.compile(r"([\[(])([^/]+)/([^/]+)([\])])")


def decode_any(data: bytes | str, *, limits: Limits = DEFAULT_LIMITS, timestamps: Timestamps = ("time",)) -> Event:
    """Return the event in a JSON object: a CloudEvent if the object has `specversion`, otherwise a plain event.

    >>> decode_any('{"sum": 5}')
    Event({'sum': 5})
    """
    hint = b"specversion" in data if isinstance(data, bytes) else "specversion" in data
    if hint and "specversion" in read_object(data, limits):
        return decode(data, limits=limits)
    return json.decode(data, limits=limits, timestamps=timestamps)


def decode(data: bytes | str, *, limits: Limits = DEFAULT_LIMITS) -> Event:
    """Return the CloudEvent in a JSON object; an `EventError` names the attribute with a mistake.

    >>> event = decode('{"specversion": "1.0", "id": "1", "source": "/till", "type": "sale", "data": {"sum": 5}}')
    >>> event["data.sum"], event.type
    (5, 'sale')
    """
    tree = {name: value for name, value in read_object(data, limits).items() if value is not None or name == "data"}
    content: dict[str, object] = {}
    if "data_base64" in tree:
        if "data" in tree:
            raise EventError("data_base64", "a CloudEvent has data or data_base64, not both")
        content["data"] = _named("data_base64", read_bytes, tree.pop("data_base64"))
    elif "data" in tree:
        content["data"] = untag(tree.pop("data"), "data", 1, limits)
    if "time" in tree:
        tree["time"] = _named("time", read_time, tree["time"])
    _check_attributes(tree)
    valid = _read_period(tree.get(VALIDITY))
    if valid is not None:
        del tree[VALIDITY]
    return Event({**tree, **content}, valid=valid, limits=limits)


def decode_batch(data: bytes | str, *, limits: Limits = DEFAULT_LIMITS) -> list[Event]:
    """Return the CloudEvents in a JSON array. The limits hold for each event; an error names the event's number."""
    events = []
    for number, text in enumerate(read_array(data), 1):
        try:
            events.append(decode(text, limits=limits))
        except EventError as error:
            raise EventError(error.field, f"{error.problem} (event {number})") from None
    return events


def encode(event: Event, *, id: str | None = None, source: str | None = None, type: str | None = None) -> bytes:
    """Return an event as a CloudEvent. `id`, `source` and `type` are for events without these fields.

    >>> encode(Event({"sum": 5, "type": "sale"}), id="1", source="/till")[:60]
    b'{"specversion":"1.0","id":"1","source":"/till","type":"sale"'
    """
    return write(_envelope(event, {"id": id, "source": source, "type": type}))


def encode_batch(events: Iterable[Event], *, source: str | None = None, type: str | None = None) -> bytes:
    """Return events as a batch of CloudEvents; every event needs an own `id`."""
    return write([_envelope(event, {"source": source, "type": type}) for event in events])


def _envelope(event: Event, given: Mapping[str, str | None]) -> dict[str, object]:
    tree = dict(event.tree if "specversion" in event.tree else _wrap(event, given))
    content = {"data": tree.pop("data")} if "data" in tree else {}
    tree = {name: value for name, value in tree.items() if value is not None}
    if isinstance(time := tree.get("time"), str):
        tree["time"] = _named("time", read_time, time)
    if event.valid is not None:
        if VALIDITY in tree:
            raise EventError(VALIDITY, "the attribute is needed for the validity period of the event")
        tree[VALIDITY] = _write_period(event.valid)
    _check_attributes(tree)
    written: dict[str, object] = {name: _write_attribute(value) for name, value in tree.items()}
    for value in content.values():
        if isinstance(value, bytes):
            written["data_base64"] = base64.b64encode(value).decode()
        else:
            written["data"] = tag(value)
    return written


def _wrap(event: Event, given: Mapping[str, str | None]) -> dict[str, Value]:
    rest = dict(event.tree)
    wrapped: dict[str, Value] = {"specversion": "1.0"}
    for name in _REQUIRED:
        if isinstance(own := rest.get(name), str) and own:
            wrapped[name] = rest.pop(name)
        elif given.get(name) is not None:
            wrapped[name] = given[name]
        else:
            raise EventError(name, "a CloudEvent needs it, and neither the event nor the caller gives it")
    if event.time is not None:
        wrapped["time"] = rest.pop("time")
    return {**wrapped, "datacontenttype": "application/json", "data": rest}


def _check_attributes(tree: Mapping[str, Any]) -> None:
    if tree.get("specversion") != "1.0":
        shown = repr(tree["specversion"]) if "specversion" in tree else "missing"
        raise EventError("specversion", f"it must be '1.0', and is {shown}")
    for name in _REQUIRED:
        if name not in tree:
            raise EventError(name, "a CloudEvent needs it")
    for name, value in tree.items():
        if not _NAME.fullmatch(name):
            raise EventError(name, "the name of a CloudEvents attribute consists of a-z and 0-9")
        if name in _TEXTS and not (isinstance(value, str) and value):
            raise EventError(name, "it must be a string that is not empty")
        if not _is_attribute(value):
            raise EventError(name, "a CloudEvents attribute is a bool, an int32, a string, bytes or a timestamp")


def _is_attribute(value: object) -> bool:
    if isinstance(value, int):  # bools too
        return value in _INT32
    return isinstance(value, str | bytes | datetime)


def _write_attribute(value: object) -> object:
    if isinstance(value, datetime):
        return format_timestamp(value)
    return base64.b64encode(value).decode() if isinstance(value, bytes) else value


def _write_period(valid: Interval) -> str:
    low, high = (format_timestamp(end) if isinstance(end, datetime) else ".." for end in (valid.low, valid.high))
    return f"{valid.closed[0]}{low}/{high}{valid.closed[1]}"


def _read_period(text: object) -> Interval | None:
    """Return the period, or None: another program may use an attribute of the same name."""
    if not isinstance(text, str) or not (match := _PERIOD.fullmatch(text)):
        return None
    left, *ends, right = match.groups()
    try:
        low, high = (None if end == ".." else read_time(end) for end in ends)
        return Interval(low, high, left + right)
    except ValueError:
        return None


def _named(field: str, read: Callable[[object], _T], content: object) -> _T:
    try:
        return read(content)
    except ValueError as error:
        raise EventError(field, str(error)) from None
