"""Random runs of small networks whose publishers move all the time; `python -m tools.mobility.publishers 2000`."""

from __future__ import annotations

import sys
from collections import Counter
from random import Random
from typing import Any, NamedTuple

from fieldfare.filters import parse
from fieldfare.mobility.broker import MobileBroker
from fieldfare.mobility.messages import MoveIn, MoveOut
from fieldfare.mobility.path_update import PathUpdate
from fieldfare.mobility.predictors import LastDirection, street
from fieldfare.mobility.publishers import Publishers
from fieldfare.protocol.messages import FilterUpdate, Forward, Message
from fieldfare.routing.broker import Broker
from fieldfare.routing.publisher_policies import POLICIES, SAFE, PublisherPolicy
from fieldfare.routing.strategies import COVERING, IDENTITY, IMPERFECT, MERGING, SIMPLE, Strategy, with_advertisements
from fieldfare.simulation import checker
from fieldfare.simulation.host import Seconds
from fieldfare.simulation.links import Wire, exponential
from fieldfare.simulation.mobile_clients import Roamer, ways
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import random_tree
from fieldfare.simulation.trace import Delivered, Published, Trace

STRATEGIES = [with_advertisements(one) for one in (COVERING, COVERING, SIMPLE, IDENTITY, MERGING, IMPERFECT)]
FILTERS = ["TRUE", "a < 5", "a > 3", "a = 4", "a > 2 AND b < 3", "b = 1 OR a = 1", "a BETWEEN 2 AND 6"]
PROMISES = ["TRUE", "a < 6", "a > 1", "a > 1 AND b < 4"]


class Verdict(NamedTuple):
    """What the checker says of a run, and how much happened."""

    safety: int
    fifo: int
    lost: int
    published: int
    delivered: int
    moves: int


def run(
    seed: int, policy: PublisherPolicy = SAFE, strategy: Strategy | None = None, *, forgetful: bool = False
) -> tuple[Network[Any], int]:
    """Subscribers visit; publishers publish all the time and move: at ease or fast, with a goodbye or without.

    Who is forgetful does not know where it comes from, or says something wrong.
    """
    dice = Random(seed)
    strategy = strategy or dice.choice(STRATEGIES)
    topology = random_tree(dice.randint(2, 9), seed)
    way, brokers = ways(topology), list(topology.brokers)
    publishers = [f"p{number}" for number in range(dice.randint(1, 4))]
    homes = {client: dice.sample(brokers, min(3, len(brokers))) for client in publishers}
    busy: dict[type[Message], Seconds] = {FilterUpdate: 0.05, Forward: 0.01, MoveIn: 0.2}
    cost = busy if dice.random() < 0.5 else None

    def machine(name: str) -> MobileBroker:
        part = Publishers(
            policy, predictor=LastDirection(street(brokers)), proxies=lambda client: homes[client], patience=1e6
        )
        return MobileBroker(Broker(name, strategy, remember=1e6), part, next_hop=way(name))

    wire = Wire(dice.choice([0.01, exponential(0.3), exponential(2.0)]))
    network = Network(machine, topology, links=wire, processing=cost, seed=seed)
    network.drain()
    for number in range(dice.randint(1, 6)):
        network.attach(f"s{number}", dice.choice(brokers))
        network.subscribe(f"s{number}", "x", dice.choice(FILTERS))
        network.subscribe(f"s{number}", "y", dice.choice(FILTERS))
    promises = {client: dice.choice(PROMISES) for client in publishers}
    at, moves = {}, dict.fromkeys(publishers, 0)
    for client in publishers:
        at[client] = dice.choice(brokers)
        network.attach(client, at[client])
        network.advertise(client, "all", promises[client])
    network.drain()

    def come(client: str, target: str) -> None:
        source, at[client] = at[client], target
        moves[client] += 1
        network.attach(client, target)
        if forgetful:
            source = dice.choice(["", "", *brokers])
        promised = {"all": parse(promises[client])}
        network.send(client, MoveIn(source, advertisements=promised, moves=moves[client]))

    def publish(client: str) -> None:
        a, b = dice.randint(2, 5), dice.randrange(4)
        network.publish(client, {"a": a, "b": b})

    for client in publishers:
        time, pace = network.now, dice.choice([0.1, 1.0, 5.0])
        for _ in range(dice.randint(2, 8)):
            for _ in range(dice.randrange(5)):
                time += dice.random() * pace
                network.at(time, publish, client)
            target = dice.choice(brokers)
            if dice.random() < 0.8:
                hint = dice.choice(["", target, dice.choice(brokers)])
                network.at(time, network.send, client, MoveOut(hint))
                time += dice.random() * pace
            network.at(time, come, client, target)
        network.at(time + pace, publish, client)
    network.drain()
    network.run(network.now + 1e5)
    network.drain()
    return network, sum(moves.values())


