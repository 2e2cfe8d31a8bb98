"""Random runs with relocation, from a seed. `python -m tools.mobility.relocation 2000` makes many of them."""

from __future__ import annotations

import sys
from collections import Counter
from random import Random
from typing import Any, Final

from fieldfare.mobility.broker import MobileBroker
from fieldfare.mobility.messages import MoveIn
from fieldfare.mobility.relocation import Relocation
from fieldfare.protocol.messages import Forward, Message
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import STRATEGIES, Strategy
from fieldfare.simulation import trace as records
from fieldfare.simulation.checker import Violation, check
from fieldfare.simulation.links import Wire, exponential
from fieldfare.simulation.mobile_clients import Roamer, ways
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology, random_tree

FILTERS: Final = ["TRUE", "a < 5", "a > 3", "a = 4", "a > 2 AND b < 3", "b = 1 OR a = 1", "a BETWEEN 2 AND 6"]
NAMES: Final = ("simple", "simple+ads", "covering", "covering+ads", "merging", "merging+ads", "flooding")


def network(
    topology: Topology, strategy: Strategy, seed: int = 0, *, links: Any = None, **options: Any
) -> Network[Any]:
    """Brokers that know of relocation."""
    way = ways(topology)
    on_message, processing = options.pop("on_message", None), options.pop("processing", None)

    def make(name: str) -> MobileBroker:
        return MobileBroker(Broker(name, strategy), Relocation(**options), next_hop=way(name))

    return Network(make, topology, seed=seed, on_message=on_message, links=links or Wire(0.1), processing=processing)


def part(network: Network[Any], broker: str) -> Relocation:
    """The part of a broker."""
    found = network.brokers[broker].base.parts[0]
    assert isinstance(found, Relocation)
    return found


class Run:
    """A network with three clients that move and three publishers that do not, and want something, too."""

    def __init__(self, seed: int, strategy: Strategy) -> None:
        self.dice = dice = Random(seed)
        self.strategy = strategy
        tree = random_tree(dice.randint(2, 7), seed)
        self.brokers = list(tree.brokers)
        links = Wire(exponential(dice.choice([0.05, 0.5, 2.0])))
        self.busy = dice.random() < 0.3
        """so that a client may be gone again before its broker has heard of it"""
        costs = {MoveIn: dice.uniform(0.1, 2.0), Forward: dice.uniform(0.0, 0.1)} if self.busy else None
        self.network = network(tree, strategy, seed, links=links, on_message=self._hear, processing=costs)
        self.moved = 0
        self.roamers = {name: Roamer(self.network, name) for name in ("x", "y", "z")}
        self.publishers = ("p", "q", "r")
        for publisher in self.publishers:
            self.network.attach(publisher, dice.choice(self.brokers))
            for number in range(2):
                self.network.advertise(publisher, f"{number}", dice.choice(FILTERS))
        for roamer in self.roamers.values():
            roamer.arrive(dice.choice(self.brokers))
            for number in range(dice.randint(1, 2)):
                roamer.subscribe(f"{number}", dice.choice(FILTERS))
        if dice.random() < 0.7:
            self.network.drain()

    def _hear(self, client: str, message: Message) -> None:
        if client in self.roamers and self.dice.random() < 0.7:
            self.roamers[client].receive(message)

    def publish(self) -> None:
        self.network.publish(
            self.dice.choice(self.publishers), {"a": self.dice.randrange(8), "b": self.dice.randrange(5)}
        )

    def ask(self) -> None:
        """Somebody wants something else."""
        dice = self.dice
        if self.busy:
            return  # what is said to two brokers may be heard in another order than it was said
        roamer = dice.choice([*self.roamers.values(), None])
        id = dice.choice("012")
        if roamer is None:
            self.network.subscribe(dice.choice(self.publishers), id, dice.choice(FILTERS))
        elif roamer.here is not None and (id not in roamer.subscriptions or dice.random() < 0.5):
            roamer.subscribe(id, dice.choice(FILTERS))
        elif roamer.here is not None:
            roamer.unsubscribe(id)

    def promise(self) -> None:
        """Somebody promises something else, or no more; the first promises visit."""
        publisher, id = self.dice.choice(self.publishers), self.dice.choice("xy")
        if self.dice.random() < 0.5:
            self.network.advertise(publisher, id, self.dice.choice(FILTERS))
        else:
            self.network.unadvertise(publisher, id)

    def move(self) -> None:
        """Somebody goes, comes, or both at once."""
        roamer = self.dice.choice(list(self.roamers.values()))
        self.moved += 1
        if roamer.here is None or self.dice.random() < 0.6:
            roamer.arrive(self.dice.choice(self.brokers))
        else:
            roamer.depart()

    def come_back(self) -> None:
        """All who are away come somewhere."""
        for roamer in self.roamers.values():
            if roamer.here is None:
                roamer.arrive(self.dice.choice(self.brokers))
        self.network.drain()

    def blocked(self) -> list[str]:
        """The visits that still wait for something, and those that nobody will ask for."""
        return [
            f"{broker}: {visit}"
            for broker in self.brokers
            for visits in part(self.network, broker).visits.values()
            for visit in visits.values()
            if visit.session is None or visit.successor is not None
        ]


def relocate(seed: int, strategy: Strategy, *, rounds: int = 2) -> Run:
    """A run, in which everything happens at once."""
    run = Run(seed, strategy)
    dice = run.dice
    for _ in range(rounds):
        start, spread = run.network.now, dice.choice([1.0, 4.0, 20.0])
        for action, times in ((run.publish, 25), (run.move, dice.randint(2, 12)), (run.ask, 3), (run.promise, 2)):
            for _ in range(times):
                run.network.at(start + dice.uniform(0, spread), action)
        run.network.drain()
        run.come_back()
    return run


def judge(run: Run) -> list[Violation]:
    """What is wrong with it."""
    found = check(run.network.trace, advertisements=run.strategy.advertisements is not None, order="fifo")
    return found + [Violation("blocked", len(run.network.trace), problem) for problem in run.blocked()]


def main(count: int, first: int = 0) -> int:
    """Many runs; says what was wrong."""
    bad = 0
    for place, name in enumerate(NAMES):
        totals: Counter[str] = Counter()
        for seed in range(first + place, first + count, len(NAMES)):
            run = relocate(seed, STRATEGIES[name])
            violations = judge(run)
            totals += Counter(runs=1, moves=run.moved, violations=len(violations))
            totals["events"] += sum(isinstance(record, records.Published) for record in run.network.trace)
            totals["deliveries"] += sum(isinstance(record, records.Delivered) for record in run.network.trace)
            if violations:
                print(f"{name}, seed {seed}: {violations[0]}")
        bad += totals["violations"]
        print(name, {key: totals[key] for key in ("runs", "moves", "events", "deliveries", "violations")}, flush=True)
    return bad


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:] or ["700"])) > 0)
