"""Scenarios: what a file says is what happens, and what it says wrong is named."""

from __future__ import annotations

import json
from itertools import count
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fieldfare import filters
from fieldfare.protocol.messages import FilterUpdate, Forward, Subscribe
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import SOURCES, STRATEGIES
from fieldfare.simulation import trace, workloads
from fieldfare.simulation.processing_time import Costs, Line, calibrate, measured
from fieldfare.simulation.scenario import STEPS, Result, Scenario, ScenarioError, load, parse, run, strategy_of

CLIENTS = """
[workload]
subscribers = 8
subscriptions = 20
publishers = 3
events = 80
"""
RING = "[topology]\nkind = 'ring'\nbrokers = 5\n"
TREE = "[topology]\nkind = 'random_tree'\nbrokers = 6\n"


def ran(text: str) -> Result:
    return run(parse(text))


def delivered(result: Result) -> set[tuple[str, str, int]]:
    return {(r.client, r.publisher, r.sequence) for r in result.trace if isinstance(r, trace.Delivered)}


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tpology = 1", "line 1: there is no setting 'tpology'; did you mean 'topology'? (there are strategy,"),
        ("seed = 'x'", "line 1: seed: expected an integer, got a string"),
        ("[topology]\nkind = 'circle'", "line 2: topology.kind: 'circle' is not valid (choices: 'line', 'ring', 'star',"),
        ("[topology]\nkind = 'line'", "topology.brokers: a topology of the kind line needs it"),
        ("[topology]\nkind = 'line'\nbrokers = 2\nheight = 2", "topology.height: a topology of the kind line has none"),
        ("[topology]\nkind = 'ring'\nbrokers = 2", "topology: a ring has three brokers or more"),
        ("[topology]\nkind = 'barabasi_albert'\nbrokers = 2\nlinks = 5", "topology: "),
        ("[topology]\nkind = 'edges'\nbrokers = 2\nedges = []", "topology.brokers: a topology of the kind edges has none"),
        ("[topology]\nkind = 'edges'\nedges = [['a', 'a']]", "topology: a – a: a link joins two brokers"),
        ("[topology]\nkind = 'line'\nbrokers = 2\nroot = 'x'", "topology.root: there is no broker x"),
        (RING + "roles = 'hierarchical'", "topology: only a tree has parents and children"),
        (RING, "strategy: covering bears no cycles"),
        ("strategy = 'covering+tree'\n" + TREE + "roles = 'hierarchical'", "topology.roles: covering+tree knows peers only"),
        ("strategy = 'sources+tree'", "strategy: there is no strategy 'sources+tree'"),
        ("strategy = 'covering+tree+tree'", "strategy: there is no strategy"),
        ("[links]\nlatency = -1.0", "line 2: links.latency: expected a number >= 0"),
        ("[workload]\nlocality = 1.5", "line 2: workload.locality: expected a number <= 1"),
        ("[workload]\nfile = 'gone.parquet'", "workload.file: "),
        ("[[faults]]\ntime = 1.0\ndo = 'crash'", "line 1: faults[0]: the setting 'broker' is missing"),
        ("[[faults]]\ntime = 1.0\ndo = 'crash'\nbroker = 'x'", "faults[0]: there is no broker x"),
        (TREE + "[[faults]]\ntime = 1.0\ndo = 'down'\nlink = ['b0', 'b0']", "faults[0]: there is no link between b0 and b0"),
        ("[[faults]]\ntime = 1.0\ndo = 'restart'\nbroker = 'b1'", "faults[0]: b1 is not down"),
        ("[[faults]]\ntime = 1.0\ndo = 'crush'", "line 3: faults[0].do: 'crush' is not valid; did you mean 'crash'? (choices: 'down', 'up',"),
        ("a = [", "this is not TOML"),
    ],
)  # fmt: skip
def test_errors_name_the_place(text: str, problem: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        ran(text)
    assert str(caught.value).startswith(problem)


def test_strategies_by_name() -> None:
    names = [*STRATEGIES, "sources", "covering+tree", "simple+ads+tree"]
    assert [strategy_of(name).name for name in names] == names


@pytest.mark.parametrize("overlay", ["tree", "ring"])
def test_all_strategies_deliver_the_same(overlay: str) -> None:
    names = [*STRATEGIES] if overlay == "tree" else ["flooding", "sources", "covering+tree", "merging+ads+tree"]
    world = (TREE if overlay == "tree" else RING) + CLIENTS.replace("80", "30")
    results = [ran(f"strategy = '{name}'\n" + world) for name in names]
    assert all(result.violations == [] for result in results)
    assert delivered(results[0])
    assert all(delivered(result) == delivered(results[0]) for result in results)
    assert results[0].figures.event_messages == max(result.figures.event_messages for result in results)


def test_hierarchical_routing() -> None:
    peer, hierarchical = (ran(TREE + f"roles = '{roles}'" + CLIENTS) for roles in ("peer", "hierarchical"))
    assert hierarchical.violations == []
    assert delivered(hierarchical) == delivered(peer)
    assert hierarchical.figures.table_entries < peer.figures.table_entries
    assert hierarchical.figures.false_positives > peer.figures.false_positives == 0


def test_the_same_seed_gives_the_same_run() -> None:
    text = TREE + "[links]\nspread = 'exponential'\nloss = 0.1" + CLIENTS
    assert ran(text).trace == ran(text).trace != ran("seed = 1\n" + text).trace


def test_latency_and_processing_take_time() -> None:
    line = "[topology]\nkind = 'line'\nbrokers = 3\n"
    plain = ran(line + "[links]\nlatency = 0.1" + CLIENTS).figures
    assert plain.latency_p99 == pytest.approx(0.2)
    slow = ran(line + "[links]\nlatency = 0.1\n[processing]\nkind = 'constant'\nseconds = 0.01" + CLIENTS).figures
    assert slow.latency_mean is not None
    assert plain.latency_mean is not None
    assert slow.latency_mean >= plain.latency_mean + 0.01
    narrow = ran(line + "[links]\nlatency = 0.1\nbandwidth = 1000" + CLIENTS).figures
    assert narrow.latency_mean is not None
    assert narrow.latency_mean > plain.latency_mean


def test_until_ends_a_run_early() -> None:
    result = ran("until = 1.3\n" + TREE + CLIENTS)
    assert result.seconds == 1.3
    assert 0 < result.figures.events < 80


def test_faults_happen_when_they_should() -> None:
    faults = """
    [[faults]]
    time = 1.1
    do = "down"
    link = ["b1", "b0"]
    [[faults]]
    time = 1.2
    do = "up"
    link = ["b1", "b0"]
    [[faults]]
    time = 1.3
    do = "crash"
    broker = "b2"
    [[faults]]
    time = 1.4
    do = "restart"
    broker = "b2"
    keep = false
    [[faults]]
    time = 1.5
    do = "partition"
    groups = [["b0"]]
    [[faults]]
    time = 1.6
    do = "heal"
    """
    result = ran("[topology]\nkind = 'line'\nbrokers = 3\n" + CLIENTS + faults)
    kinds = trace.Up | trace.Down | trace.Crashed | trace.Restarted
    happened = [(r.time, type(r).__name__, r.broker) for r in result.trace if isinstance(r, kinds)]
    assert happened == [
        (0.0, "Up", "b0"),
        (0.0, "Up", "b1"),
        (1.1, "Down", "b0"),
        (1.2, "Up", "b1"),
        (1.3, "Crashed", "b2"),
        (1.3, "Down", "b1"),
        (1.4, "Restarted", "b2"),
        (1.4, "Up", "b1"),
        (1.5, "Down", "b1"),
        (1.6, "Up", "b1"),
    ]
    assert result.violations == []


def test_a_broker_that_keeps_its_clients_serves_them_again() -> None:
    def text(keep: str) -> str:
        crash = "[[faults]]\ntime = 1.0\ndo = 'crash'\nbroker = 'b1'\n"
        again = f"[[faults]]\ntime = 1.05\ndo = 'restart'\nbroker = 'b1'\nkeep = {keep}\n"
        return f"[topology]\nkind = 'line'\nbrokers = 2\n{CLIENTS}{crash}{again}"

    kept, lost = ran(text("true")), ran(text("false"))
    assert kept.violations == lost.violations == []
    assert kept.work["b1"].delivered > lost.work["b1"].delivered


def test_unreliable_links_are_found_out() -> None:
    result = ran(TREE + "[links]\nloss = 0.3\nreliable = false" + CLIENTS)
    assert result.violations
    assert result.figures.violations == len(result.violations)
    assert run(parse(TREE + CLIENTS), checked=False).figures.violations is None


def test_clients_and_brokers_must_fit(tmp_path: Path) -> None:
    def tried(*actions: workloads.Action) -> str:
        workloads.write(actions, str(tmp_path / "clients.parquet"))
        (tmp_path / "scenario.toml").write_text(TREE + "[workload]\nfile = 'clients.parquet'\n")
        with pytest.raises(ScenarioError) as caught:
            run(load(tmp_path / "scenario.toml"))
        return str(caught.value)

    assert tried(workloads.Leave(0.5, "ana")) == "workload: ana is at no broker at 0.5 s"
    assert tried(workloads.Attach(0.0, "ana", "b9")) == "workload: ana comes to b9, and there is no such broker"
    assert tried(workloads.Attach(0.0, "b1", "b0")) == "workload: a client cannot be called b1: a broker is"
    assert tried(workloads.Attach(-1.0, "ana", "b0")).startswith("workload: ")


def test_progress_is_told() -> None:
    told: list[str] = []
    run(parse(TREE + CLIENTS), told.append)
    assert len(told) == STEPS + 1


def test_a_workload_beside_the_scenario(tmp_path: Path) -> None:
    scenario = parse(TREE + CLIENTS)
    first = run(scenario)
    actions = workloads.generate(scenario.workload, first.topology.brokers, scenario.seed)
    workloads.write(actions, str(tmp_path / "clients.parquet"))
    (tmp_path / "scenario.toml").write_text(TREE + "[workload]\nfile = 'clients.parquet'\n")
    assert run(load(tmp_path / "scenario.toml")).trace == first.trace


# Processing


@given(st.floats(-10, 1000), st.lists(st.integers(0, 100), min_size=1, max_size=5, unique=True))
def test_lines_are_as_numpy_interpolates(x: float, xs: list[int]) -> None:
    xs = sorted(xs)
    ys = [float(number * number % 17) for number in xs]
    found = Line(xs, ys).at(x)
    if x <= xs[-1]:
        assert found == pytest.approx(float(np.interp(x, xs, ys)))
    else:
        assert found >= ys[-1]


@pytest.mark.parametrize("name", ["covering", "merging+ads", "simple+tree", "sources", "flooding"])
def test_calibration_counts_the_time_of_a_message(name: str) -> None:
    ticks = count()
    costs = calibrate(strategy_of(name), (3, 9), rounds=4, clock=lambda: float(next(ticks)))
    assert costs == Costs(Line([3.0, 9.0], [0.25, 0.25]), Line([3.0, 9.0], [0.25, 0.25]))


def test_measured_processing_grows_with_the_table() -> None:
    costs = measured(Costs(Line([0, 10], [1.0, 2.0]), Line([0, 10], [3.0, 5.0])))
    assert isinstance(costs, dict)
    event, tell = costs[Forward], costs[FilterUpdate]
    assert costs[Subscribe] is tell
    assert callable(event)
    assert callable(tell)
    small, large = Broker("a"), Broker("b", SOURCES)
    tell(small)
    assert (event(small), tell(small)) == (1.0, 3.0)
    for number in range(5):
        large.receive(Subscribe(str(number), filters.parse(f"x = {number}")), "c", 0.0)
    assert (tell(large), event(large)) == (4.0, 1.5)


def test_a_run_with_measured_processing() -> None:
    result = ran(TREE + "[links]\nlatency = 0.0\n[processing]\nkind = 'measured'" + CLIENTS)
    assert result.violations == []
    assert result.figures.latency_mean is not None
    assert result.figures.latency_mean > 0


def test_every_key_is_documented() -> None:
    """With its default, where it has one that can be written."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "simulate.md").read_text("utf-8")
    table = page[page.index("| key | default") :]
    for part in ("topology", "links", "processing", "workload"):
        for field in msgspec.structs.fields(getattr(Scenario(), part)):
            assert f"`{field.name}`" in table or f"`{part}.{field.name}`" in table, (part, field.name)
            value = getattr(Scenario(), part) and field.default
            if isinstance(value, int | float | str) and f"`{part}.{field.name}`" in table:
                row = next(line for line in table.splitlines() if f"`{part}.{field.name}`" in line)
                assert f"`{json.dumps(value)}`" in row, (field.name, value)


DURABLE = """\
nodes = "durable"
topology = {kind = "line", brokers = 3}
workload = {events = 60, subscribers = 6, subscriptions = 12, publishers = 3}

[[faults]]
time = 1.2
do = "crash"
broker = "b1"

[[faults]]
time = 1.3
do = "down"
link = ["b1", "b2"]

[[faults]]
time = 1.6
do = "up"
link = ["b1", "b2"]

[[faults]]
time = 2.0
do = "restart"
broker = "b1"
"""


def test_durable_nodes_lose_nothing_in_a_crash() -> None:
    result = run(parse(DURABLE))
    assert result.violations == []
    assert result.figures.events == 60
    assert result.figures.deliveries > 0
    assert result.figures.deliveries == result.figures.due == result.figures.judged
    assert result.trace == run(parse(DURABLE)).trace


@pytest.mark.parametrize(
    ("change", "place"),
    [
        (
            "topology.kind = 'ring'\ntopology.brokers = 4\nstrategy = 'covering+tree'",
            "nodes: durable nodes form a tree",
        ),
        ("processing.kind = 'constant'", "processing.kind: durable nodes have none"),
        ("links.reliable = false", "links.reliable: durable nodes have reliable links"),
    ],
)
def test_durable_nodes_refuse_what_they_have_not(change: str, place: str) -> None:
    with pytest.raises(ScenarioError, match=place):
        run(parse(f"nodes = 'durable'\n{change}"))