def together(seed: int) -> tuple[Network[Any], int]:
    """Publishers and subscribers move, all at the same time."""
    dice = Random(seed)
    strategy, topology = dice.choice(STRATEGIES), random_tree(dice.randint(2, 7), seed)
    way, brokers, neighbours = ways(topology), list(topology.brokers), topology.neighbours()
    near, far = Wire(exponential(dice.choice([0.05, 0.3, 2.0]))), Wire(exponential(dice.choice([0.05, 2.0])))
    network: Network[Any] = Network(
        lambda name: MobileBroker(
            Broker(name, strategy, remember=1e6), PathUpdate(), Publishers(patience=1e6), next_hop=way(name)
        ),
        topology, seed=seed, mesh=True, lazy=True, links=lambda a, b: near if b in neighbours[a] else far,
    )  # fmt: skip
    network.drain()
    roamers = [Roamer(network, name) for name in ("x", "y", "z")]
    for roamer in roamers:
        roamer.arrive(dice.choice(brokers))
        roamer.subscribe("x", dice.choice(FILTERS))
    promise, own = parse(dice.choice(PROMISES)), parse(dice.choice(FILTERS))
    places: dict[str, str] = {}
    moves: Counter[str] = Counter()

    def move(name: str, target: str) -> None:
        """A publisher moves, which wants something, too."""
        said = MoveIn(
            places[name], {"own": own}, {"all": promise}, received=network.taken.get(name, 0), moves=moves[name] + 1
        )
        places[name] = target
        moves[name] += 1
        network.move(name, target, said)

    for name in ("p", "q"):
        places[name] = dice.choice(brokers)
        network.move(name, places[name], MoveIn())
        network.advertise(name, "all", promise)
        network.subscribe(name, "own", own)
    network.drain()

    start, spread = network.now, dice.choice([1.0, 5.0, 20.0])
    for _ in range(dice.randint(1, 8)):
        network.at(start + dice.uniform(0, spread), move, dice.choice("pq"), dice.choice(brokers))
        network.at(start + dice.uniform(0, spread), dice.choice(roamers).arrive, dice.choice(brokers))
    for _ in range(25):
        event = {"a": dice.randint(2, 5), "b": dice.randrange(4)}
        network.at(start + dice.uniform(0, spread), network.publish, dice.choice("pq"), event)
    network.drain()
    return network, moves.total() + sum(roamer.moves for roamer in roamers)


def disorder(trace: Trace) -> int:
    """How many deliveries come after a later event of the same publisher, by its own count.

    The checker's order is that in which brokers took the events. A publisher that leaves a busy broker is ahead of it.
    """
    latest: dict[tuple[str, str], int] = {}
    found = 0
    for record in trace:
        if isinstance(record, Delivered):
            pair = record.client, record.publisher
            found += record.sequence < latest.get(pair, 0)
            latest[pair] = max(record.sequence, latest.get(pair, 0))
    return found


def judged(network: Network[Any], moves: int) -> Verdict:
    """What the checker says."""
    trace = network.trace
    return Verdict(
        len(checker.safety(trace, advertisements=True)) + len(checker.attribution(trace)),
        disorder(trace),
        len(checker.liveness(trace, advertisements=True)),
        sum(isinstance(record, Published) for record in trace),
        sum(isinstance(record, Delivered) for record in trace),
        moves,
    )


def main(count: int) -> None:
    """Print counts for each policy, SAFE in many runs and the others in some."""
    for policy, forgetful in [*((policy, False) for policy in POLICIES.values()), (SAFE, True)]:
        total: Counter[str] = Counter()
        runs = count if policy is SAFE else count // 10
        for seed in range(runs):
            total.update(judged(*run(seed, policy, forgetful=forgetful))._asdict())
        name = f"{policy.name}{', forgetful' * forgetful}"
        counts = ", ".join(f"{what} {number}" for what, number in total.items())
        sys.stdout.write(f"{name:17} {runs} runs: {counts}\n")
    total = Counter()
    for seed in range(count):
        total.update(judged(*together(seed))._asdict())
    counts = ", ".join(f"{what} {number}" for what, number in total.items())
    sys.stdout.write(f"with subscribers  {count} runs: {counts}\n")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
