"""Every strategy in a simulated network, judged by the checker: nothing lost, nothing twice, nothing unasked, in order."""

from __future__ import annotations

import pytest
from tools.simulation.soak import CYCLIC, SHAPES, violations

from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import FLOODING, RENDEZVOUS, SOURCES, STRATEGIES, Strategy, cyclic
from fieldfare.simulation import checker
from fieldfare.simulation.links import Wire, exponential
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology, ring
from fieldfare.simulation.trace import Delivered, Published

RUNS = 4


def test_a_dht_of_brokers() -> None:
    """Subscriptions stay where their brokers stay; the others come and go."""
    network = Network(lambda name: Broker(name, RENDEZVOUS), Topology(tuple(f"b{i}" for i in range(9))), mesh=True)
    for i in range(1, 9):
        network.introduce(f"b{i}", "b0")
        network.drain()
    for i in range(9):
        network.attach(f"c{i}", f"b{i}")
    for i in range(4):
        network.subscribe(f"c{i}", "s", f"type = 't{i}' OR x > {i}")
    network.drain()
    for gone in (None, "b8", "b7", "b6"):
        if gone is not None:
            network.crash(gone)
            network.drain()
        for i in range(5):
            for type in ("t0", "t1", "other"):
                network.publish(f"c{i}", {"type": type, "x": i})
        network.drain()
    assert checker.safety(network.trace) == []
    published = [record for record in network.trace if isinstance(record, Published)]
    wanted = [(p.client, p.sequence, f"c{i}") for p in published for i in range(4)
              if p.event["type"] == f"t{i}" or p.event["x"] > i]  # type: ignore[operator] # fmt: skip
    got = [(r.publisher, r.sequence, r.client) for r in network.trace if isinstance(r, Delivered)]
    assert sorted(got) == sorted(wanted)


def test_order_across_topics_of_a_dht() -> None:
    """Trees differ in length, and events of one publisher with different types would overtake each other."""
    names = tuple(f"b{i}" for i in range(9))
    for seed in range(2):
        wire = Wire(exponential(0.1))
        network = Network(lambda name: Broker(name, RENDEZVOUS), Topology(names), mesh=True, seed=seed, links=wire)
        for name in names[1:]:
            network.introduce(name, "b0")
            network.drain()
        for i, name in enumerate(names):
            network.attach(f"c{i}", name)
            network.subscribe(f"c{i}", "s", f"x >= {i}")
        network.drain()
        for number in range(120):
            event = {"type": f"t{number * (seed + 3) // 2 % 5}", "x": number % 12}
            network.at(network.clock.now + number / 50, network.publish, f"c{number % 3}", event)
        network.drain()
        assert checker.check(network.trace, order="fifo") == []


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=lambda strategy: strategy.name)
def test_no_violation_on_trees(strategy: Strategy, shape: str) -> None:
    for seed in range(RUNS):
        assert violations(strategy, shape, seed) == [], seed


@pytest.mark.parametrize("strategy", CYCLIC, ids=lambda strategy: strategy.name)
def test_no_violation_on_graphs(strategy: Strategy) -> None:
    for seed in range(RUNS):
        assert violations(strategy, "graph", seed) == [], seed


@pytest.mark.parametrize("strategy", [SOURCES, cyclic(STRATEGIES["covering"])], ids=lambda s: s.name)
def test_a_broker_that_has_forgotten_its_life(strategy: Strategy) -> None:
    """Others know it from before, under the same numbers: it must go beyond them."""
    network = Network(lambda name: Broker(name, strategy), ring(3))
    network.drain()
    network.attach("ana", "b0")
    network.attach("bob", "b1")
    network.subscribe("ana", "s", "x = 1")
    network.drain()
    network.crash("b0")
    network.drain()
    network.restart("b0")
    network.subscribe("ana", "t", "x = 2")
    network.drain()
    for x in (1, 2):
        network.publish("bob", {"x": x})
    network.drain()
    assert [record.event["x"] for record in network.trace if isinstance(record, Delivered)] == [2]


@pytest.mark.parametrize("strategy", CYCLIC, ids=lambda strategy: strategy.name)
def test_order_on_graphs_that_stay_as_they_are(strategy: Strategy) -> None:
    """All of them keep the order of each publisher; all but trees of sources keep causal order too."""
    for seed in range(RUNS):
        assert violations(strategy, "graph", seed, faults=False, crashes=False) == [], seed


@pytest.mark.parametrize("strategy", [FLOODING, SOURCES, cyclic(STRATEGIES["merging"])], ids=lambda s: s.name)
def test_no_violation_on_lossy_links(strategy: Strategy) -> None:
    """Lost packets are sent again, which only takes time."""
    for seed in range(RUNS):
        lossy = Wire(exponential(0.1), loss=0.2, duplication=0.2, timeout=0.5)
        assert violations(strategy, "graph", seed, links=lossy) == [], seed
