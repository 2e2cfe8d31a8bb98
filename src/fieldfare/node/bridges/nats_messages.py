"""Messages of NATS as events, and events as messages: the rules of a bridge, and functions without I/O.

The CloudEvents binding for NATS has the attributes in headers such as `ce-type`, percent-encoded as in HTTP, or the
whole CloudEvent in the payload. Messages of either mode are recognised when they come in.
"""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal, TypeAlias

import msgspec

from fieldfare.events import binary_mode, json
from fieldfare.events.event import Event
from fieldfare.events.limits import EventError
from fieldfare.node.bridges.content import ID, OURS, fill, read_payload
from fieldfare.node.bridges.interface import IncomingEvent, OutgoingEvent, Rejection
from fieldfare.node.http import binding

BRIDGE: Final = f"{OURS}bridge"
"""header with the identity of the bridge that sent the message, which does not read the message again"""
MESSAGE_ID: Final = "Nats-Msg-Id"
"""header by which JetStream recognises a message that was sent twice"""
SUBJECT: Final = re.compile(r"[^\s.*>]+(\.[^\s.*>]+)*")
_CONTENT_TYPE: Final = "content-type"
_FORBIDDEN: Final = re.compile("[\x00-\x20\x7f\ud800-\udfff]")

Level: TypeAlias = Annotated[int, msgspec.Meta(ge=0)] | Literal["subject"]
Mode: TypeAlias = Literal["json", "binary", "structured"]


class IncomingRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of `in`: the messages of a subject come in as events."""

    subject: str
    """subject with `*` for one token and `>` for all further ones; a stream of JetStream must have it"""
    fields: dict[str, Level] = {}
    """fields of the event from tokens of the subject, counted from 0, or from the whole subject as "subject" """
    type: str = ""
    """value for the field `type` of the events"""
    start: Literal["all", "new"] = "all"
    """where to begin in a stream that the node has not read before"""

    def takes(self, subject: str) -> bool:
        """Tell whether the rule is for a subject.

        >>> IncomingRule("a.*.>").takes("a.b.c.d"), IncomingRule("a.*").takes("a.b.c")
        (True, False)
        """
        own, given = self.subject.split("."), subject.split(".")
        if own[-1] == ">":
            own = own[:-1] + ["*"] * (len(given) - len(own) + 1)
        return len(own) == len(given) and all(one in ("*", other) for one, other in zip(own, given, strict=True))


class OutgoingRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of `out`: the events that match a filter go out to a subject."""

    filter: str
    subject: str
    """subject with fields of the event, as `alarms.{room}`"""
    mode: Mode = "json"
    """the event as JSON, or as a CloudEvent in binary or structured mode"""


class Message(msgspec.Struct, frozen=True):
    """A message of NATS without the types of its client, so that tests need no server."""

    subject: str
    payload: bytes = b""
    headers: tuple[tuple[str, str], ...] = ()
    number: int = 1
    """the sequence number in the stream"""


def event_of(rule: IncomingRule, message: Message) -> IncomingEvent | Rejection:
    """Return the event in a message, by a rule; a Rejection if the payload is not what its content type says.

    >>> rule = IncomingRule("sensors.*.temperature", {"room": 1}, "temperature")
    >>> event_of(rule, Message("sensors.hall.temperature", b"21.5")).event
    Event({'value': 21.5, 'room': 'hall', 'type': 'temperature'})
    """
    try:
        event = _event(rule, message)
    except EventError as error:
        return Rejection(f"the message {message.number} to {message.subject}: {error}")
    return IncomingEvent(event, id=_id(message, event), number=message.number)


def _event(rule: IncomingRule, message: Message) -> Event:
    headers = {name.lower(): value for name, value in message.headers}
    content_type = headers.pop(_CONTENT_TYPE, "")
    if "ce-specversion" in headers:
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        event = binding.read_binary(encoded, content_type, message.payload)
        tree: dict[str, object] = dict(event.tree)
    else:
        event = read_payload(message.payload, content_type)
        named = {name: value for name, value in message.headers if not _is_of_transport(name)}
        tree = {**named, **event.tree}
    tokens = message.subject.split(".")
    for name, level in rule.fields.items():
        if level == "subject":
            tree[name] = message.subject
        elif level < len(tokens):
            tree[name] = tokens[level]
    if rule.type:
        tree["type"] = rule.type
    return Event(tree, valid=event.valid)


def _is_of_transport(name: str) -> bool:
    return name.lower().startswith((OURS, "nats-", _CONTENT_TYPE))


def _id(message: Message, event: Event) -> str:
    """Return an identity that a second message of the same event has, too; empty: none is known."""
    given = dict(message.headers).get(ID)
    if given is not None:
        return f"{message.subject}\n{given}"
    if "specversion" in event.tree:
        return f"{message.subject}\n{event['source']}\n{event['id']}"
    return ""


def message_of(rule: OutgoingRule, one: OutgoingEvent, identity: str, number: int = 0) -> Message | Rejection:
    """Return the message for an event, by the rule with this number; a Rejection if the subject needs a missing field.

    >>> event = Event({"type": "alarm", "room": "hall"})
    >>> message_of(OutgoingRule("TRUE", "alarms.{room}"), OutgoingEvent(event, "x/1"), "fieldfare-a-b").subject
    'alarms.hall'
    """
    try:
        subject = fill(rule.subject, one.event, lambda text: "." not in text, "a token of a subject")
        if not SUBJECT.fullmatch(subject) or _FORBIDDEN.search(subject):
            raise EventError("", f"{subject[:100]!r} is not a subject that messages can be published to")
        payload, headers = _encoded(one, f"/{identity}", rule.mode)
    except EventError as error:
        return Rejection(f"an event for {rule.subject}: {error}")
    # An event may go out by several rules, and each of the messages is one of its own for JetStream.
    ours = {MESSAGE_ID: f"{one.id}/{number}", ID: one.id, BRIDGE: identity}
    return Message(subject, payload, tuple((ours | headers).items()))


def _encoded(one: OutgoingEvent, source: str, mode: Mode) -> tuple[bytes, dict[str, str]]:
    match mode:
        case "json":
            return json.encode(one.event), {_CONTENT_TYPE: binary_mode.PLAIN}
        case "structured":
            return binary_mode.structured(one.event, one.id, source), {_CONTENT_TYPE: binary_mode.STRUCTURED}
        case "binary":
            message = binding.binary(one.event, one.id, source)
            return message.body, message.headers
