"""Networks of cores of two versions: nothing is lost on the way up and down, and nobody gets what it does not know."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tools.simulation.cores import failure

from fieldfare.core.core import Core
from fieldfare.protocol import handover as h
from fieldfare.protocol import messages as m
from fieldfare.protocol import versions
from fieldfare.protocol.versions import OLDEST
from fieldfare.simulation.actions.clients import Move, Publish, Subscribe
from fieldfare.simulation.actions.nodes import Kill
from fieldfare.simulation.actions.versions import Upgrade
from fieldfare.simulation.core_network import CoreNetwork
from fieldfare.simulation.disk import Stage
from fieldfare.simulation.plans import Plan, draw
from fieldfare.simulation.plans import Step as At
from fieldfare.simulation.topologies import from_edges

RUNS = 12
OFFER = h.SessionOffer("s", "t", "")


def is_mixed(plan: Plan) -> bool:
    return sum(isinstance(step.act, Upgrade) for step in plan.steps) > 1 and len(plan.parents) > 1


def test_nodes_are_upgraded_one_after_the_other_and_back() -> None:
    mixed = (plan for seed in range(10_000) if is_mixed(plan := draw(seed)))
    for _ in range(RUNS):
        assert failure(next(mixed)) == ""


def problems(do: Callable[[Core, float], object]) -> list[str]:
    """What goes wrong after an input of a node whose neighbour has gone back to the oldest version."""
    network = CoreNetwork(from_edges([("b0", "b1")]))
    network.settle()
    Upgrade(1, OLDEST).perform(network)
    network.settle()
    assert network.hosts["b0"].core.versions.of("b1") == OLDEST
    network.hosts["b0"].submit(do)
    network.settle()
    return network.problems


@pytest.fixture
def since(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "SINCE", {"SessionOffer": 3, "TopicCheck": 3})


@pytest.mark.usefixtures("since")
def test_an_older_node_gets_nothing_that_it_does_not_know() -> None:
    letter = m.Envelope("b1", "b0", h.encode(OFFER))
    assert problems(lambda core, _: core.envelopes.send("b1", OFFER)) == []
    assert problems(lambda core, _: core.links.send("b1", letter)) == []  # written before its version went back
    assert problems(lambda core, _: core.links.send("b1", m.TopicCheck("t"))) == []


@pytest.mark.usefixtures("since")
def test_what_it_would_not_know_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fieldfare.protocol.wire.for_version", lambda data, *_: data)
    letter = m.Envelope("b1", "b0", h.encode(OFFER))
    assert problems(lambda core, _: core.links.send("b1", letter)) == [
        "b0 sends SessionOffer to b1, which does not know it"
    ]
    found = problems(lambda core, _: core.links.send("b1", m.TopicCheck("t")))
    assert "b0 sends TopicCheck to b1, which does not know it" in found


def test_a_letter_that_waits_for_a_node_does_not_reach_its_older_version() -> None:
    """A message to a proxy was in the outbox when the proxy was killed, and started again with the version before."""
    steps = (
        At(0.0, Kill(53, 0, Stage.ENTRIES, 3)),
        At(0.0, Publish(29, (3,))),
        At(0.03, Move(63, 53)),
        At(0.1, Upgrade(44, OLDEST, Stage.ENTRIES, 3, 0.05)),
    )
    assert failure(Plan(20000083, "simple+ads", (1, 0, 0), steps, hierarchical=True, publishers="proxy")) == ""


def test_a_replica_of_version_2_keeps_what_it_took_by_former_filters() -> None:
    """Nobody tells a holder of that version that a replica is complete; the next change of version 3 does."""
    steps = (
        At(0.0, Subscribe(16, "two", 34)),
        At(0.03, Subscribe(59, "one", 0)),
        At(0.0, Publish(45, (14,))),
        At(0.0, Upgrade(55, OLDEST, Stage.TORN, 1)),
        At(0.0, Subscribe(10, "two", 46)),
    )
    assert failure(Plan(500002286, "simple", (1,), steps, replicas=1)) == ""
