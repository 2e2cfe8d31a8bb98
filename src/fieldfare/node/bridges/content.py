"""Payloads as events, and fields of events as text: the parts that all bridges share, without I/O."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from datetime import datetime
from typing import Final

import msgspec

from fieldfare.events import cloudevents, json, msgpack
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.events.values import Value, format_timestamp

FIELD: Final = re.compile(r"\{([^{}]+)\}")
"""a field in a template such as `alarms/{room}`"""
OURS: Final = "fieldfare-"
"""prefix of the headers that do not become fields"""
ID: Final = f"{OURS}id"
"""header with the id of the event, by which a receiver recognises an event that was sent twice"""


def read_payload(payload: bytes, content_type: str = "", *, is_text: bool = False) -> Event:
    """Decode a payload by its content type; without a content type try JSON, then text, then bytes.

    >>> read_payload(b"21.5")
    Event({'value': 21.5})
    """
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "application/cloudevents+json":
        return cloudevents.decode(payload)
    if kind in ("application/msgpack", "application/vnd.msgpack", "application/x-msgpack"):
        return msgpack.decode(payload)
    if kind == "application/json" or kind.endswith("+json"):
        return _json(payload)
    named = {"datacontenttype": content_type} if kind else {}
    if not payload:
        return Event(named)
    if kind.startswith("text/") or (not kind and is_text):
        try:
            return _json(payload) if not kind and _is_json(payload) else Event({**named, "value": payload.decode()})
        except UnicodeDecodeError:
            raise EventError("", f"{kind or 'text'}, and not in UTF-8") from None
    if not kind and _is_json(payload):
        return _json(payload)
    with contextlib.suppress(UnicodeDecodeError):
        if not kind:
            return Event(value=payload.decode())
    return Event({**named, "data": payload})


def _json(payload: bytes) -> Event:
    if payload.lstrip()[:1] == b"{":
        return json.decode(payload)
    if not _is_json(payload):
        raise EventError("", "the content type is JSON, and the payload is not JSON")
    return json.decode(b'{"value":' + payload + b"}")


def _is_json(payload: bytes) -> bool:
    try:
        msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def fill(template: str, event: Event, fits: Callable[[str], bool] = lambda _: True, part: str = "a part") -> str:
    """Fill the fields of an event into a template; `fits` judges values unless one field is the whole template.

    >>> fill("alarms/{room}", Event(room="hall"))
    'alarms/hall'
    """
    whole = FIELD.fullmatch(template) is not None

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in event:
            raise EventError(name, "is missing")
        text = as_text(event[name])
        if text is None or not (whole or fits(text)):
            raise EventError(name, f"cannot be {part}")
        return text

    return FIELD.sub(value, template)


def as_text(value: Value) -> str | None:
    """Return a single value as text; None for values without a plain text."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            return repr(value)
        case datetime():
            return format_timestamp(value)
    return None
