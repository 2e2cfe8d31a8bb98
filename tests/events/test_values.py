"""Values: kinds, intervals, timestamps."""

from __future__ import annotations

import math
import pickle
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from tests.events.strategies import FIRST, LAST, intervals, times

from fieldfare.events import MISSING, Interval, Kind, format_timestamp, kind_of, parse_timestamp

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "kind"),
    [
        (None, Kind.NULL),
        (True, Kind.BOOL),
        (1, Kind.NUMBER),
        (1.5, Kind.NUMBER),
        ("", Kind.STRING),
        (NOON, Kind.TIME),
        (b"", Kind.BYTES),
        ((), Kind.LIST),
        ([], Kind.LIST),
        ({}, Kind.OBJECT),
        (Interval(1, 2), Kind.INTERVAL),
        (MISSING, None),
        (object(), None),
    ],
)
def test_kinds(value: object, kind: Kind | None) -> None:
    assert kind_of(value) is kind


def test_missing_stays_itself() -> None:
    assert pickle.loads(pickle.dumps(MISSING)) is MISSING
    assert repr(MISSING) == "MISSING"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((1, 2, "[["), "closed must be one of"),
        ((None, None), "needs at least one end"),
        ((1, "a"), "must be two numbers"),
        ((True, False), "must be two numbers"),
        (([1], [2]), "must be two numbers"),
        ((1, True), "must be two numbers"),
        ((math.nan, None), "NaN lies in no interval"),
        ((2, 1), "is empty"),
        ((1, 1.0, "[)"), "is empty"),
        ((datetime(2026, 1, 1), NOON), "has no time zone"),  # noqa: DTZ001
    ],
)
def test_no_interval(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Interval(*arguments)  # type: ignore[arg-type]


def test_intervals_of_time_are_in_utc() -> None:
    there = NOON.astimezone(timezone(timedelta(hours=5)))
    assert repr(Interval(there, None)) == repr(Interval(NOON, None))


@given(intervals())
def test_intervals_know_their_kind(interval: Interval) -> None:
    assert interval.kind is kind_of(interval.low if interval.low is not None else interval.high)
    assert pickle.loads(pickle.dumps(interval)) == interval


@given(times)
def test_timestamps_round_trip(time: datetime) -> None:
    assert parse_timestamp(format_timestamp(time)) == time


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-11-15T12:00:00Z", NOON),
        ("2026-11-15t12:00:00z", NOON),
        ("2026-11-15 12:00:00-00:00", NOON),
        ("2026-11-15T17:30:00.000+05:30", NOON),
        ("2026-11-15T12:00:00.1234569Z", NOON.replace(microsecond=123456)),
        ("0001-01-01T00:00:00Z", FIRST),
        ("9999-12-31T23:59:59.999999Z", LAST),
    ],
)
def test_rfc_3339(text: str, time: datetime) -> None:
    assert parse_timestamp(text) == time


@pytest.mark.parametrize(
    "text",
    [
        "",
        "noon",
        "2026-11-15",
        "2026-11-15T12:00:00",
        "2026-11-15T12:00Z",
        "20261115T120000Z",
        "2026-W46-7T12:00:00Z",
        "2026-02-30T12:00:00Z",
        "2026-11-15T24:00:00Z",
        "2026-11-15T12:00:60Z",
        "2026-11-15T12:00:00+01:00:30",
        "0001-01-01T00:00:00+01:00",
        "9999-12-31T23:59:59-01:00",
        "\u0662026-11-15T12:00:00Z",
        "2026-11-15T12:00:00Z\n",
    ],
)
def test_not_rfc_3339(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_timestamp(text)


def test_format() -> None:
    assert format_timestamp(NOON.replace(microsecond=120)) == "2026-11-15T12:00:00.00012Z"
    assert format_timestamp(FIRST) == "0001-01-01T00:00:00Z"
