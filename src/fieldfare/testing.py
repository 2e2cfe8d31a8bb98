"""A network of brokers in memory and in virtual time, for the tests of your own programs.

No call waits or opens a socket, and a test gives the same result every time.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import COVERING, Strategy, by_name
from fieldfare.simulation.checker import Violation, check, promised
from fieldfare.simulation.clock import VirtualClock
from fieldfare.simulation.links import PLAIN, Wire
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology, line
from fieldfare.simulation.trace import Delivered, Refused

__all__ = ["InMemoryClient", "InMemoryNetwork", "VirtualClock"]


class InMemoryNetwork:
    """Brokers and clients in memory. A call of a client returns when all effects are complete.

    >>> network = InMemoryNetwork(line(3))
    >>> ana, bob = network.client("ana", at="b0"), network.client("bob", at="b2")
    >>> cheap = ana.subscribe("price < 10")
    >>> bob.publish({"price": 5})
    >>> bob.publish({"price": 50})
    >>> ana.received
    [Event({'price': 5})]
    >>> network.violations()
    []

    To look at messages under way, or to break links, use `network.network` and the virtual time.
    """

    def __init__(
        self, topology: Topology | None = None, strategy: Strategy | str = COVERING, *, links: Wire = PLAIN
    ) -> None:
        """Start the brokers of a topology; without a topology, a single broker `b0`. A strategy may be a name."""
        self._strategy = by_name(strategy) if isinstance(strategy, str) else strategy
        self._topology = line(1) if topology is None else topology
        if not isinstance(self._topology, Topology):
            raise TypeError(f"the topology must be a Topology, such as line(3), not {topology!r}")
        if self._topology.has_cycle and self._strategy.overlay == "acyclic" and self._strategy.table is not None:
            name = self._strategy.name
            raise ValueError(f"{name} bears no cycles, and this topology has some: take {name}+tree, or sources")
        self._saved: dict[str, bytes] = {}
        self._lives = itertools.count()
        self._names: set[str] = set()
        self.network = Network(self._make, self._topology, restore=self._restore, links=links)
        self.network.drain()

    def _make(self, name: str) -> Broker:
        return Broker(name, self._strategy, life=next(self._lives))

    def _restore(self, name: str, snapshot: bytes) -> Broker:
        broker = self._make(name)
        broker.restore(snapshot)
        return broker

    @property
    def clock(self) -> VirtualClock:
        """The virtual clock of the network."""
        return self.network.clock

    def client(self, name: str, at: str = "b0") -> InMemoryClient:
        """Attach a new client to a broker."""
        if name in self._names:
            raise ValueError(f"there is a client {name} already")
        self.network.attach(name, at)
        self._names.add(name)
        return InMemoryClient(name, self.network)

    def crash(self, broker: str) -> None:
        """Crash a broker, which cuts off the clients there until `restart`."""
        self._saved[broker] = self._broker(broker).snapshot()
        self.network.crash(broker)
        self.network.drain()

    def restart(self, broker: str, *, keep: bool = True) -> None:
        """Restart a broker, with the subscriptions and advertisements from before (`keep`), or without."""
        self._broker(broker)
        self.network.restart(broker, self._saved.get(broker) if keep else None)
        self.network.drain()

    def _broker(self, name: str) -> Broker:
        if name not in self.network.brokers:
            raise ValueError(f"there is no broker {name}; there are {', '.join(self.network.brokers)}")
        return self.network.brokers[name]

    def violations(self) -> list[Violation]:
        """Return all violations of the specification so far; there should be none."""
        trace, strategy = self.network.trace, self._strategy
        order = promised(strategy, self._topology, trace)
        return check(trace, advertisements=strategy.advertisements is not None, order=order)


class InMemoryClient:
    """A client in memory, with a list of all received events; made by `InMemoryNetwork.client`."""

    def __init__(self, name: str, network: Network[Broker]) -> None:
        self.name = name
        self._network = network
        self._ids = 0
        self._unheard: list[str] = []

    @property
    def received(self) -> list[Event]:
        """All delivered events, in order."""
        return [record.event for record in self._records() if isinstance(record, Delivered)]

    @property
    def refused(self) -> list[str]:
        """The reasons of all refused calls of this client."""
        return [record.reason for record in self._records() if isinstance(record, Refused)] + self._unheard

    def _records(self) -> list[Delivered | Refused]:
        kinds = (Delivered, Refused)
        return [record for record in self._network.trace if isinstance(record, kinds) and record.client == self.name]

    def subscribe(self, filter: Filter | str, id: str | None = None) -> str:
        """Subscribe to events and return the id of the subscription."""
        id = self._new(id)
        self._said(self._network.subscribe(self.name, id, _filter(filter)))
        return id

    def unsubscribe(self, id: str) -> None:
        """End a subscription; an unknown id is no error."""
        self._said(self._network.unsubscribe(self.name, id))

    def advertise(self, filter: Filter | str, id: str | None = None) -> str:
        """Announce events and return the id of the advertisement."""
        id = self._new(id)
        self._said(self._network.advertise(self.name, id, _filter(filter)))
        return id

    def unadvertise(self, id: str) -> None:
        """End an advertisement; an unknown id is no error."""
        self._said(self._network.unadvertise(self.name, id))

    def publish(self, event: Event | Mapping[str, object]) -> None:
        """Publish an event, which is delivered at all brokers when the call returns."""
        self._said(self._network.publish(self.name, event))

    def leave(self) -> None:
        """Leave the network: the broker forgets all subscriptions and advertisements of the client."""
        self._said(self._network.leave(self.name))

    def _said(self, heard: bool) -> None:
        if not heard:
            self._unheard.append("the broker is down")
        self._network.drain()

    def _new(self, id: str | None) -> str:
        self._ids += id is None
        return f"{self.name}-{self._ids}" if id is None else id


def _filter(given: Filter | str) -> Filter | str:
    if not isinstance(given, Filter | str):
        raise TypeError(f"a filter is a text or a Filter, not {given!r}")
    return given
