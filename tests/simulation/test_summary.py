"""The figures of a run, against slow ways to find them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tools.simulation.runs import random_run

from fieldfare.events.event import Event
from fieldfare.simulation.summary import false_positives, latencies
from fieldfare.simulation.trace import Delivered, Forwarded, Published, Trace

EVENT = Event({"a": 1})


def slow_false_positives(trace: Trace) -> int:
    """For each sending, look for a delivery behind it."""
    hops = [record for record in trace if isinstance(record, Forwarded)]
    first = {(hop.publisher, hop.sequence, hop.neighbour): hop for hop in reversed(hops)}
    given = {(r.publisher, r.sequence, r.broker) for r in trace if isinstance(r, Delivered)}

    def useful(hop: Forwarded, seen: tuple[Forwarded, ...] = ()) -> bool:
        if first[hop.publisher, hop.sequence, hop.neighbour] is not hop or hop in seen:
            return False
        if (hop.publisher, hop.sequence, hop.neighbour) in given:
            return True
        event_id = hop.publisher, hop.sequence
        nexts = (one for one in hops if (one.publisher, one.sequence) == event_id and one.broker == hop.neighbour)
        return any(useful(one, (*seen, hop)) for one in nexts)

    return sum(not useful(hop) for hop in hops)


@given(st.integers(0, 10_000))
def test_false_positives_of_random_runs(seed: int) -> None:
    trace = random_run(seed).trace
    assert false_positives(trace) == slow_false_positives(trace)


def test_false_positives_by_hand() -> None:
    trace: Trace = [
        Published(0.0, 0, "a", "p", 1, EVENT),
        Forwarded(0.0, 1, "a", "b", "p", 1),
        Forwarded(0.0, 2, "a", "c", "p", 1),
        Forwarded(1.0, 3, "b", "d", "p", 1),
        Delivered(2.0, 4, "d", "s", "p", 1, EVENT, ("x",)),
        Forwarded(2.0, 5, "c", "d", "p", 1),
    ]
    assert false_positives(trace) == 2  # to c, where nobody is, and to d once more
    assert latencies(trace) == [2.0]
