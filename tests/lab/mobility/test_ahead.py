from __future__ import annotations

from fieldfare_lab.mobility.ahead import EXPERIMENTS, run, walk
from fieldfare_lab.results import Settings


def test_claims_hold_in_small() -> None:
    result = EXPERIMENTS["L2"](Settings(1, 1, 0.1))
    assert result.name == "L2"
    assert [claim for claim in result.claims if not claim.holds and not claim.text.startswith("each step")] == []


def test_a_node_that_asks_for_all_places_hears_of_no_move() -> None:
    figures = run(walk(1, 5), 10)
    assert figures.updates == 0
    assert figures.arrived == figures.due
