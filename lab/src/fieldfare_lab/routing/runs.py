"""A simulated network with a strategy, filled with subscriptions and fed with events, and what that cost."""

from __future__ import annotations

from typing import Any

from fieldfare.filters import parse
from fieldfare.matching.index import Index
from fieldfare.routing.broker import Broker
from fieldfare.routing.routes import LOCAL
from fieldfare.routing.strategies import Strategy
from fieldfare.routing.table_routes import TableRoutes
from fieldfare.simulation.counters import Traffic
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology, balanced_tree
from fieldfare.tables.shared_index import SharedIndex
from fieldfare_lab.routing.interests import Interests


def tree(height: int) -> Topology:
    """A balanced binary tree: 15 brokers for height 3, 31 for 4."""
    return balanced_tree(2, height)


class Run:
    """A network and its clients; beside it the oracle that knows what everybody wants."""

    def __init__(
        self, strategy: Strategy, topology: Topology, seed: int, processing: Any = None, **options: Any
    ) -> None:
        """Brokers without clients; the options are those of `Interests`."""
        part = SharedIndex().part
        mesh = strategy.overlay == "rendezvous"
        self.network = Network(
            lambda name: Broker(name, strategy, remember=5.0, index=part),
            Topology(topology.brokers) if mesh else topology,
            record=False, processing=processing, seed=seed, mesh=mesh,
        )  # fmt: skip
        for broker in topology.brokers[1:] if mesh else ():
            self.network.introduce(broker, topology.brokers[0])
            self.network.settle()
        self.brokers = list(topology.brokers)
        self.interests = Interests(seed, topology, **options)
        self.subscriptions: list[str] = []
        """the broker of each"""
        self.needed = 0
        """links that events had to cross, for somebody behind them wanted them"""
        self._wanted: Index[int] = Index()
        self._ways = _Ways(topology)

    def subscribe(self, count: int) -> None:
        """So many subscriptions more, each of a client of its own, at brokers by chance."""
        for _ in range(count):
            self._subscribe(self.interests.rng.choice(self.brokers))

    def _subscribe(self, broker: str) -> None:
        number, filter = len(self.subscriptions), self.interests.filter(broker)
        client = self._client(broker, f"c{number}")
        self.network.subscribe(client, "s", filter)
        self.network.settle()
        self._wanted.add(number, filter)
        self.subscriptions.append(broker)

    def replace(self, count: int) -> None:
        """So many subscriptions by chance go, and others come."""
        for _ in range(count):
            number = self.interests.rng.choice(sorted(self._wanted))
            self.network.leave(f"{self.subscriptions[number]}/c{number}")
            self.network.settle()
            self._wanted.remove(number)
            self.subscribe(1)

    def advertise(self, publishers: list[str]) -> None:
        """Let there be a publisher at each of these brokers, which promises what it will publish."""
        for broker in publishers:
            symbol = self.interests.symbol(broker)
            self.network.advertise(self._client(broker, "p"), symbol, parse(f"symbol = '{symbol}'"))
        self.network.settle()

    def publish(self, count: int, rate: float | None = None) -> None:
        """So many events at brokers by chance; at a rate, or each when all is quiet."""
        for i in range(count):
            broker = self.interests.rng.choice(self.brokers)
            event = self.interests.event(broker)
            self.needed += self._ways.links(broker, {self.subscriptions[n] for n in self._wanted.match(event)})
            when = self.network.now if rate is None else self.network.now + i / rate
            self.network.at(when, self.network.publish, self._client(broker, "p"), event)
            if rate is None:
                self.network.settle()

    def _client(self, broker: str, name: str) -> str:
        client = f"{broker}/{name}"
        self.network.attach(client, broker)
        return client

    def entries(self) -> int:
        """The entries of all tables that came from neighbours."""
        return sum(map(_remote, self.network.brokers.values()))

    @property
    def traffic(self) -> Traffic:
        """What has gone over all links so far."""
        return self.network.total_traffic()


def _remote(broker: Broker) -> int:
    if not isinstance(broker.routes, TableRoutes):
        return broker.entries
    tables = [broker.routes.subscriptions]
    if broker.routes.advertised is not None:
        tables.append(broker.routes.advertised.advertisements)
    return sum(len(set(table.interfaces(f)) - {LOCAL}) for table in tables for f in table.filters())


class _Ways:
    """How many links of a tree join some brokers?"""

    def __init__(self, topology: Topology) -> None:
        neighbours = topology.neighbours()
        self._up: dict[str, str | None] = {topology.brokers[0]: None}
        waiting = [topology.brokers[0]]
        for broker in waiting:
            new = [other for other in neighbours[broker] if other not in self._up]
            self._up.update(dict.fromkeys(new, broker))
            waiting += new

    def links(self, source: str, homes: set[str]) -> int:
        """A link is needed if some of the brokers are on one side of it, and some on the other."""
        ends = {source, *homes}
        below: dict[str, int] = {}
        for end in ends:
            here: str | None = end
            while here is not None:
                below[here] = below.get(here, 0) + 1
                here = self._up[here]
        return sum(1 for count in below.values() if count < len(ends))
