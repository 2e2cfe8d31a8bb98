"""The work of a task, without Spark: the same composite events as from a detector, whatever is dropped before."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.patterns.test_detector import TEXTS
from tests.patterns.test_language import FILTERS, PARALLEL
from tests.patterns.trees import offers, trees
from tools.effort import steps

from fieldfare.patterns import Detector, Pattern, parse_pattern
from fieldfare.patterns.definition import Pattern as Compiled
from fieldfare.patterns.expression import Expression
from fieldfare.patterns.runs import Offer
from fieldfare.patterns.stamps import SECOND, Occurrence, microseconds
from fieldfare.pipeline.detection import touching
from fieldfare.pipeline.detection.layout import Layout, layout
from fieldfare.pipeline.detection.operator import history
from fieldfare.pipeline.detection.plan import DetectPlan, Prepared
from fieldfare.pipeline.detection.segments import HIGH, KEPT, LOW, TIE
from fieldfare.pipeline.detection.touching import GIVEN

UNTIL = 20
TIMED = [
    *TEXTS,
    *PARALLEL,
    "a followed by not b within 3s for each v",
    "(a{2,} followed by (b or c)) within 3s for each v where count(a) > 2 select count(a) as n, avg(a.v) as mean, v as key1",
    "a followed by b in windows of 3s for each v",
    "(a followed by b) within 2s after match past last event",
    "(a followed by b) within 2s once for each v",
]
COLUMNS = pa.struct([("A", pa.int64()), ("B", pa.int64()), ("C", pa.int64()), ("v", pa.int64())])
EVENT = pa.struct([("v", pa.int64()), ("name", pa.string())])
Told = list[tuple[Any, ...]]


def sent(events: list[Occurrence], ties: bool = False) -> pa.RecordBatch:
    """Events as a worker gets them."""
    fields = [one.event for one in events]
    columns = {
        GIVEN: pa.array([{name: one.get(name) for name in ("A", "B", "C", "v")} for one in fields], COLUMNS),
        LOW: pa.array([one.low for one in events], pa.int64()),
        HIGH: pa.array([one.high for one in events], pa.int64()),
        KEPT: pa.array([{"v": one["v"], "name": one["name"]} for one in fields], EVENT),
    }
    if ties:
        columns[f"{TIE}0"] = pa.array([one.number for one in events], pa.int64())
    return pa.RecordBatch.from_pydict(columns)


def prepared(patterns: dict[str, Pattern]) -> tuple[Prepared, Layout]:
    made = DetectPlan(tuple((name, one.text) for name, one in patterns.items())).prepared()
    return made, layout(made, COLUMNS, EVENT)


def found_in(patterns: dict[str, Pattern], events: list[Occurrence], until: float, *, ties: bool = False) -> Told:
    """What a history tells: pattern, key, interval, selected fields, and constituents."""
    made, columns = prepared(patterns)
    way = touching.schema(columns, [pa.int64()] if ties else [])
    rows = touching.touching(made, columns, way, sent(events, ties))
    result = history(made, columns, pa.Table.from_batches([rows], way), microseconds(until)).to_pylist()
    return sorted(
        (
            made.sought[row["fieldfare number"]].name,
            microseconds(row["ts_lo"]),
            microseconds(row["ts_hi"]),
            {name: row[name] for name in columns.selected if row[name] is not None},
            [(one["name"], one["event"]["name"]) for one in row["constituents"]],
        )
        for row in result
    )  # fmt: skip


def expected(patterns: dict[str, Pattern], events: list[Occurrence], until: float) -> Told:
    detector = Detector(patterns, kernels="numpy")
    told = []
    for one in detector.step(events, until):
        composite = detector.event(one)
        chosen = {selection.name for selection in patterns[one.pattern].selections}
        names = [(name, event.event["name"]) for name, event in one.match.events]
        selected = {name: composite[name] for name in chosen if name in composite}
        told.append((one.pattern, *one.match.stamp, selected, names))
    return sorted(told)


def in_order(history: list[Offer]) -> list[Occurrence]:
    """Events in the order that a history gives to events of the same interval: by everything that they have."""
    events = []
    for one in history:
        fields = {**one.fields, **{str(label): 1 for label in one.labels}}
        events.append(one.event._replace(event=fields))
    events.sort(key=lambda one: (one.high, one.low, one.event["v"], str(one.event["name"])))
    return [one._replace(number=number) for number, one in enumerate(events)]


@given(st.lists(st.sampled_from(TIMED), min_size=1, max_size=4), offers(12), st.randoms())
def test_a_history_tells_what_a_detector_tells(texts: list[str], story: list[Offer], random: Any) -> None:
    patterns = {f"p{number}": parse_pattern(text, FILTERS) for number, text in enumerate(texts)}
    events = in_order(story)
    mixed = random.sample(events, len(events))
    assert found_in(patterns, mixed, UNTIL) == expected(patterns, events, UNTIL)


def test_events_of_the_same_end_follow_each_other_whether_others_are_tied_or_not() -> None:
    patterns = {"p": parse_pattern("a followed by b", FILTERS)}

    def event(low: int, high: int, number: int, **labels: int) -> Occurrence:
        return Occurrence(low * SECOND, high * SECOND, {"name": str(number), "v": 0, **labels}, "", number)

    pair = [event(0, 1, 0, A=1), event(1, 1, 1, B=1)]
    tied = [event(4, 4, 2, A=1), event(4, 4, 3, A=1)]
    followed: Told = [("p", 0, SECOND + 1, {}, [("a", "0"), ("b", "1")])]
    assert found_in(patterns, pair, UNTIL, ties=True) == followed
    assert found_in(patterns, [*pair, *tied], UNTIL, ties=True) == followed
    assert found_in(patterns, [*pair, *tied], UNTIL) == []  # without columns of ties none is before the other


@few(50)
@given(trees(preferences=True).filter(lambda tree: True), offers(9))
def test_any_tree_tells_the_same_in_a_history(tree: Any, story: list[Offer]) -> None:
    filters = {name: parse_pattern(f"{name}: [{name} = 1] {name}").filters[name] for name in "ABC"}
    try:
        made = Compiled(Expression(tree, filters))
        made.program  # noqa: B018 - not every tree has a meaning
        made = parse_pattern(made.text)
    except ValueError:
        return
    events = in_order(story)
    assert found_in({"p": made}, events, UNTIL) == expected({"p": made}, events, UNTIL)


def test_events_of_no_detection_take_no_step_of_python() -> None:
    """Ten times the events, of which none has its counterpart in time, take no more lines of Python."""
    patterns = {"p": parse_pattern("(a followed by b) within 2s for each v", FILTERS)}
    made, columns = prepared(patterns)
    way = touching.schema(columns, [])

    def lines(count: int) -> int:
        events = [
            Occurrence(at * SECOND, at * SECOND, {"name": str(at), "v": at % 7, "AB"[at // 7 % 2]: 1}, "", at)
            for at in range(0, 4 * count, 4)
        ]
        touched = pa.Table.from_batches([touching.touching(made, columns, way, sent(events))], way)
        return steps(lambda: history(made, columns, touched, None))

    lines(100)  # what is cached is cached
    assert lines(3000) <= lines(300) + 100
