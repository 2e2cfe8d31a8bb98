"""Random runs of simulated networks, every strategy in turn, as long as one likes: `make soak`.

The checker judges each run: safety, liveness at rest, order of each publisher, causal order where it is promised. What
it finds is printed with its seed, and can be run again by `violations(strategy, shape, seed)`.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import FLOODING, SOURCES, STRATEGIES, Strategy, cyclic
from fieldfare.simulation import checker
from fieldfare.simulation.checker import Violation
from fieldfare.simulation.topologies import Topology, barabasi_albert, random_tree
from tools.simulation.runs import random_run

SHAPES = ("peer", "hierarchical")
CYCLIC = [FLOODING, SOURCES, *(cyclic(one) for one in STRATEGIES.values() if one.prefix is None)]


def violations(strategy: Strategy, shape: str, seed: int, **options: Any) -> list[Violation]:
    """What is wrong with a run."""
    lives = itertools.count(1)

    def make(name: str) -> Broker:
        return Broker(name, strategy, life=next(lives), remember=1000.0)

    def restore(name: str, snapshot: bytes) -> Broker:
        broker = make(name)
        broker.restore(snapshot)
        return broker

    made: list[Topology] = []

    def topology(brokers: int, seed: int) -> Topology:
        if shape == "graph":
            made.append(barabasi_albert(brokers + 2, 2, seed))
        else:
            tree = random_tree(brokers, seed)
            made.append(tree if shape == "peer" else tree.hierarchical())
        return made[0]

    network = random_run(seed, make, restore=restore, topology=topology, **{"crashes": True, **options})
    order = checker.promised(strategy, made[0], network.trace)
    return checker.check(network.trace, advertisements=strategy.advertisements is not None, order=order)


def cases() -> Iterator[tuple[Strategy, str]]:
    """All strategies in all shapes, for ever."""
    trees = [(strategy, shape) for strategy in STRATEGIES.values() for shape in SHAPES]
    return itertools.cycle([*trees, *((strategy, "graph") for strategy in CYCLIC)])


def main(minutes: float) -> int:
    """Run for so long; gives the number of runs with violations."""
    runs: Counter[str] = Counter()
    bad = 0
    end = time.monotonic() + 60 * minutes
    for number, (strategy, shape) in enumerate(cases()):
        if time.monotonic() > end:
            break
        name = f"{strategy.name}, {shape}"
        found = violations(strategy, shape, number)
        runs[name] += 1
        if found:
            bad += 1
            sys.stdout.write(f"{name}, seed {number}: {found[0]}\n")
    for name, count in sorted(runs.items()):
        sys.stdout.write(f"{count:6} runs  {name}\n")
    sys.stdout.write(f"{runs.total()} runs, {bad} with violations\n")
    return bad


if __name__ == "__main__":
    sys.exit(main(float(sys.argv[1]) if len(sys.argv) > 1 else 5) > 0)
