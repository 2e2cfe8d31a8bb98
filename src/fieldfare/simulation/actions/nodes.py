"""Actions on whole nodes: kills in the middle of a write, failures for good, maintenance; and rest."""

from __future__ import annotations

from collections import Counter
from typing import Final

from fieldfare.simulation.actions.act import Act, Chances, node_of
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.core_network import CoreNetwork
from fieldfare.simulation.disk import Stage


class Kill(Act, frozen=True):
    """A node is killed in a later step, at a stage of the write, and starts again later.

    For the stages in the middle of a write, only steps with entries of the log count.
    """

    node: int
    steps: int = 0
    stage: Stage = Stage.ALL
    kept: int = 0
    seconds: float = 0.0

    def perform(self, network: CoreNetwork) -> None:
        """Plan the kill; a node without further steps lives on."""
        network.kill_later(node_of(network, self.node), self.steps, self.stage, self.kept, self.seconds)


class Maintain(Act, frozen=True):
    """A node writes a checkpoint and deletes unneeded entries."""

    node: int

    def perform(self, network: CoreNetwork) -> None:
        """Do the work of a node's every minute."""
        network.hosts[node_of(network, self.node)].maintain()


class Lose(Act, frozen=True):
    """Everything settles, then a leaf of the tree fails for good, and the clients there go to another node.

    A home of a channel does not fail: its channel would end.
    """

    leaf: int
    refuge: int

    def perform(self, network: CoreNetwork) -> None:
        """Do nothing if another node has failed; the only neighbour of a leaf is the replica holder."""
        near = Counter(node for edge in network.edges for node in edge)
        homes = network.options.channels.homes.values()
        leaves = [node for node, count in near.items() if count == 1 and node not in homes]
        if network.lost or len(network.hosts) < 3 or network.options.replicas == 0 or not leaves:
            return
        network.settle()
        node = leaves[self.leaf % len(leaves)]
        others = sorted(network.hosts.keys() - {node})
        mine = [client for client in network.clients.values() if client.node == node]
        if all(client.replicas for client in mine):
            network.lose(node)
            for client in mine:
                client.attach(others[self.refuge % len(others)])


class Settle(Act, frozen=True):
    """All faults are mended, all clients come back, and the network comes to rest."""

    def perform(self, network: CoreNetwork) -> None:
        """Wait for rest; a network without rest has a problem."""
        network.settle()


def kill(dice: Dice, node: int | None = None) -> Act:
    """Draw the moment of a kill, and the progress of the write."""
    stage, kept = Stage(dice.randrange(4)), dice.randrange(4)
    node = dice.node() if node is None else node
    return Kill(node, dice.choice((0, 0, 1, 3)), stage, kept, dice.choice((0.0, 0.05, 0.5, 3.0)))


CHANCES: Final[Chances] = {kill: 14, lambda dice: Maintain(dice.node()): 6}
