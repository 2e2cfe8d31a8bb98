"""The experiments on patterns: each runs, and the claims that do not depend on the size hold."""

from __future__ import annotations

import pytest

from fieldfare.patterns.placement import POLICIES
from fieldfare.patterns.stability import Guaranteed
from fieldfare_lab.patterns.delays import arrivals, compared, detect, expected
from fieldfare_lab.patterns.experiments import EXPERIMENTS
from fieldfare_lab.patterns.network import planned, run, statistics, story, wish
from fieldfare_lab.results import Settings


@pytest.mark.parametrize(("name", "holds"), [("R1.2", 1), ("R1.5", 3), ("R1.5s", 2), ("R1.6", 1)])
def test_an_experiment_runs_and_its_first_claims_hold(name: str, holds: int) -> None:
    result = EXPERIMENTS[name](Settings(1, 1, 0.1))
    assert result.curves[0].lines
    assert all(claim.holds for claim in result.claims[:holds]), result.claims


def test_guaranteed_detection_is_that_of_the_sorted_input() -> None:
    given = arrivals(3, 300, 0.3)
    assert detect(given, Guaranteed(0))[0].keys() == expected(given)
    assert compared(given, Guaranteed(0)).wrong == 0


def test_policies_differ_in_place_and_not_in_what_is_detected() -> None:
    wishes, events = [wish("b4", "a", "b", "c"), wish("b5", "a", "b", "d")], story(1, 80)
    events = [(10.0 + number, event) for number, (_, event) in enumerate(events)]  # far apart: one order for all nodes
    found = {}
    for name in ("latency", "bandwidth", "load", "reliability"):
        plans = planned(wishes, POLICIES[name], statistics(wishes, 100.0))
        found[name] = set(run(wishes, plans, events).found)
    assert found["latency"]
    assert all(what == found["latency"] for what in found.values()), {name: len(what) for name, what in found.items()}
