"""Nodes in network namespaces whose lines are cut; `python -m tools.nodes.namespaces 20` does it more often."""

from __future__ import annotations

import pytest
from tools.nodes.namespaces import run
from tools.waiting import PATIENCE


@pytest.mark.long
@pytest.mark.needs("network namespaces")
@pytest.mark.parametrize("cuts", [1, 3])
def test_nothing_is_lost_when_lines_are_cut(cuts: int) -> None:
    counts = run(cuts, seed=14, seconds=3 * PATIENCE)
    assert counts["moves"] > 0
    assert counts["delivered"] >= counts["accepted"] == counts["published"] > 0
