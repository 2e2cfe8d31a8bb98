from collections.abc import Mapping

import pytest

from fieldfare.events import MISSING, Event, Interval
from fieldfare.filters import EVERYTHING, NOTHING, parse
from fieldfare.filters.constraint import Mode
from fieldfare.filters.diagnosis import Finding, diagnose
from fieldfare.filters.expressions import UNCERTAIN

FILTERS = [
    "price < 10 AND symbol = 'IBM'",
    "price < 10 OR volume > 3",
    "NOT price < 10",
    "price * volume > 100",
    "bid > $ask",
    "ANY tags = 'a' AND ALL tags IN ('a', 'b')",
    "items HAS (sku = 'a' AND qty > 2)",
    "LENGTH(symbol) = 3 AND symbol LIKE '%B%'",
    "TRUE",
]
EVENTS: list[Mapping[str, object]] = [
    {},
    {"price": 5, "symbol": "IBM"},
    {"price": 12, "symbol": "IBM", "volume": 30},
    {"price": Interval(5, 15), "symbol": "IBM", "volume": 2},
    {"price": Interval(1, 2), "symbol": "IBM", "volume": 100},
    {"bid": 3, "ask": 2, "tags": ["a", "c"]},
    {"bid": Interval(1, 2), "ask": 2, "tags": ["a", "b"]},
    {"items": [{"sku": "a", "qty": 1}, {"sku": "b", "qty": 3}]},
    {"items": [{"sku": "a", "qty": 3}], "price": None},
]


@pytest.mark.parametrize("text", FILTERS)
@pytest.mark.parametrize("mode", ["overlaps", "covers"])
def test_the_event_matches_just_if_a_branch_is_ok(text: str, mode: Mode) -> None:
    wanted = parse(text)
    for event in EVENTS:
        reports = diagnose(wanted, event, mode)
        assert any(report.ok for report in reports) == wanted.matches(event, mode)
        assert len(reports) == len(wanted.branches)


def test_what_failed_and_on_which_value() -> None:
    [report] = diagnose(parse("price < 10 AND symbol = 'IBM' AND EXISTS volume"), {"price": 12, "symbol": "IBM"})
    assert report.branch == "price < 10 AND symbol = 'IBM' AND EXISTS volume"
    assert report.failed == (
        Finding("price", "price < 10", 12, False),
        Finding("volume", "EXISTS volume", MISSING, False),
    )
    assert [finding.ok for finding in report.findings] == [False, True, False]


def test_computed_dimensions_show_what_was_computed() -> None:
    [report] = diagnose(parse("price * volume > 100"), {"price": 12, "volume": 3})
    assert report.failed == (Finding("price * volume", "price * volume > 100", 36, False),)
    [report] = diagnose(parse("price * volume > 100"), {"price": Interval(1, 2), "volume": 3}, "covers")
    assert report.failed[0].actual is UNCERTAIN


def test_nested_fields_and_quoted_names() -> None:
    [report] = diagnose(parse('"unit price" > 1 AND user.id = 7'), Event({"unit price": 1, "user": {"id": 7}}))
    assert [(one.dimension, one.actual, one.ok) for one in report.findings] == [
        ('"unit price"', 1, False),
        ("user.id", 7, True),
    ]


def test_everything_and_nothing() -> None:
    [report] = diagnose(EVERYTHING, {})
    assert report.ok
    assert diagnose(NOTHING, {}) == []
