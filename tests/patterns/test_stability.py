"""Input of several sources, out of order: what detectors make of it by the three detection policies."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.examples import few
from tests.patterns import oracle
from tests.patterns.histories import shown
from tests.patterns.trees import offers, trees

from fieldfare.patterns import Occurrence, parse_core
from fieldfare.patterns import tree as t
from fieldfare.patterns.machine import Policy, advance, initial, offer
from fieldfare.patterns.program import compile_program
from fieldfare.patterns.runs import Offer
from fieldfare.patterns.stability import (
    BestEffort,
    DetectionPolicy,
    Guaranteed,
    InputOrder,
    Probabilistic,
    parse_policy,
)
from fieldfare.patterns.stamps import SECOND

UNTIL = 20 * SECOND
SOURCES = ("a", "b", "c")
NEVER_EVICTED = Guaranteed(silence=0)


class Run:
    """A detector of a single pattern behind an input order."""

    def __init__(self, tree: t.Tree, policy: DetectionPolicy, sources: tuple[str, ...] = SOURCES) -> None:
        self.program, self.policy = compile_program(tree, skip=True), Policy()
        self.machine = initial(self.program, self.policy)
        self.order = InputOrder(policy, sources)
        self.given: dict[int, Offer] = {}
        self.found: list[str] = []

    def take(self, source: str, one: Offer, now: int) -> None:
        self.given[one.event.number] = one
        self.order.take(source, one.event, now)

    def due(self, now: int) -> list[str]:
        before = len(self.found)
        for event in self.order.due(now):
            one = self.given[event.number]
            self.machine, timed = advance(self.program, self.policy, self.machine, event.high)
            self.machine, matches, _ = offer(self.program, self.policy, self.machine, one)
            self.found += map(shown, [*timed, *matches])
        self.machine, timed = advance(self.program, self.policy, self.machine, self.order.clock)
        self.found += map(shown, timed)
        return self.found[before:]


@st.composite
def journeys(draw: st.DrawFn) -> list[tuple[str, Any]]:
    """Events and heartbeats as they arrive: each source in order, and nothing else in order."""
    history = draw(offers(9))
    flows: dict[str, list[Any]] = {source: [] for source in SOURCES}
    for one in history:
        flow = flows[draw(st.sampled_from(SOURCES))]
        flow.append(one)
        if draw(st.integers(0, 3)) == 0:
            flow.append(max(0, one.event.high - draw(st.integers(1, 2))))  # nothing up to then follows
    for flow in flows.values():
        flow.append(UNTIL)
    arrived = []
    while any(flows.values()):
        source = draw(st.sampled_from([source for source, flow in flows.items() if flow]))
        arrived.append((source, flows[source].pop(0)))
    return arrived


@few(60)
@given(trees(3), journeys())
def test_guaranteed_detections_are_those_of_the_sorted_input(tree: t.Tree, arrived: list[tuple[str, Any]]) -> None:
    run = Run(tree, NEVER_EVICTED)
    for now, (source, what) in enumerate(arrived):
        if isinstance(what, Offer):
            run.take(source, what, now)
        else:
            run.order.heartbeat(source, what, now)
        run.due(now)
    history = sorted((what for _, what in arrived if isinstance(what, Offer)), key=lambda one: one.key)
    expected = oracle.interpret(tree, history, until=UNTIL, skip=True, policy=Policy())
    assert run.found == [oracle.shown(one) for one in expected]
    assert not run.order.late


def story(*events: tuple[str, str, int, int]) -> list[tuple[int, str, Offer]]:
    """Return arrivals of source, name, time and delay, in seconds, in the order of arrival."""
    found = []
    for number, (source, name, time, delay) in enumerate(events):
        event = Occurrence(time * SECOND, time * SECOND, {"name": f"{name}{number}"}, "", number)
        one = Offer(event, event.key, frozenset([name]), event.event)
        found.append(((time + delay) * SECOND, source, one))
    return sorted(found, key=lambda one: one[0])


LATE = story(("a", "A", 1, 0), ("b", "C", 2, 3), ("a", "B", 3, 0), ("b", "A", 8, 0), ("a", "B", 9, 0))
"""The C between A and B comes too late"""


def played(core: str, arrivals: list[tuple[int, str, Offer]], policy: DetectionPolicy) -> tuple[list[str], list[int]]:
    """Return the detections, and when each was made."""
    run, times = Run(parse_core(core), policy, ("a", "b")), list[int]()
    for now, source, one in arrivals:
        run.take(source, one, now)
        times += [now // SECOND] * len(run.due(now))
    end = arrivals[-1][0] + SECOND
    for source in ("a", "b"):
        run.order.heartbeat(source, end, end)
    times += [end // SECOND] * len(run.due(end + 20 * SECOND))
    return run.found, times


def test_best_effort_may_be_wrong_and_guaranteed_pays_with_delay() -> None:
    pattern = "[A] ; [B <= {B, C}]"
    assert played(pattern, LATE, BestEffort()) == (["A0+B2@[1,3]", "A3+B4@[8,9]"], [3, 9])
    assert played(pattern, LATE, NEVER_EVICTED) == (["A3+B4@[8,9]"], [10])
    absent = "([A], [T <= {T, B}])_{T=+2s}"  # no B within two seconds, says a clock that does not wait for the B
    late = story(("a", "A", 1, 0), ("b", "B", 2, 5), ("a", "D", 4, 0), ("b", "D", 8, 0), ("a", "D", 9, 0))
    assert played(absent, late, BestEffort())[0] == ["A0@[1,3]"]
    assert played(absent, late, NEVER_EVICTED)[0] == []


def test_probabilistic_waits_as_long_as_most_events_take() -> None:
    order = InputOrder(Probabilistic(0.9), ["a", "b"])
    for number in range(100):
        event = Occurrence(number, number, {}, "", number)
        order.take("a" if number % 2 else "b", event, number + (50 if number == 60 else number % 10))
    assert order.lag == 9  # of a product of shares: 0.98 for one slow event
    order.due(200)
    assert order.late == 0
    strict = InputOrder(Probabilistic(1.0), ["a"])
    strict.take("a", Occurrence(0, 0, {}), 40)
    assert (strict.lag, strict.due(39), len(strict.due(40))) == (40, [], 1)
    strict.take("a", Occurrence(90, 90, {}), 95)
    late = Occurrence(50, 50, {})
    assert len(strict.due(140)) == 1
    strict.take("a", late, 141)
    assert (strict.due(141), strict.late, strict.lag) == ([late], 1, 91)  # out of order, for the detector to judge


def test_a_silent_source_blocks_until_it_is_evicted() -> None:
    events = [Occurrence(second * SECOND, second * SECOND, {}, "", second) for second in range(9)]
    blocked, order = InputOrder(NEVER_EVICTED, ["a", "b"]), InputOrder(Guaranteed(3 * SECOND), ["a", "b"])
    passed: list[tuple[int, int]] = []
    for one in events:
        for each in (blocked, order):
            each.take("a", one, one.high)
        assert blocked.due(one.high) == []
        passed += [(one.high // SECOND, released.number) for released in order.due(one.high)]
    assert passed == [(4, 0), (4, 1), (4, 2), (4, 3), (4, 4), (5, 5), (6, 6), (7, 7), (8, 8)]
    assert order.evictions == ["b"]
    order.take("b", Occurrence(2 * SECOND, 2 * SECOND, {}), 9 * SECOND)
    assert (order.due(9 * SECOND), order.late) == ([], 1)  # b is back, and its old event is too late
    order.take("a", events[8]._replace(low=9 * SECOND, high=9 * SECOND), 9 * SECOND)
    assert order.due(9 * SECOND) == []  # b counts again


def test_policies_have_names() -> None:
    for text in ("guarantee", "probabilistic two", "probabilistic 2", "best", ""):
        with pytest.raises(ValueError, match="detection policy"):
            parse_policy(text)
