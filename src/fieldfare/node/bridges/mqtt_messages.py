"""Messages of MQTT 5 as events, and events as messages: the rules of a bridge, and functions without I/O."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from fieldfare.events import json
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.events.tags import as_timestamp
from fieldfare.node.bridges.content import ID, OURS, as_text, fill, read_payload
from fieldfare.node.bridges.interface import IncomingEvent, OutgoingEvent, Rejection

LONGEST: Final = 65_535
"""bytes of a string in MQTT"""
FORBIDDEN: Final = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")


Level: TypeAlias = Annotated[int, msgspec.Meta(ge=0)] | Literal["topic"]


class IncomingRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of `in`: the messages of a topic come in as events."""

    topic: str
    """topic with `+` and `#`, perhaps with `$share/GROUP/` before it"""
    fields: dict[str, Level] = {}
    """fields of the event from levels of the topic, counted from 0, or from the whole topic as "topic" """
    type: str = ""
    """value for the field `type` of the events"""
    id: str = ""
    """field or user property that is unique to a message: a message that comes twice is published once"""
    qos: Literal[0, 1] = 1
    retained: bool = True
    """also take the retained messages, when the subscription is new"""


class OutgoingRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of `out`: the events that match a filter go out to a topic."""

    filter: str
    topic: str
    """topic with fields of the event, as `alarms/{room}`"""
    qos: Literal[0, 1] = 1
    retain: bool = False
    properties: bool | tuple[str, ...] = True
    """fields to repeat as user properties: all with a single value (true), none (false), or those named"""


class Message(msgspec.Struct, frozen=True):
    """A message of MQTT 5 without the types of paho, so that tests need no MQTT broker."""

    topic: str
    payload: bytes = b""
    content_type: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    expires: int | None = None
    """seconds"""
    reply_to: str = ""
    correlation: bytes | None = None
    utf8: bool = False
    """the publisher has marked the payload as text"""


def event_of(rule: IncomingRule, message: Message) -> IncomingEvent | Rejection:
    """Return the event in a message, by a rule; a Rejection if the payload is not what its content type says.

    >>> rule = IncomingRule("sensors/+/temperature", {"room": 1}, "temperature")
    >>> event_of(rule, Message("sensors/kitchen/temperature", b"21.5", properties=(("unit", "C"),))).event
    Event({'unit': 'C', 'value': 21.5, 'room': 'kitchen', 'type': 'temperature'})
    """
    try:
        event = _event(rule, message)
    except EventError as error:
        return Rejection(f"a message to {message.topic}: {error}")
    id: object = event.get(rule.id) if rule.id else None
    if id is None:
        id = dict(message.properties).get(ID)
    # An event may go out to several topics with one id: each of these messages is an event of its own.
    return IncomingEvent(event, message.expires or None, "" if id is None else f"{message.topic}\n{id!r}")


def _event(rule: IncomingRule, message: Message) -> Event:
    """Merge the sources of fields: the topic and the rule win over the payload, the payload over user properties."""
    content = read_payload(message.payload, message.content_type, is_text=message.utf8)
    tree: dict[str, object] = {}
    for name, value in message.properties:
        if name in content or name.startswith(OURS):
            continue  # the payload has the same field, with its type
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


def message_of(rule: OutgoingRule, one: OutgoingEvent, now: float) -> Message | Rejection:
    """Return the message for an event, by a rule; a Rejection if the topic needs a field that the event lacks.

    >>> event = Event({"type": "alarm", "level": 5, "room": "kitchen"})
    >>> message = message_of(OutgoingRule("level > 3", "alarms/{room}"), OutgoingEvent(event, "x/1"), 0)
    >>> message.topic, message.properties
    ('alarms/kitchen', (('fieldfare-id', 'x/1'), ('type', 'alarm'), ('level', '5'), ('room', 'kitchen')))
    """
    try:
        topic = _topic(rule.topic, one.event)
        payload = json.encode(one.event)
    except EventError as error:
        return Rejection(f"an event for {rule.topic}: {error}")
    names = rule.properties if isinstance(rule.properties, tuple) else one.event if rule.properties else ()
    texts = ((name, as_text(one.event.get(name))) for name in names)
    properties = tuple(
        (name, text) for name, text in texts if text is not None and is_mqtt_text(name) and is_mqtt_text(text)
    )
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
    """Fill the fields of an event into a topic; a value must be a single level, unless the field is the whole topic."""
    topic = fill(template, event, lambda text: "/" not in text, "a level of a topic")
    if not _is_topic(topic):
        raise EventError("", f"{topic[:100]!r} is not a topic that messages can be published to")
    return topic


def _is_topic(text: str) -> bool:
    return bool(text) and not text.startswith("$") and not any(sign in text for sign in "+#") and is_mqtt_text(text)


def is_mqtt_text(text: str) -> bool:
    """Tell whether MQTT allows a string. MQTT brokers disconnect a client for control characters, each time anew."""
    return len(text.encode(errors="surrogatepass")) <= LONGEST and not FORBIDDEN.search(text)
