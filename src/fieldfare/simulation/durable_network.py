"""`DurableNetwork`: nodes with durable state behind the methods of `Network`, for scenarios.

A client repeats unaccepted requests, and a crashed node restarts with the disk: so every action of a client is done in
the end, although nodes are down meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import Advertise, Role, Subscribe, Unadvertise, Unsubscribe
from fieldfare.routing.broker import Broker
from fieldfare.simulation import trace as records
from fieldfare.simulation.core_network import CoreNetwork
from fieldfare.simulation.core_rest import unrest
from fieldfare.simulation.counters import Traffic, Work, add_up
from fieldfare.simulation.disk import Stage
from fieldfare.simulation.trace import Quiet

MOMENT = 0.02
"""seconds between two looks whether the network is at rest"""
PATIENCE = 60.0
"""seconds after which a network with something left to do is given up"""


class DurableNetwork(CoreNetwork):
    """Durable nodes, with the methods by which workloads and faults use a network."""

    # Looking

    @property
    def now(self) -> float:
        """The virtual time, in seconds since the start."""
        return self.clock.now

    @property
    def brokers(self) -> Mapping[str, Broker]:
        """The brokers by name; a crashed broker with the state before the crash."""
        return {name: host.core.broker for name, host in self.hosts.items()}

    def total_traffic(self) -> Traffic:
        """Add up the traffic of all links."""
        return add_up(self.traffic.values(), Traffic())

    def total_work(self) -> Work:
        """Add up the work of all brokers."""
        return add_up(self.work.values(), Work())

    def table_sizes(self) -> dict[str, int]:
        """Return the sizes of the routing tables."""
        return {name: broker.entries for name, broker in self.brokers.items()}

    def record(self, kind: type[Any], *fields: object) -> None:
        """Add a record to the trace, and count the work."""
        super().record(kind, *fields)
        work = self.work.get(str(fields[0])) if fields else None
        if work is not None and kind is records.Published:
            work.published += 1
            work.received += 1
        elif work is not None and kind is records.Delivered:
            work.delivered += 1
        elif kind is records.Forwarded:
            self.work[str(fields[1])].received += 1

    # Clients

    def attach(self, client: str, broker: str) -> None:
        """Let a client come to a node; a client of another node takes the session along."""
        if client in self.clients:
            self.clients[client].attach(broker)
        else:
            self.add_client(client, broker)

    def detach(self, client: str) -> None:
        """Let a client go away; the session stays at the node."""
        self.clients[client].detach()

    def subscribe(self, client: str, id: str, filter: Filter | str) -> None:
        """Let a client ask for the events of a filter, given as a filter or as text."""
        self.clients[client].change(Subscribe(id, parse(filter) if isinstance(filter, str) else filter))

    def unsubscribe(self, client: str, id: str) -> None:
        """End a subscription of a client."""
        self.clients[client].change(Unsubscribe(id))

    def advertise(self, client: str, id: str, filter: Filter | str) -> None:
        """Let a client announce the events of a filter, given as a filter or as text."""
        self.clients[client].change(Advertise(id, parse(filter) if isinstance(filter, str) else filter))

    def unadvertise(self, client: str, id: str) -> None:
        """End an advertisement of a client."""
        self.clients[client].change(Unadvertise(id))

    def publish(self, client: str, event: Event | Mapping[str, object]) -> None:
        """Publish an event for a client."""
        self.clients[client].publish([event if isinstance(event, Event) else Event(event)])

    def leave(self, client: str) -> None:
        """End all subscriptions and advertisements of a client."""
        for subscription, id in list(self.clients[client].filters):
            self.clients[client].change(Unsubscribe(id) if subscription else Unadvertise(id))

    # Faults

    def connect(self, a: str, b: str, role: Role = Role.PEER) -> None:
        """Let the link between two nodes work again."""
        if not self.is_cut(a, b):
            raise ValueError(f"{a} – {b}: there is a link already")
        self.mend(a, b)

    def disconnect(self, a: str, b: str) -> None:
        """Break the link between two nodes, until `connect`."""
        if self.is_cut(a, b):
            raise ValueError(f"{a} – {b}: there is no link, or it is down already")
        self.cut(a, b)

    def crash(self, broker: str) -> None:
        """Kill a node, which stays down."""
        if not self.hosts[broker].up:
            raise ValueError(f"{broker} is down already")
        self.record(records.Crashed, broker)
        self._stop(self.hosts[broker], Stage.ENTRIES, 0)

    def restart(self, broker: str, snapshot: bytes | None = None) -> None:
        """Start a node from the disk."""
        if self.hosts[broker].up:
            raise ValueError(f"{broker} is not down")
        if snapshot is None:
            raise ValueError("a durable node has its disk: leave `keep` out")
        self.start(broker)

    # Time

    def run(self, until: float) -> None:
        """Run all steps and actions up to a virtual time, and note the moments of rest."""
        while self.clock.now < until:
            self.clock.run(min(until, self.clock.now + MOMENT))
            self._look()

    def drain(self) -> None:
        """Run until the network is at rest, or nothing more can be done."""
        end = self.clock.now + PATIENCE
        while not self._look() and self.clock.now < end:
            self.clock.run(self.clock.now + MOMENT)

    def _look(self) -> bool:
        """Record the present moment if the network is at rest; tell whether the network is."""
        if any(True for _ in unrest(self)):
            return False
        if not self.trace or type(self.trace[-1]) is not Quiet:
            self.record(Quiet)
        return True
