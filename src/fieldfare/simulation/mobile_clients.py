"""Clients that move in a simulated network: they remember what they want, where they were and what they have got."""

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
    """A client that moves."""

    def __init__(self, network: Network[Any], name: str) -> None:
        """It is nowhere, and wants nothing."""
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
        """The broker where it is."""
        return self.network.where(self.name)

    def arrive(self, broker: str) -> None:
        """Come to a broker, from another one or from being away."""
        if broker != self.expected:
            self.source = self.expected or self.source
            self.moves += 1
        received = self.network.taken.get(self.name, 0)
        said = MoveIn(self.source, dict(self.subscriptions), dict(self.advertisements), received, self.moves)
        self.source, self.expected = broker, ""
        self.network.move(self.name, broker, said)

    def depart(self, target: str = "") -> None:
        """Go away: silently, or saying where it will be."""
        if target and target != self.here:
            self.moves += 1
            self.expected = target
            self.network.say(self.name, MoveOut(target, self.moves))
        self.network.detach(self.name)

    def subscribe(self, id: str, filter: str) -> None:
        """Ask for events."""
        self.subscriptions[id] = parse(filter)
        self.network.say(self.name, Subscribe(id, self.subscriptions[id]))

    def unsubscribe(self, id: str) -> None:
        """Ask no more."""
        self.subscriptions.pop(id, None)
        self.network.say(self.name, Unsubscribe(id))

    def advertise(self, id: str, filter: str) -> None:
        """Promise events."""
        self.advertisements[id] = parse(filter)
        self.network.say(self.name, Advertise(id, self.advertisements[id]))

    def hear(self, message: Message) -> None:
        """Acknowledge a delivery."""
        if isinstance(message, Deliver) and message.number:
            self.network.say(self.name, Acknowledge(message.number))


def ways(topology: Topology) -> Callable[[str], Callable[[str], str]]:
    """For each broker of a tree: through which neighbour it reaches another one."""
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
