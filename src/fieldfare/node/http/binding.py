"""CloudEvents over HTTP, in the binary, structured and batch mode of the HTTP binding 1.0.2.

In binary mode attributes are headers (`ce-type`), percent-encoded, and the body is `data`: JSON is parsed, text is a
string, all else is bytes. Any event can be written: an event that is not a CloudEvent becomes the `data` of one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from json import JSONDecoder
from typing import Final, NamedTuple
from urllib.parse import quote, unquote_to_bytes

from fieldfare.events import binary_mode, cloudevents, encoded, json, msgpack
from fieldfare.events.binary_mode import PLAIN, STRUCTURED
from fieldfare.events.event import Event
from fieldfare.events.limits import DEFAULT_LIMITS, EventError
from fieldfare.node.http.errors import Problem

BATCH: Final = "application/cloudevents-batch+json"
LINES: Final = "application/x-ndjson"

Header = tuple[bytes, bytes]


# Reading


def is_binary(headers: Iterable[Header]) -> bool:
    """Tell whether a request is in binary mode: with attributes as headers."""
    return any(name.startswith(b"ce-") for name, _ in headers)


def read_binary(headers: Iterable[Header], content_type: str, data: bytes) -> Event:
    """Return the event in a request in binary mode; EventError names a wrong attribute."""
    attributes: dict[str, object] = {}
    for name, value in headers:
        if name.startswith(b"ce-"):
            attribute = name[3:].decode("latin-1")
            if attribute in attributes:
                raise EventError(attribute, "the header occurs twice")
            attributes[attribute] = _from_header(attribute, value)
    return binary_mode.join(attributes, content_type, data)


def _from_header(attribute: str, value: bytes) -> str:
    text = value.strip()
    if len(text) >= 2 and text[:1] == text[-1:] == b'"':
        text = re.sub(rb"\\(.)", rb"\1", text[1:-1])
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise EventError(attribute, "the header, its %-signs decoded, is not text in UTF-8") from None


def read_events(kind: str, data: bytes) -> list[Event]:
    """Return the events of a body, by its media type; Problem 415 for an unknown media type."""
    if kind == STRUCTURED:
        return [_checked(cloudevents.decode, data)]
    if kind == BATCH:
        return _numbered(cloudevents.decode, _elements(data))
    if kind == LINES:
        return _numbered(_plain, (line for line in data.split(b"\n") if line.strip()))
    if kind == PLAIN:
        if data.lstrip()[:1] == b"[":
            return _numbered(_plain, _elements(data))
        return [_checked(_plain, data)]
    known = ", ".join((PLAIN, LINES, STRUCTURED, BATCH))
    shown = repr(kind[:100]) if kind else "missing"
    raise Problem(
        415,
        f"the Content-Type is {shown}; events come as {known}, or with attributes in headers such as ce-type",
        {"Accept": known},
    )


def _numbered(decode: Callable[[bytes], Event], texts: Iterable[bytes]) -> list[Event]:
    events = []
    for number, text in enumerate(texts, 1):
        try:
            events.append(_checked(decode, text))
        except EventError as error:
            raise Problem(400, f"event {number}: {error}", event=number, field=error.field) from None
    return events


def _elements(data: bytes) -> list[bytes]:
    """Return the texts of the elements of an array; a wrong element is found later, when its number is known."""
    try:
        return json.read_array(data)
    except EventError:
        texts = _roughly(data)
        if texts is None:
            raise
        return texts


def _roughly(data: bytes) -> list[bytes] | None:
    """Return the texts of the elements by a parser that accepts more than JSON; None if that parser fails, too."""
    text = data.decode(errors="surrogateescape").strip()
    read = JSONDecoder().raw_decode
    texts, at = [], 1
    try:
        while True:
            at = _after_space(text, at)
            _, end = read(text, at)
            texts.append(text[at:end].encode(errors="surrogateescape"))
            at = _after_space(text, end)
            if text[at : at + 1] != ",":
                return texts if text[at:] == "]" else None
            at += 1
    except (ValueError, RecursionError):
        return None


def _after_space(text: str, at: int) -> int:
    found = _SPACE.match(text, at)
    return found.end() if found is not None else at


_SPACE: Final = re.compile(r"[ \t\r\n]*")


def _plain(text: bytes) -> Event:
    event = encoded.of_json(text)
    return json.decode(text) if event is None else event


def _checked(decode: Callable[[bytes], Event], text: bytes) -> Event:
    event = decode(text)
    # A number can be three times as long in MessagePack, the format in which events are stored.
    if len(text) > DEFAULT_LIMITS.bytes // 3 and len(msgpack.encode(event)) > DEFAULT_LIMITS.bytes:
        raise EventError("", f"in MessagePack the event has more than {DEFAULT_LIMITS.bytes} bytes, the limit")
    return event


# Writing


class Message(NamedTuple):
    """The headers and the body of a request."""

    headers: dict[str, str]
    body: bytes


def binary(event: Event, id: str, source: str) -> Message:
    """Return an event as a request in binary mode, a CloudEvent or not.

    >>> binary(Event({"sum": 5, "type": "a sale"}), "1", "/till").headers["ce-type"]
    'a%20sale'
    """
    attributes, content_type, data = binary_mode.split(event, id, source)
    headers = {f"ce-{name}": to_header(value) for name, value in attributes.items()}
    if content_type:
        headers["content-type"] = header_text(content_type)
    return Message(headers, data)


def to_header(value: object) -> str:
    """Return an attribute as the value of a header, percent-encoded."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return quote(str(value), safe=_SAFE)


_SAFE: Final = "".join(chr(code) for code in range(0x21, 0x7F) if chr(code) not in '"%')


def header_text(text: str) -> str:
    """Return a text with `?` for each character that a header must not have."""
    return "".join(char if " " <= char <= "~" else "?" for char in text)


def plain(event: Event) -> bytes:
    """Return an event as plain JSON, without the attributes of CloudEvents."""
    return json.encode(event)
