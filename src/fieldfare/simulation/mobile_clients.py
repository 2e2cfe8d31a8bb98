"""Mobile clients of a simulated network, which remember subscriptions, the last broker and the last delivery."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.mobility.messages import Acknowledge, MoveIn, MoveOut
from fieldfare.protocol.messages import Advertise, Deliver, Message, Subscribe, Unsubscribe
from fieldfare.simulation.network import Network
from fieldfare.simulation.topologies import Topology


class Roamer:
    """A client moving from broker to broker, with subscriptions and acknowledgements."""

    def __init__(self, network: Network[Any], name: str) -> None:
        """Make a client without a broker and without subscriptions."""
        self.network = network
        self.name = name
        self.subscriptions: dict[str, Filter] = {}
        self.advertisements: dict[str, Filter] = {}
        self.source = ""
        """the broker where it was last"""
        self.expected = ""
        """the broker where it has said that it will be: the session goes there in any case"""
        self.moves = -1

    @property
    def here(self) -> str | None:
        """The client's present broker, or None."""
        return self.network.where(self.name)

    def arrive(self, broker: str) -> None:
        """Arrive at a broker, from another broker or from being away."""
        if broker != self.expected:
            self.source = self.expected or self.source
            self.moves += 1
        received = self.network.taken.get(self.name, 0)
        said = MoveIn(self.source, dict(self.subscriptions), dict(self.advertisements), received, self.moves)
        self.source, self.expected = broker, ""
        self.network.move(self.name, broker, said)

    def depart(self, target: str = "") -> None:
        """Leave the broker: silently, or with the name of the next broker."""
        if target and target != self.here:
            self.moves += 1
            self.expected = target
            self.network.send(self.name, MoveOut(target, self.moves))
        self.network.detach(self.name)

    def subscribe(self, id: str, filter: str) -> None:
        """Subscribe, now or at the next arrival."""
        self.subscriptions[id] = parse(filter)
        self.network.send(self.name, Subscribe(id, self.subscriptions[id]))

    def unsubscribe(self, id: str) -> None:
        """Unsubscribe, now or at the next arrival."""
        self.subscriptions.pop(id, None)
        self.network.send(self.name, Unsubscribe(id))

    def advertise(self, id: str, filter: str) -> None:
        """Advertise, now or at the next arrival."""
        self.advertisements[id] = parse(filter)
        self.network.send(self.name, Advertise(id, self.advertisements[id]))

    def receive(self, message: Message) -> None:
        """Acknowledge a delivery to the present broker."""
        if isinstance(message, Deliver) and message.number:
            self.network.send(self.name, Acknowledge(message.number))


def ways(topology: Topology) -> Callable[[str], Callable[[str], str]]:
    """Return for each broker of a tree the neighbour on the path to any other broker."""
    neighbours = topology.neighbours()
    tables: dict[str, dict[str, str]] = {}
    for start in topology.brokers:
        table = tables[start] = {other: other for other in neighbours[start]}
        queue = list(table)
        for broker in queue:
            for other in neighbours[broker]:
                if other != start and other not in table:
                    table[other] = table[broker]
                    queue.append(other)
    return lambda broker: tables[broker].__getitem__
