"""Runs of durable nodes by a plan, judged by the trace checker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import NamedTuple

from fieldfare.core.core import Core
from fieldfare.filters import EVERYTHING
from fieldfare.protocol import messages as m
from fieldfare.routing.strategies import STRATEGIES
from fieldfare.simulation import plans as p
from fieldfare.simulation.checker import Violation, check_durable
from fieldfare.simulation.core_clients import DurableClient
from fieldfare.simulation.core_network import CoreNetwork, Options
from fieldfare.simulation.core_rest import leftovers
from fieldfare.simulation.story import Note
from fieldfare.simulation.tally import Tally
from fieldfare.simulation.trace import Record
from fieldfare.tables.network_index import NetworkIndex

logger = logging.getLogger("fieldfare.node")


class Outcome(NamedTuple):
    """The outcome of a run."""

    violations: list[Violation]
    trace: list[Record]
    steps: int
    """of all cores"""
    tally: Tally


class _Errors(logging.Handler):
    """Collects errors in the log of the nodes: no fault of a plan is a reason for an error."""

    def __init__(self, network: CoreNetwork) -> None:
        super().__init__(logging.ERROR)
        self._network = network

    def emit(self, record: logging.LogRecord) -> None:
        self._network.problem(f"an error is logged: {record.getMessage()}")


def run(plan: p.Plan, *, make_core: Callable[..., Core] = Core, story: list[Note] | None = None) -> Outcome:
    """Run a plan; the same plan gives the same run."""
    strategy = STRATEGIES[plan.strategy]
    options = Options(strategy, plan.replicas, 0.01 if plan.forgetful else 60.0, None if plan.apart else NetworkIndex())
    network = CoreNetwork(plan.topology(), options, seed=plan.seed, make_core=make_core, story=story)
    errors, propagate = _Errors(network), logger.propagate
    logger.addHandler(errors)
    logger.propagate = False
    try:
        _perform(plan, network, advertised=strategy.advertisements is not None)
    finally:
        logger.removeHandler(errors)
        logger.propagate = propagate
    tally = Tally()
    found = check_durable(
        network.trace, advertisements=strategy.advertisements is not None, order=strategy.order, tally=tally
    )
    order = len(network.trace)
    found += [Violation("protocol", order, problem) for problem in network.problems]
    return Outcome(found, network.trace, network.steps, tally)


def _perform(plan: p.Plan, network: CoreNetwork, *, advertised: bool) -> None:
    network.settle()  # so clients hear of their replica holders at once
    for node in network.hosts:
        for number in range(plan.clients):
            client = network.add_client(f"{node}.{number}", node, lag=plan.lag)
            if advertised:
                client.change(m.Advertise("all", EVERYTHING))
    network.settle()
    for pause, act in plan.steps:
        if network.problems:
            return
        network.clock.run(network.clock.now + pause)
        _do(act, network)
    network.settle()
    for client in network.clients.values():
        client.acknowledge()
    network.settle()
    if not network.lost and not network.problems:
        network.problems.extend(leftovers(network))


def _do(act: p.Act, network: CoreNetwork) -> None:
    nodes, clients = sorted(network.hosts.keys() - network.lost), list(network.clients.values())
    edges = [edge for edge in network.edges if not network.lost & set(edge)]
    match act:
        case p.Publish(number, events):
            clients[number % len(clients)].publish([p.EVENTS[one % len(p.EVENTS)] for one in events])
        case p.Subscribe(number, id, filter):
            _change(clients[number % len(clients)], m.Subscribe(id, p.FILTERS[filter % len(p.FILTERS)]))
        case p.Unsubscribe(number, id):
            _change(clients[number % len(clients)], m.Unsubscribe(id))
        case p.Advertise(number, id, filter):
            _change(clients[number % len(clients)], m.Advertise(id, p.FILTERS[filter % len(p.FILTERS)]))
        case p.Unadvertise(number, id):
            _change(clients[number % len(clients)], m.Unadvertise(id))
        case p.Move(number, node, keep):
            clients[number % len(clients)].attach(nodes[node % len(nodes)], make_before_break=keep)
        case p.Detach(number):
            clients[number % len(clients)].detach()
        case p.BreakLine(number):
            network.break_line(clients[number % len(clients)])
        case p.Lose(leaf, refuge):
            _lose(leaf, refuge, network)
        case p.Settle():
            network.settle()
        case p.Heal():
            network.heal()
        case p.Cut(link, forth, back) if edges:
            network.cut(*edges[link % len(edges)], forth=forth, back=back)
        case p.BreakLink(link) if edges:
            network.break_link(*edges[link % len(edges)])
        case p.Part(bits):
            network.partition([node for number, node in enumerate(nodes) if bits & 1 << number])
        case _:
            _disturb(act, network, nodes)


def _change(client: DurableClient, message: m.Subscribe | m.Unsubscribe | m.Advertise | m.Unadvertise) -> None:
    """Request a change of filters, unless an earlier request about the same id has no answer yet."""
    if all(getattr(other, "id", "") != message.id for other in client.changes.values()):
        client.change(message)


def _disturb(act: p.Act, network: CoreNetwork, nodes: list[str]) -> None:
    """Apply a fault of a single node, disk or clock."""
    match act:
        case p.Kill(number, steps, stage, kept, seconds):
            network.kill_later(nodes[number % len(nodes)], steps, stage, kept, seconds)
        case p.Maintain(number):
            network.hosts[nodes[number % len(nodes)]].maintain()
        case p.SlowDisk(number, seconds):
            network.disks[nodes[number % len(nodes)]].seconds = seconds
        case p.FullDisk(number, seconds):
            network.fill(nodes[number % len(nodes)], seconds)
        case p.FlipBit(number):
            node = nodes[number % len(nodes)]
            network.disks[node].flip(network.random_of(node))
        case p.Jump(number, seconds):
            network.jump(nodes[number % len(nodes)], seconds)


def _lose(leaf: int, refuge: int, network: CoreNetwork) -> None:
    """Let a leaf fail for good, unless another node has; the only neighbour is the replica holder."""
    near: dict[str, int] = {}
    for edge in network.edges:
        for node in edge:
            near[node] = near.get(node, 0) + 1
    leaves = [node for node, count in near.items() if count == 1]
    if network.lost or len(network.hosts) < 3 or network.options.replicas == 0:
        return
    network.settle()
    node = leaves[leaf % len(leaves)]
    others = sorted(network.hosts.keys() - {node})
    mine: list[DurableClient] = [client for client in network.clients.values() if client.node == node]
    if not all(client.replicas for client in mine):
        return
    network.lose(node)
    for client in mine:
        client.attach(others[refuge % len(others)])
