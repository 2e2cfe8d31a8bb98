"""The experiments themselves are run by hand; here is what they are made of, and each of them once, very small."""

from __future__ import annotations

from functools import cache

import pytest

from fieldfare.routing.strategies import COVERING, FLOODING, IMPERFECT, SIMPLE
from fieldfare.simulation.topologies import line
from fieldfare_lab.results import Result, Settings
from fieldfare_lab.routing.experiments import EXPERIMENTS
from fieldfare_lab.routing.interests import Interests, depth_first
from fieldfare_lab.routing.runs import Run, tree
from fieldfare_lab.routing.scale import scaling


@cache
def tiny(name: str) -> Result:
    return EXPERIMENTS[name](Settings(1, 1, 0.05))


@pytest.mark.parametrize("name", ["R1", "R4", "R6", pytest.param("R7", marks=pytest.mark.long)])
def test_experiments_run(name: str) -> None:
    result = tiny(name)
    assert result.name == name
    assert result.claims
    assert all(len(line) == len(curves.at) for curves in result.curves for line in curves.lines.values())


def test_what_depends_on_no_size_holds_always() -> None:
    held = {claim.text: claim.holds for name in ("R1", "R6") for claim in tiny(name).claims}
    assert held["simple: each subscription goes over every link, always (30)"]
    assert held["a lone subscription is known to all brokers, or to O(log n) of them"]


def test_the_needed_links_are_those_that_exact_routing_uses() -> None:
    for strategy, more in ((SIMPLE, False), (COVERING, False), (FLOODING, True), (IMPERFECT, True)):
        run = Run(strategy, tree(3), 1, symbols=5)
        run.subscribe(30)
        run.publish(40)
        assert run.needed > 0
        assert run.traffic.events > run.needed if more else run.traffic.events == run.needed


def test_replacing_leaves_as_many() -> None:
    run = Run(COVERING, tree(2), 1)
    run.subscribe(20)
    run.replace(10)
    assert sum(len(broker.clients.all) for broker in run.network.brokers.values()) == 20


def test_local_interest_is_that_of_brokers_nearby() -> None:
    topology = tree(4)
    local = Interests(1, topology, symbols=100, locality=1.0)
    order = depth_first(topology)
    assert sorted(order) == sorted(topology.brokers)
    near, far = ({local.symbol(order[i]) for _ in range(200)} for i in (3, 25))
    assert len(near) == 5
    assert not near & far


def test_depth_first_goes_along_a_line() -> None:
    assert depth_first(line(4)) == ["b0", "b1", "b2", "b3"]


def test_scaling_counts_what_happens() -> None:
    result = scaling(Settings(1, 1, 1.0), (2, 3))
    values = {curves.title: curves.lines["covering"] for curves in result.curves}
    assert all(value is not None and value > 0 for value in values["deliveries"])
    assert values["CPU s for all events"] == (0.0, 0.0), "tests have no clock"
