"""For your own tests: a network of brokers in memory and in virtual time.

Nothing here waits or opens a socket, and the same test gives the same result every time.
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
    """Brokers and clients in memory. What a client does has had all its effects when the call returns.

    >>> network = InMemoryNetwork(line(3))
    >>> ana, bob = network.client("ana", at="b0"), network.client("bob", at="b2")
    >>> cheap = ana.subscribe("price < 10")
    >>> bob.publish({"price": 5})
    >>> bob.publish({"price": 50})
    >>> ana.received
    [Event({'price': 5})]
    >>> network.violations()
    []

    To see what happens while messages are under way, or when links break, use `network.network` and its virtual time.
    """

    def __init__(
        self, topology: Topology | None = None, strategy: Strategy | str = COVERING, *, links: Wire = PLAIN
    ) -> None:
        """Start the brokers: one, called `b0`, unless a topology says otherwise. A strategy may be given by name."""
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
        self.network.settle()

    def _make(self, name: str) -> Broker:
        return Broker(name, self._strategy, life=next(self._lives))

    def _restore(self, name: str, snapshot: bytes) -> Broker:
        broker = self._make(name)
        broker.restore(snapshot)
        return broker

    @property
    def clock(self) -> VirtualClock:
        """The time of this network."""
        return self.network.clock

    def client(self, name: str, at: str = "b0") -> InMemoryClient:
        """A new client of a broker."""
        if name in self._names:
            raise ValueError(f"there is a client {name} already")
        self.network.attach(name, at)
        self._names.add(name)
        return InMemoryClient(name, self.network)

    def crash(self, broker: str) -> None:
        """Let a broker crash. Its clients are cut off until it is restarted."""
        self._saved[broker] = self._broker(broker).snapshot()
        self.network.crash(broker)
        self.network.settle()

    def restart(self, broker: str, *, keep: bool = True) -> None:
        """Let a broker come back, with what its clients had asked for, or knowing nothing."""
        self._broker(broker)
        self.network.restart(broker, self._saved.get(broker) if keep else None)
        self.network.settle()

    def _broker(self, name: str) -> Broker:
        if name not in self.network.brokers:
            raise ValueError(f"there is no broker {name}; there are {', '.join(self.network.brokers)}")
        return self.network.brokers[name]

    def violations(self) -> list[Violation]:
        """What has gone wrong so far, by the specification; nothing should."""
        trace, strategy = self.network.trace, self._strategy
        order = promised(strategy, self._topology, trace)
        return check(trace, advertisements=strategy.advertisements is not None, order=order)


class InMemoryClient:
    """A client that keeps what it gets."""

    def __init__(self, name: str, network: Network[Broker]) -> None:
        """Made by `InMemoryNetwork.client`."""
        self.name = name
        self._network = network
        self._ids = 0
        self._unheard: list[str] = []

    @property
    def received(self) -> list[Event]:
        """All events that it got, in order."""
        return [record.event for record in self._records() if isinstance(record, Delivered)]

    @property
    def refused(self) -> list[str]:
        """Why what it said had no effect."""
        return [record.reason for record in self._records() if isinstance(record, Refused)] + self._unheard

    def _records(self) -> list[Delivered | Refused]:
        kinds = (Delivered, Refused)
        return [record for record in self._network.trace if isinstance(record, kinds) and record.client == self.name]

    def subscribe(self, filter: Filter | str, id: str | None = None) -> str:
        """Ask for events; gives the id of the subscription."""
        id = self._new(id)
        self._said(self._network.subscribe(self.name, id, _filter(filter)))
        return id

    def unsubscribe(self, id: str) -> None:
        """Ask no more."""
        self._said(self._network.unsubscribe(self.name, id))

    def advertise(self, filter: Filter | str, id: str | None = None) -> str:
        """Promise events; gives the id of the advertisement."""
        id = self._new(id)
        self._said(self._network.advertise(self.name, id, _filter(filter)))
        return id

    def unadvertise(self, id: str) -> None:
        """Take a promise back."""
        self._said(self._network.unadvertise(self.name, id))

    def publish(self, event: Event | Mapping[str, object]) -> None:
        """Say what happened."""
        self._said(self._network.publish(self.name, event))

    def leave(self) -> None:
        """Say goodbye; all that was asked for and promised is forgotten."""
        self._said(self._network.leave(self.name))

    def _said(self, heard: bool) -> None:
        if not heard:
            self._unheard.append("the broker is down")
        self._network.settle()

    def _new(self, id: str | None) -> str:
        self._ids += id is None
        return f"{self.name}-{self._ids}" if id is None else id


def _filter(given: Filter | str) -> Filter | str:
    if not isinstance(given, Filter | str):
        raise TypeError(f"a filter is a text or a Filter, not {given!r}")
    return given
