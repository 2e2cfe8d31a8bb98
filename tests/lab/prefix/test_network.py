"""The experiments are run by hand; here is what they are made of, and each of them once, very small."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from fieldfare.routing.prefix.options import PrefixOptions
from fieldfare.routing.prefix.routes import PrefixRoutes
from fieldfare_lab.prefix import network
from fieldfare_lab.prefix.testbed import CLIENTS, NEVER, Bed, Course, Window, topology
from fieldfare_lab.prefix.workload import Mix
from fieldfare_lab.results import Settings

DENSE = Mix(names=5)


def course(events: int = 90, **more: Any) -> Course:
    options = {
        "distribution": "uniform",
        "prefix": PrefixOptions(refresh=NEVER),
        "mix": DENSE,
        "seed": 1,
        "events": events,
    }
    return Course(**{**options, **more})


def test_the_topology() -> None:
    found = topology()
    assert len(found.brokers) == 27
    assert not found.has_cycle
    assert len(found.edges) == 26
    ends = [broker for broker, others in found.neighbours().items() if len(others) == 1]
    assert {f"{kind}{number}" for kind in "sp" for number in range(CLIENTS)} <= set(ends)


def test_what_brokers_share_changes_nothing() -> None:
    given = course(40, prefix=PrefixOptions(refresh=3.0), keep=15, depths=(1, None))
    shared, real = (list(Bed(given, shared=one).run(3)) for one in (True, False))
    assert shared == real
    assert shared[-1].updates > 2
    assert sum(one.unwanted for one in shared) > 0
    assert sum(one.arrived - one.unwanted for one in shared) > 0


def test_with_a_tree_that_is_always_fresh_nothing_goes_astray() -> None:
    stale = list(Bed(course(25, prefix=PrefixOptions(threshold=0.8, refresh=NEVER))).run(3))
    windows = list(Bed(course(25, prefix=PrefixOptions(threshold=0.0, refresh=NEVER), depths=(0, 2, None))).run(3))
    nothing, shallow, fresh = windows[0::3], windows[1::3], windows[2::3]
    assert all(one.needless == one.loose == 0 for one in fresh)
    assert sum(one.needless for one in stale) > 0
    assert [one.arrived - one.unwanted for one in stale] == [one.arrived for one in fresh]
    assert [one.crossed - one.needless for one in stale] == [one.crossed for one in fresh]
    assert nothing[-1].tag < shallow[-1].tag < fresh[-1].tag
    assert nothing[-1].unwanted > shallow[-1].unwanted > 0


def test_subscriptions_that_go() -> None:
    bed = Bed(course(25, keep=10))
    list(bed.run(1))
    kept = sum(
        len(client.subscriptions) for broker in bed.network.brokers.values() for client in broker.clients.all.values()
    )
    assert 10 <= kept <= 11


def test_a_lost_event_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    bed = Bed(course(prefix=PrefixOptions(threshold=0.0)))
    monkeypatch.setattr(PrefixRoutes, "_read", lambda self, tag: set())
    with pytest.raises(RuntimeError, match="lost"):
        list(bed.run(1))


class Stub:
    """What a run gives, as one would like it."""

    def __init__(self, course: Course) -> None:
        self.course = course

    def run(self, windows: int) -> Iterator[Window]:
        threshold, refresh = self.course.prefix.threshold, self.course.prefix.refresh
        stale = 50 if refresh == NEVER else int(refresh)
        for number in range(1, windows + 1):
            for depth in self.course.depths:
                unwanted = max(0, 100 - (depth or 20) * 5 + stale - 9 * number) * 10
                unwanted *= 1 if self.course.distribution == "uniform" else 0
                updates = int(60 / threshold) if threshold and refresh == NEVER else 1000
                yield Window(depth, number, 200, 1000 + unwanted, unwanted, 0, 0, 200 * (depth or 20), updates, 9, 9)


@pytest.mark.parametrize("experiment", [network.growing, network.distributions, network.staleness])
def test_experiments(experiment: network.Experiment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(network, "Bed", Stub)
    result = experiment(Settings(1, 1, 0.01))
    assert all(len(line) == len(curves.at) for curves in result.curves for line in curves.lines.values())
    assert {claim.holds for claim in result.claims} == {True, False}  # there is no such network


def test_an_experiment_on_the_network() -> None:
    result = network.distributions(Settings(1, 1, 0.001))
    assert list(result.curves[0].lines) == ["uniform", "gaussian", "pareto"]
    assert result.curves[0].at[-1] <= 10
