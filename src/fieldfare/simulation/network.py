"""A network in a box: brokers, links and clients in virtual time.

The engine below processes each broker's messages one after another. A client is part of its broker's machine: the
broker gets the client's messages at once and loses none, but when the broker is down, the client is cut off.

Which links there should be, which brokers run, and how the network is parted are kept apart; a link is up when all
three allow it. Everything that is left to chance comes from one seed, so the same run happens again.
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
    """Brokers, made by a function of their names, with links between them and clients at them.

    Names are given to clients and brokers alike, so no client is named as a broker is.
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
        hear: Callable[[str, Message], object] | None = None,
        count_bytes: bool = False,
        mesh: bool = False,
    ) -> None:
        """Start all brokers and bring up all links.

        Args:
            make_broker: makes a broker that knows nothing.
            topology: the brokers and links at the start.
            restore: makes a broker from its snapshot.
            links: what they are made of.
            processing: how long a broker works on a message.
            skews: which brokers' clocks are wrong, and how.
            seed: of all chance.
            record: whether to keep a trace; large runs have only the counters.
            lazy: whether brokers put work off to their next tick, so that the network is not quiet before it. Otherwise
                ticks are upkeep that goes on for ever, and nobody waits for them.
            hear: is called with what each client is told, after the step in which it is; a client may answer then.
            count_bytes: whether to measure messages as they would be on a wire.
            mesh: whether any broker reaches any other without a link of the topology, as in a DHT. Who has sent
                something to a broker that then crashes hears of it.
        """
        super().__init__(
            links=links,
            processing=processing,
            skews=skews,
            seed=seed,
            record=record,
            lazy=lazy,
            hear=hear,
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
        self._sites |= {name: self._site(name, make_broker(name)) for name in topology.brokers}
        self._adjust(self._wanted)
        self._mark()

    # Looking

    @property
    def brokers(self) -> Mapping[str, M]:
        """The brokers by name; a crashed one as it was."""
        return {name: site.broker for name, site in self._sites.items()}

    @property
    def work(self) -> Mapping[str, Work]:
        """What each broker had to do."""
        return {name: site.work for name, site in self._sites.items()}

    def total_traffic(self) -> Traffic:
        """What was sent over all links."""
        return add_up(self.traffic.values(), Traffic())

    def total_work(self) -> Work:
        """What all brokers had to do."""
        return add_up((site.work for site in self._sites.values()), Work())

    def table_sizes(self) -> dict[str, int]:
        """How large the routing tables are, of brokers that tell it."""
        sizes = ((name, getattr(site.broker, "entries", None)) for name, site in self._sites.items())
        return {name: size for name, size in sizes if size is not None}

    def is_up(self, broker: str, neighbour: str | None = None) -> bool:
        """Whether a broker runs, or its link to a neighbour is up."""
        if neighbour is None:
            return self._sites[broker].up
        return (broker, neighbour) in self._up or (neighbour, broker) in self._up

    # Clients

    def attach(self, client: str, broker: str) -> None:
        """A client comes to a broker; of one that was elsewhere, the former broker is told nothing."""
        if client in self._sites:
            raise ValueError(f"{client} is the name of a broker")
        if broker not in self._sites:
            raise ValueError(f"there is no broker {broker}")
        self._clients[client] = broker
        if client in self._away:
            self._away.discard(client)
            self._note(records.Arrived, broker, client)

    def detach(self, client: str) -> None:
        """A client is gone, and tells nobody."""
        self._arriving.pop(client, None)
        self._away.add(client)
        self._note(records.Departed, self._clients.pop(client), client)

    def move(self, client: str, to: str, message: Message) -> bool:
        """A client goes from where it is, if it is anywhere, to a broker, and says something there."""
        if client in self._clients:
            self.detach(client)
        self.attach(client, to)
        self._arriving[client] = message
        return self.say(client, message)

    def where(self, client: str) -> str | None:
        """The broker of a client, if it is at one."""
        return self._clients.get(client)

    def subscribe(self, client: str, id: str, filter: Filter | str) -> bool:
        """A client asks for events. This and the others say whether there was a broker to hear it."""
        return self.say(client, Subscribe(id, parse(filter) if isinstance(filter, str) else filter))

    def unsubscribe(self, client: str, id: str) -> bool:
        """A client asks no more."""
        return self.say(client, Unsubscribe(id))

    def advertise(self, client: str, id: str, filter: Filter | str) -> bool:
        """A client promises events."""
        return self.say(client, Advertise(id, parse(filter) if isinstance(filter, str) else filter))

    def unadvertise(self, client: str, id: str) -> bool:
        """A client takes a promise back."""
        return self.say(client, Unadvertise(id))

    def publish(self, client: str, event: Event | Mapping[str, object]) -> bool:
        """A client publishes an event."""
        sequence = self._sequences[client] = self._sequences.get(client, 0) + 1
        return self.say(client, Publish(event if isinstance(event, Event) else Event(event), sequence))

    def leave(self, client: str) -> bool:
        """A client leaves its broker; it may come back."""
        return self.say(client, Leave())

    def say(self, client: str, message: Message) -> bool:
        """A client says anything; one that is away has nobody to hear it."""
        if client in self._away:
            return False
        site = self._sites[self._clients[client]]
        if site.up:
            self._take(site, message, client)
            self._mark()
        return site.up

    # Faults and changes

    def connect(self, a: str, b: str, role: Role = Role.PEER) -> None:
        """Let there be a link; the role is what b is to a."""
        if a == b or a not in self._sites or b not in self._sites:
            raise ValueError(f"{a} – {b}: a link joins two brokers")
        if (a, b) in self._wanted or (b, a) in self._wanted:
            raise ValueError(f"{a} – {b}: there is a link already")
        self._wanted[a, b] = role
        self._adjust([(a, b)])
        self._mark()

    def disconnect(self, a: str, b: str) -> None:
        """Let there be no link."""
        edge = (a, b) if (a, b) in self._wanted else (b, a)
        if edge not in self._wanted:
            raise ValueError(f"{a} – {b}: there is no link, or it is down already")
        del self._wanted[edge]
        self._adjust([edge])
        self._mark()

    def add_broker(self, name: str) -> None:
        """One more broker, without links yet."""
        if name in self._sites or name in self._clients:
            raise ValueError(f"{name} is a name in use")
        self._sites[name] = self._site(name, self._make(name))

    def introduce(self, broker: str, other: str) -> None:
        """Tell a broker of another one, through which it may join those that it can reach."""
        self._take(self._sites[broker], Connect(), other)
        self._mark()

    def crash(self, broker: str) -> None:
        """A broker stops; its links go down, and what waited there is lost."""
        site = self._sites[broker]
        if not site.up:
            raise ValueError(f"{broker} is down already")
        site.up = False
        self._note(records.Crashed, broker)
        self._adjust(self._edges(broker))
        for other in self._sites.values() if self._mesh else ():
            if other.up and broker in other.links:
                other.links[broker].up = False
                self._take(other, Disconnect(), broker)
        self._mark()

    def restart(self, broker: str, snapshot: bytes | None = None) -> None:
        """A broker comes back, with what a snapshot says or with nothing; then its links come up."""
        old = self._sites[broker]
        if old.up:
            raise ValueError(f"{broker} is not down")
        if snapshot is None:
            machine = self._make(broker)
        elif self._restore is None:
            raise ValueError("this network was not told how to restore a broker")
        else:
            machine = self._restore(broker, snapshot)
        site = self._sites[broker] = self._site(broker, machine, old.work)
        self._note(records.Restarted, broker, snapshot is not None)
        self._wake(site)
        self._adjust(self._edges(broker))
        self._mark()

    def partition(self, *groups: Iterable[str]) -> None:
        """Part the network: only links within a group stay up. Brokers that are in none are a group of their own."""
        self._group = {broker: number for number, group in enumerate(groups, 1) for broker in group}
        self._adjust(self._wanted)
        self._mark()

    def heal(self) -> None:
        """End the partition."""
        self.partition()

    def _edges(self, broker: str) -> list[tuple[str, str]]:
        return [edge for edge in self._wanted if broker in edge]

    def _adjust(self, edges: Iterable[tuple[str, str]]) -> None:
        """Bring links up or down as they should be."""
        for a, b in list(edges):
            role = self._wanted.get((a, b))
            together = self._group.get(a, 0) == self._group.get(b, 0)
            wanted = role is not None and together and self._sites[a].up and self._sites[b].up
            if role is not None and wanted and (a, b) not in self._up:
                self._bring_up(a, b, role)
            elif not wanted and (a, b) in self._up:
                self._bring_down(a, b)

    def _bring_up(self, a: str, b: str, role: Role) -> None:
        wire = self._wire(a, b)
        there, back = self._cable(a, b, wire), self._cable(b, a, wire)
        self._up[a, b] = there, back
        self._note(records.Up, a, b)
        self._take(self._sites[a], Connect(role), b, there)
        self._take(self._sites[b], Connect(role.opposite), a, back)

    def _bring_down(self, a: str, b: str) -> None:
        for link in self._up.pop((a, b)):
            link.up = False
        self._note(records.Down, a, b)
        for broker, neighbour in ((a, b), (b, a)):
            if self._sites[broker].up:
                self._take(self._sites[broker], Disconnect(), neighbour)
