"""Actions on whole nodes: kills in the middle of a write, failures for good, maintenance; and rest."""

from __future__ import annotations

from collections import Counter
from typing import Final

from fieldfare.simulation.actions.act import Act, Chances, node_of, nodes_of
from fieldfare.simulation.actions.clients import EVENTS
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.core_clients import DurableClient
from fieldfare.simulation.core_network import CoreNetwork
from fieldfare.simulation.disk import Stage

SPREAD: Final = 1.0
"""seconds in which an event reaches all nodes, if nothing is broken"""


class Kill(Act, frozen=True):
    """A node is killed in a later step, at a stage of the write, and starts again later.

    For the stages in the middle of a write, only steps with entries of the log count.
    """

    node: int
    steps: int = 0
    stage: Stage = Stage.ALL
    kept: int = 0
    seconds: float = 0.0
    power: bool = False
    """whether the machine loses its power; then a disk without sync loses its last writes"""

    def perform(self, network: CoreNetwork) -> None:
        """Plan the kill; a node without further steps lives on."""
        node = node_of(network, self.node)
        network.kill_later(node, self.steps, self.stage, self.kept, self.seconds, power=self.power)


class Outage(Act, frozen=True):
    """All nodes lose power at once."""

    seconds: float = 0.0

    def perform(self, network: CoreNetwork) -> None:
        """Let the nodes start again in turn."""
        for number, node in enumerate(nodes_of(network)):
            network.kill(node, Stage.TORN, number, seconds=self.seconds * (number + 1), power=True)


class Maintain(Act, frozen=True):
    """A node writes a checkpoint and deletes unneeded entries."""

    node: int

    def perform(self, network: CoreNetwork) -> None:
        """Do the work of a node's every minute."""
        network.hosts[node_of(network, self.node)].maintain()


class Lose(Act, frozen=True):
    """Everything settles, then a leaf of the tree fails for good, and the clients there go to another node.

    Clients who are away or deaf stay so until then: events wait for them at the leaf, and with the replica holder.
    A home of a channel does not fail: its channel would end.
    """

    leaf: int
    refuge: int
    unheard: bool = False
    """whether the clients there publish in time, and do not hear that the node has accepted the event"""

    def perform(self, network: CoreNetwork) -> None:
        """Do nothing if another node has failed; the only neighbour of a leaf is the replica holder."""
        if network.lost or len(network.hosts) < 3 or network.options.replicas == 0:
            return
        network.settle(reunite=False)
        node = self._leaf_of(network)
        if any(map(network.hosts[node].core.channels.homes.here, network.options.channels.homes)):
            return
        others = sorted(network.hosts.keys() - {node})
        here: list[DurableClient] = [one for one in network.clients.values() if node in (one.node, one.home)]
        members = list(network.members.values())
        here += [one for one in members if node in (one.node, one.home)]
        # A client who does not know where its session is, knows no replica holder either.
        knowing = {client.name for client in here if client.node == node and client.replicas}
        core = network.hosts[node].core
        lost = core.sessions.keys() - core.replicas.held.keys() - knowing
        if any(client.name not in knowing or client.node != node for client in here) or lost:
            return
        if 0 < sum(one in here for one in members) < len(members):  # a member that is away may know of no holder
            return
        for client in here if self.unheard else ():
            if client not in members:
                network.deafen(client)
                client.publish([EVENTS[self.refuge % len(EVENTS)]])
        network.clock.run(network.clock.now + SPREAD)
        network.lose(node)
        for client in here:
            client.attach(others[self.refuge % len(others)])

    def _leaf_of(self, network: CoreNetwork) -> str:
        near = Counter(node for edge in network.edges for node in edge)
        leaves = [node for node, count in near.items() if count == 1]
        node = node_of(network, self.leaf)
        return node if node in leaves else leaves[self.leaf % len(leaves)]


def lose(dice: Dice) -> Act:
    """Draw a leaf and a refuge."""
    return Lose(dice.node(), dice.node(), dice.random() < 0.5)


class Settle(Act, frozen=True):
    """All faults are mended, all clients come back, and the network comes to rest."""

    def perform(self, network: CoreNetwork) -> None:
        """Wait for rest; a network without rest has a problem."""
        network.settle()


def kill(dice: Dice, node: int | None = None) -> Act:
    """Draw the moment of a kill, and the progress of the write."""
    stage, kept = Stage(dice.randrange(4)), dice.randrange(4)
    node = dice.node() if node is None else node
    seconds = dice.choice((0.0, 0.05, 0.5, 3.0))
    return Kill(node, dice.choice((0, 0, 1, 3)), stage, kept, seconds, dice.random() < 0.3)


CHANCES: Final[Chances] = {
    kill: 14,
    lambda dice: Maintain(dice.node()): 6,
    lambda dice: Outage(dice.choice((0.0, 0.05, 0.5))): 1,
}
