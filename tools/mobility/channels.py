"""Random runs of domains with event channels: `python -m tools.mobility.channels 1000` prints what they came to."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from random import Random
from typing import Any, NamedTuple

from fieldfare.mobility.channels.access import AccessServer
from fieldfare.mobility.channels.causal import CausalMember
from fieldfare.mobility.channels.domain import Domain
from fieldfare.mobility.channels.federation import Gateway, MulticastMember
from fieldfare.mobility.channels.messages import (
    Attach,
    BalanceLoad,
    MoveClients,
    MoveRequest,
    RelocateChannel,
    SessionMoved,
)
from fieldfare.mobility.channels.resolution import ResolutionServer
from fieldfare.mobility.channels.session_requests import member_of
from fieldfare.mobility.messages import Acknowledge, MoveOut
from fieldfare.protocol.messages import Deliver, Message
from fieldfare.simulation import checker
from fieldfare.simulation.checker import Violation
from fieldfare.simulation.links import PLAIN, Wire, exponential
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Edge, Topology
from fieldfare.simulation.trace import Arrived, Delivered, Record, Trace
from fieldfare.tables.merging.rules import Merging

FILTERS = [
    "TRUE",
    "TRUE",
    "type = 'news' AND a < 5",
    "type = 'news' AND a > 3",
    "type = 'stock' AND a = 4",
    "type = 'stock' OR b = 1",
    "a > 2 AND b < 3",
    "type = 'other' AND a BETWEEN 2 AND 6",
    "b = 2",
]
TYPES = ["news", "stock", "other"]


class World(NamedTuple):
    network: Network[Any]
    servers: tuple[str, ...]
    access: tuple[str, ...]


def world(
    domain: Domain,
    access: int = 3,
    *,
    links: Wire = PLAIN,
    seed: int = 0,
    on_message: Callable[[str, Message], object] | None = None,
    others: tuple[Domain, ...] = (),
    backbone: Domain | None = None,
) -> World:
    """A domain with access servers a0, a1 and so on; those of other domains are called after them.

    With a backbone, there is a gateway in each. In one that has no servers, gateways tell each other what they want:
    all others, or, if it is called a tree, the one before and the one after.
    """
    all_domains = (domain, *others)
    domains = {f"{one.name}a{i}": one for one in all_domains for i in range(access)}
    gateways = {f"{one.name}gate": one for one in all_domains} if backbone is not None else {}
    servers = tuple(server for one in all_domains for server in one.servers)
    beyond = () if backbone is None else backbone.servers

    def make(name: str) -> AccessServer | ResolutionServer | Gateway:
        if name in domains:
            own = domains[name]
            return AccessServer(name, [own, *(one for one in all_domains if one is not own)])
        if name in gateways:
            assert backbone is not None
            inner = member_of(name, gateways[name])
            if backbone.servers:
                return Gateway(inner, CausalMember(name, backbone))
            if backbone.name != "tree":
                return Gateway(inner, MulticastMember(name, backbone, gateways))
            edges = [edge for edge in pairwise(gateways) if name in edge]
            return Gateway(inner, *(MulticastMember(name, replace(backbone, name=str(edge)), edge) for edge in edges))
        return ResolutionServer(name, next(one for one in (*all_domains, backbone) if one and name in one.servers))

    names = (*domains, *servers, *gateways, *beyond)
    edges = tuple(Edge(names[0], name) for name in names[1:])
    network = Network(make, Topology(names, edges), links=links, seed=seed, on_message=on_message, mesh=True)
    for name in names:
        network.attach(f"operator of {name}", name)
    network.drain()
    return World(network, servers, tuple(domains))


class Run:
    """Clients subscribe, publish, answer, leave and move; channels are relocated; access servers send clients away."""

    def __init__(
        self, seed: int, domain: Domain, others: tuple[Domain, ...] = (), backbone: Domain | None = None
    ) -> None:
        self.dice = dice = Random(seed)
        self.domain = domain
        self.domains = (domain, *others)
        links = Wire(exponential(dice.choice([0.05, 0.3, 2.0])))
        access = dice.randint(1, 2 if others else 4)
        made = world(
            domain, access, links=links, seed=seed, on_message=self.on_message, others=others, backbone=backbone
        )
        self.network, self.servers, self.access = made
        self.unacknowledged: Counter[str] = Counter()
        self.moves: Counter[str] = Counter()
        self.last: dict[str, str] = {}
        self.chatty = dice.choice([0.1, 0.6])
        self.pauses = dice.choice([[0.0, 0.05, 0.3, 5.0, 30.0], [0.0, 0.05, 0.3, 1.0]])
        homes = (domain, *others) if backbone is not None else (domain,)
        self.homes = {f"c{number}": dice.choice(homes).name for number in range(5)}
        self.clients = list(self.homes)
        for client in self.clients:
            self.move(client, dice.choice(self.access))
            self.network.advertise(client, "first", dice.choice(["TRUE", "TRUE", *FILTERS]))
            self.network.subscribe(client, "first", dice.choice(FILTERS))

    def event(self) -> dict[str, object]:
        return {"type": self.dice.choice(TYPES), "a": self.dice.randrange(8), "b": self.dice.randrange(4)}

    def attach(self, client: str) -> Attach:
        sure = self.dice.random() < 0.7 or self.unacknowledged[client]
        self.moves[client] += 1
        home = self.homes[client]
        return Attach(
            session=f"{client}@{home}" if home else "",
            received=self.network.taken.get(client) if sure else None,
            source=self.last.get(client, ""),
            moves=self.moves[client],
        )

    def move(self, client: str, to: str) -> None:
        self.network.move(client, to, self.attach(client))
        self.last[client] = to

    def on_message(self, client: str, message: Message) -> None:
        network, dice = self.network, self.dice
        if isinstance(message, Deliver):
            self.unacknowledged[client] += 1
            if dice.random() < 0.5:
                self.unacknowledged[client] = 0
                network.send(client, Acknowledge(message.number))
            if message.sequence < 15 and dice.random() < self.chatty:
                network.publish(client, self.event())
        elif isinstance(message, SessionMoved):
            network.send(client, self.attach(client))
        elif isinstance(message, MoveRequest) and network.where(client) is not None:
            self.move(client, message.to)

    def change(self) -> None:
        network, dice = self.network, self.dice
        client, id = dice.choice(self.clients), dice.choice(["x", "y", "z"])
        kind = dice.randrange(18)
        if kind < 4:
            for _ in range(dice.choice([1, 1, 1, 3])):
                self.move(client, dice.choice(self.access))
        elif kind < 7:
            operator = f"operator of {dice.choice(self.access if kind == 4 else self.servers)}"
            relocate = RelocateChannel(dice.choice(self.domain.channels), dice.choice(self.servers))
            away = MoveClients(dice.choice(self.access), 1)
            network.send(operator, [away, relocate, BalanceLoad()][kind - 4])
        elif network.where(client) is not None:
            self.say_something(kind, client, id)

    def say_something(self, kind: int, client: str, id: str) -> None:
        network, dice = self.network, self.dice
        match kind:
            case 7 | 8 | 9 | 10:
                network.subscribe(client, id, dice.choice(FILTERS))
            case 11 | 12:
                network.unsubscribe(client, id)
            case 13:
                network.advertise(client, id, dice.choice(FILTERS))
            case 14:
                network.unadvertise(client, id)
            case 15:
                target = dice.choice(["", *self.access])
                network.send(client, MoveOut(target))
                if not target:
                    network.detach(client)
            case 16:
                network.detach(client)
            case 17 if dice.random() < 0.3:
                network.leave(client)
                network.taken.pop(client, None)  # another session counts anew
                network.send(client, self.attach(client))

    def publish(self) -> None:
        client = self.dice.choice(self.clients)
        if self.network.where(client) is not None:
            self.network.publish(client, self.event())

    def go(self, events: int) -> None:
        network, time = self.network, self.network.now
        for _ in range(events):
            time += self.dice.choice(self.pauses)
            network.at(time, self.change)
            for _ in range(self.dice.choice([1, 2, 4])):
                network.at(time + self.dice.random(), self.publish)
        network.drain()
        for client in self.clients:
            self.move(client, self.dice.choice(self.access))
            network.drain()


def random_run(
    seed: int, domain: Domain, others: tuple[Domain, ...] = (), backbone: Domain | None = None, *, events: int = 40
) -> Run:
    """A run with so many changes."""
    run = Run(seed, domain, others, backbone)
    run.go(events)
    return run


def violations(run: Run, domain: Domain) -> list[Violation]:
    """What must not be. All clients of a domain get events in one order, if it is ordered."""
    trace = run.network.trace
    homes = {one.name for one in run.domains if one.ordered}
    return [
        *checker.safety(trace, advertisements=domain.advertisements),
        *checker.attribution(trace),
        *checker.liveness(trace, advertisements=domain.advertisements),
        *checker.fifo(trace),
        *checker.causal(trace),
        *(violation for home in sorted(homes) for violation in checker.total(_only(trace, run.homes, home))),
    ]


def _only(trace: Trace, homes: dict[str, str], home: str) -> list[Record]:
    return [record for record in trace if not isinstance(record, Delivered) or homes[record.client] == home]


def random_domain(seed: int, name: str = "") -> Domain:
    """Any domain."""
    dice = Random(seed)
    return Domain(
        tuple(f"{name}r{i}" for i in range(dice.choice([1, 2, 3, 3]))),
        name,
        types=dice.choice([(), ("news",), ("news", "stock"), ("news", "stock", "other")]),
        ordered=dice.random() < 0.5,
        advertisements=dice.random() < 0.4,
        merging=dice.choice([None, Merging(), Merging(imperfect=True, budget=0.5)]),
    )


KINDS = ("alone", "roaming", "rendezvous", "multicast", "tree")


def random_run_of(kind: str, seed: int, *, events: int = 40) -> tuple[Run, Domain]:
    """A domain alone; with clients who roam into others; or joined to others in one of three ways."""
    if kind == "alone":
        domain = random_domain(seed)
        return random_run(seed, domain, events=events), domain
    domain, *rest = (replace(random_domain(seed), name=name) for name in ("x", "y", "z"))
    domain, *rest = (
        replace(one, servers=tuple(one.name + server for server in one.servers)) for one in (domain, *rest)
    )
    if Random(seed + 1).random() < 0.5:
        rest[0] = replace(rest[0], ordered=not domain.ordered)
    backbone = {
        "roaming": None,
        "rendezvous": Domain(("t0", "t1"), "backbone", types=domain.types, ordered=False),
        "multicast": Domain((), "backbone", types=domain.types, ordered=False),
        "tree": Domain((), "tree", types=domain.types, ordered=False),
    }[kind]
    return random_run(seed, domain, tuple(rest), backbone, events=events), domain


def main(runs: int, kinds: Sequence[str]) -> None:
    for kind in kinds:
        counts: Counter[str] = Counter()
        for seed in range(runs):
            run, domain = random_run_of(kind, seed)
            found = violations(run, domain)
            if found:
                print(kind, seed, domain, found[:3])
            counts += Counter(
                runs=1,
                violations=len(found),
                deliveries=sum(isinstance(record, Delivered) for record in run.network.trace),
                arrivals=sum(isinstance(record, Arrived) for record in run.network.trace),
                relocations=sum(run.network.brokers[server].relocations for server in run.servers),
                updates=sum(run.network.brokers[name].updates for name in run.access),
                ordered=domain.ordered,
            )
        print(kind, dict(counts))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100, sys.argv[2:] or KINDS)
