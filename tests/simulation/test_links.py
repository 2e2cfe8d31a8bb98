from __future__ import annotations

from itertools import pairwise
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.simulation.clock import VirtualClock
from fieldfare.simulation.links import Link, Wire, exponential, lognormal, uniform
from fieldfare.simulation.pipes import Pipe


def link(wire: Wire, seed: int = 1) -> Link:
    return Link("a", "b", wire, Random(seed))


wires = st.builds(
    Wire,
    latency=st.sampled_from([0.0, 0.5, uniform(0, 2), exponential(0.5, least=0.1), lognormal(0.3)]),
    bandwidth=st.sampled_from([10.0, float("inf")]),
    loss=st.sampled_from([0.0, 0.4]),
    duplication=st.sampled_from([0.0, 0.4]),
    reliable=st.booleans(),
)
sent = st.lists(st.tuples(st.floats(0, 3), st.integers(0, 40)), max_size=30)


@given(wires, sent, st.integers(0, 5))
def test_a_link_keeps_its_order_always(wire: Wire, messages: list[tuple[float, int]], seed: int) -> None:
    cable, times = link(wire, seed), list[float]()
    now = 0.0
    for pause, size in messages:
        now += pause
        arrivals = cable.arrivals(now, size)
        assert all(time >= now + size / wire.bandwidth for time in arrivals)
        assert len(arrivals) == 1 or not wire.reliable
        times += arrivals
    assert times == sorted(times)


def test_a_plain_link_takes_its_latency() -> None:
    assert link(Wire(0.25)).latency == 0.25
    assert link(Wire(0.25)).arrivals(1.0, 1000) == (1.25,)
    assert link(Wire(0.25, bandwidth=10)).latency is None


def test_messages_get_onto_a_link_one_after_another() -> None:
    cable = link(Wire(1.0, bandwidth=10))
    assert [cable.arrivals(0.0, 20) for _ in range(3)] == [(3.0,), (5.0,), (7.0,)]
    assert cable.arrivals(10.0, 20) == (13.0,)


def test_what_is_lost_is_sent_again_and_holds_back_what_follows() -> None:
    cable = link(Wire(0.0, loss=0.5, timeout=1.0))
    times = [time for _ in range(200) for time in cable.arrivals(0.0, 0)]
    assert len(times) == 200
    assert all(time == int(time) for time in times)
    assert times[0] <= times[-1] > 3
    assert all(a <= b for a, b in pairwise(times))


def test_losses_are_as_likely_as_told() -> None:
    cable = link(Wire(loss=0.25, duplication=0.5, reliable=False))
    counts = [len(cable.arrivals(0.0, 0)) for _ in range(4000)]
    assert 0.22 < counts.count(0) / 4000 < 0.28
    assert 0.45 < counts.count(2) / (counts.count(1) + counts.count(2)) < 0.55


@pytest.mark.parametrize(
    "wrong", [{"loss": 1.0}, {"loss": -0.1}, {"duplication": 2}, {"bandwidth": 0}, {"latency": -1}]
)
def test_wires_that_cannot_be(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="must"):
        Wire(**wrong)  # type: ignore[arg-type]


def test_frames_keep_their_order_when_a_slow_connection_gets_fast_again() -> None:
    clock, arrived = VirtualClock(), list[object]()
    pipe = Pipe(clock, "a", "b", Wire(0.01), Random(0))
    pipe.receiver = lambda frame: arrived.append((round(clock.now, 2), frame))
    pipe.send(1)
    pipe.delay = 2.0
    pipe.send(2)
    pipe.delay = 0.0
    pipe.send(3)
    clock.run(3.0)
    assert arrived == [(0.01, 1), (2.01, 2), (2.01, 3)]
