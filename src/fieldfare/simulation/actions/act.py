"""`Act`: an action of a plan, as a value that can be applied to a network; and how actions name their objects.

The numbers of clients, nodes and links in an action count modulo the existing ones, so a plan without a part is a plan.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

import msgspec

from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.core_clients import DurableClient
from fieldfare.simulation.core_network import CoreNetwork


class Act(msgspec.Struct, frozen=True):
    """An action of a client or operator, or a fault. The text of an act is a Python expression for the act."""

    def perform(self, network: CoreNetwork) -> None:
        """Apply the action to a network, at the present time."""
        raise NotImplementedError

    def simpler(self) -> Iterable[Act]:
        """Return simpler actions of the kind, to be tried when a failing plan is shrunk."""
        return ()


Drawing: TypeAlias = Callable[[Dice], Act]
Chances: TypeAlias = Mapping[Drawing, int]
"""ways to draw an action, by weight; the weights of `clients` add up to about 70"""


def client_of(network: CoreNetwork, number: int) -> DurableClient:
    """Return the client of a number."""
    clients = list(network.clients.values())
    return clients[number % len(clients)]


def nodes_of(network: CoreNetwork) -> list[str]:
    """Return the names of all nodes that have not failed for good."""
    return sorted(network.hosts.keys() - network.lost)


def node_of(network: CoreNetwork, number: int, near: str = "") -> str:
    """Return the node of a number, in the domain of a node if one is given."""
    domains = network.options.domains
    nodes = [node for node in nodes_of(network) if not near or domains.near(node, near)]
    return nodes[number % len(nodes)]


def link_of(network: CoreNetwork, number: int) -> tuple[str, str] | None:
    """Return the link of a number; None in a network without links."""
    edges = [edge for edge in network.edges if not network.lost & set(edge)]
    return edges[number % len(edges)] if edges else None
