"""Records of Kafka and messages of NATS as events, without any server."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.events import binary_mode, cloudevents
from fieldfare.events.event import Event
from fieldfare.events.kafka_binding import Mode
from fieldfare.node.bridges import IncomingEvent, OutgoingEvent, Rejection, kafka_settings, nats_settings
from fieldfare.node.bridges.kafka_records import IncomingRule, OutgoingRule, Record, event_of, record_of
from fieldfare.node.bridges.nats_messages import IncomingRule as Subject
from fieldfare.node.bridges.nats_messages import Message, message_of
from fieldfare.node.bridges.nats_messages import OutgoingRule as ToSubject
from fieldfare.node.bridges.nats_messages import event_of as event_in
from fieldfare.node.config import ConfigError

CE = (("ce_specversion", b"1.0"), ("ce_id", b"7"), ("ce_source", b"/till"), ("ce_type", "Verkäufe 100%25".encode()))
MODES: tuple[Mode, ...] = ("json", "binary", "structured")
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
trees = st.dictionaries(
    st.sampled_from(["a", "b", "room", "type", "id", "source"]),
    st.integers(-(2**53), 2**53) | texts | st.booleans() | st.binary(max_size=9) | st.lists(texts, max_size=3),
    max_size=5,
)


def come(rule: IncomingRule, record: Record) -> Event:
    found = event_of(rule, record)
    assert isinstance(found, IncomingEvent), found
    return found.event


def test_parts_of_a_record_are_fields() -> None:
    rule = IncomingRule(
        "t", {"k": "key", "p": "partition", "o": "offset", "at": "timestamp", "where": "topic"}, "quote"
    )
    record = Record("t", b'{"x": 1, "type": "other"}', b"IBM", (("unit", b"C"), ("x", b"no")), 3, 9, 1_000)
    assert come(rule, record).tree == {
        "unit": "C", "x": 1, "type": "quote", "k": "IBM", "p": 3, "o": 9, "where": "t",
        "at": datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC),
    }  # fmt: skip
    assert come(rule, Record("t", None, b"\xff")).tree["k"] == b"\xff"  # a tombstone, and a key that is no text


def test_the_number_of_a_record_is_never_zero() -> None:
    found = event_of(IncomingRule("t"), Record("t", b"1", offset=0))
    assert isinstance(found, IncomingEvent)
    assert found.number == 1


def test_cloudevents_in_both_modes() -> None:
    binary = come(IncomingRule("t"), Record("t", b'{"sum": 5}', headers=(*CE, ("content-type", b"application/json"))))
    assert (binary.type, binary["data.sum"]) == ("Verkäufe 100%25", 5)  # Kafka's headers are not percent-encoded
    whole = b'{"specversion":"1.0","id":"7","source":"/till","type":"a","data":{"sum":5}}'
    structured = Record("t", whole, headers=(("content-type", b"application/cloudevents+json; charset=utf-8"),))
    assert come(IncomingRule("t"), structured)["data.sum"] == 5
    found = event_of(IncomingRule("t"), structured)
    assert isinstance(found, IncomingEvent)
    assert found.id == "t\n/till\n7"


@pytest.mark.parametrize(
    ("headers", "value", "problem"),
    [
        ((("content-type", b"application/json"),), b"{no", "not JSON|malformed|JSON"),
        (CE[:3], b"1", "field 'type'"),
        ((*CE, ("ce_data", b"1")), b"1", "no header of its own"),
        ((*CE, ("content-type", b"application/json")), b'1, "id": 2', "not JSON"),
    ],
)
def test_a_bad_record_is_rejected_by_its_place(
    headers: tuple[tuple[str, bytes], ...], value: bytes, problem: str
) -> None:
    found = event_of(IncomingRule("t"), Record("t", value, None, headers, 2, 17))
    assert isinstance(found, Rejection)
    assert found.reason.startswith("the record t/2/17: ")
    assert re.search(problem, found.reason), found.reason


@given(trees, st.sampled_from(MODES))
def test_an_event_comes_back_from_kafka_and_nats(tree: dict[str, object], mode: Mode) -> None:
    """As an event in JSON, or as the CloudEvent that HTTP makes of it, too."""
    event = Event(tree)
    record = record_of(OutgoingRule("TRUE", "t", mode=mode), OutgoingEvent(event, "x/1"), "me")
    message = message_of(ToSubject("TRUE", "t", mode=mode), OutgoingEvent(event, "x/1"), "me")
    assert isinstance(record, Record)
    assert isinstance(message, Message)
    from_kafka, from_nats = event_of(IncomingRule("t"), record), event_in(Subject("t"), message)
    assert isinstance(from_kafka, IncomingEvent)
    assert isinstance(from_nats, IncomingEvent)
    assert from_kafka.event == from_nats.event
    assert from_kafka.id == from_nats.id == "t\nx/1"
    as_cloudevent = cloudevents.decode(binary_mode.structured(event, "x/1", "/me"))
    assert from_kafka.event == (event if mode == "json" else as_cloudevent)


@pytest.mark.parametrize("room", [None, "", "a/b", "x" * 250, "é", [1, 2]])
def test_an_event_that_has_no_topic_is_rejected(room: object) -> None:
    event = Event({} if room is None else {"room": room})
    assert isinstance(record_of(OutgoingRule("TRUE", "{room}"), OutgoingEvent(event, "1"), "me"), Rejection)


@pytest.mark.parametrize("room", [None, "", "a.b", "a b", "*", ">", "\x01", [1, 2]])
def test_an_event_that_has_no_subject_is_rejected(room: object) -> None:
    event = Event({} if room is None else {"room": room})
    assert isinstance(message_of(ToSubject("TRUE", "t.{room}"), OutgoingEvent(event, "1"), "me"), Rejection)


KAFKA = {"servers": "127.0.0.1:9092", "in": [{"topic": "t"}]}
NATS = {"url": "nats://127.0.0.1:4222", "in": [{"subject": "t"}]}


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"servers": "http://a"}, "servers"),
        ({"in": []}, ""),
        ({"in": [{"topic": "a b"}]}, "in[0].topic"),
        ({"in": [{"topic": "t"}, {"topic": "t"}]}, "in"),
        ({"in": [{"topic": "t", "fields": {"x": "y"}}]}, "in[0].fields.x"),
        ({"out": [{"filter": "x >", "topic": "t"}]}, "out[0].filter"),
        ({"out": [{"filter": "x > 1", "topic": "t/{x}"}]}, "out[0].topic"),
        ({"password": "s"}, "username"),
        ({"username": "ana"}, "username"),
        ({"certificate": "c.pem"}, "certificate"),
        ({"authorities": "no.pem"}, "authorities"),
        ({"options": {"acks": "1"}}, "options"),
        ({"password_variable": "NOT_THERE"}, "password_variable"),
    ],
)
def test_a_wrong_setting_of_kafka_is_named(change: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigError) as error:
        kafka_settings.read("me", {**KAFKA, **change})
    assert error.value.key == key


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"url": "http://a"}, "url"),
        ({"url": "nats://ana:secret@a"}, "url"),
        ({"in": []}, ""),
        ({"in": [{"subject": "a..b"}]}, "in[0].subject"),
        ({"in": [{"subject": "a.>.b"}]}, "in[0].subject"),
        ({"in": [{"subject": "t"}, {"subject": "t"}]}, "in"),
        ({"out": [{"filter": "x >", "subject": "t"}]}, "out[0].filter"),
        ({"out": [{"filter": "x > 1", "subject": "t.*"}]}, "out[0].subject"),
        ({"password": "s"}, "username"),
        ({"credentials": "no.creds"}, "credentials"),
        ({"password_variable": "NOT_THERE"}, "password_variable"),
    ],
)
def test_a_wrong_setting_of_nats_is_named(change: dict[str, object], key: str) -> None:
    with pytest.raises(ConfigError) as error:
        nats_settings.read({**NATS, **change})
    assert error.value.key == key


def test_security_of_kafka_is_passed_on() -> None:
    given, _ = kafka_settings.read(
        "me", {**KAFKA, "tls": True, "username": "ana", "password": "s", "mechanism": "SCRAM-SHA-256"}
    )
    found = kafka_settings.client(given)
    assert found["security.protocol"] == "SASL_SSL"
    assert (found["sasl.mechanism"], found["sasl.username"], found["sasl.password"]) == ("SCRAM-SHA-256", "ana", "s")
