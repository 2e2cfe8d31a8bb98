"""The check of shared sessions finds each fault that it names, and no other."""

from __future__ import annotations

import pytest

from fieldfare.events import Event
from fieldfare.simulation.checker import shared
from fieldfare.simulation.checker.shared_checks import first_deliveries
from fieldfare.simulation.trace import (
    AcknowledgedByMember,
    Crashed,
    Delivered,
    DeliveredToMember,
    MemberGone,
    Record,
    Restarted,
)


def got(member: str, sequence: int, *, x: int = 0, again: bool = False) -> Record:
    return DeliveredToMember(0.0, 0, "b0", "s", "p", sequence, Event({"x": x}), ("one",), member, again)


def done(member: str, sequence: int) -> Record:
    return AcknowledgedByMember(0.0, 0, "b0", "s", member, "p", sequence)


def gone(member: str) -> Record:
    return MemberGone(0.0, 0, "b0", "s", member)


CRASH, RESTART = Crashed(0.0, 0, "b0"), Restarted(0.0, 0, "b0", True)


@pytest.mark.parametrize(
    ("trace", "problem"),
    [
        ([got("ann", 1), got("bob", 2), done("bob", 2), gone("ann"), got("bob", 1, again=True)], ""),
        ([got("ann", 1), CRASH, RESTART, got("ann", 1, again=True)], ""),
        ([got("ann", 1), got("bob", 1, again=True)], "is still held by ann"),
        ([got("ann", 1), gone("bob"), got("bob", 1, again=True)], "is still held by ann"),
        ([got("ann", 1), gone("ann"), got("bob", 1)], "comes again without a mark"),
        ([got("ann", 1), done("ann", 1), gone("ann"), got("bob", 1, again=True)], "was acknowledged before"),
        ([got("ann", 1), done("ann", 1), CRASH, RESTART, got("bob", 1, again=True)], "was acknowledged before"),
        ([got("ann", 1), done("ann", 1), CRASH, got("bob", 1, again=True)], ""),  # from a replica
    ],
)
def test_each_event_is_with_one_member(trace: list[Record], problem: str) -> None:
    found = shared(trace)
    assert len(found) == bool(problem)
    assert all(one.problem.endswith(problem) for one in found)


@pytest.mark.parametrize(
    ("trace", "problem"),
    [
        ([got("ann", 1), got("bob", 2, x=1), got("ann", 3)], ""),
        ([got("ann", 1), done("ann", 1), got("bob", 2)], ""),
        ([got("ann", 1), gone("ann"), got("bob", 1, again=True), got("bob", 2)], ""),
        ([got("ann", 1), got("bob", 2)], "has the key 0, of which ['ann'] hold events"),
        ([got("ann", 2), got("ann", 1)], "comes after event 2, of the same key 0"),
    ],
)
def test_events_of_a_key_stay_together(trace: list[Record], problem: str) -> None:
    assert not shared(trace)
    found = shared(trace, key="x")
    assert [one.problem.partition("('p', ")[2][3:] for one in found] == [problem][: bool(problem)]


def test_other_checks_see_the_first_delivery_of_each_event() -> None:
    trace = [got("ann", 1), gone("ann"), got("bob", 1, again=True)]
    assert [type(record) for record in first_deliveries(trace)] == [Delivered, MemberGone]
    assert first_deliveries([CRASH]) == [CRASH]
