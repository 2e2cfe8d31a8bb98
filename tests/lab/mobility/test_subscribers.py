"""The experiments are run by hand; here is what they are made of, and some of them once, very small."""

from __future__ import annotations

from itertools import pairwise
from statistics import mean

import pytest

from fieldfare.simulation.areas import routers
from fieldfare.simulation.topologies import spanning_tree
from fieldfare_lab.mobility.handovers import PROCESSING, PROTOCOLS, run, script
from fieldfare_lab.mobility.subscribers import EXPERIMENTS
from fieldfare_lab.results import Settings

TINY = Settings(1, 1, 0.1)


@pytest.mark.parametrize("name", ["E9", pytest.param("E12", marks=pytest.mark.long)])
def test_experiments_run_and_hold_what_depends_on_no_size(name: str) -> None:
    result = EXPERIMENTS[name](TINY)
    assert result.name == name
    assert all(len(line) == len(curves.at) for curves in result.curves for line in curves.lines.values())
    held = {claim.text: claim.holds for claim in result.claims}
    for text in ("every average is below its upper bound", "ping/pong costs most",
                 "with a rendezvous point the number of publishers does not matter"):  # fmt: skip
        assert held.get(text, True)
    assert set(EXPERIMENTS) == {"E9", "E10", "E11", "E12"}


def test_all_protocols_move_by_the_same_script() -> None:
    one = script(3, subscribers=8, handovers=12, size=6)
    assert one == script(3, subscribers=8, handovers=12, size=6)
    assert one != script(4, subscribers=8, handovers=12, size=6)
    found = {name: run(PROTOCOLS[name], one) for name in ("incomplete", "complete", "complete, RP")}
    assert len({tuple(handover.path for handover in of) for of in found.values()}) == 1


def test_more_handovers_change_nothing_for_those_before() -> None:
    few, many = (script(3, subscribers=8, handovers=n, size=6) for n in (5, 20))
    assert many.moves[:5] == few.moves


def test_clients_at_the_border_stay_there() -> None:
    one = script(2, subscribers=20, handovers=50, size=6)
    leaves = {broker for broker, others in one.tree.neighbours().items() if len(others) == 1}
    assert {broker for broker, _ in one.subscriptions.values()} | {broker for _, broker in one.moves} <= leaves
    assert one.point not in leaves
    anywhere = script(2, subscribers=20, handovers=50, size=6, border=False)
    assert not {broker for _, broker in anywhere.moves} <= leaves


def test_a_handover_takes_as_long_as_its_ways() -> None:
    one = script(5, subscribers=1, handovers=15, size=6)
    links, delays, tree = one.routers.links, one.routers.delays, one.tree
    ((broker, _),) = one.subscriptions.values()
    for (_, target), found in zip(one.moves, run(PROTOCOLS["incomplete"], one), strict=True):
        path = _path(tree.neighbours(), target, broker)
        there = sum(links[a, b] + PROCESSING for a, b in pairwise(path))
        back = links.get((broker, target), delays[broker][target]) if len(path) == 2 else delays[broker][target]
        assert found.latency == pytest.approx(PROCESSING + there + back + PROCESSING)
        assert found.path == len(path) - 2
        broker = target


def _path(neighbours: dict[str, list[str]], a: str, b: str, before: str = "") -> list[str]:
    """The way on a tree."""
    if a == b:
        return [a]
    ways = ([a, *way] for one in neighbours[a] if one != before and (way := _path(neighbours, one, b, a)))
    return next(ways, [])


def test_routers_are_all_joined_and_the_farthest_are_as_far_as_asked() -> None:
    net = routers(4, 10, longest=0.5, seed=3)
    assert len(net.topology.brokers) == 40
    assert max(max(row.values()) for row in net.delays.values()) == pytest.approx(0.5)
    assert all(len(row) == 40 for row in net.delays.values())
    assert len(spanning_tree(net.topology).edges) == 39
    for (a, b), delay in net.links.items():
        assert net.delays[a][b] <= delay
        assert net.delays[a][b] == net.delays[b][a]


def test_routers_rather_join_near_ones() -> None:
    near, far = (mean(routers(1, 60, beta=beta, longest=1.0, seed=1).links.values()) for beta in (0.05, 5.0))
    assert near < far
