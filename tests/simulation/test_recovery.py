"""Disks that forget or are damaged: what is lost is lost once, and the network works as before afterwards."""

from __future__ import annotations

from tools.simulation.cores import failure

from fieldfare.simulation.actions.clients import Publish, Subscribe
from fieldfare.simulation.actions.disks import Copy, FlipBit
from fieldfare.simulation.actions.nodes import Kill, Settle
from fieldfare.simulation.actions.parameters import SubscribeDynamic
from fieldfare.simulation.disk import Stage
from fieldfare.simulation.plans import Plan
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
