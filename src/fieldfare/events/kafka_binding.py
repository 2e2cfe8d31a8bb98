"""Events as the value and the headers of a Kafka record: in JSON, or as CloudEvents by the binding for Kafka 1.0.2.

In binary mode attributes are headers such as `ce_type`, in UTF-8 and not percent-encoded, and the value is the data; in
structured mode the value is the whole CloudEvent in JSON.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from fieldfare.events import binary_mode, json
from fieldfare.events.event import Event

CONTENT_TYPE: Final = "content-type"
PREFIX: Final = "ce_"
"""prefix of the headers with attributes"""

Mode: TypeAlias = Literal["json", "binary", "structured"]


def write(event: Event, id: str, source: str, mode: Mode) -> tuple[bytes, dict[str, str]]:
    """Return the value and the headers of a record; `id` and `source` are for CloudEvents without them.

    >>> write(Event(type="sale", sum=5), "1", "/till", "binary")[0]
    b'{"sum":5}'
    """
    if mode == "json":
        return json.encode(event), {CONTENT_TYPE: binary_mode.PLAIN}
    if mode == "structured":
        return binary_mode.structured(event, id, source), {CONTENT_TYPE: binary_mode.STRUCTURED}
    attributes, content_type, data = binary_mode.split(event, id, source)
    headers = {f"{PREFIX}{name}": _text(value) for name, value in attributes.items()}
    return data, headers | ({CONTENT_TYPE: content_type} if content_type else {})


def is_binary(headers: Mapping[str, str]) -> bool:
    """Tell whether the headers have the attributes of a CloudEvent."""
    return f"{PREFIX}specversion" in headers


def read_binary(headers: Mapping[str, str], value: bytes) -> Event:
    """Return the event of a record in binary mode; EventError names a wrong attribute."""
    attributes = {name[len(PREFIX) :]: text for name, text in headers.items() if name.startswith(PREFIX)}
    return binary_mode.join(attributes, headers.get(CONTENT_TYPE, ""), value)


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
