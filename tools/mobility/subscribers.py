"""Random runs with subscribers that move, from a seed; `python -m tools.mobility.subscribers 5000` makes many."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, Final, NamedTuple

from fieldfare.mobility.broker import MobileBroker
from fieldfare.mobility.path_update import CoveredUpdate, PathUpdate
from fieldfare.mobility.ping_pong import PingPong
from fieldfare.mobility.publishers import Publishers
from fieldfare.mobility.rendezvous_handover import RendezvousUpdate
from fieldfare.mobility.subscribers import Subscribers
from fieldfare.protocol.messages import Message
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import STRATEGIES, Strategy
from fieldfare.simulation import trace as records
from fieldfare.simulation.checker import Violation, check
from fieldfare.simulation.links import Wire, exponential
from fieldfare.simulation.mobile_clients import Roamer, ways
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import random_tree

FILTERS: Final = ["TRUE", "a < 5", "a > 3", "a = 4", "a > 2 AND b < 3", "b = 1 OR a = 1", "a BETWEEN 2 AND 6"]
TREES: Final = ("flooding", "simple", "identity", "covering", "covering+ads", "merging", "imperfect", "book-merging",
                "simple+ads", "merging+ads")  # fmt: skip
COUNTED: Final = ("runs", "moves", "events", "deliveries", "violations")
HIERARCHIES: Final = ("simple", "covering", "merging", "imperfect")


class Protocol(NamedTuple):
    """How subscribers move, and where that is meant for."""

    make: Callable[[], Subscribers]
    strategies: tuple[str, ...] = TREES
    rendezvous: bool = False
    complete: bool = False
    """only for complete topologies: one moves at a time, and direct messages are slow"""
    publishing: bool = False
    """whoever moves publishes, too"""


PROTOCOLS: Final = {
    "ping/pong": Protocol(lambda: PingPong(every=0.5)),
    "ping/pong, RP": Protocol(lambda: PingPong(every=0.5), HIERARCHIES, rendezvous=True),
    "update": Protocol(PathUpdate),
    "update, flooded": Protocol(lambda: PathUpdate(addressed=False, again=3.0)),
    "all move": Protocol(PathUpdate, ("covering+ads", "simple+ads", "merging+ads"), publishing=True),
    "update, RP": Protocol(RendezvousUpdate, HIERARCHIES, rendezvous=True),
    "complete": Protocol(CoveredUpdate, complete=True),
    "complete, RP": Protocol(lambda: RendezvousUpdate(complete=True), HIERARCHIES, rendezvous=True, complete=True),
}


class Run:
    """A network with three clients that move and three publishers that do not."""

    def __init__(self, seed: int, protocol: Protocol, strategy: Strategy, *, slow: float | None = None) -> None:
        self.dice = dice = Random(seed)
        self.strategy = strategy
        self.publishing = protocol.publishing
        tree = random_tree(dice.randint(2, 7), seed)
        topology = tree.hierarchical(dice.choice(tree.brokers)) if protocol.rendezvous else tree
        # Few wishes and favourite places, so that often somebody comes where another one has just come with the same.
        self.filters = dice.sample(FILTERS, dice.choice([1, 2, 7]))
        self.brokers = list(tree.brokers) + [dice.choice(tree.brokers)] * dice.choice([0, 3, 9])
        way, near = ways(tree), exponential(dice.choice([0.05, 0.3]))
        if slow is None:
            slow = 100.0 if protocol.complete else dice.choice([0.0, 0.1, 2.0])
        far = Wire(lambda random: slow + random.expovariate(5.0))
        neighbours = tree.neighbours()
        self.network: Network[Any] = Network(
            lambda name: MobileBroker(
                Broker(name, strategy), protocol.make(), *([Publishers()] if protocol.publishing else []),
                next_hop=way(name),
            ),
            topology, seed=seed, mesh=True, lazy=True, on_message=self._hear,
            links=lambda a, b: Wire(near) if b in neighbours[a] else far,
        )  # fmt: skip
        self.moved = 0
        self.roamers = {name: Roamer(self.network, name) for name in ("x", "y", "z")}
        self.publishers = ("p", "q", "r")
        for publisher in self.publishers:
            self.network.attach(publisher, dice.choice(self.brokers))
            for number in range(2):
                self.network.advertise(publisher, f"{number}", dice.choice(self.filters))
        for roamer in self.roamers.values():
            roamer.arrive(dice.choice(self.brokers))
            if self.publishing:
                roamer.advertise("all", "TRUE")
            for number in range(dice.randint(1, 2)):
                roamer.subscribe(f"{number}", dice.choice(self.filters))
        self.network.drain()

    def _hear(self, client: str, message: Message) -> None:
        if client in self.roamers and self.dice.random() < 0.7:
            self.roamers[client].receive(message)

    def publish(self) -> None:
        """Somebody publishes something."""
        moving = [name for name, roamer in self.roamers.items() if self.publishing and roamer.here is not None]
        self.network.publish(
            self.dice.choice([*self.publishers, *moving]), {"a": self.dice.randrange(8), "b": self.dice.randrange(5)}
        )

    def ask(self) -> None:
        """Somebody wants something else."""
        dice = self.dice
        roamer = dice.choice([*self.roamers.values(), None])
        id = dice.choice("012")
        if roamer is None:
            self.network.subscribe(dice.choice(self.publishers), id, dice.choice(self.filters))
        elif roamer.here is not None and (id not in roamer.subscriptions or dice.random() < 0.5):
            roamer.subscribe(id, dice.choice(self.filters))
        elif roamer.here is not None:
            roamer.unsubscribe(id)

    def promise(self) -> None:
        """Somebody promises something else; the first promises visit."""
        self.network.advertise(
            self.dice.choice(self.publishers), self.dice.choice("xy"), self.dice.choice(self.filters)
        )

    def move(self) -> None:
        """Somebody goes, comes, or both at once."""
        dice = self.dice
        roamer = dice.choice(list(self.roamers.values()))
        self.moved += 1
        if roamer.here is None or dice.random() < 0.4:
            roamer.arrive(dice.choice(self.brokers))
        else:
            roamer.depart(dice.choice(["", "", *self.brokers]))

    def come_back(self) -> None:
        """All who are away come somewhere."""
        for roamer in self.roamers.values():
            if roamer.here is None:
                roamer.arrive(self.dice.choice(self.brokers))
        self.network.drain()


def roam(seed: int, protocol: Protocol, strategy: Strategy, *, rounds: int = 2, **options: Any) -> Run:
    """A run; where the topology has to be complete, one move after the other, else all at once."""
    run = Run(seed, protocol, strategy, **options)
    dice, at = run.dice, run.network.at
    for _ in range(rounds):
        start = run.network.now
        if protocol.complete:
            for _ in range(4):
                for _ in range(6):
                    at(run.network.now + dice.uniform(0, 4), run.publish)
                at(run.network.now + dice.uniform(0, 4), run.move)
                run.network.drain()
        else:
            spread = dice.choice([2.0, 8.0])
            for action, times in ((run.publish, 20), (run.move, dice.randint(2, 8)), (run.ask, 3), (run.promise, 1)):
                for _ in range(times):
                    at(start + dice.uniform(0, spread), action)
            run.network.drain()
        run.come_back()
        if protocol.complete:
            run.ask()
            run.network.drain()
    return run


def judge(run: Run) -> list[Violation]:
    """What is wrong with it. Events of publishers that move wait at their brokers, so nobody gets them at once."""
    found = check(run.network.trace, advertisements=run.strategy.advertisements is not None, order="fifo")
    found = [violation for violation in found if not (run.publishing and violation.rule == "local liveness")]
    return found + list(left_behind(run))


def left_behind(run: Run) -> Iterator[Violation]:
    """In the end each session is where its client is, whole, and no other broker knows of it."""
    for name, broker in run.network.brokers.items():
        part = broker.base.parts[0]
        for client, roamer in run.roamers.items():
            visits = [visit.session is not None for visit in part.visits.get(client, {}).values()]
            known = broker.base.broker.clients.all.get(client)
            asks = known is not None and bool(known.subscriptions)
            if visits != [True] * (roamer.here == name) or (asks and roamer.here != name):
                yield Violation("left behind", len(run.network.trace), f"{client} at {name}: {visits}, asks: {asks}")


def main(count: int, first: int = 0) -> int:
    """Many runs; says what was wrong."""
    bad = 0
    for name, protocol in PROTOCOLS.items():
        totals: Counter[str] = Counter()
        for seed in range(first, first + count // len(PROTOCOLS)):
            strategy = protocol.strategies[seed % len(protocol.strategies)]
            run = roam(seed, protocol, STRATEGIES[strategy])
            violations = judge(run)
            totals += Counter(runs=1, moves=run.moved, violations=len(violations))
            totals["events"] += sum(isinstance(record, records.Published) for record in run.network.trace)
            totals["deliveries"] += sum(isinstance(record, records.Delivered) for record in run.network.trace)
            if violations:
                sys.stdout.write(f"{name}, {strategy}, seed {seed}: {violations[0]}\n")
        bad += totals["violations"]
        sys.stdout.write(f"{name:16} {', '.join(f'{totals[key]} {key}' for key in COUNTED)}\n")
        sys.stdout.flush()
    return bad


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 700) > 0)
