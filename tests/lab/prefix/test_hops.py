"""What X7 is made of: the answers are the same, costs add up."""

from __future__ import annotations

import pytest

from fieldfare.routing.prefix.placements import Placements
from fieldfare_lab.prefix import hops
from fieldfare_lab.prefix.hops import Case, Cost, Costs, measure
from fieldfare_lab.results import Settings


class Clock:
    """Each look takes a second more than the one before."""

    def __init__(self) -> None:
        self.now = self.step = 0.0

    def __call__(self) -> float:
        self.step += 1
        self.now += self.step
        return self.now


def test_a_path_costs_its_entry_and_its_other_brokers() -> None:
    assert Cost(5, 2, 3).path(4) == 11


def test_who_reads_an_event_lazily_reads_it_once() -> None:
    costs = Costs({"tags": Cost(10, 1, 1), "covering": Cost(2, 2, 2)}, decode=5, build=0, nodes=0, bytes=0)
    assert costs.ratio(4) == 13 / 8
    assert costs.ratio(4, lazy=True) == 18 / 28
    assert costs._replace(ways={"covering": Cost(2, 2, 2)}).ratio(4) is None


@pytest.mark.parametrize("more", [{}, {"links": 16, "names": 5, "payload": 10}, {"depth": 2}])
def test_measuring(more: dict[str, int]) -> None:
    found = measure(Case("a case", 60, **more), 1, Clock())
    assert list(found.ways) == ["tags", "covering", "naive"]
    assert all(0 < cost.inner < cost.exit for cost in found.ways.values())
    assert found.nodes > 60
    assert found.bytes > 5


def test_beyond_a_size_there_is_no_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hops, "GROWN", 50)
    monkeypatch.setattr(hops, "COVERED", 50)
    assert list(measure(Case("a case", 60), 1, Clock()).ways) == ["covering", "naive"]


def test_wrong_answers_are_not_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Placements, "read_bytes", lambda self, tag: set())
    with pytest.raises(RuntimeError, match="instead of"):
        measure(Case("a case", 60, names=5), 1, Clock())


def test_the_experiment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hops, "EVENTS", 5)
    monkeypatch.setattr(hops, "ROUNDS", 1)
    result = hops.hops(Settings(1, 1, 0.01, Clock()))
    assert result.claims
    assert all(len(line) == len(curves.at) for curves in result.curves for line in curves.lines.values())
