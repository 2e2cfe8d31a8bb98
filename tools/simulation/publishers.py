"""The policies for moving publishers, compared: `python -m tools.simulation.publishers`.

A publisher goes to and fro between the leaves of a tree of durable nodes, announces each move, and publishes at once on
arrival. Counted are the filters that nodes send each other for a move, before and after the arrival, and the time from
the arrival until all subscribers have the event.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from statistics import mean
from typing import NamedTuple

from fieldfare.events.event import Event
from fieldfare.filters import EVERYTHING, parse
from fieldfare.protocol import messages as m
from fieldfare.routing.publisher_policies import POLICIES
from fieldfare.routing.strategies import by_name
from fieldfare.simulation.checker import check_durable
from fieldfare.simulation.core_network import CoreNetwork, Options
from fieldfare.simulation.topologies import balanced_tree
from fieldfare.simulation.trace import Delivered

MOVES = 12


class Cost(NamedTuple):
    """Averages for a move."""

    filters_before: float
    filters_after: float
    delay: float
    violations: int


def cost(policy: str, moves: int = MOVES) -> Cost:
    """Return the cost of a move with a policy; every inner node has a subscriber for each tenth of the values."""
    topology = balanced_tree(2, 3)
    leaves = list(topology.brokers)[-4::3]  # two leaves, whose way leads over the parents of both
    strategy = by_name("covering+ads")
    options = Options(strategy, publishers=POLICIES[policy], proxies=tuple(leaves[1:]))
    network = CoreNetwork(topology, options, seed=1, detailed=True)
    publisher = network.add_client("publisher", leaves[0])
    subscribers = [network.add_client(f"subscriber {node}", node) for node in list(topology.brokers)[:7]]
    network.settle()
    publisher.change(m.Advertise("all", parse("x BETWEEN 0 AND 99")))
    for client in subscribers:
        for number in range(10):
            client.change(m.Subscribe(str(number), parse(f"x BETWEEN {10 * number} AND {10 * number + 9}")))
        client.change(m.Subscribe("all", EVERYTHING))
    network.settle()

    def filters() -> int:
        return sum(one.added + one.removed for one in network.traffic.values())

    before, after, delays = [], [], []
    for number in range(1, moves + 1):
        start, target = filters(), leaves[number % 2]
        publisher.leave_for(target)
        network.clock.run(network.clock.now + 1.0)
        before.append(filters() - start)
        start, arrival, place = filters(), network.clock.now, len(network.trace)
        publisher.attach(target)
        publisher.publish([Event({"x": number})])
        network.clock.run(network.clock.now + 2.0)
        delays.append(max(one.time for one in network.trace[place:] if isinstance(one, Delivered)) - arrival)
        after.append(filters() - start)
    network.settle()
    found = len(check_durable(network.trace, advertisements=True)) + len(network.problems)
    return Cost(mean(before), mean(after), mean(delays), found)


def main(arguments: Sequence[str]) -> int:
    """Print a line for each policy."""
    moves = int(arguments[0]) if arguments else MOVES
    print("policy            filters before  after  seconds until all have the event  violations")
    for policy in POLICIES:
        one = cost(policy, moves)
        print(f"{policy:<18}{one.filters_before:>14.1f}{one.filters_after:>7.1f}{one.delay:>34.3f}{one.violations:>12}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
