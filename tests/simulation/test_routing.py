"""Every strategy in a simulated network, judged by the checker: nothing lost, nothing twice, nothing unasked, in order."""

from __future__ import annotations

import pytest
from tests.routing.soak import CYCLIC, SHAPES, violations

from fieldfare.routing.strategies import FLOODING, SOURCES, STRATEGIES, Strategy, cyclic
from fieldfare.simulation.links import Wire, exponential

RUNS = 6


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("strategy", STRATEGIES.values(), ids=lambda strategy: strategy.name)
def test_no_violation_on_trees(strategy: Strategy, shape: str) -> None:
    for seed in range(RUNS):
        assert violations(strategy, shape, seed) == [], seed


@pytest.mark.parametrize("strategy", CYCLIC, ids=lambda strategy: strategy.name)
def test_no_violation_on_graphs(strategy: Strategy) -> None:
    for seed in range(RUNS):
        assert violations(strategy, "graph", seed) == [], seed


@pytest.mark.parametrize("strategy", [FLOODING, SOURCES, cyclic(STRATEGIES["merging"])], ids=lambda s: s.name)
def test_no_violation_on_lossy_links(strategy: Strategy) -> None:
    """Lost packets are sent again, which only takes time."""
    for seed in range(RUNS):
        lossy = Wire(exponential(0.1), loss=0.2, duplication=0.2, timeout=0.5)
        assert violations(strategy, "graph", seed, links=lossy) == [], seed
