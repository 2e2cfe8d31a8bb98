"""Disks that forget or are damaged: what is lost is lost once, and the network works as before afterwards."""

from __future__ import annotations

import pytest
from tools.simulation.cores import failure

from fieldfare.simulation.actions.clients import Move, Publish, Subscribe
from fieldfare.simulation.actions.disks import Copy, FlipBit
from fieldfare.simulation.actions.nodes import Kill, Outage, Settle
from fieldfare.simulation.actions.parameters import SubscribeDynamic
from fieldfare.simulation.disk import Stage
from fieldfare.simulation.plans import Plan, draw
from fieldfare.simulation.plans import Step as At


def test_a_salvaged_node_asks_its_neighbours_for_their_filters() -> None:
    """A damaged row was the filter of a neighbour, which had said it once and saw no reason to say it again."""
    steps = (
        At(0.0, Subscribe(25, "two", 4)),
        At(0.4, SubscribeDynamic(21, "two", 26)),
        At(0.0, Subscribe(30, "two", 60)),
        At(0.0, Settle()),
        At(0.0, Publish(17, (11,))),
        At(0.01, Copy(46)),
        At(0.01, FlipBit(56)),
        At(0.0, Publish(25, (7,))),
        At(0.01, Kill(0, stage=Stage.ENTRIES, kept=2, seconds=0.05)),
        At(0.01, Subscribe(29, "two", 0)),
        At(0.0, Settle()),
        At(0.0, Publish(5, (0, 11, 13))),
    )
    plan = Plan(60000835, "covering+ads", (2, 2, 3), steps, hierarchical=True, synced=False)
    assert failure(plan) == ""


@pytest.mark.parametrize(
    "seed",
    [
        200003417,  # two nodes referred to each other for ever
        200001206,  # rows knew of events beyond the end of the log
        210002169,  # each of two nodes waited for the other
        220003923,  # a neighbour's new messages had the numbers of others in the log
        200001849,  # a session was new at one node, and an older one of the name at another
        200005654,
    ],
)
def test_a_handover_ends_although_nodes_have_forgotten_parts_of_it(seed: int) -> None:
    assert failure(draw(seed)) == ""


def test_a_session_whose_source_has_forgotten_the_handover_begins_anew_with_what_arrived() -> None:
    """Power fails at the target; it asks the source again, which has given the session away."""
    steps = (
        At(0.0, Subscribe(0, "one", 0)),
        At(0.0, Settle()),
        At(0.0, Move(0, 1)),
        At(0.1, Kill(1, power=True, seconds=0.5)),
        At(0.1, Publish(1, (0, 1))),
    )
    for seed in range(40):
        assert failure(Plan(seed, "covering", (0,), steps, synced=False)) == ""


def test_nodes_that_go_back_to_handovers_in_opposite_directions_do_not_wait_for_ever() -> None:
    """Each had a part of the session, and waited for the rest from the other."""
    steps = (
        At(0.0, Subscribe(45, "one", 0)),
        At(0.0, Move(45, 47)),
        At(0.4, Publish(13, (1, 11))),
        At(0.0, Move(45, 1)),
        At(0.0, Kill(34, 3, Stage.NOTHING, 3, 0.5)),
        At(0.0, Kill(29, 3, Stage.NOTHING, 2)),
        At(0.4, Move(45, 21)),
        At(0.0, Settle()),
        At(0.0, Publish(56, (1,))),
        At(0.4, Outage(0.05)),
    )
    plan = Plan(1300005547, "simple+ads", (1, 1, 0), steps, synced=False, publishers="proxy")
    assert failure(plan) == ""
