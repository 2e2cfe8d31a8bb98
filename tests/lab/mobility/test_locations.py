"""The experiment on filters that depend on a place, small; its claims do not need it large."""

from __future__ import annotations

import pytest

from fieldfare_lab.mobility.locations import EXPERIMENTS, model, torus
from fieldfare_lab.results import Settings
from fieldfare_lab.routing.runs import tree


def test_what_depends_on_no_size_holds_always() -> None:
    result = EXPERIMENTS["L1"](Settings(1, 1, 0.1))
    assert result.name == "L1"
    by_chance = ("by a constant factor", "the derived model")
    assert [c for c in result.claims if not c.holds and not c.text.startswith(by_chance)] == []
    assert all(len(line) == len(curves.at) for curves in result.curves for line in curves.lines.values())


def test_the_model_by_hand() -> None:
    """Three brokers: from the leaf a hop to the root and two to the other leaf, each with a third of 20 events."""
    assert model(tree(1), None) == 20 * 2
    # Residence 0.3: 0.42 s there and back are two steps, 0.84 s are three: 13 and 25 of 100 places.
    assert model(tree(1), 0.3) == pytest.approx(20 * (2 / 3 * 0.13 + 1 / 3 * 0.25) + 2 / 0.3)


def test_a_torus_has_no_edge() -> None:
    places = torus(3)
    assert len(places) == 9
    assert all(len(set(others)) == 4 for others in places.values())
