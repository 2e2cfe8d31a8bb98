"""A simulated network with a strategy, filled with subscriptions and fed with events; counts messages and entries."""

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
from fieldfare.tables.network_index import NetworkIndex
from fieldfare_lab.routing.interests import Interests


def tree(height: int) -> Topology:
    """Return a balanced binary tree: 15 brokers for height 3, 31 brokers for height 4."""
    return balanced_tree(2, height)


class Run:
    """A network with its clients, and an oracle that knows all subscriptions."""

    def __init__(
        self, strategy: Strategy, topology: Topology, seed: int, processing: Any = None, **options: Any
    ) -> None:
        """Start the brokers without clients; `options` go to `Interests`."""
        index = NetworkIndex()
        mesh = strategy.overlay == "rendezvous"
        self.network = Network(
            lambda name: Broker(name, strategy, remember=5.0, index=index),
            Topology(topology.brokers) if mesh else topology,
            record=False, processing=processing, seed=seed, mesh=mesh,
        )  # fmt: skip
        for broker in topology.brokers[1:] if mesh else ():
            self.network.introduce(broker, topology.brokers[0])
            self.network.drain()
        self.brokers = list(topology.brokers)
        self.interests = Interests(seed, topology, **options)
        self.subscriptions: list[str] = []
        """the broker of each subscription"""
        self.needed = 0
        """number of links that events had to cross, because of a subscription behind the link"""
        self._subscribed: Index[int] = Index()
        self._ways = _Ways(topology)

    def subscribe(self, count: int) -> None:
        """Add subscriptions of new clients at random brokers."""
        for _ in range(count):
            self._subscribe(self.interests.rng.choice(self.brokers))

    def _subscribe(self, broker: str) -> None:
        number, filter = len(self.subscriptions), self.interests.filter(broker)
        client = self._client(broker, f"c{number}")
        self.network.subscribe(client, "s", filter)
        self.network.drain()
        self._subscribed.add(number, filter)
        self.subscriptions.append(broker)

    def replace(self, count: int) -> None:
        """Replace so many random subscriptions with new subscriptions."""
        for _ in range(count):
            number = self.interests.rng.choice(sorted(self._subscribed))
            self.network.leave(f"{self.subscriptions[number]}/c{number}")
            self.network.drain()
            self._subscribed.remove(number)
            self.subscribe(1)

    def advertise(self, publishers: list[str]) -> None:
        """Attach a publisher to each of the brokers; each advertises the events of a symbol."""
        for broker in publishers:
            symbol = self.interests.symbol(broker)
            self.network.advertise(self._client(broker, "p"), symbol, parse(f"symbol = '{symbol}'"))
        self.network.drain()

    def publish(self, count: int, rate: float | None = None) -> None:
        """Publish events at random brokers: `rate` a second, or (None) each after the network has become quiet."""
        for i in range(count):
            broker = self.interests.rng.choice(self.brokers)
            event = self.interests.event(broker)
            self.needed += self._ways.links(broker, {self.subscriptions[n] for n in self._subscribed.match(event)})
            when = self.network.now if rate is None else self.network.now + i / rate
            self.network.at(when, self.network.publish, self._client(broker, "p"), event)
            if rate is None:
                self.network.drain()

    def _client(self, broker: str, name: str) -> str:
        client = f"{broker}/{name}"
        self.network.attach(client, broker)
        return client

    def entries(self) -> int:
        """Count the entries of all tables that came from neighbours."""
        return sum(map(_remote, self.network.brokers.values()))

    @property
    def traffic(self) -> Traffic:
        """Return the number of messages over all links so far, by kind."""
        return self.network.total_traffic()


def _remote(broker: Broker) -> int:
    if not isinstance(broker.routes, TableRoutes):
        return broker.entries
    tables = [broker.routes.subscriptions]
    if broker.routes.advertised is not None:
        tables.append(broker.routes.advertised.advertisements)
    return sum(len(set(table.interfaces(f)) - {LOCAL}) for table in tables for f in table.filters())


class _Ways:
    """The smallest number of links that connect given brokers of a tree."""

    def __init__(self, topology: Topology) -> None:
        neighbours = topology.neighbours()
        self._up: dict[str, str | None] = {topology.brokers[0]: None}
        waiting = [topology.brokers[0]]
        for broker in waiting:
            new = [other for other in neighbours[broker] if other not in self._up]
            self._up.update(dict.fromkeys(new, broker))
            waiting += new

    def links(self, source: str, homes: set[str]) -> int:
        """Count the links with some of the brokers on each side."""
        ends = {source, *homes}
        below: dict[str, int] = {}
        for end in ends:
            here: str | None = end
            while here is not None:
                below[here] = below.get(here, 0) + 1
                here = self._up[here]
        return sum(1 for count in below.values() if count < len(ends))
