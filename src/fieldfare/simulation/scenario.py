"""Scenarios: a whole simulation in a file of TOML, from the links to the faults.

`load` reads a scenario, and names the place of a mistake. `run` simulates a scenario.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from inspect import signature
from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec

from fieldfare import toml
from fieldfare.routing.broker import Broker
from fieldfare.routing.overlays.shared_tree import SharedTree
from fieldfare.routing.strategies import Strategy, by_name
from fieldfare.simulation import topologies, workloads
from fieldfare.simulation.checker import Violation, check, check_durable, promised
from fieldfare.simulation.core_network import Options
from fieldfare.simulation.counters import Traffic, Work
from fieldfare.simulation.durable_network import DurableNetwork
from fieldfare.simulation.faults import AnyNetwork, Fault, Roles
from fieldfare.simulation.handovers import HANDOVERS, RoamingNetwork
from fieldfare.simulation.network import Network
from fieldfare.simulation.scenario_links import Links, Part, Processing
from fieldfare.simulation.summary import Figures, figures
from fieldfare.simulation.tally import Tally
from fieldfare.simulation.topologies import Topology, from_edges
from fieldfare.simulation.trace import Record
from fieldfare.simulation.workloads import Action, Count, Positive
from fieldfare.tables.network_index import NetworkIndex
from fieldfare.toml import TomlError

STEPS: Final = 100
"""`run` says so many times how far it is while time passes, and once before it checks"""


class ScenarioError(ValueError):
    """A mistake in a scenario, with the place: `topology.brokers`."""

    def __init__(self, place: str, problem: object) -> None:
        super().__init__(f"{place}: {problem}" if place else str(problem))


# Brokers and links


def _given(edges: list[tuple[str, str]]) -> Topology:
    return from_edges(edges)


_TOPOLOGIES: Final[dict[str, Callable[..., Topology]]] = {
    "line": topologies.line,
    "ring": topologies.ring,
    "star": topologies.star,
    "complete": topologies.complete,
    "balanced_tree": topologies.balanced_tree,
    "random_tree": topologies.random_tree,
    "barabasi_albert": topologies.barabasi_albert,
    "transit_stub": topologies.transit_stub,
    "edges": _given,
}


class Brokers(Part, frozen=True):
    """The topology of brokers; the kind decides which parameters count."""

    kind: Literal[
        "line",
        "ring",
        "star",
        "complete",
        "balanced_tree",
        "random_tree",
        "barabasi_albert",
        "transit_stub",
        "edges",
    ] = "random_tree"
    brokers: Annotated[int, msgspec.Meta(ge=1, le=100_000)] | None = None
    degree: Annotated[int, msgspec.Meta(ge=1)] | None = None
    height: Count | None = None
    links: Annotated[int, msgspec.Meta(ge=1)] | None = None
    domains: Annotated[int, msgspec.Meta(ge=1)] | None = None
    transits: Annotated[int, msgspec.Meta(ge=1)] | None = None
    stubs: Count | None = None
    size: Annotated[int, msgspec.Meta(ge=1)] | None = None
    edges: list[tuple[str, str]] | None = None
    seed: int | None = None
    """of a random topology; that of the scenario if there is none"""
    roles: Literal["peer", "hierarchical"] = "peer"
    root: str | None = None
    """of the hierarchy; the first broker if none is named"""

    def make(self, seed: int) -> Topology:
        """Make the topology; a parameter that does not fit the kind is a mistake."""
        function = _TOPOLOGIES[self.kind]
        known = signature(function).parameters
        given = {
            name: value
            for name in self.__struct_fields__
            if name not in {"kind", "roles", "root"} and (value := getattr(self, name)) is not None
        }
        for name in given:
            if name not in known:
                raise ScenarioError(f"topology.{name}", f"a topology of the kind {self.kind} has none")
        for name, parameter in known.items():
            if name == "seed":
                given.setdefault("seed", seed)
            elif parameter.default is parameter.empty and name not in given:
                raise ScenarioError(f"topology.{name}", f"a topology of the kind {self.kind} needs it")
        try:
            made = function(**given)
            if self.root is not None and self.root not in made.brokers:
                raise ScenarioError("topology.root", f"there is no broker {self.root}")
            return made.hierarchical(self.root) if self.roles == "hierarchical" else made
        except ScenarioError:
            raise
        except (ValueError, ImportError) as error:
            raise ScenarioError("topology", error) from None
        except Exception as error:  # networkx has errors of its own
            if type(error).__module__.startswith("networkx"):
                raise ScenarioError("topology", error) from None
            raise


# The whole


class Clients(workloads.Workload, frozen=True, kw_only=True):
    """The actions of clients: a random workload, or a workload in a file."""

    file: str | None = None
    """a Parquet file, beside the scenario; then all else does not count"""


class Scenario(Part, frozen=True):
    """A scenario: topology, links, processing, strategy, workload and faults."""

    strategy: str = "covering"
    seed: int = 0
    until: Positive | None = None
    """seconds of virtual time; None: until all is done"""
    nodes: Literal["brokers", "durable"] = "brokers"
    """brokers alone, or nodes with disks, sessions and links that lose nothing"""
    handover: Literal["", "node", "ping-pong", "path-update", "rendezvous", "relocation"] = ""
    """the way in which sessions follow clients; empty: that of nodes if they are durable, else none"""
    topology: Brokers = Brokers(brokers=10)
    links: Links = Links()
    processing: Processing = Processing()
    workload: Clients = Clients()
    faults: list[Fault] = msgspec.field(default_factory=list)


def load(path: Path | str) -> Scenario:
    """The scenario in a file; ScenarioError if there is none."""
    path = Path(path)
    try:
        scenario = parse(path.read_text("utf-8"))
    except UnicodeDecodeError as error:
        raise ScenarioError("", f"no text in UTF-8: {error}") from None
    if scenario.workload.file is None:
        return scenario
    return msgspec.structs.replace(
        scenario, workload=msgspec.structs.replace(scenario.workload, file=str(path.parent / scenario.workload.file))
    )


def parse(text: str) -> Scenario:
    """The scenario in a text.

    >>> parse("strategy = 'simple'").strategy
    'simple'
    >>> parse("topology.brokers = 'ten'")
    Traceback (most recent call last):
    fieldfare.simulation.scenario.ScenarioError: line 1: topology.brokers: expected an integer, got a string
    """
    try:
        return toml.decode(text, Scenario)
    except TomlError as error:
        raise ScenarioError("", error) from None


def strategy_of(name: str) -> Strategy:
    """Return a strategy by name; ScenarioError for unknown names, or strategies impossible in scenarios."""
    try:
        strategy = by_name(name)
    except ValueError as error:
        raise ScenarioError("strategy", str(error)) from None
    if strategy.overlay == "rendezvous":
        raise ScenarioError("strategy", "rendezvous needs brokers that all reach each other, which a scenario has not")
    return strategy


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run: figures, trace and violations."""

    scenario: Scenario
    topology: Topology
    trace: list[Record]
    traffic: dict[tuple[str, str], Traffic]
    work: dict[str, Work]
    tables: dict[str, int]
    """how large the table of each broker is at the end"""
    violations: list[Violation] | None
    """of the specification; None: not checked"""
    figures: Figures
    seconds: float
    """of virtual time"""
    resting: frozenset[tuple[str, str]] = frozenset()
    """the links that no tree uses at the end, where brokers agree on one"""


