"""Workloads: chance has the shape it should, promises are kept, and a saved workload is the same workload."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from itertools import islice, pairwise
from pathlib import Path
from random import Random
from statistics import mean, pstdev
from typing import Literal

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare.routing.broker import Broker
from fieldfare.simulation import distributions, trace
from fieldfare.simulation.content import Market, Numbers, Region, Sensors, Subject
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import line
from fieldfare.simulation.workloads import (
    Action,
    Advertise,
    Attach,
    Leave,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
    Workload,
    generate,
    read,
    replay,
    write,
)

BROKERS = [f"b{number}" for number in range(5)]
MANY = 20_000


def workloads() -> st.SearchStrategy[Workload]:
    share = st.floats(0, 1)
    return st.builds(
        Workload,
        subject=st.sampled_from(["market", "sensors", "numbers"]),
        values=st.sampled_from(["uniform", "gaussian", "pareto", "zipf"]),
        subscribers=st.integers(0, 5),
        publishers=st.integers(0, 4),
        subscriptions=st.integers(0, 10),
        lifetime=st.none() | st.floats(0.3, 5),
        events=st.integers(0, 30),
        rate=st.floats(5, 500),
        arrivals=st.sampled_from(["constant", "poisson", "bursts"]),
        burst=st.integers(1, 20),
        warmup=st.floats(0, 2),
        locality=share,
        publisher_locality=share,
    )


# Distributions


def test_values_are_spread_as_their_names_say() -> None:
    dice = Random(1)
    numbers = [distributions.gaussian(10, 2)(dice) for _ in range(MANY)]
    assert (mean(numbers), pstdev(numbers)) == pytest.approx((10, 2), rel=0.05)
    numbers = [distributions.uniform(2, 4)(dice) for _ in range(MANY)]
    assert (min(numbers), mean(numbers), max(numbers)) == pytest.approx((2, 3, 4), rel=0.02)
    numbers = [distributions.pareto(2.0, 3.0)(dice) for _ in range(MANY)]
    assert sum(number > 6 for number in numbers) / MANY == pytest.approx(1 / 4, rel=0.05)
    assert min(numbers) >= 3


@pytest.mark.parametrize("exponent", [0.0, 0.8, 2.0])
def test_zipf(exponent: float) -> None:
    draw, dice = distributions.zipf(10, exponent), Random(2)
    found = Counter(draw(dice) for _ in range(MANY))
    weights = [(rank + 1) ** -exponent for rank in range(10)]
    for rank, weight in enumerate(weights):
        assert found[rank] / MANY == pytest.approx(weight / sum(weights), abs=0.015)


@pytest.mark.parametrize("kind", ["constant", "poisson", "bursts"])
def test_arrivals_have_their_rate(kind: str) -> None:
    times = list(islice(distributions.arrivals(kind, Random(3), 50.0, 8), MANY))
    assert all(a <= b for a, b in pairwise(times))
    assert times[-1] == pytest.approx(MANY / 50, rel=0.1)
    gaps = [b - a for a, b in pairwise(times)]
    variation = pstdev(gaps) / mean(gaps)
    assert {"constant": variation < 1e-6, "poisson": 0.9 < variation < 1.1, "bursts": variation > 2}[kind]
    assert kind != "bursts" or set(Counter(times).values()) == {8}


@pytest.mark.parametrize("name", distributions.SHARES)
def test_shares_are_from_0_to_1(name: str) -> None:
    dice = Random(4)
    numbers = [distributions.SHARES[name](dice) for _ in range(2000)]
    assert min(numbers) >= 0
    assert max(numbers) <= 1
    assert len(set(numbers)) > 10


# Subjects


SUBJECTS: dict[str, Callable[[], Subject]] = {
    "market": lambda: Market(Random(1)),
    "sensors": Sensors,
    "numbers": lambda: Numbers(distributions.uniform()),
}


@pytest.mark.parametrize("name", SUBJECTS)
def test_some_events_are_wanted_and_none_by_all(name: str) -> None:
    subject = SUBJECTS[name]()
    dice = Random(5)
    filters = [subject.filter(dice, Region()) for _ in range(200)]
    publishers = [subject.publisher(dice, Region()) for _ in range(20)]
    events = [dice.choice(publishers).event(dice) for _ in range(100)]
    share = mean(filter.matches(event) for filter in filters for event in events)
    assert 0.001 < share < 0.3


def overlapping(workload: Workload) -> tuple[float, float]:
    """The share of pairs of wishes that overlap: within a broker, and between two."""
    actions = generate(workload, BROKERS, 6)
    home = {action.client: action.broker for action in actions if isinstance(action, Attach)}
    wishes = [(home[action.client], action.filter) for action in actions if isinstance(action, Subscribe)]
    pairs = [(a == b, f.overlaps(g)) for n, (a, f) in enumerate(wishes) for b, g in wishes[:n]]
    return mean(o for same, o in pairs if same), mean(o for same, o in pairs if not same)


@pytest.mark.parametrize("subject", ["market", "sensors", "numbers"])
def test_with_locality_clients_of_a_broker_want_similar_things(
    subject: Literal["market", "sensors", "numbers"],
) -> None:
    workload = Workload(subject=subject, subscribers=30, subscriptions=80, events=0)
    within, between = overlapping(workload)
    assert within == pytest.approx(between, abs=0.08)
    local = [overlapping(msgspec.structs.replace(workload, locality=share)) for share in (0.9, 1.0)]
    assert all(same > 1.5 * other for same, other in local)
    assert local[1][0] > within


# Workloads


@given(workloads(), st.integers(0, 1000))
def test_a_workload_is_as_it_should_be(workload: Workload, seed: int) -> None:
    actions = generate(workload, BROKERS, seed)
    assert actions == generate(workload, BROKERS, seed)
    assert all(a.time <= b.time for a, b in pairwise(actions))
    kinds = Counter(type(action) for action in actions)
    assert kinds[Publish] == (workload.events if workload.publishers else 0)
    assert kinds[Subscribe] - kinds[Unsubscribe] == (workload.subscriptions if workload.subscribers else 0)
    here: set[str] = set()
    held: dict[tuple[str, str], Subscribe] = {}
    promised = {action.client: action.filter for action in actions if isinstance(action, Advertise)}
    for action in actions:
        match action:
            case Attach():
                here.add(action.client)
            case Subscribe():
                assert (action.client, action.id) not in held
                held[action.client, action.id] = action
            case Unsubscribe():
                del held[action.client, action.id]
            case Publish():
                assert promised[action.client].matches(action.event)
                assert action.time >= workload.warmup
        assert action.client in here


def test_another_seed_gives_another_workload() -> None:
    assert generate(Workload(), BROKERS, 1) != generate(Workload(), BROKERS, 2)


def test_more_events_change_no_wishes() -> None:
    few, many = (generate(Workload(events=events), BROKERS) for events in (10, 500))
    assert [a for a in few if not isinstance(a, Publish)] == [a for a in many if not isinstance(a, Publish)]


def test_lifetimes_are_exponential() -> None:
    actions = generate(Workload(lifetime=0.5, subscriptions=100, events=1000), BROKERS)
    since = {(a.client, a.id): a.time for a in actions if isinstance(a, Subscribe)}
    stays = [a.time - since[a.client, a.id] for a in actions if isinstance(a, Unsubscribe)]
    assert mean(stays) == pytest.approx(0.5, rel=0.05)
    assert pstdev(stays) == pytest.approx(0.5, rel=0.1)


# Files and replay


@given(workload=workloads(), seed=st.integers(0, 100))
def test_a_file_gives_the_same_actions(tmp_path_factory: pytest.TempPathFactory, workload: Workload, seed: int) -> None:
    path = str(tmp_path_factory.mktemp("w") / "actions.parquet")
    actions: list[Action] = generate(workload, BROKERS, seed)
    actions += [Unadvertise(99.0, "p0", "all"), Leave(99.5, "p0")]
    write(actions, path)
    assert read(path) == actions
    assert [type(action) for action in read(path)] == [type(action) for action in actions]


def test_a_file_that_is_no_workload(tmp_path: Path) -> None:
    path = tmp_path / "x.parquet"
    path.write_text("nothing")
    with pytest.raises(ValueError, match="no Parquet file"):
        read(str(path))
    pq.write_table(pa.table({"kind": ["Publish"]}), path)
    with pytest.raises(ValueError, match="there is no column broker, client"):
        read(str(path))


def test_replay_does_what_the_actions_say() -> None:
    workload = Workload(events=50, subscriptions=20, lifetime=0.4)
    actions = generate(workload, BROKERS, 8)
    network = Network(Broker, line(5))
    replay(actions, network)
    network.drain()
    kinds = {
        trace.Published: Publish,
        trace.Subscribed: Subscribe,
        trace.Unsubscribed: Unsubscribe,
        trace.Advertised: Advertise,
    }
    home = {action.client: action.broker for action in actions if isinstance(action, Attach)}
    done = [record for record in network.trace if type(record) in kinds]
    meant = [action for action in actions if not isinstance(action, Attach)]
    assert [(kinds[type(r)], r.time, r.client, r.broker) for r in done] == [  # type: ignore[union-attr]
        (type(a), a.time, a.client, home[a.client]) for a in meant
    ]
    assert [r.event for r in done if isinstance(r, trace.Published)] == [
        a.event for a in meant if isinstance(a, Publish)
    ]
