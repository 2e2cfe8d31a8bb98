"""Faults of disks: slow, full, damaged."""

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
    """A bit of the log of a node flips."""

    node: int

    def perform(self, network: CoreNetwork) -> None:
        """Damage the disk; the node in memory goes on, and the next start is refused."""
        node = node_of(network, self.node)
        network.disks[node].flip(network.random_of(node))


CHANCES: Final[Chances] = {lambda dice: SlowDisk(dice.node(), dice.choice((0.0, 0.01, 0.3))): 4}
WILD: Final[Chances] = {
    lambda dice: FullDisk(dice.node(), dice.choice((0.2, 1.0))): 4,
    lambda dice: FlipBit(dice.node()): 4,
}
"""in some of the runs only: these faults stop nodes for longer"""