def run(scenario: Scenario, progress: Callable[[str], object] = str, *, checked: bool = True) -> Result:
    """Simulate a scenario; `progress` is called STEPS + 1 times, with the share of the run done.

    >>> few = Clients(subscribers=5, subscriptions=5, publishers=1, events=20)
    >>> run(Scenario(workload=few)).violations
    []
    """
    strategy = strategy_of(scenario.strategy)
    topology = scenario.topology.make(scenario.seed)
    _check_overlay(strategy, topology, scenario)
    actions = actions_of(scenario)
    _check_clients(actions, topology)
    _check_moves(scenario)
    network = _network(scenario, strategy, topology)
    _plan_faults(scenario, topology, network)
    try:
        workloads.replay(actions, network)
    except ValueError as error:
        raise ScenarioError("workload", error) from None
    last = max([0.0, *(action.time for action in actions), *(fault.time for fault in scenario.faults)])
    end = last if scenario.until is None else scenario.until
    for step in range(1, STEPS + 1):
        network.run(end * step / STEPS)
        progress(f"{network.now:.1f} of {end:.1f} s")
    if scenario.until is None:
        network.drain()
    progress("checking" if checked else "counting")
    order = "fifo" if _roams(scenario) else promised(strategy, topology, network.trace)
    advertised = strategy.advertisements is not None
    tally, judge = Tally(), check_durable if scenario.nodes == "durable" else check
    violations = judge(network.trace, advertisements=advertised, order=order, tally=tally) if checked else None
    tables = network.table_sizes()
    return Result(
        scenario,
        topology,
        network.trace,
        dict(network.traffic),
        dict(network.work),
        tables,
        violations,
        figures(
            network.trace,
            network.total_traffic(),
            network.total_work(),
            tables.values(),
            None if violations is None else (violations, tally),
        ),
        network.now,
        frozenset() if isinstance(network, RoamingNetwork) else _resting(network.brokers),
    )


def _resting(brokers: Mapping[str, Broker]) -> frozenset[tuple[str, str]]:
    trees = {name: broker.routes for name, broker in brokers.items() if isinstance(broker.routes, SharedTree)}
    return frozenset((name, other) for name, routes in trees.items() for other in routes.resting())


