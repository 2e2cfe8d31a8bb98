"""The publisher study: what its runs measure, and how its experiments judge them."""

from __future__ import annotations

from typing import Any

import pytest

from fieldfare.routing.publisher_policies import DELAYED, PREFETCH_DELAYED, PROXY, SAFE, STANDARD, PublisherPolicy
from fieldfare_lab.mobility import grids
from fieldfare_lab.mobility.city import Case, Outcome, _Run, run
from fieldfare_lab.mobility.observed_brokers import COMPLEX, FAST, NONE, Model
from fieldfare_lab.mobility.publishers import EXPERIMENTS
from fieldfare_lab.results import Settings

LATENCY = 0.00208


def _case(policy: PublisherPolicy, **changes: Any) -> Case:
    return Case(policy, NONE, 10, 20, speeds=(100.0,), length=30.0)._replace(**changes)


def test_rebuilding_is_the_way_to_the_farthest_subscriber_and_back() -> None:
    one = _Run(_case(STANDARD, publishers=1, subscribers=1, length=200.0))
    one.outcome()
    hops = [max(0.0, one.watch.last.get(move, 0.0) - time) / LATENCY / 2 for move, time in one.came.items()]
    assert len(hops) >= 10
    assert all(any(abs(value - whole) < 1e-6 for whole in (0, 2, 4, 6)) for value in hops)
    assert max(hops) > 5


def test_work_adds_to_it() -> None:
    plain, fast = (
        run(_case(STANDARD, publishers=1, subscribers=1, model=model, length=200.0)) for model in (NONE, FAST)
    )
    assert fast.moves == plain.moves
    assert fast.messages == plain.messages
    # a promise takes 2 ms at every broker on the way, a subscription 4 ms, and the promise at the first broker 2 ms
    links = plain.rebuilding / LATENCY / 2
    assert fast.rebuilding == pytest.approx(plain.rebuilding + 0.006 * links + 0.002, rel=0.1)


def test_what_the_manners_cost() -> None:
    standard, delayed, both = (run(_case(policy)) for policy in (STANDARD, DELAYED, PREFETCH_DELAYED))
    assert standard.messages > 10 * delayed.messages
    assert standard.rebuilding > delayed.rebuilding > both.rebuilding == 0.0
    assert standard.moves == delayed.moves == both.moves > 10


def test_within_its_proxies_a_publisher_costs_nothing() -> None:
    assert run(_case(PROXY, roam=2)).messages == 0
    assert run(_case(PROXY, roam=3)).messages > 0


@pytest.mark.parametrize("model", [NONE, COMPLEX], ids=lambda m: m.name)
def test_safe_loses_nothing(model: Model) -> None:
    outcome = run(_case(SAFE, model=model, every=2.0))
    assert outcome.delivered == outcome.due > 200
    assert outcome.waits > 0


def test_standard_loses_when_brokers_are_slow() -> None:
    assert run(_case(STANDARD, model=COMPLEX, every=2.0)).ratio < 1.0


@pytest.mark.parametrize("name", EXPERIMENTS)
@pytest.mark.parametrize("lost", [0, 1])
def test_experiments_judge_what_runs_give(name: str, lost: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def outcome(case: Case) -> Outcome:
        dear = 20 if case.policy is STANDARD else 1
        return Outcome(10, 10 * dear * case.publishers, 0.01 * dear, 100, 100 - lost, 0.1, 0.5)

    monkeypatch.setattr(grids, "run", outcome)
    result = EXPERIMENTS[name](Settings(1, 1, 1.0))
    assert result.name == name
    assert all(len(line) == len(curves.at) for curves in result.curves for line in curves.lines.values())
    held = {claim.text: claim.holds for claim in result.claims}
    if name == "P1":
        assert held["none: standard costs more than 10 × proxy, delayed and prefetch-delayed"]
        assert not held["none: and less than proxy"]
    if name == "P6":
        assert held["complex: safe (ours) loses none"] == (not lost)
