"""Patterns that stand in simulated nodes from the beginning, and the judgement of their detections at the end."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from fieldfare.core.pattern_inputs import SettlePatterns
from fieldfare.simulation import trace as records
from fieldfare.simulation.checker.pattern_checks import Standing, check_patterns

if TYPE_CHECKING:
    from fieldfare.simulation.core_network import CoreNetwork

TEXTS: Final = (
    "a: [x = 1] b: [x = 2] (a followed by b) within 2 seconds select b.x as x, a.y as y",
    "a: [x >= 1] (a{2}) within 1 second for each y select y as y",
    "a: [x = 2] b: [x = 1] a followed by not b within 50 ms limit 5 select a.x as x, a.y as y",
    "a: [x = 0] b: [y >= 1] (a followed by b) within 1 second after match past last event select b.y as y",
    "a: [x >= 2] b: [y < 2] (a and b) within 1 second",
    "a: [x >= 1] b: [x < 3] a followed by b limit 3 select b.x as x",
)


def stand(network: CoreNetwork, numbers: Sequence[int], *, advertised: bool) -> None:
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
    for node in texts if advertised else ():
        patterns = network.hosts[node].core.patterns
        for one in patterns.known.values():
            filter = patterns.users.filter_of(one)
            network.record(records.Advertised, node, one.publisher, one.key, filter)


def judged(network: CoreNetwork) -> Iterable[str]:
    """Yield what is wrong with the detections of the nodes, where no disk and no clock went back."""
    if network.forgot or network.problems:
        return
    for name, host in network.hosts.items():
        clock = network.clocks[name]
        known = host.core.patterns.known.values()
        if name in network.lost or clock.error or not known:
            continue
        standing = [Standing(one.key, one.text, one.born, hosts=one.hosts) for one in known]
        history = network.disks[name].history
        yield from check_patterns(name, (history[position] for position in sorted(history)), standing)
