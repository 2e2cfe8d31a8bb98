"""Bounds of patterns: what time alone ends, against detectors; and pictures."""

from __future__ import annotations

import random

import pytest

from fieldfare.patterns import Detector, Occurrence, parse_pattern
from fieldfare.patterns.bounds import endless

ENDING = (
    "(a followed by b) within 1 minute",
    "a followed by b within 1 minute",
    "a followed by not b within 1 minute",
    "(a{2,} followed by b) within 1 minute",
    "(a and b) within 1 minute",
    "a or b",
    "(a followed by (b followed by c) within 10 seconds) within 1 minute",
)
WAITING = (
    ("a followed by b", "b"),
    ("a and b", "a"),
    ("at least 2 a followed by b within 1 minute", "a"),
    ("a followed by ((b followed by c) within 10 seconds)", "b"),
    ("a? followed by b", "b"),
    ("a{2}", "a"),
)


def left_open(text: str, seed: int) -> int:
    """Return the open instances of a pattern long after some random events."""
    chance = random.Random(seed)
    detector = Detector({"p": parse_pattern(f"a: [x = 1] b: [x = 2] c: [x = 3] {text}")}, kernels="lazy")
    for second in range(20):
        time = second * 1_000_000
        detector.step([Occurrence(time, time, {"x": chance.randint(1, 3)})])
    detector.advance(10_000_000_000)
    return detector.open


@pytest.mark.parametrize("text", ENDING)
def test_time_alone_ends_a_bounded_pattern(text: str) -> None:
    assert endless(parse_pattern(f"a: [x = 1] b: [x = 2] c: [x = 3] {text}")) == ""
    assert not any(left_open(text, seed) for seed in range(8))


@pytest.mark.parametrize(("text", "name"), WAITING)
def test_the_name_that_may_be_waited_for_is_found(text: str, name: str) -> None:
    assert endless(parse_pattern(f"a: [x = 1] b: [x = 2] c: [x = 3] {text}")) == name
    assert any(left_open(text, seed) for seed in range(8))
