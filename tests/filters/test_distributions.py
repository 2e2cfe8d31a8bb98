"""Distributions against plain counting, and there and back through a file."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few

from fieldfare import Event, Interval, parse
from fieldfare.filters.constraint import FULL
from fieldfare.filters.distributions import SAMPLE, Distributions
from fieldfare.filters.statistics import Sample

START = datetime(2026, 1, 1, tzinfo=UTC)
CONDITIONS = [
    "x < 4", "x >= 2 AND x < 4.5", "x = 7", "x != 7", "NOT EXISTS x", "EXISTS x", "x IN (1, 2) OR x > 8",
    "symbol = 'S0'", "symbol LIKE '%1%'", "symbol > 'S1'", "hot = true", "NOT hot = true", "raw = X'01'",
    "at < TIMESTAMP '2026-01-01T00:03:00Z'", "mixed = 1", "ANY tags = 'a'", "x * 2 > 5", "width > 5", "none = 1", "far > 0",
]  # fmt: skip
values = {
    "x": st.one_of(st.integers(0, 9), st.just(math.nan), st.floats(0, 9)),
    "symbol": st.sampled_from(["S0", "S1", "S2"]),
    "hot": st.booleans(),
    "raw": st.sampled_from([b"\x00", b"\x01"]),
    "at": st.integers(0, 5).map(lambda minutes: START + timedelta(minutes=minutes)),
    "mixed": st.sampled_from([1, "1"]),
    "tags": st.lists(st.sampled_from("ab"), max_size=2),
    "width": st.just(Interval(1, 10)),
    "far": st.sampled_from([1.0, math.inf, -math.inf]),
}
events = st.lists(st.fixed_dictionaries({}, optional=values).map(Event), max_size=12)


@few(40)
@given(events, st.sampled_from(CONDITIONS))
def test_shares_are_those_of_plain_counting(some: list[Event], condition: str) -> None:
    known = Distributions.of(some)
    ((dimension, wanted),) = [side for box in parse(condition).boxes for side in box.items()][:1]
    assert known.share(dimension, wanted, FULL) == pytest.approx(Sample(some).share(dimension, wanted, FULL))
    again = Distributions.read(known.text())
    assert again.share(dimension, wanted, FULL) == pytest.approx(known.share(dimension, wanted, FULL))


def test_a_large_sample_is_cut_short_evenly() -> None:
    dice = Random(1)
    known = Distributions.of([Event({"x": dice.random()}) for _ in range(3000)])
    assert known.events == 3000
    assert SAMPLE // 2 < len(known.sample.events) <= SAMPLE


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (b"{", "no statistics of events: "),
        (b'{"events": 1, "fields": {}, "sample": [], "version": 2}', r"version"),
        (b'{"events": 1, "fields": {"x": {"kind": "list", "missing": 0, "nan": 0, "values": [], "weights": []}}, "sample": []}', "x: values of the kind list have no line"),
        (b'{"events": 1, "fields": {"x": {"kind": "number", "missing": 0, "nan": 0, "values": [1], "weights": []}}, "sample": []}', "x: 1 values have 0 weights"),
        (b'{"events": 1, "fields": {"x": {"kind": "number", "missing": 0, "nan": 0, "values": [2, 1], "weights": [1, 1]}}, "sample": []}', "x: the values are not in their order"),
        (b'{"events": 1, "fields": {"x": {"kind": "number", "missing": 0, "nan": 0, "values": ["a"], "weights": [1]}}, "sample": []}', "Expected `int | float`"),
        (b'{"events": 1, "fields": {}, "sample": ["/w=="]}', "no statistics of events: "),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_the_place(text: bytes, problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Distributions.read(text)
