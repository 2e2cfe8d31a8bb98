"""Handovers update as many brokers as the bounds allow."""

from __future__ import annotations

import pytest

from fieldfare.mobility.cost_bounds import Protocol, Terms, bounds
from fieldfare_lab.mobility.handovers import PROTOCOLS, Script, run, script

CASES: dict[str, tuple[Protocol, bool]] = {
    "ping/pong": ("generic", True),
    "ping/pong, RP": ("generic RP", True),
    "incomplete": ("acyclic", False),
    "incomplete, RP": ("acyclic RP", False),
    "complete": ("acyclic", True),
    "complete, RP": ("acyclic RP", True),
}


@pytest.fixture(scope="module", params=[True, False])
def roaming(request: pytest.FixtureRequest) -> Script:
    return script(7, subscribers=15, handovers=15, size=8, border=request.param)


@pytest.mark.parametrize("name", CASES)
def test_every_handover_keeps_to_the_bounds(name: str, roaming: Script) -> None:
    protocol, complete = CASES[name]
    brokers = len(roaming.tree.brokers)
    found = run(PROTOCOLS[name], roaming)
    for one in found:
        terms = Terms(brokers, one.path, roaming.depth, resends=4)
        low, high = bounds(protocol, terms, complete=complete)
        if name == "ping/pong, RP":  # whose lower bound is for the farthest, and pings need no promise here
            low = 2 * one.path
        assert low <= one.updated <= high
    assert len({one.updated for one in found}) > 1


def test_the_covering_optimisation_costs_nothing(roaming: Script) -> None:
    covered = [one for one in run(PROTOCOLS["complete"], roaming) if one.updated == 0]
    assert covered
    assert all(one.messages <= 4 for one in covered)  # ask for the session, get it, and the old broker's neighbours


def test_the_figures_of_the_thesis() -> None:
    terms = Terms(100, to_point=98)
    assert bounds("generic", terms).upper == 588
    assert bounds("acyclic", terms).upper == 98
    assert bounds("acyclic", terms, who="publisher").upper == 196
    assert bounds("acyclic RP", terms).upper == 98
    assert bounds("acyclic RP", terms, complete=False).upper == 196
    assert bounds("cyclic RP", terms._replace(points=3), who="publisher", complete=False).upper == 3 * 3 * 98
    assert bounds("acyclic RP", terms._replace(points=3), who="publisher", complete=False).upper == 3 * 98


@pytest.mark.parametrize("resends", [0, 3])
def test_what_is_sent_again_costs_again(resends: int) -> None:
    terms = Terms(50, path=4, resends=resends)
    assert bounds("acyclic", terms, complete=False) == (4, (resends + 1) * 48)
    assert bounds("generic", terms) == (2 * 48 + 16, (resends + 6) * 48)
