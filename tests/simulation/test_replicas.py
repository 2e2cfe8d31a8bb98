"""Replicas keep what the session needs, and nothing else: also when filters change while events are on the way."""

from __future__ import annotations

import pytest
from tools.simulation.cores import failure

from fieldfare.simulation.actions.clients import Move, Publish, Subscribe
from fieldfare.simulation.actions.members import MoveTogether, SubscribeShared
from fieldfare.simulation.actions.nodes import Kill, Lose, Settle
from fieldfare.simulation.actions.parameters import SubscribeDynamic
from fieldfare.simulation.disk import Stage
from fieldfare.simulation.plans import Plan
from fieldfare.simulation.plans import Step as At


def test_a_replica_forgets_what_it_took_by_a_filter_that_the_session_had_no_more() -> None:
    """The events came to the client after the take-over, behind events that they had caused."""
    steps = (
        At(0.0, Subscribe(62, "one", 53)),
        At(0.0, Subscribe(30, "one", 0)),
        At(0.0, Settle()),
        At(0.0, Publish(25, (15, 1, 6))),
        At(0.0, Subscribe(38, "one", 34)),
        At(0.4, Publish(61, (2,))),
        At(0.0, Publish(30, (15,))),
        At(0.0, Lose(54, 11, unheard=True)),
    )
    assert failure(Plan(40000045, "simple", (1, 0), steps, replicas=1, clients=2)) == ""


def test_a_replica_forgets_an_event_of_its_own_session_under_a_former_filter() -> None:
    steps = (
        At(0.0, Subscribe(63, "two", 29)),
        At(0.0, Subscribe(55, "one", 9)),
        At(0.4, Kill(12, stage=Stage.NOTHING, kept=2, seconds=0.05)),
        At(0.0, Publish(63, (12,))),
        At(0.0, Subscribe(63, "one", 27)),
        At(0.0, SubscribeDynamic(63, "two", 2)),
        At(0.1, Settle()),
        At(0.0, Publish(13, (1,))),
        At(0.0, Lose(27, 27, unheard=True)),
    )
    assert failure(Plan(7002086, "simple", (2, 3), steps, replicas=1)) == ""


@pytest.mark.parametrize(
    "plan",
    [
        Plan(
            100000591,
            "simple",
            (2, 1),
            (At(0.0, Subscribe(16, "one", 1)), At(0.0, Move(10, 23)), At(0.1, Publish(2, (6, 14, 2), ttl=0.01))),
            replicas=1,
        ),
        Plan(
            100000472,
            "simple",
            (0,),
            (
                At(0.0, SubscribeShared("two", 42)),
                At(0.0, MoveTogether(35)),
                At(0.0, Publish(36, (9,), ttl=0.01)),
            ),
            replicas=1,
            members=1,
            copies=True,
        ),
    ],
    ids=["session", "devices"],
)
def test_an_expired_event_of_a_replica_does_not_keep_the_log(plan: Plan) -> None:
    """The session's node had dropped the event, and no acknowledgement told the holder."""
    assert failure(plan) == ""
