"""Handovers by name: the node's own and the protocols of the literature, behind one interface.

A `MobileNetwork` is a simulated network with sessions of clients. A client comes to a broker with `attach`, again and
again, at any moment; the session follows, and no subscriber misses an event, gets an event twice, or in another order
than published. A handover is a way to keep this promise:

| name | session | proof that the new path exists |
|---|---|---|
| `node` | durable; envelopes from link to link | `TargetReady`, behind the subscriptions on the same links |
| `ping-pong` | direct message between brokers | a published ping comes back as a pong |
| `path-update` | direct message between brokers | an update, behind the subscriptions on the same links |
| `rendezvous` | direct message between brokers | the update has reached the root, where all events pass |
| `relocation` | replayed along the path | the junction of both paths redirects the events |

The interface is the network and not a part of a broker. The node's handover is a table of states with rows and journal
entries for each step; the protocols know no disk, and need direct messages, which nodes have not. Below the network the
two have nothing in common; above, they are compared in the same scenarios and held to the same tests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple, Protocol

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.mobility.broker import MobileBroker, Part
from fieldfare.mobility.path_update import PathUpdate
from fieldfare.mobility.ping_pong import PingPong
from fieldfare.mobility.relocation import Relocation
from fieldfare.mobility.rendezvous_handover import RendezvousUpdate
from fieldfare.protocol.messages import Message
from fieldfare.routing.broker import Broker
from fieldfare.routing.strategies import STRATEGIES, Strategy
from fieldfare.simulation.checker import Violation, check, check_durable
from fieldfare.simulation.core_network import Options
from fieldfare.simulation.durable_network import DurableNetwork
from fieldfare.simulation.links import Wire
from fieldfare.simulation.mobile_clients import Roamer, ways
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology
from fieldfare.simulation.trace import Record
from fieldfare.tables.network_index import NetworkIndex


class MobileNetwork(Protocol):
    """A simulated network in which sessions follow the clients."""

    trace: list[Record]

    @property
    def now(self) -> float:
        """The virtual time, in seconds since the start."""

    def attach(self, client: str, broker: str) -> object:
        """Let a client come to a broker, for the first time, from another broker, or from being away."""

    def detach(self, client: str) -> object:
        """Let a client go away; the events of the client wait."""

    def subscribe(self, client: str, id: str, filter: Filter | str) -> object:
        """Let a client ask for the events of a filter."""

    def unsubscribe(self, client: str, id: str) -> object:
        """End a subscription of a client."""

    def advertise(self, client: str, id: str, filter: Filter | str) -> object:
        """Let a client announce the events of a filter."""

    def publish(self, client: str, event: Event | Mapping[str, object]) -> object:
        """Publish an event for a client."""

    def at(self, time: float, action: Callable[..., object], *arguments: object) -> None:
        """Plan an action for a virtual time."""

    def run(self, until: float) -> None:
        """Let time pass up to a virtual time, with all planned actions."""

    def drain(self) -> None:
        """Let time pass until the network is at rest."""


class RoamingNetwork(Network[MobileBroker]):
    """Brokers with a protocol of the literature, and clients with sessions."""

    def __init__(
        self, make: Callable[[], Part], topology: Topology, strategy: Strategy, *, direct: bool, **options: Any
    ) -> None:
        """Start brokers, each with a part of its own; with `direct`, brokers also send messages beside the links."""
        self._roamers: dict[str, Roamer] = {}
        self._arrives = ""
        """the client that arrives right now"""
        way = ways(topology)

        def broker(name: str) -> MobileBroker:
            return MobileBroker(Broker(name, strategy), make(), next_hop=way(name))

        super().__init__(broker, topology, mesh=direct, lazy=direct, on_message=self._acknowledge, **options)

    def _acknowledge(self, client: str, message: Message) -> None:
        if client in self._roamers:
            self._roamers[client].receive(message)

    def attach(self, client: str, broker: str) -> None:
        """Let a client come to a broker; the session follows."""
        if self._arrives == client:
            super().attach(client, broker)
        elif self.where(client) != broker:
            roamer = self._roamers.setdefault(client, Roamer(self, client))
            self._arrives = client
            roamer.arrive(broker)
            self._arrives = ""

    def subscribe(self, client: str, id: str, filter: Filter | str) -> bool:
        """Subscribe, now or at the next arrival."""
        self._roamers[client].subscribe(id, str(filter))
        return self.where(client) is not None

    def unsubscribe(self, client: str, id: str) -> bool:
        """Unsubscribe, now or at the next arrival."""
        self._roamers[client].unsubscribe(id)
        return self.where(client) is not None

    def advertise(self, client: str, id: str, filter: Filter | str) -> bool:
        """Advertise, now or at the next arrival."""
        self._roamers[client].advertise(id, str(filter))
        return self.where(client) is not None

    def unadvertise(self, client: str, id: str) -> bool:
        """End an advertisement, now or at the next arrival."""
        self._roamers[client].advertisements.pop(id, None)
        return super().unadvertise(client, id)

    def leave(self, client: str) -> bool:
        """End the session of a client, who may come back."""
        gone = super().leave(client)
        del self._roamers[client]
        return gone


class Handover(NamedTuple):
    """A way in which sessions follow their clients, and the networks for which the way is meant."""

    make: Callable[[], Part] | None
    """makes the part of a broker; None: durable nodes"""
    strategies: tuple[str, ...]
    hierarchical: bool = False
    """whether brokers are parents and children below a root"""
    direct: bool = True
    """whether brokers send each other messages beside the links"""

    def network(
        self, topology: Topology, strategy: Strategy, links: Wire | None = None, seed: int = 0
    ) -> DurableNetwork | RoamingNetwork:
        """Return a network with this handover; ValueError if the network is of another kind."""
        if strategy.name not in self.strategies:
            raise ValueError(f"this handover is for the strategies {', '.join(self.strategies)}")
        if topology.has_cycle:
            raise ValueError("this handover needs links without a cycle")
        options: dict[str, Any] = {"seed": seed} if links is None else {"seed": seed, "links": links}
        if self.make is not None:
            shape = topology.hierarchical() if self.hierarchical else topology
            return RoamingNetwork(self.make, shape, strategy, direct=self.direct, **options)
        wires: dict[str, Any] = {} if links is None else {"wire": links}
        return DurableNetwork(topology, Options(strategy, shared=NetworkIndex()), seed=seed, detailed=True, **wires)

    def judge(self, trace: list[Record], strategy: Strategy) -> list[Violation]:
        """Return the violations in a trace. The protocols promise the order of each publisher, a node every cause."""
        ads = strategy.advertisements is not None
        if self.make is None:
            return check_durable(trace, advertisements=ads, order=strategy.order)
        return check(trace, advertisements=ads, order="fifo")


_TREES: Final = tuple(name for name, strategy in STRATEGIES.items() if strategy.prefix is None)
HANDOVERS: Final[Mapping[str, Handover]] = {
    "node": Handover(None, tuple(STRATEGIES)),
    "ping-pong": Handover(lambda: PingPong(every=0.5), _TREES),
    "path-update": Handover(PathUpdate, _TREES),
    "rendezvous": Handover(RendezvousUpdate, ("simple", "covering", "merging", "imperfect"), hierarchical=True),
    "relocation": Handover(
        Relocation,
        ("flooding", "simple", "simple+ads", "covering", "covering+ads", "merging", "merging+ads"),
        direct=False,
    ),
}
"""handovers by name"""
