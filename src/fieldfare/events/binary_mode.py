"""CloudEvents in binary mode: the attributes of an event apart from its data, for headers of any protocol.

HTTP, Kafka and NATS differ in the names and the encoding of headers. The split of an event into attributes, media type
and bytes is the same: JSON is a value, text is a string, all else is bytes. Any event can be written: an event that is
not a CloudEvent becomes the `data` of one.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from fieldfare.events import cloudevents, json
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError

STRUCTURED: Final = "application/cloudevents+json"
"""the media type of a whole CloudEvent"""
PLAIN: Final = "application/json"
EVENT_TYPE: Final = "fieldfare.event"
"""type of a CloudEvent that is made of an event without a type"""
_BODY: Final = frozenset({"data", "data_base64", "datacontenttype"})


class Parts(NamedTuple):
    """An event in binary mode."""

    attributes: dict[str, object]
    """strings, whole numbers and booleans; without `datacontenttype`"""
    content_type: str
    data: bytes


def join(attributes: Mapping[str, object], content_type: str, data: bytes) -> Event:
    """Return the event of a message in binary mode; EventError names a wrong attribute.

    >>> join({"specversion": "1.0", "id": "1", "source": "/till", "type": "sale"}, "application/json", b"5")["data"]
    5
    """
    for name in _BODY & set(attributes):
        raise EventError(name, "has no header of its own: it is the body, or Content-Type")
    tree = dict(attributes)
    if content_type:
        tree["datacontenttype"] = content_type
    if data:
        tree |= _read_data(content_type, data)
    return cloudevents.decode(json.write(tree))


def split(event: Event, id: str, source: str) -> Parts:
    """Return an event in binary mode, a CloudEvent or not; `id` and `source` are for events without them.

    >>> split(Event({"sum": 5, "type": "sale"}), "1", "/till").data
    b'{"sum":5}'
    """
    tree = msgspec.json.decode(structured(event, id, source))
    content_type = tree.pop("datacontenttype", "")
    data = b""
    if "data_base64" in tree:
        data = base64.b64decode(tree.pop("data_base64"))
    elif "data" in tree:
        value = tree.pop("data")
        content_type = content_type or PLAIN
        data = value.encode() if isinstance(value, str) and not is_json(content_type) else json.write(value)
    return Parts(tree, content_type, data)


def structured(event: Event, id: str, source: str) -> bytes:
    """Return an event as a CloudEvent in JSON; `id` and `source` are for events without them.

    >>> structured(Event({"sum": 5}), "1", "/till")
    b'{"specversion":"1.0","id":"1","source":"/till","type":"fieldfare.event","datacontenttype":"application/json","data":{"sum":5}}'
    """
    try:
        return cloudevents.encode(event, id=id, source=source, type=EVENT_TYPE)
    except EventError:  # fields such as `specversion` with values that CloudEvents forbids
        attributes = {"specversion": "1.0", "id": id, "source": source, "type": EVENT_TYPE, "datacontenttype": PLAIN}
        return json.write({**attributes, "data": msgspec.Raw(json.encode(event))})


def is_json(content_type: str) -> bool:
    """Tell whether a media type is JSON, such as `application/problem+json`."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind == PLAIN or kind.endswith("+json")


def _read_data(content_type: str, data: bytes) -> dict[str, object]:
    kind, _, parameters = content_type.lower().partition(";")
    if is_json(content_type) or not kind:  # some SDKs send JSON without a Content-Type
        try:
            msgspec.json.decode(data)  # a check: the raw text is inserted below, and must be one value
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            if not kind:
                return {"data_base64": base64.b64encode(data).decode()}
            raise EventError("data", f"not JSON, as the Content-Type {kind} says: {error}") from None
        return {"data": msgspec.Raw(data)}
    if kind.startswith("text/") and ("charset" not in parameters or "utf-8" in parameters):
        try:
            return {"data": data.decode()}
        except UnicodeDecodeError:
            pass  # not text, in spite of the Content-Type: keep the bytes
    return {"data_base64": base64.b64encode(data).decode()}
