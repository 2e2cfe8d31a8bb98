"""Near misses: the reasons for known histories, and what every near miss must be for random ones."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few

from fieldfare.patterns import Detector, Occurrence, parse_pattern
from fieldfare.patterns.relaxations import near_misses

NAMES = "a: [x = 1] b: [x = 2] c: [x = 3] "


def occurred(*events: tuple[float, dict[str, object]]) -> list[Occurrence]:
    return [
        Occurrence(round(at * 1e6), round(at * 1e6), event, number=number) for number, (at, event) in enumerate(events)
    ]


def history(text: str, **more: object) -> list[Occurrence]:
    """Events from a text: "a0 b14" is an a at second 0, and a b at second 14."""
    return occurred(*((float(one[1:]), {"x": "abc".index(one[0]) + 1, **more}) for one in text.split()))


@pytest.mark.parametrize(
    ("pattern", "events", "reasons"),
    [
        ("a followed by b within 10 s", "a0 b10", []),
        ("a followed by b within 10 s", "a0 b14", ["the 2nd event, b, came 4s too late: within 10s"]),
        (
            "(a followed by b followed by c) within 10 s",
            "a0 b4 c14",
            ["the 3rd event, c, came 4s too late: within 10s"],
        ),
        ("a followed by (b followed by c) within 5 s", "a0 b4 c6", ["the 3rd event, c, came 1s too late: within 5s"]),
        ("a followed by not b followed by c", "a0 b1 c2", ["b came at 1970-01-01 00:00:01, and must not come"]),
        ("a followed by not b within 5 s", "a0 b1 c9", ["b came at 1970-01-01 00:00:01, and must not come"]),
        ("at least 3 a followed by b", "a0 a1 b2", ["a came 2 times, and not at least 3"]),
        ("at least 3 a followed by b", "a0 b2", ["a came 1 time, and not at least 3"]),
        ("at least 3 a followed by b", "a0 a1 a2 b3", []),
        ("a followed by b", "b0 a1", []),
    ],
)
def test_reasons(pattern: str, events: str, reasons: list[str]) -> None:
    assert [one.reason for one in near_misses(parse_pattern(NAMES + pattern), history(events))] == reasons


def test_a_condition_tells_the_values() -> None:
    rise = parse_pattern("a: [kind = 'a'] b: [kind = 'b'] a followed by b for each card where b.price > 2 * a.price")
    events = occurred(
        (0, {"kind": "a", "card": 7, "price": 10}), (1, {"kind": "b", "card": 8, "price": 99}), (2, {"kind": "b", "card": 7, "price": 15})
    )  # fmt: skip
    [miss] = near_misses(rise, events)
    assert miss.reason == "b.price > 2 * a.price is false: last(b.price) is 15, last(a.price) is 10"
    assert miss.key == (7,)
    assert [(name, event.event["price"]) for name, event in miss.events] == [("a", 10), ("b", 15)]


def test_an_absent_name_of_another_key_is_no_reason() -> None:
    pair = parse_pattern("a: [x = 1] b: [x = 2] c: [x = 3] a followed by not b followed by c for each card")
    events = sorted(history("a0 c2", card=1) + history("b1", card=2), key=lambda one: one.key)
    assert near_misses(pair, events) == []


PATTERNS = [
    "a followed by b within 3 s",
    "(a followed by b followed by c) within 4 s",
    "a followed by not b followed by c",
    "at least 2 a followed by (b or c) within 3 s",
    "(a and b) within 2 s",
    "a+ followed by not c followed by b where count(a) > 1",
]


@few(30)
@given(st.sampled_from(PATTERNS), st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 3)), max_size=12))
def test_a_near_miss_ends_no_match_and_is_a_match_without_the_demand(text: str, steps: list[tuple[str, int]]) -> None:
    time, words = 0, []
    for name, pause in steps:
        time += pause
        words.append(f"{name}{time}")
    pattern, events = parse_pattern(NAMES + text), history(" ".join(words))
    matched = {one.match.stamp.high for one in Detector({"": pattern}).step(events)}
    for miss in near_misses(pattern, events):
        assert miss.events[-1][1].high not in matched
        assert [event for _, event in miss.events] == sorted(
            (event for _, event in miss.events), key=lambda one: one.key
        )
        only = [event for _, event in miss.events]
        if (
            "must not come" not in miss.reason
        ):  # the demand alone is the reason: these events by themselves are no match
            assert Detector({"": pattern}).step(only) == []
