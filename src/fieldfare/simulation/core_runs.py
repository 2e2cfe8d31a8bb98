"""Runs of durable nodes by a plan, judged by the trace checker."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from fieldfare.core.core import Core
from fieldfare.filters import EVERYTHING
from fieldfare.protocol import messages as m
from fieldfare.routing.places import Places
from fieldfare.routing.publisher_policies import POLICIES
from fieldfare.routing.strategies import STRATEGIES
from fieldfare.simulation import plans as p
from fieldfare.simulation.checker import Violation, channel_order, check_devices, check_durable, shared
from fieldfare.simulation.core_network import CoreNetwork, Options
from fieldfare.simulation.core_rest import leftovers
from fieldfare.simulation.filling import SQUARE
from fieldfare.simulation.standing import judged, stand
from fieldfare.simulation.story import Note
from fieldfare.simulation.tally import Tally
from fieldfare.simulation.trace import Record
from fieldfare.tables.network_index import NetworkIndex

logger = logging.getLogger("fieldfare.node")


LINGER = 0.3
"""seconds for which advertisements outlive a departure: shorter and longer than other things take"""


class Outcome(NamedTuple):
    """The outcome of a run."""

    violations: list[Violation]
    trace: list[Record]
    steps: int
    """of all cores"""
    tally: Tally


class _Errors(logging.Handler):
    """Collects errors in the log of the nodes: only the loss of something written is a reason for an error."""

    def __init__(self, network: CoreNetwork) -> None:
        super().__init__(logging.ERROR)
        self._network = network

    def emit(self, record: logging.LogRecord) -> None:
        if not self._network.forgot:
            self._network.problem(f"an error is logged: {record.getMessage()}")


def run(plan: p.Plan, *, make_core: Callable[..., Core] = Core, story: list[Note] | None = None) -> Outcome:
    """Run a plan; the same plan gives the same run."""
    strategy = STRATEGIES[plan.strategy]
    channels = plan.channels()
    publishers = POLICIES[plan.publishers]
    options = Options(
        strategy,
        plan.replicas,
        0.01 if plan.forgetful else 60.0,
        plan.synced,
        None if plan.apart else NetworkIndex(),
        Places(SQUARE, plan.here, plan.ahead),
        publishers._replace(linger=LINGER) if publishers.linger else publishers,
        tuple(node for node in ("b0", "b2") if node in plan.topology().brokers),
        channels,
        plan.domains(),
        plan.impatient,
    )
    network = CoreNetwork(plan.topology(), options, seed=plan.seed, make_core=make_core, story=story)
    errors, propagate = _Errors(network), logger.propagate
    logger.addHandler(errors)
    logger.propagate = False
    try:
        _perform(plan, network, advertised=strategy.advertisements is not None)
        clock_error = network.clock_error
        _clear(network)
    finally:
        logger.removeHandler(errors)
        logger.propagate = propagate
    tally = Tally()
    check = partial(
        check_durable,
        advertisements=strategy.advertisements is not None,
        order="none" if plan.impatient else strategy.order,  # what a silent node has, comes late
        tally=tally,
        clock_error=clock_error,
        type_of=channels.type_of if channels.homes else None,
    )
    in_order = strategy.order in ("fifo", "causal") and not channels.homes
    domains, advertised = options.domains, strategy.advertisements is not None
    if domains.share.is_full:
        found = check_devices(network.trace, check, advertisements=advertised, in_order=in_order)
    else:  # each domain sees another part of the events; the order of a channel is the same for all
        parts = [domains.seen_from(domain, network.trace) for domain in sorted(set(domains.of.values()))]
        found = [one for part in parts for one in check(part)]
        found += channel_order(network.trace, channels.type_of)
    found += shared(network.trace, key=plan.key)
    order = len(network.trace)
    found += [Violation("patterns", order, problem) for problem in judged(network)]
    found += [Violation("protocol", order, problem) for problem in network.problems]
    return Outcome(found, network.trace, network.steps, tally)


def _perform(plan: p.Plan, network: CoreNetwork, *, advertised: bool) -> None:
    stand(network, plan.patterns)
    network.settle()  # so clients hear of their replica holders at once
    for node in network.hosts:
        for number in range(plan.clients):
            client = network.add_client(f"{node}.{number}", node, lag=plan.lag)
            if advertised:
                client.change(m.Advertise("all", EVERYTHING))
    for number in range(plan.members):
        if plan.copies:
            network.add_device("shared", f"d{number}", min(network.hosts), lag=plan.lag)
        else:
            network.add_member("shared", f"w{number}", min(network.hosts), key=plan.key, lag=plan.lag)
    network.settle()
    for pause, act in plan.steps:
        if network.problems:
            return
        network.clock.run(network.clock.now + pause)
        act.perform(network)
    network.settle()


def _clear(network: CoreNetwork) -> None:
    """Let clients acknowledge and nodes maintain their disks, and look for what is left over.

    Expired events wait for the next maintenance. If a clock is set back, an event is good again that was passed over
    before as expired: the node keeps it, for the next connection, until the clock comes to the end once more.
    """
    if network.problems:
        return
    network.remove_forgotten_devices()
    for name in sorted(network.hosts.keys() - network.lost):
        if network.clocks[name].error:
            network.jump(name, network.clocks[name].error)
    for _ in range(2):  # timers of patterns strike when the clocks are right, and clients get the detections
        network.settle()
        for client in (*network.clients.values(), *network.members.values()):
            client.acknowledge()
        for name in sorted(network.hosts.keys() - network.lost):
            network.hosts[name].maintain()
    network.settle()
    # Where nobody waits for a silent node, a holder may hear too late that it is not needed, and keeps its copy.
    if not network.lost and not network.problems and not network.forgot and not network.options.impatient:
        network.problems.extend(leftovers(network))
