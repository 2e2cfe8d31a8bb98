"""Faults of disks: slow, full, damaged, or replaced by an earlier copy."""

from __future__ import annotations

from typing import Final

from fieldfare.simulation.actions.act import Act, Chances, node_of
from fieldfare.simulation.core_network import CoreNetwork


class SlowDisk(Act, frozen=True):
    """The disk of a node gets slow, or fast again."""

    node: int
    seconds: float

    def perform(self, network: CoreNetwork) -> None:
        """Set the mean time of a write."""
        network.disks[node_of(network, self.node)].seconds = self.seconds


class FullDisk(Act, frozen=True):
    """The disk of a node gets full; after some seconds there is room again."""

    node: int
    seconds: float

    def perform(self, network: CoreNetwork) -> None:
        """Let each write fail, which stops the node."""
        network.fill(node_of(network, self.node), self.seconds)


class FlipBit(Act, frozen=True):
    """A bit of an entry or a row flips on the disk of a node."""

    node: int

    def perform(self, network: CoreNetwork) -> None:
        """Damage the disk; the node in memory goes on, and the next start is refused."""
        node = node_of(network, self.node)
        network.disks[node].flip(network.random_of(node))


class Copy(Act, frozen=True):
    """An operator copies the folder of a node, as a backup."""

    node: int

    def perform(self, network: CoreNetwork) -> None:
        """Keep the latest copy of each node."""
        network.disks[node_of(network, self.node)].copy()


class SetBack(Act, frozen=True):
    """A node is killed, and starts from the copy of the folder, without everything since."""

    node: int
    seconds: float

    def perform(self, network: CoreNetwork) -> None:
        """Only kill the node if there is no copy."""
        network.set_back(node_of(network, self.node), self.seconds)


CHANCES: Final[Chances] = {lambda dice: SlowDisk(dice.node(), dice.choice((0.0, 0.01, 0.3))): 4}
WILD: Final[Chances] = {
    lambda dice: FullDisk(dice.node(), dice.choice((0.2, 1.0))): 4,
    lambda dice: FlipBit(dice.node()): 4,
}
"""in some of the runs only: these faults stop nodes for longer"""
UNSYNCED: Final[Chances] = {
    lambda dice: Copy(dice.node()): 8,
    lambda dice: SetBack(dice.node(), dice.choice((0.0, 0.5))): 5,
    lambda dice: FlipBit(dice.node()): 3,
}
"""in runs whose disks may forget"""
