"""Random runs of networks that forward by tags: `python -m tools.prefix.networks [runs] [first seed]`.

Beside the checker, which judges what clients get, every broker is watched at every step: a tag must lead to all
interfaces that want the event by its content. What brokers say of trees is late, and some of it gets lost.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from math import inf
from random import Random
from typing import Any
from unittest.mock import patch

from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import ControlMessage, Forward, Message, Send
from fieldfare.routing.broker import Broker
from fieldfare.routing.prefix import messages
from fieldfare.routing.prefix.invariants import check
from fieldfare.routing.prefix.options import PrefixOptions
from fieldfare.routing.prefix.routes import PrefixRoutes
from fieldfare.routing.prefix.tagger import LARGE
from fieldfare.routing.prefix.tree import Term, TreeVersion
from fieldfare.routing.routes import LOCAL
from fieldfare.routing.strategies import PREFIX, Strategy, with_advertisements
from fieldfare.routing.table_routes import TableRoutes
from fieldfare.simulation import checker
from fieldfare.simulation.host import Cable, M
from fieldfare.simulation.links import Wire, exponential
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology, random_tree
from fieldfare.simulation.trace import Delivered, Published
from tools.prefix.samples import EVENTS, MIXED, UNSAID
from tools.samples import FILTERS as RANGES

FILTERS: tuple[Filter, ...] = (*RANGES, *MIXED, UNSAID)
MANY: tuple[Filter, ...] = tuple(parse(f"x = {n % 4} AND s > '{'ab' * (n // 4)}' AND y != {n}") for n in range(48))
"""so many that trees are large"""
ENDS = 400
"""seconds after which a network that is left alone must have come to rest, at most"""


@dataclass
class Tally:
    """What happened."""

    counts: Counter[str] = field(default_factory=Counter)
    terms: set[Term] = field(default_factory=set)
    versions: set[TreeVersion] = field(default_factory=set)
    problems: list[str] = field(default_factory=list)


class Watched(Broker):
    """A broker that is looked at after every step."""

    def __init__(self, name: str, strategy: Strategy, life: int, tally: Tally) -> None:
        super().__init__(name, strategy, life=life, remember=1000.0)
        self.tally = tally
        self.routes.read = self._read  # type: ignore[method-assign]

    @property
    def prefixed(self) -> PrefixRoutes:
        assert isinstance(self.routes, PrefixRoutes)
        return self.routes

    def _read(self, event: Forward, sender: str) -> set[str] | None:
        """By tag; and, to see that nobody is forgotten, by content."""
        routes, counts, tagged = self.prefixed, self.tally.counts, self.prefixed.by_tag
        found, matched = PrefixRoutes.read(routes, event, sender), self._index.match(event.event)
        wanted = TableRoutes.match(routes, event, sender, matched)
        wanted |= {LOCAL} if self.clients.recipients(matched) else set()
        read = wanted if found is None else found
        counts["by tag"] += routes.by_tag - tagged
        counts["by content"] += 1 - (routes.by_tag - tagged)
        counts["links and clients"] += len(read)
        counts["false positives"] += len(read - wanted)
        if not read >= wanted:
            self.tally.problems.append(f"{self.name}: {event.event} from {sender!r} does not go to {wanted - read}")
        return found

    def receive(self, message: Message, sender: str, now: float) -> list[Send]:
        sends = super().receive(message, sender, now)
        self._look()
        return sends

    def tick(self, now: float) -> list[Send]:
        sends = super().tick(now)
        self._look()
        return sends

    def _look(self) -> None:
        for member, seat in zip(self.prefixed.followers, self.prefixed.elections, strict=True):
            self.tally.terms.add(seat.term)
            self.tally.versions.add(member.placements.tree.version)
            self.tally.counts["nodes"] = max(self.tally.counts["nodes"], member.placements.tree.size)


class Whispering(Network[M]):
    """Nobody waits for what is said of trees, and some of it gets lost (but not who wants to hear what)."""

    def __init__(self, *given: Any, losing: float = 0.0, **options: Any) -> None:
        self.losing = losing
        self._dice = Random(options.get("seed", 0))
        super().__init__(*given, **options)

    def _transmit(self, link: Cable[M], message: Message) -> None:
        if not isinstance(message, ControlMessage):
            super()._transmit(link, message)
        elif not isinstance(message.content, Forward) or self._dice.random() >= self.losing:
            for time in link.arrivals(self.clock.now, 0):
                self.clock.schedule_background(time, self._arrive, link, message)


class Gossiping(Whispering[Watched]):
    """The same, and everybody is watched."""

    @property
    def living(self) -> list[Watched]:
        return [broker for name, broker in self.brokers.items() if self.is_up(name)]

    def in_charge(self, part: int = 0) -> list[str]:
        """Who thinks so."""
        return [broker.name for broker in self.living if broker.prefixed.elections[part].leading]

    def at_rest(self, options: PrefixOptions) -> bool:
        """Does one optimizer know what all want, and has everybody its tree?"""
        for part in range(options.parts):
            places = [broker.prefixed.followers[part].placements for broker in self.living]
            leaders = [
                broker.prefixed.elections[part] for broker in self.living if broker.prefixed.elections[part].leading
            ]
            if len(leaders) != 1 or leaders[0].optimizer is None or leaders[0].optimizer.due(inf):
                return False
            if any(one.loose or one.tree.version != leaders[0].optimizer.version for one in places):
                return False
        return True


def build(
    topology: Topology, options: PrefixOptions, *, advertisements: bool = False, tally: Tally | None = None, **more: Any
) -> Gossiping:
    """A network whose brokers forward by tags; brokers that are started again have other lives."""
    lives = count(1)
    tally = tally or Tally()
    strategy = replace(PREFIX, prefix=options)
    strategy = with_advertisements(strategy) if advertisements else strategy

    def make(name: str) -> Watched:
        return Watched(name, strategy, next(lives), tally)

    def restore(name: str, snapshot: bytes) -> Watched:
        broker = make(name)
        broker.restore(snapshot)
        return broker

    return Gossiping(make, topology, restore=restore, **{"links": Wire(exponential(0.05)), **more})


def come_to_rest(network: Gossiping, options: PrefixOptions, ends: float = ENDS) -> bool:
    """Let time pass until everybody has the same tree, and all that is wanted is in it."""
    end = network.now + ends
    while network.now < end:
        network.run(network.now + max(options.beat, options.patience / 4))
        network.drain()
        if network.at_rest(options):
            return True
    return False


def drawn_options(dice: Random, brokers: tuple[str, ...]) -> PrefixOptions:
    """Any settings; everything is fast, so that much happens while events are on their way."""
    beat = dice.choice([0.2, 0.2, 0.5, 1.0])
    return PrefixOptions(
        optimizers=tuple(dice.sample(brokers, dice.randint(1, len(brokers)))) if dice.random() < 0.3 else (),
        parts=dice.choice([1, 1, 2, 3]),
        depth=dice.choice([None, None, None, 0, 1, 2]),
        threshold=dice.choice([0.0, 0.1, 0.3, 0.8]),
        refresh=dice.choice([0.2, 1.0, 5.0]),
        layout=dice.choice(["alphabet", "popularity", "selectivity"]),
        beat=beat,
        patience=beat * dice.choice([1, 2, 4]),
        remember=dice.choice([0.0, 0.5, 60.0]),
        blind=dice.random() < 0.1,
    )


class Run:
    """A network to which things happen by chance."""

    def __init__(self, seed: int, tally: Tally) -> None:
        dice = self.dice = Random(seed)
        self.tally = tally
        self.advertisements = dice.random() < 0.15
        tree = random_tree(dice.randint(2, 7), seed)
        topology = tree.hierarchical() if dice.random() < 0.25 else tree
        self.options = drawn_options(dice, topology.brokers)
        latency = dice.choice([0.01, 0.1, 0.4])
        self.patient = self.options.patience >= 10 * latency
        """or does everybody want to be in charge for ever?"""
        self.network = build(
            topology,
            self.options,
            advertisements=self.advertisements,
            tally=tally,
            seed=seed,
            links=Wire(exponential(latency)),
            losing=dice.choice([0.0, 0.0, 0.1, 0.3]),
        )
        self.brokers = list(topology.brokers)
        self.clients = [f"c{number}" for number in range(dice.randint(3, 10))]
        self.filters = dice.sample(FILTERS, dice.choice([3, 10, len(FILTERS)]))
        self.ids = [f"s{number}" for number in range(dice.choice([2, 10]))]
        self.saved: dict[str, bytes] = {}
        for client in self.clients:
            self.network.attach(client, dice.choice(self.brokers))
            self.network.advertise(client, "all", "TRUE")
        for number, filter in enumerate(MANY if dice.random() < 0.25 else ()):
            self.network.subscribe(dice.choice(self.clients), f"m{number}", filter)

    def happen(self, steps: int) -> None:
        """Clients change their minds, links break, brokers crash, and events are published all the time."""
        dice, network = self.dice, self.network
        kinds: dict[Callable[[], object], float] = {
            self.subscribe: 10,
            self.unsubscribe: 4,
            lambda: network.leave(dice.choice(self.clients)): 1,
            lambda: network.partition(dice.sample(self.brokers, dice.randint(0, len(self.brokers)))): 1,
            network.heal: 2,
            lambda: self.crash(network.in_charge(dice.randrange(self.options.parts))): 1,
            lambda: self.crash([broker.name for broker in network.living]): 0.5,
            self.restart: 3,
        }
        time = network.now
        for _ in range(steps):
            time += dice.choice([0.0, 0.02, 0.1, 0.1, 0.5, 3.0])
            (kind,) = dice.choices(list(kinds), list(kinds.values()))
            network.at(time, kind)
            for _ in range(dice.randint(1, 4)):
                network.at(time + dice.random() * dice.choice([0.1, 1.0]), self.publish)
        network.drain()

    def subscribe(self) -> None:
        self.network.subscribe(
            self.dice.choice(self.clients), self.dice.choice(self.ids), self.dice.choice(self.filters)
        )

    def unsubscribe(self) -> None:
        self.network.unsubscribe(self.dice.choice(self.clients), self.dice.choice(self.ids))

    def publish(self) -> None:
        self.network.publish(self.dice.choice(self.clients), self.dice.choice(EVENTS))

    def crash(self, some: list[str]) -> None:
        if some:
            broker = self.dice.choice(some)
            self.tally.counts["crashes"] += 1
            self.tally.counts["crashes in charge"] += any(
                broker in self.network.in_charge(part) for part in range(self.options.parts)
            )
            self.saved[broker] = self.network.brokers[broker].snapshot()
            self.network.crash(broker)

    def restart(self) -> None:
        down = [name for name in self.brokers if not self.network.is_up(name)]
        if down:
            broker = self.dice.choice(down)
            self.network.restart(broker, self.saved[broker] if self.dice.random() < 0.6 else None)

    def mend(self) -> None:
        """All links and brokers are up again."""
        self.network.heal()
        while len(self.network.living) < len(self.brokers):
            self.restart()
        self.network.drain()

    def rest(self) -> None:
        """When nothing more happens all have one tree, and tags are exact unless they are cut short."""
        losing, self.network.losing = self.network.losing, 0.0
        if not self.patient:
            self.network.run(self.network.now + 10)
        elif come_to_rest(self.network, self.options):
            self.publish_at_rest()
        else:
            said = [f"{broker.name}: {broker.prefixed.status}" for broker in self.network.living]
            self.tally.problems.append("no rest\n  " + "\n  ".join(said))
        self.network.losing = losing

    def publish_at_rest(self) -> None:
        for broker in self.network.living:
            for member in broker.prefixed.followers:
                check(member.placements.tree)
        before = self.tally.counts["false positives"], self.by_content
        for client in self.clients:
            for event in self.dice.sample(EVENTS, 8):
                self.network.publish(client, event)
        self.network.drain()
        after = self.tally.counts["false positives"], self.by_content
        if self.options.depth is None and UNSAID not in self.filters and after != before:
            self.tally.problems.append(f"at rest there are false positives, or events are read: {before}, {after}")

    @property
    def by_content(self) -> int:
        return sum(broker.prefixed.by_content for broker in self.network.living)

    def judge(self) -> None:
        """Let the checker look at it all."""
        trace, counts = self.network.trace, self.tally.counts
        counts["events"] += sum(isinstance(record, Published) for record in trace)
        counts["deliveries"] += sum(isinstance(record, Delivered) for record in trace)
        found = checker.check(trace, advertisements=self.advertisements)
        self.tally.problems += [str(violation) for violation in found]


def run(seed: int, steps: int = 40) -> Tally:
    """What happens in one network."""
    tally = Tally()
    with patch.object(messages, "PIECE", Random(seed).choice([200, 2000, messages.PIECE])):
        one = Run(seed, tally)
        for _ in range(2):
            one.happen(steps)
            one.mend()
            one.rest()
    one.judge()
    return tally


def main(runs: int = 50, seed: int = 0) -> int:
    """Print what happened; 1 if something was wrong."""
    total: Counter[str] = Counter(runs=runs)
    for number in range(seed, seed + runs):
        tally = run(number)
        total["runs with the engine"] += tally.counts.pop("nodes") >= LARGE
        total += tally.counts
        total.update(
            {"terms": len(tally.terms), "tree updates": len(tally.versions), "violations": len(tally.problems)}
        )
        for problem in tally.problems[:3]:
            sys.stdout.write(f"seed {number}: {problem}\n")
    for name in sorted(total):
        sys.stdout.write(f"{total[name]:9} {name}\n")
    return int(total["violations"] > 0)


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
