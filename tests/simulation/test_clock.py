from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.simulation.clock import VirtualClock


@given(st.lists(st.integers(0, 5)))
def test_actions_run_by_time_and_then_in_the_order_of_scheduling(times: list[int]) -> None:
    clock, done = VirtualClock(), list[tuple[int, int]]()
    for number, time in enumerate(times):
        clock.schedule(time, done.append, (time, number))
    clock.drain()
    assert done == sorted(done)
    assert len(done) == len(times)
    assert clock.now == max(times, default=0)


def test_run_stops_at_its_time_and_no_earlier() -> None:
    clock, done = VirtualClock(), list[int]()
    for time in (1, 2, 3):
        clock.schedule(time, done.append, time)
    clock.run(2)
    assert (done, clock.now, clock.pending) == ([1, 2], 2, 1)
    clock.advance(0.5)
    assert (done, clock.now) == ([1, 2], 2.5)


def test_actions_may_schedule_more_also_for_now() -> None:
    clock, done = VirtualClock(), list[str]()
    clock.schedule(1, lambda: clock.schedule(1, done.append, "second"))
    clock.schedule(1, done.append, "first")
    clock.drain()
    assert done == ["first", "second"]


def test_nobody_waits_for_the_background_but_it_runs_on_the_way() -> None:
    clock, done = VirtualClock(), list[float]()

    def tick() -> None:
        done.append(clock.now)
        clock.schedule_background(clock.now + 1, tick)

    clock.schedule_background(1, tick)
    clock.drain()
    assert done == []
    clock.schedule(2.5, lambda: None)
    clock.drain()
    assert done == [1, 2]
    clock.run(4)
    assert done == [1, 2, 3, 4]


def test_it_is_never_earlier() -> None:
    clock = VirtualClock(5)
    with pytest.raises(ValueError, match="too late for 4"):
        clock.schedule(4, print)
