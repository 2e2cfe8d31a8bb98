"""What a message of MQTT 5 means as an event, and an event as a message: rules, and functions without I/O."""

from __future__ import annotations

import contextlib
import re
from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from fieldfare.events import cloudevents, json, msgpack
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.events.tags import as_timestamp
from fieldfare.events.values import Value, format_timestamp
from fieldfare.node.bridges.interface import Arrived, Leaving, Problem

OURS: Final = "fieldfare-"
"""user properties that begin so are no fields"""
ID: Final = f"{OURS}id"
"""the user property by which a receiver knows an event that was sent twice"""
LONGEST: Final = 65_535
"""bytes of a text in MQTT"""
FIELD: Final = re.compile(r"\{([^{}]+)\}")
UNSAYABLE: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


Level: TypeAlias = Annotated[int, msgspec.Meta(ge=0)] | Literal["topic"]


class In(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages that come in."""

    topic: str
    """with `+` and `#`, perhaps with `$share/GROUP/` before it"""
    fields: dict[str, Level] = {}
    """fields by level of the topic, which count from 0; or the whole of it, as "topic" """
    type: str = ""
    """the field `type` of the events"""
    id: str = ""
    """a field or user property that no two messages share: what comes twice is published once"""
    qos: Literal[0, 1] = 1
    retained: bool = True
    """whether what the broker has retained comes, too, when the subscription is new"""


class Out(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Events that go out."""

    filter: str
    topic: str
    """with fields of the event, as `alarms/{room}`"""
    qos: Literal[0, 1] = 1
    retain: bool = False
    properties: bool | tuple[str, ...] = True
    """fields that are user properties, too: all that are single values, none, or some"""


class Message(msgspec.Struct, frozen=True):
    """A message of MQTT 5, as far as it matters here."""

    topic: str
    payload: bytes = b""
    content_type: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    expires: int | None = None
    """seconds"""
    reply_to: str = ""
    correlation: bytes | None = None
    utf8: bool = False
    """the publisher says that the payload is text"""


def arrived(rule: In, message: Message) -> Arrived | Problem:
    """The event in a message.

    >>> rule = In("sensors/+/temperature", {"room": 1}, "temperature")
    >>> arrived(rule, Message("sensors/kitchen/temperature", b"21.5", properties=(("unit", "C"),))).event
    Event({'unit': 'C', 'value': 21.5, 'room': 'kitchen', 'type': 'temperature'})
    """
    try:
        event = _event(rule, message)
    except EventError as error:
        return Problem(f"a message to {message.topic}: {error}")
    id: object = event.get(rule.id) if rule.id else None
    if id is None:
        id = dict(message.properties).get(ID)
    # An event may go to several topics, and is then told several times.
    return Arrived(event, message.expires or None, "" if id is None else f"{message.topic}\n{id!r}")


def _event(rule: In, message: Message) -> Event:
    """What stands in the topic or is set by the rule counts before the payload, and that before user properties."""
    content = _content(message)
    tree: dict[str, object] = {}
    for name, value in message.properties:
        if name in content or name.startswith(OURS):
            continue  # the payload says it with its type
        if name in tree:
            former = tree[name]
            tree[name] = [*former, value] if isinstance(former, list) else [former, value]
        else:
            tree[name] = value
    if isinstance(time_said := tree.get("time"), str):
        tree["time"] = as_timestamp(time_said) or time_said
    if message.reply_to:
        tree.setdefault("reply_to", message.reply_to)
    if message.correlation is not None:
        tree.setdefault("correlation_data", message.correlation)
    tree |= content.tree
    levels = message.topic.split("/")
    for name, level in rule.fields.items():
        if level == "topic":
            tree[name] = message.topic
        elif level < len(levels):
            tree[name] = levels[level]
    if rule.type:
        tree["type"] = rule.type
    return Event(tree, valid=content.valid)


def _content(message: Message) -> Event:
    """The payload, as its content type says; without one as JSON, text or bytes, whatever it can be."""
    payload, kind = message.payload, message.content_type.partition(";")[0].strip().lower()
    if kind == "application/cloudevents+json":
        return cloudevents.decode(payload)
    if kind in ("application/msgpack", "application/vnd.msgpack", "application/x-msgpack"):
        return msgpack.decode(payload)
    if kind == "application/json" or kind.endswith("+json"):
        return _json(payload)
    named = {"datacontenttype": message.content_type} if kind else {}
    if not payload:
        return Event(named)
    if kind.startswith("text/") or (not kind and message.utf8):
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
        raise EventError("", "the content type says JSON, and it is none")
    return json.decode(b'{"value":' + payload + b"}")


def _is_json(payload: bytes) -> bool:
    try:
        msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return True


def leaving(rule: Out, one: Leaving, now: float) -> Message | Problem:
    """The message for an event, or why there can be none.

    >>> event = Event({"type": "alarm", "level": 5, "room": "kitchen"})
    >>> message = leaving(Out("level > 3", "alarms/{room}"), Leaving(event, "x/1"), 0)
    >>> message.topic, message.properties
    ('alarms/kitchen', (('fieldfare-id', 'x/1'), ('type', 'alarm'), ('level', '5'), ('room', 'kitchen')))
    """
    try:
        topic = _topic(rule.topic, one.event)
        payload = json.encode(one.event)
    except EventError as error:
        return Problem(f"an event for {rule.topic}: {error}")
    names = rule.properties if isinstance(rule.properties, tuple) else one.event if rule.properties else ()
    texts = ((name, _text(one.event.get(name))) for name in names)
    properties = tuple((name, text) for name, text in texts if text is not None and sayable(name) and sayable(text))
    reply_to, correlation = one.event.get("reply_to"), one.event.get("correlation_data")
    return Message(
        topic,
        payload,
        "application/json",
        ((ID, one.id), *properties),
        None if one.expires is None else max(1, round(one.expires - now)),
        reply_to if isinstance(reply_to, str) and reply_to != topic and _is_topic(reply_to) else "",
        correlation if isinstance(correlation, bytes) and len(correlation) <= LONGEST else None,
    )


def _topic(template: str, event: Event) -> str:
    """A topic with fields filled in. A field is one level, unless it is the whole topic."""
    whole = FIELD.fullmatch(template) is not None

    def value(match: re.Match[str]) -> str:
        name = match[1]
        if name not in event:
            raise EventError(name, "is missing")
        text = _text(event[name])
        if text is None or (not whole and "/" in text):
            raise EventError(name, "cannot be a level of a topic")
        return text

    topic = FIELD.sub(value, template)
    if not _is_topic(topic):
        raise EventError("", f"{topic[:100]!r} is no topic that one can publish to")
    return topic


def _is_topic(text: str) -> bool:
    return bool(text) and not text.startswith("$") and not any(sign in text for sign in "+#") and sayable(text)


def _text(value: Value) -> str | None:
    """A single value as text; None if there is no plain one."""
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


def sayable(text: str) -> bool:
    """May MQTT have it? Brokers hang up on control characters, and would do so again and again."""
    return len(text.encode(errors="surrogatepass")) <= LONGEST and not UNSAYABLE.search(text)
