"""A network in a box: brokers, links and clients in virtual time.

The engine below processes each broker's messages in turn. A client is part of the broker's machine: the broker gets the
client's messages at once and loses none, but when the broker is down, the client is cut off.

The wanted links, the running brokers and the partition are kept apart; a link is up when all three allow the link. All
chance comes from a single seed, so a run can be repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import (
    Advertise,
    Connect,
    Disconnect,
    Leave,
    Message,
    Publish,
    Role,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from fieldfare.simulation import trace as records
from fieldfare.simulation.counters import Traffic, Work, add_up
from fieldfare.simulation.engine import Engine, Wires
from fieldfare.simulation.host import Cable, M, Processing, Skew
from fieldfare.simulation.links import PLAIN
from fieldfare.simulation.topologies import Topology


class Network(Engine[M]):
    """Brokers in virtual time, with links and clients.

    Clients and brokers share names: no client may have the name of a broker.
    """

    def __init__(
        self,
        make_broker: Callable[[str], M],
        topology: Topology,
        *,
        restore: Callable[[str, bytes], M] | None = None,
        links: Wires = PLAIN,
        processing: Processing = None,
        skews: Mapping[str, Skew] | None = None,
        seed: int = 0,
        record: bool = True,
        lazy: bool = False,
        on_message: Callable[[str, Message], object] | None = None,
        count_bytes: bool = False,
        mesh: bool = False,
    ) -> None:
        """Start all brokers and bring up all links.

        Args:
            make_broker: makes an empty broker from a name.
            topology: the brokers and links at the start.
            restore: makes a broker from its snapshot.
            links: the wire of all links, or a function of both ends.
            processing: seconds of work for a message.
            skews: the errors of brokers' clocks.
            seed: of all chance.
            record: whether to keep a trace; large runs have only the counters.
            lazy: whether brokers put work off to the next tick, so that the network is not quiet before. Otherwise
                ticks are endless upkeep, and `drain` does not wait for ticks.
            on_message: is called with each client and message, after the step of the message; a client may answer then.
            count_bytes: whether to measure messages in their wire form.
            mesh: whether any broker reaches any other without a link of the topology, as in a DHT. A broker that has
                sent a message to a broker hears of a later crash there.
        """
        super().__init__(
            links=links,
            processing=processing,
            skews=skews,
            seed=seed,
            record=record,
            lazy=lazy,
            on_message=on_message,
            count_bytes=count_bytes,
            mesh=mesh,
        )
        self._make = make_broker
        self._restore = restore
        self._sequences: dict[str, int] = {}
        self._away: set[str] = set()
        self._group: dict[str, int] = {}
        self._wanted = {(a, b): role for a, b, role in topology.edges}
        self._up: dict[tuple[str, str], tuple[Cable[M], Cable[M]]] = {}
        self._hosts |= {name: self._host(name, make_broker(name)) for name in topology.brokers}
        self._adjust(self._wanted)
        self._mark()

    # Looking

    @property
    def brokers(self) -> Mapping[str, M]:
        """The brokers by name; a crashed broker with the state before the crash."""
        return {name: host.broker for name, host in self._hosts.items()}

    @property
    def work(self) -> Mapping[str, Work]:
        """The work of each broker."""
        return {name: host.work for name, host in self._hosts.items()}

    def total_traffic(self) -> Traffic:
        """Add up the traffic of all links."""
        return add_up(self.traffic.values(), Traffic())

    def total_work(self) -> Work:
        """Add up the work of all brokers."""
        return add_up((host.work for host in self._hosts.values()), Work())

    def table_sizes(self) -> dict[str, int]:
        """Return the sizes of routing tables, for brokers with a property `entries`."""
        sizes = ((name, getattr(host.broker, "entries", None)) for name, host in self._hosts.items())
        return {name: size for name, size in sizes if size is not None}

    def is_up(self, broker: str, neighbour: str | None = None) -> bool:
        """Tell whether a broker runs, or whether the broker's link to a neighbour is up."""
        if neighbour is None:
            return self._hosts[broker].up
        return (broker, neighbour) in self._up or (neighbour, broker) in self._up

    # Clients

    def attach(self, client: str, broker: str) -> None:
        """Attach a client to a broker; the former broker, if any, is told nothing."""
        if client in self._hosts:
            raise ValueError(f"{client} is the name of a broker")
        if broker not in self._hosts:
            raise ValueError(f"there is no broker {broker}")
        self._clients[client] = broker
        if client in self._away:
            self._away.discard(client)
            self._note(records.Arrived, broker, client)

    def detach(self, client: str) -> None:
        """Detach a client from the broker, silently."""
        self._arriving.pop(client, None)
        self._away.add(client)
        self._note(records.Departed, self._clients.pop(client), client)

    def move(self, client: str, to: str, message: Message) -> bool:
        """Move a client to a broker, where the client first sends a message."""
        if client in self._clients:
            self.detach(client)
        self.attach(client, to)
        self._arriving[client] = message
        return self.send(client, message)

    def where(self, client: str) -> str | None:
        """Return the broker of a client, or None for a client that is away."""
        return self._clients.get(client)

    def subscribe(self, client: str, id: str, filter: Filter | str) -> bool:
        """Subscribe for a client. Like all methods of clients, return whether a broker got the message."""
        return self.send(client, Subscribe(id, parse(filter) if isinstance(filter, str) else filter))

    def unsubscribe(self, client: str, id: str) -> bool:
        """End a subscription of a client."""
        return self.send(client, Unsubscribe(id))

    def advertise(self, client: str, id: str, filter: Filter | str) -> bool:
        """Advertise for a client: the client will publish only events that the filter matches."""
        return self.send(client, Advertise(id, parse(filter) if isinstance(filter, str) else filter))

    def unadvertise(self, client: str, id: str) -> bool:
        """End an advertisement of a client."""
        return self.send(client, Unadvertise(id))

    def publish(self, client: str, event: Event | Mapping[str, object]) -> bool:
        """Publish an event for a client, under the client's next count."""
        sequence = self._sequences[client] = self._sequences.get(client, 0) + 1
        return self.send(client, Publish(event if isinstance(event, Event) else Event(event), sequence))

    def leave(self, client: str) -> bool:
        """End all subscriptions and advertisements of a client, who may come back."""
        return self.send(client, Leave())

    def send(self, client: str, message: Message) -> bool:
        """Send any message for a client; a client that is away reaches no broker."""
        if client in self._away:
            return False
        host = self._hosts[self._clients[client]]
        if host.up:
            self._take(host, message, client)
            self._mark()
        return host.up

    # Faults and changes

    def connect(self, a: str, b: str, role: Role = Role.PEER) -> None:
        """Add a link; the role is b's role for a."""
        if a == b or a not in self._hosts or b not in self._hosts:
            raise ValueError(f"{a} – {b}: a link joins two brokers")
        if (a, b) in self._wanted or (b, a) in self._wanted:
            raise ValueError(f"{a} – {b}: there is a link already")
        self._wanted[a, b] = role
        self._adjust([(a, b)])
        self._mark()

    def disconnect(self, a: str, b: str) -> None:
        """Remove the link between two brokers, as a planned change and not as a fault."""
        edge = (a, b) if (a, b) in self._wanted else (b, a)
        if edge not in self._wanted:
            raise ValueError(f"{a} – {b}: there is no link, or it is down already")
        del self._wanted[edge]
        self._adjust([edge])
        self._mark()

    def add_broker(self, name: str) -> None:
        """Add a broker without links."""
        if name in self._hosts or name in self._clients:
            raise ValueError(f"{name} is a name in use")
        self._hosts[name] = self._host(name, self._make(name))

    def introduce(self, broker: str, other: str) -> None:
        """Tell a broker of another broker, as an entry into a mesh."""
        self._take(self._hosts[broker], Connect(), other)
        self._mark()

    def crash(self, broker: str) -> None:
        """Stop a broker; all links of the broker go down, and messages in the queue are lost."""
        host = self._hosts[broker]
        if not host.up:
            raise ValueError(f"{broker} is down already")
        host.up = False
        self._note(records.Crashed, broker)
        self._adjust(self._edges(broker))
        for other in self._hosts.values() if self._mesh else ():
            if other.up and broker in other.links:
                other.links[broker].up = False
                self._take(other, Disconnect(), broker)
        self._mark()

    def restart(self, broker: str, snapshot: bytes | None = None) -> None:
        """Restart a broker, from a snapshot or empty; then the broker's links come up."""
        old = self._hosts[broker]
        if old.up:
            raise ValueError(f"{broker} is not down")
        if snapshot is None:
            machine = self._make(broker)
        elif self._restore is None:
            raise ValueError("this network was not told how to restore a broker")
        else:
            machine = self._restore(broker, snapshot)
        host = self._hosts[broker] = self._host(broker, machine, old.work)
        self._note(records.Restarted, broker, snapshot is not None)
        self._wake(host)
        self._adjust(self._edges(broker))
        self._mark()

    def partition(self, *groups: Iterable[str]) -> None:
        """Part the network: only links within a group stay up. Brokers without a group form another group."""
        self._group = {broker: number for number, group in enumerate(groups, 1) for broker in group}
        self._adjust(self._wanted)
        self._mark()

    def heal(self) -> None:
        """End the partition: all wanted links between running brokers come up."""
        self.partition()

    def _edges(self, broker: str) -> list[tuple[str, str]]:
        return [edge for edge in self._wanted if broker in edge]

    def _adjust(self, edges: Iterable[tuple[str, str]]) -> None:
        """Bring links up or down, after a change of links, brokers or groups."""
        for a, b in list(edges):
            role = self._wanted.get((a, b))
            together = self._group.get(a, 0) == self._group.get(b, 0)
            wanted = role is not None and together and self._hosts[a].up and self._hosts[b].up
            if role is not None and wanted and (a, b) not in self._up:
                self._bring_up(a, b, role)
            elif not wanted and (a, b) in self._up:
                self._bring_down(a, b)

    def _bring_up(self, a: str, b: str, role: Role) -> None:
        wire = self._wire(a, b)
        there, back = self._cable(a, b, wire), self._cable(b, a, wire)
        self._up[a, b] = there, back
        self._note(records.Up, a, b)
        self._take(self._hosts[a], Connect(role), b, there)
        self._take(self._hosts[b], Connect(role.opposite), a, back)

    def _bring_down(self, a: str, b: str) -> None:
        for link in self._up.pop((a, b)):
            link.up = False
        self._note(records.Down, a, b)
        for broker, neighbour in ((a, b), (b, a)):
            if self._hosts[broker].up:
                self._take(self._hosts[broker], Disconnect(), neighbour)
