"""Many patterns at once do what each does alone, and a restored detector goes on where the other was."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.patterns.histories import shown
from tests.patterns.test_language import EXPRESSIONS, FILTERS, PARALLEL, at, lower
from tests.patterns.trees import offers
from tools.effort import steps

from fieldfare.events import Event
from fieldfare.patterns import Detection, Detector, parse_pattern
from fieldfare.patterns.machine import Machine
from fieldfare.patterns.rows import all_rows, changes, restore
from fieldfare.patterns.runs import Offer
from fieldfare.patterns.stamps import SECOND
from fieldfare.protocol.journal import Row

TEXTS = [
    *EXPRESSIONS,
    *PARALLEL,
    "a{2} within 3s after match past last",
    "a followed by b for each v",
    "b+ then c select sum(b.v) as s",
]
TEXTS += [
    "a followed by b in windows of 4s",
    "a followed by b where b.v > prev(b.v) OR b.v >= avg(a.v) for each v",
    "a followed by b once",
]


def told(detections: list[Detection]) -> list[tuple[str, Any, str, Any]]:
    return sorted((one.pattern, repr(one.key), shown(one.match), repr(one.match.values)) for one in detections)


@given(st.lists(st.sampled_from(TEXTS), min_size=1, max_size=4), offers(12))
def test_patterns_together_do_what_each_does_alone(texts: list[str], history: list[Offer]) -> None:
    patterns = {f"p{number}": parse_pattern(text, FILTERS) for number, text in enumerate(texts)}
    events = [one.event for one in lower(history)]
    together = Detector(patterns)
    expected = [one for name, found in patterns.items() for one in Detector({name: found}).step(events, 20)]
    found = [one for event in events for one in together.step([event])] + together.step([], 20)
    assert told(found) == told(expected)
    assert together.distinct_filters <= 3


def as_stored(rows: list[Row], stored: dict[str, dict[Any, Any]] | None = None) -> dict[str, dict[Any, Any]]:
    """Rows by kind and key, applied to those that are there already."""
    found = {kind: dict(of_kind) for kind, of_kind in (stored or {}).items()}
    for row in rows:
        if row.value is None:
            found.get(row.kind, {}).pop(row.key, None)
        else:
            found.setdefault(row.kind, {})[row.key] = row.value
    return {kind: of_kind for kind, of_kind in found.items() if of_kind}


def through_storage(rows: list[Row]) -> list[Row]:
    """Rows as a store gives them back: tuples have become lists."""
    return [row._replace(value=msgspec.msgpack.decode(msgspec.msgpack.encode(row.value))) for row in rows]


@given(
    st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3),
    offers(10, ordered=False),
    st.integers(0, 10),
    st.sampled_from(["", " allow 2s of disorder"]),
)
def test_a_restored_detector_goes_on(texts: list[str], history: list[Offer], cut: int, late: str) -> None:
    patterns = {f"p{number}": parse_pattern(text + late, FILTERS) for number, text in enumerate(texts)}
    events = [one.event._replace(event=Event({**one.event.event})) for one in lower(history)]
    whole = Detector(patterns)
    written: dict[tuple[str, tuple[Any, ...]], Machine] = {}
    stored = as_stored(through_storage(changes(whole, written)))
    for event in events[:cut]:
        whole.step([event])
        stored = as_stored(through_storage(changes(whole, written)), stored)
    assert stored == as_stored(through_storage(all_rows(whole)))
    again = Detector(patterns)
    restore(again, stored)
    assert told(again.step(events[cut:], 30)) == told(whole.step(events[cut:], 30))
    assert (again.late, again.open) == (whole.late, whole.open)


@few(50)
@given(st.sampled_from(EXPRESSIONS), offers(8), st.randoms())
def test_bounded_disorder_is_put_in_order(text: str, history: list[Offer], random: Any) -> None:
    events = [one.event for one in lower(history)]
    expected = told(Detector({"p": parse_pattern(text, FILTERS)}).step(events, 60))
    mixed = sorted(events, key=lambda event: event.high + random.randint(0, 3 * SECOND - 1))
    detector = Detector({"p": parse_pattern(text + " allow 3s of disorder", FILTERS)})
    found = [one for event in mixed for one in detector.step([event])] + detector.step([], 60)
    assert (told(found), detector.late) == (expected, 0)


def test_an_event_that_is_too_late_is_counted() -> None:
    detector = Detector({"p": parse_pattern("a followed by b allow 2s of disorder", FILTERS)})
    found = detector.step([at(1, A=1), at(5, B=1), at(2, B=1), at(9, C=1)])
    assert ([shown_times(one) for one in found], detector.late) == ([(1, 5)], 1)


def shown_times(one: Detection) -> tuple[int, int]:
    return one.match.stamp.low // SECOND, one.match.stamp.high // SECOND


def test_windows_end_with_their_state() -> None:
    detector = Detector({"p": parse_pattern("a followed by b in windows of 10s for each card", FILTERS)})
    assert detector.step([at(1, A=1, card=1), at(9, B=1, card=1)])[0].values == (1, 0)
    assert detector.step([at(9, A=1, card=1), at(10, B=1, card=1)]) == []
    assert detector.open == 1
    detector.step([], 11)
    assert (detector.open, detector.machines) == (0, {})


def test_keys_of_different_kinds_are_different() -> None:
    detector = Detector({"p": parse_pattern("a followed by b for each k", FILTERS)})
    values = [1, True, "1", None, 1.5]
    detector.step([at(1, A=1, k=value) for value in values])
    assert len(detector.machines) == 5
    assert detector.step([at(2, B=1, k=[1]), at(2, B=1), at(2, B=1, k=float("nan"))]) == []
    assert [one.values for one in detector.step([at(3, B=1, k=value) for value in values])] == [
        (value,) for value in values
    ]
    assert detector.machines == {}


def test_limits_are_counted_by_pattern() -> None:
    detector = Detector({"p": parse_pattern("a followed by b limit 2", FILTERS), "q": parse_pattern("b", FILTERS)})
    detector.step([at(n, A=1) for n in range(5)])
    assert (detector.dropped_of, detector.open) == ({"p": 3}, 2)
    detector.step([at(9, B=1), at(10, B=1)])
    assert (detector.dropped, detector.machines) == (3, {})


def test_patterns_come_and_go() -> None:
    detector = Detector(
        {"p": parse_pattern("a followed by b", FILTERS), "q": parse_pattern("b followed by c within 5s", FILTERS)}
    )
    assert detector.distinct_filters == 3
    with pytest.raises(KeyError, match="already"):
        detector.add("p", parse_pattern("a", FILTERS))
    detector.step([at(1, A=1, B=1)])
    detector.remove("q")
    assert (detector.distinct_filters, detector.open, len(detector)) == (2, 1, 1)
    assert [one.pattern for one in detector.step([at(2, B=1)], 100)] == ["p"]


def test_batches_of_events_are_matched_at_once() -> None:
    patterns = {"p": parse_pattern("a followed by b for each card", FILTERS)}
    events = [at(n, name=n, card=n % 7, **{"AB"[n % 2]: 1}) for n in range(200)]
    flat = Detector(patterns).step(events)
    assert told(flat) == told(Detector(patterns).step([one._replace(event=Event(one.event)) for one in events]))
    assert len(flat) == 97


def test_an_event_costs_what_it_concerns() -> None:
    """A hundred times the patterns, and the steps for an event of one of them stay the same."""

    def effort(patterns: int) -> int:
        many = {
            f"p{n}": parse_pattern(f"a: [type = 'a{n}'] b: [type = 'b{n}'] a followed by b within 1h for each card")
            for n in range(patterns)
        }
        detector = Detector(many, kernels="numpy")
        detector.step([at(n, type=f"a{n % patterns}", card=n) for n in range(100)])
        return min(steps(lambda: detector.step([at(100, type="b1", card=1)])) for _ in range(2))

    assert effort(1000) < 2 * effort(10)


def test_rows_of_a_later_version_are_refused() -> None:
    detector = Detector({"p": parse_pattern("a followed by b", FILTERS)})
    with pytest.raises(ValueError, match="version 9"):
        restore(detector, {"pattern-detector": {(): [9, {}]}})
