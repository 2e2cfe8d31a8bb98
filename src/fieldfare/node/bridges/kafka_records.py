"""Records of Kafka as events, and events as records: the rules of a bridge, and functions without I/O.

CloudEvents in binary and structured mode are recognised (see `events.kafka_binding`). Any other record is an event by
its value, as with any bridge.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Final, Literal, TypeAlias

import msgspec

from fieldfare.events import kafka_binding
from fieldfare.events.event import Event
from fieldfare.events.kafka_binding import Mode
from fieldfare.events.limits import EventError
from fieldfare.node.bridges.content import ID, OURS, fill, read_payload
from fieldfare.node.bridges.interface import IncomingEvent, OutgoingEvent, Rejection

BRIDGE: Final = f"{OURS}bridge"
"""header with the identity of the bridge that wrote the record, which does not read the record again"""
_TOPIC: Final = re.compile(r"[A-Za-z0-9._-]{1,249}")

Part: TypeAlias = Literal["topic", "partition", "offset", "key", "timestamp"]
Header: TypeAlias = tuple[str, bytes | None]


class IncomingRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of `in`: the records of a topic come in as events."""

    topic: str
    fields: dict[str, Part] = {}
    """fields of the event from parts of the record: topic, partition, offset, key or timestamp"""
    type: str = ""
    """value for the field `type` of the events"""
    start: Literal["earliest", "latest"] = "earliest"
    """where to begin in a partition that the node has not read before"""


class OutgoingRule(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A rule of `out`: the events that match a filter go out to a topic."""

    filter: str
    topic: str
    """topic with fields of the event, as `alarms-{room}`"""
    key: str = ""
    """key with fields of the event, as `{room}`: Kafka keeps the order of records with the same key"""
    mode: Mode = "json"
    """the event as JSON, or as a CloudEvent in binary or structured mode"""


class Record(msgspec.Struct, frozen=True):
    """A record of Kafka without the types of its client, so that tests need no broker."""

    topic: str
    value: bytes | None = b""
    key: bytes | None = None
    headers: tuple[Header, ...] = ()
    partition: int = 0
    offset: int = 0
    timestamp: int | None = None
    """milliseconds since 1970"""

    @property
    def texts(self) -> dict[str, str]:
        """The headers that are text in UTF-8, the last of each name."""
        return {name: text for name, value in self.headers if (text := _decoded(value)) is not None}


def event_of(rule: IncomingRule, record: Record) -> IncomingEvent | Rejection:
    """Return the event in a record, by a rule; a Rejection if the value is not what its content type says.

    >>> rule = IncomingRule("quotes", {"symbol": "key"}, "quote")
    >>> event_of(rule, Record("quotes", b'{"price": 5}', b"IBM")).event
    Event({'price': 5, 'symbol': 'IBM', 'type': 'quote'})
    """
    try:
        event = _event(rule, record)
    except EventError as error:
        return Rejection(f"the record {record.topic}/{record.partition}/{record.offset}: {error}")
    return IncomingEvent(event, id=_id(record, event), number=record.offset + 1)


def _event(rule: IncomingRule, record: Record) -> Event:
    headers, value = record.texts, record.value or b""
    if kafka_binding.is_binary(headers):
        event = kafka_binding.read_binary(headers, value)
        tree: dict[str, object] = dict(event.tree)
    else:
        event = read_payload(value, headers.pop(kafka_binding.CONTENT_TYPE, ""))
        named = {name: text for name, text in headers.items() if not name.startswith(OURS)}
        tree = {**named, **event.tree}
    for name, part in rule.fields.items():
        found = _part(part, record)
        if found is not None:
            tree[name] = found
    if rule.type:
        tree["type"] = rule.type
    return Event(tree, valid=event.valid)


def _part(part: Part, record: Record) -> object:
    if part == "key":
        return None if record.key is None else _decoded(record.key) or record.key
    if part == "timestamp":
        return None if record.timestamp is None else datetime.fromtimestamp(record.timestamp / 1000, UTC)
    return getattr(record, part)


def _id(record: Record, event: Event) -> str:
    """Return an identity that a second record of the same event has, too; empty: none is known."""
    given = record.texts.get(ID)
    if given is not None:
        return f"{record.topic}\n{given}"
    if "specversion" in event.tree:
        return f"{record.topic}\n{event['source']}\n{event['id']}"
    return ""


def record_of(rule: OutgoingRule, one: OutgoingEvent, identity: str) -> Record | Rejection:
    """Return the record for an event, by a rule; a Rejection if topic or key need a field that the event lacks.

    >>> event = Event({"type": "alarm", "level": 5, "room": "hall"})
    >>> record = record_of(OutgoingRule("level > 3", "alarms", "{room}"), OutgoingEvent(event, "x/1"), "fieldfare-a-b")
    >>> record.key, record.headers[:2]
    (b'hall', (('fieldfare-id', b'x/1'), ('fieldfare-bridge', b'fieldfare-a-b')))
    """
    try:
        topic = fill(rule.topic, one.event, part="a part of a topic")
        if not _TOPIC.fullmatch(topic) or topic in (".", ".."):
            raise EventError("", f"{topic[:100]!r} is not the name of a topic")
        key = fill(rule.key, one.event, part="a part of a key").encode() if rule.key else None
        value, headers = kafka_binding.write(one.event, one.id, f"/{identity}", rule.mode)
    except EventError as error:
        return Rejection(f"an event for {rule.topic}: {error}")
    except UnicodeEncodeError:
        return Rejection(f"an event for {rule.topic}: a text that is not Unicode")
    ours = {ID: one.id, BRIDGE: identity}
    return Record(topic, value, key, tuple((name, text.encode()) for name, text in {**ours, **headers}.items()))


def _decoded(value: bytes | None) -> str | None:
    try:
        return None if value is None else value.decode()
    except UnicodeDecodeError:
        return None
