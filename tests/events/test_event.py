"""Events: paths, equality, immutability, and what is refused."""

from __future__ import annotations

import enum
import pickle
from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone, tzinfo

import numpy as np
import pytest
from hypothesis import given
from tests.events.strategies import events, same

from fieldfare.events import Event, EventError, Interval, Limits, fields_of, freeze

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


def test_paths() -> None:
    event = Event({"user": {"id": 7}, "items": [{"sku": 1, "tags": ["x"]}, {"sku": 2}, 3, [{"sku": 4}]]}, type="sale")
    assert event["user.id"] == 7
    assert event["items.sku"] == (1, 2, 4)
    assert event["items.tags"] == ("x",)
    assert set(event) == {"user", "user.id", "items", "items.sku", "items.tags", "type"}
    assert event.tree["user"] == {"id": 7}


def test_attributes() -> None:
    event = Event(id="1", source="/s", type="t", time=NOON)
    assert (event.id, event.source, event.type, event.time) == ("1", "/s", "t", NOON)
    assert (Event(id=1).id, Event(time="noon").time) == (None, None)


@given(events)
def test_copies_and_pickles_are_the_same(event: Event) -> None:
    assert same(Event(event, valid=event.valid), event)
    assert same(pickle.loads(pickle.dumps(event)), event)
    assert hash(Event(event, valid=event.valid)) == hash(event)


def test_a_pickle_is_read_whatever_the_limits_were() -> None:
    event = Event(a="x" * 300_000, limits=Limits(string=1 << 20))
    assert pickle.loads(pickle.dumps(event)) == event


def test_equality_looks_at_the_kind() -> None:
    assert Event(a=1) == Event(a=1.0)
    assert hash(Event(a=1)) == hash(Event(a=1.0))
    assert Event(a=1) != Event(a=True)
    assert Event(a=[1]) != Event(a=[True])
    assert Event(a=2**53 + 1) != Event(a=float(2**53))
    assert Event(a=None) != Event()
    assert Event(a=1) != Event({"a": 1}, valid=Interval(NOON, None))
    assert Event({"a": 1, "b": 2}) == Event({"b": 2, "a": 1})


def test_immutable() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        Event().valid = None
    with pytest.raises(TypeError):
        Event().tree["a"] = 1  # type: ignore[index]


class Colour(enum.StrEnum):
    RED = "red"


class Size(enum.IntEnum):
    BIG = 3


def test_subclasses_become_what_they_stand_for() -> None:
    event = Event({"a": Colour.RED, "b": Size.BIG, "c": np.float64(1.5), "d": OrderedDict(x=1), Colour.RED: 1})
    assert same(event, Event({"a": "red", "b": 3, "c": 1.5, "d": {"x": 1}, "red": 1}))


class Nowhere(tzinfo):
    def utcoffset(self, _: datetime | None) -> None:
        return None

    dst = utcoffset
    tzname = utcoffset


EDGE = datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=1)))


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({"a": {"b": 2**63}}, "field 'a.b': the integer 9223372036854775808 does not fit in 64 bits"),
        ({"a": 10**5000}, "field 'a': the integer of 16610 bits does not fit in 64 bits"),
        ({"a": "\ud800"}, "field 'a': the string holds a lone surrogate and cannot be written as UTF-8"),
        ({"a": {"\ud800": 1}}, "field 'a': the field name '\\ud800': the string holds a lone surrogate"),
        ({1: 1}, "the field name 1 is not a string"),
        ({"a": NOON.replace(tzinfo=None)}, "field 'a': the timestamp 2026-11-15T12:00:00 has no time zone"),
        ({"a": NOON.replace(tzinfo=Nowhere())}, "field 'a': the timestamp 2026-11-15T12:00:00 has no time zone"),
        ({"a": EDGE}, "field 'a': the timestamp 0001-01-01T00:00:00+01:00 lies outside the years 1 to 9999 in UTC"),
        ({"a": {1, 2}}, "field 'a': a value of type set is not one a field can hold"),
        ({"a": Interval(2**63, None)}, "field 'a': the integer 9223372036854775808 does not fit in 64 bits"),
        ({"a": Interval("\ud800", None)}, "field 'a': the string holds a lone surrogate"),
        ({"a.b": 1, "a": {"b": 1}}, "field 'a.b': named twice, once with a dot in its name and once by nesting"),
        ({"a.b": 1, "a": [{"b": 1}]}, "field 'a.b': named twice, once with a dot in its name and once by nesting"),
        ({"a": [{"b": 1}], "a.b": 1}, "field 'a.b': named twice, once with a dot in its name and once by nesting"),
    ],
)
def test_refused(tree: dict[str, object], message: str) -> None:
    with pytest.raises(EventError) as caught:
        Event(tree)
    assert str(caught.value).startswith(message)


def test_the_period_is_one_of_time() -> None:
    with pytest.raises(EventError, match="the validity period must be an interval of timestamps"):
        Event(valid=Interval(1, 2))


@pytest.mark.parametrize(
    ("limits", "at", "over"),
    [
        (Limits(fields=3), {"a": 1, "b": {"c": 1}}, {"a": 1, "b": {"c": 1, "d": 1}}),
        (Limits(depth=3), {"a": {"b": [1]}}, {"a": {"b": [[1]]}}),
        (Limits(string=1), {"a": "é"}, {"a": "éé"}),
        (Limits(string=1), {"a": b"x"}, {"a": b"xx"}),
        (Limits(string=1), {"a": Interval("x", None)}, {"a": Interval("xx", None)}),
        (Limits(string=1), {"a": 1}, {"aa": 1}),
    ],
)
def test_limits(limits: Limits, at: dict[str, object], over: dict[str, object]) -> None:
    Event(at, limits=limits)
    with pytest.raises(EventError, match="limit of"):
        Event(over, limits=limits)


def test_fields_of() -> None:
    flat = {"a": 1, "b": "x"}
    assert fields_of(flat) is flat
    assert fields_of({"a": {"b": 1}})["a.b"] == 1
    event = Event(flat)
    assert fields_of(event) is event.fields


def test_freeze() -> None:
    assert freeze([1, [2]]) == (1, (2,))
    with pytest.raises(EventError, match="field 'x'"):
        freeze(2**64, "x")
