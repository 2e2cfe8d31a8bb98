"""Patterns that stand in simulated nodes from the beginning, and the judgement of their detections at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from fieldfare.core.pattern_inputs import SettlePatterns
from fieldfare.filters import parse
from fieldfare.simulation.checker.pattern_checks import check_patterns
from fieldfare.simulation.detections import TEXTS

if TYPE_CHECKING:
    from fieldfare.simulation.core_network import CoreNetwork


def stand(network: CoreNetwork, numbers: Sequence[int]) -> None:
    """Let patterns stand in nodes, each at another node, and over the first pattern another one."""
    nodes = sorted(network.hosts)
    texts: dict[str, dict[str, str]] = {}
    for place, number in enumerate(numbers):
        node = nodes[number % len(nodes)]
        texts.setdefault(node, {})[f"p{place}"] = TEXTS[number % len(TEXTS)]
    for node, some in texts.items():
        first = min(some)
        some[f"over-{first}"] = f"p: [pattern = '{first}' AND detector = '{node}'] (p{{2}}) within 2 seconds"
        network.hosts[node].submit(SettlePatterns(some))
    network.settle()


def judged(network: CoreNetwork) -> Iterable[str]:
    """Yield what is wrong with the detections of the nodes, where no disk and no clock went back."""
    if network.forgot or network.problems:
        return
    for name, stood in network.stood.items():
        if stood and name not in network.lost and not network.clocks[name].error:
            history = network.disks[name].history
            yield from check_patterns(name, (history[position] for position in sorted(history)), stood)
    yield from _silent(network)


def _silent(network: CoreNetwork) -> Iterable[str]:
    """Yield the subscriptions to patterns whose detector is gone, although its node has not failed for good."""
    hosts = [host for name, host in network.hosts.items() if name not in network.lost]
    there = {host.core.patterns.users.filter_of(one) for host in hosts for one in host.core.patterns.known.values()}
    lost = [parse(f"detector = '{name}'") for name in network.lost]
    for client in network.clients.values():
        for id, filter in client.detectors.items():
            if filter not in there and not any(one.covers(filter) for one in lost):
                yield f"{client.name} subscribes to {filter} as {id}, and no such pattern stands"
