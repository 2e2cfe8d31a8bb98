"""Workloads of patterns, and the contest without its peer."""

from __future__ import annotations

from itertools import pairwise

import pytest

from fieldfare.patterns import parse_pattern
from fieldfare_lab.bench.pattern_contest import measure
from fieldfare_lab.bench.pattern_workloads import SHAPES, STEP, fieldfare_text, siddhi_app, thresholds, ticks

LONGEST = 10_000
"""milliseconds of the longest pattern"""


@pytest.mark.parametrize("shape", SHAPES)
def test_events_of_a_kind_come_as_stories_with_pauses(shape: str) -> None:
    given = ticks(shape, 100, 500)
    assert [tick.number for tick in given] == list(range(501))
    assert [tick.time for tick in given] == sorted({tick.time for tick in given})
    for kind in {tick.kind for tick in given}:
        times = [tick.time for tick in given if tick.kind == kind]
        gaps = {after - before for before, after in pairwise(times)}
        assert all(gap == STEP or gap > LONGEST for gap in gaps), "no pattern remembers the story before"


@pytest.mark.parametrize("shape", SHAPES)
def test_both_dialects_have_the_thresholds_of_a_pattern(shape: str) -> None:
    one = thresholds(27)
    assert (one.kind, one.above, one.below) == ("k2", 97, 3)
    filters = parse_pattern(fieldfare_text(shape, 27)).filters
    assert filters["a"].matches({"kind": "k2", "price": 98})
    assert not filters["a"].matches({"kind": "k2", "price": 97})
    assert "S[kind == 'k2' and price > 97]" in siddhi_app(shape, 28)


def test_rows_say_what_was_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldfare_lab.bench.pattern_contest.siddhi_is_there", lambda: False)
    [row] = measure("sequence", 20, 500, 1, lambda _: None)
    assert (row.engine, row.events, row.right) == ("Fieldfare", 501, True)
    assert row.matches > 100
    assert row.rate > 0
