from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tools.samples import FILTERS, UNIVERSE

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.named_filter import NamedFilter
from fieldfare.protocol import messages as m
from fieldfare.protocol import wire
from fieldfare.protocol.overlay_messages import Join, Repair

names = st.text("abc/\u00e9", max_size=4)
numbers = st.integers(0, 2**40)
filters = st.sampled_from(FILTERS) | st.builds(NamedFilter, names, st.sampled_from(FILTERS))
some = st.lists(filters, max_size=3).map(tuple)
events = st.sampled_from(UNIVERSE) | st.just(Event({"a": {"b": [1, None, "x"]}}))
pairs = st.tuples(numbers, numbers)
tells = st.builds(
    m.FilterUpdate, some, some, st.sampled_from(["subscriptions", "advertisements"]), st.booleans(), names
)
changes = st.one_of(
    tells,
    st.builds(m.TopicCheck, names),
    st.builds(m.TableCopy, names, tells),
    st.builds(Join, names, st.integers(0, 40), st.lists(names).map(tuple)),
    st.builds(Repair, names, st.lists(names).map(tuple)),
    st.builds(m.LinkUpdate, names, pairs, st.lists(names).map(tuple)),
    st.builds(m.InterestUpdate, names, pairs, some, some, st.booleans()),
)
messages = st.one_of(
    st.builds(m.Publish, events, st.none() | numbers),
    st.builds(m.Subscribe, names, filters),
    st.builds(m.Unsubscribe, names),
    st.builds(m.Advertise, names, filters),
    st.builds(m.Unadvertise, names),
    st.just(m.Leave()),
    st.builds(m.Deliver, events, names, numbers, st.lists(names).map(tuple), names),
    st.builds(m.Refuse, names, names),
    st.builds(m.Forward, events, names, numbers, names, names),
    changes,
)


@given(messages)
def test_every_message_comes_back_from_the_wire(message: m.Message) -> None:
    assert wire.decode(wire.encode(message)) == message


@pytest.mark.parametrize("data", [b"", b"\x00", b"nonsense", wire.encode(m.Leave())[:-1]])
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="no message"):
        wire.decode(data)


def test_a_message_with_a_bad_filter_is_refused() -> None:
    data = wire.encode(m.Subscribe("s", parse("x = 1"))).replace(b"x = 1", b"x = =")
    with pytest.raises(ValueError, match="no message"):
        wire.decode(data)


def test_roles_have_opposites() -> None:
    assert [role.opposite for role in m.Role] == [m.Role.PEER, m.Role.CHILD, m.Role.PARENT, m.Role.RESTING]


@pytest.mark.parametrize("filter", [[], ["name"], [["name"], "x = 1"], [{}, "x = 1"], [None, "x = 1"]])
def test_a_named_filter_that_is_none_is_refused(filter: list[Any]) -> None:
    data = msgspec.msgpack.encode({"is": "Subscribe", "id": "s", "filter": filter})
    with pytest.raises(ValueError, match="no message"):
        wire.decode(data)


def test_filters_that_were_prepared_are_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = ["prepared = 1", "prepared = 2", "prepared + + ("]
    told = msgspec.msgpack.encode({"is": "FilterUpdate", "added": texts})
    event = wire.encode(m.Forward(Event({"x": 1}), "ana", 1, "i", "a"))
    assert [wire.is_event(data) for data in (told, event)] == [False, True]
    wire.prepare([told])
    monkeypatch.setattr(wire, "parse", None)
    message, unreadable = wire.decode_leniently(told)
    assert (len(message.added), unreadable) == (3, texts[2:])  # type: ignore[attr-defined]