def _check_overlay(strategy: Strategy, topology: Topology, scenario: Scenario) -> None:
    if strategy.overlay != "acyclic" and scenario.topology.roles == "hierarchical":
        raise ScenarioError("topology.roles", f"{strategy.name} knows peers only")
    acyclic = strategy.overlay == "acyclic" and strategy.table is not None
    if acyclic and topology.has_cycle:
        raise ScenarioError(
            "strategy",
            f"{strategy.name} bears no cycles, and this topology has some: {strategy.name}+tree or sources do",
        )


def _roams(scenario: Scenario) -> bool:
    return scenario.handover not in ("", "node")


def _check_moves(scenario: Scenario) -> None:
    """Refuse moves without a handover, and handovers where they cannot be."""
    if scenario.nodes == "durable" and _roams(scenario):
        raise ScenarioError("handover", f"durable nodes have a handover of their own, and not {scenario.handover}")
    if scenario.nodes != "durable" and scenario.handover == "node":
        raise ScenarioError("handover", 'the handover of nodes needs nodes = "durable"')
    if scenario.nodes != "durable" and not scenario.handover and scenario.workload.moves:
        raise ScenarioError("workload.moves", "brokers alone keep no sessions: name a handover")
    if _roams(scenario) and scenario.faults:
        raise ScenarioError("faults", f"{scenario.handover} is for brokers and links without faults")
    if _roams(scenario) and (scenario.processing.kind != "none" or not scenario.links.reliable):
        raise ScenarioError("handover", f"{scenario.handover} needs links that keep order, and no processing time")


def _check_clients(actions: list[Action], topology: Topology) -> None:
    """Refuse actions at unknown brokers, actions of absent clients, and clients with the name of a broker."""
    here: set[str] = set()
    for action in sorted(actions, key=lambda action: action.time):
        if isinstance(action, workloads.Attach):
            if action.broker not in topology.brokers:
                raise ScenarioError(
                    "workload", f"{action.client} comes to {action.broker}, and there is no such broker"
                )
            if action.client in topology.brokers:
                raise ScenarioError("workload", f"a client cannot be called {action.client}: a broker is")
            here.add(action.client)
        elif action.client not in here:
            raise ScenarioError("workload", f"{action.client} is at no broker at {action.time} s")


def actions_of(scenario: Scenario) -> list[Action]:
    """Return the actions of all clients in a scenario."""
    if scenario.workload.file is None:
        return workloads.generate(scenario.workload, scenario.topology.make(scenario.seed).brokers, scenario.seed)
    try:
        return workloads.read(scenario.workload.file)
    except (ValueError, OSError) as error:
        raise ScenarioError("workload.file", f"cannot be read: {error}") from None


def _network(scenario: Scenario, strategy: Strategy, topology: Topology) -> AnyNetwork:
    if scenario.nodes == "durable":
        return _durable_network(scenario, strategy, topology)
    if _roams(scenario):
        handover = HANDOVERS[scenario.handover]
        try:
            return handover.network(topology, strategy, scenario.links.wire(), scenario.seed)
        except ValueError as error:
            raise ScenarioError("handover", f"{scenario.handover}: {error}") from None
    lives: Counter[str] = Counter()

    def make(name: str) -> Broker:
        lives[name] += 1
        return Broker(name, strategy, life=lives[name])

    def restore(name: str, snapshot: bytes) -> Broker:
        broker = make(name)
        broker.restore(snapshot)
        return broker

    return Network(
        make,
        topology,
        restore=restore,
        links=scenario.links.wire(),
        processing=scenario.processing.make(strategy),
        seed=scenario.seed,
    )


def _durable_network(scenario: Scenario, strategy: Strategy, topology: Topology) -> DurableNetwork:
    if strategy.overlay != "acyclic" or topology.has_cycle:
        raise ScenarioError("nodes", "durable nodes form a tree")
    if scenario.processing.kind != "none":
        raise ScenarioError("processing.kind", "durable nodes have none: their disks take the time")
    if not scenario.links.reliable:
        raise ScenarioError("links.reliable", "durable nodes have reliable links, which may break")
    options = Options(strategy, shared=NetworkIndex())
    return DurableNetwork(topology, options, wire=scenario.links.wire(), seed=scenario.seed, detailed=True)


def _plan_faults(scenario: Scenario, topology: Topology, network: AnyNetwork) -> None:
    roles = {(a, b): role for a, b, role in topology.edges} | {(b, a): role.opposite for a, b, role in topology.edges}
    for number, fault in enumerate(scenario.faults):
        place = f"faults[{number}]"
        for broker in fault.brokers():
            if broker not in topology.brokers:
                raise ScenarioError(place, f"there is no broker {broker}")
        for a, b in fault.links():
            if (a, b) not in roles:
                raise ScenarioError(place, f"there is no link between {a} and {b}")
        network.at(fault.time, _act, fault, place, network, roles)


def _act(fault: Fault, place: str, network: AnyNetwork, roles: Roles) -> None:
    try:
        fault.act(network, roles)
    except ValueError as error:
        raise ScenarioError(place, error) from None
