"""Waiting for processes that hardly run; `tools/nodes/patience.py`."""

from __future__ import annotations

import asyncio
import os

import pytest
from tools.nodes.patience import Patience, waits_of


class Machine:
    """A machine whose time and queues are set by hand."""

    def __init__(self) -> None:
        self.time = 0.0
        self.waits = {"1": 0.0, "2": 0.0}

    def patience(self, seconds: float) -> Patience:
        return Patience(list, seconds, clock=lambda: self.time, waits=lambda _: dict(self.waits))


def test_time_in_the_queue_for_a_cpu_does_not_count() -> None:
    machine = Machine()
    patience = machine.patience(10)
    for _ in range(99):  # one thread gets a tenth of a CPU, the other one all of it
        machine.time += 1
        machine.waits["1"] += 0.9
        assert not patience.over()
    for _ in range(2):
        machine.time += 1
        machine.waits["1"] += 0.9
    assert patience.over()


def test_it_is_over_after_its_seconds_where_nobody_waits_for_a_cpu() -> None:
    machine = Machine()
    patience = machine.patience(10)
    machine.time = 9.5
    assert not patience.over()
    machine.time = 11
    assert patience.over()
    patience.begin()
    assert not patience.over()


def test_a_thread_that_has_ended_or_begun_is_no_trouble() -> None:
    machine = Machine()
    patience = machine.patience(10)
    machine.time, machine.waits = 5, {"3": 4.0}
    assert not patience.over()
    machine.time, machine.waits = 13, {"3": 4.0}
    assert not patience.over()
    machine.time = 15
    assert patience.over()


def test_what_goes_on_may_take_long() -> None:
    machine = Machine()
    count = 0

    def true() -> bool:
        nonlocal count
        machine.time += 5
        count += 1
        return count == 20

    asyncio.run(machine.patience(10).until(true, lambda: "stuck", lambda: count))
    assert count == 20
    with pytest.raises(AssertionError, match="stuck"):
        asyncio.run(machine.patience(10).until(true, lambda: "stuck"))


def test_own_threads_are_seen_where_the_system_tells() -> None:
    if os.path.exists("/proc/self/schedstat"):  # noqa: PTH110
        assert str(os.getpid()) in waits_of([os.getpid()])
    assert waits_of([]) == {}
