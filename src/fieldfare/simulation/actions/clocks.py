"""Faults of clocks: jumps forward and back."""

from __future__ import annotations

from typing import Final

from fieldfare.simulation.actions.act import Act, Chances, node_of
from fieldfare.simulation.core_network import CoreNetwork


class Jump(Act, frozen=True):
    """The wall clock of a node jumps."""

    node: int
    seconds: float

    def perform(self, network: CoreNetwork) -> None:
        """Set the clock forward or back."""
        network.jump(node_of(network, self.node), self.seconds)


WILD: Final[Chances] = {lambda dice: Jump(dice.node(), dice.choice((-3600.0, -1.0, 0.5, 3600.0))): 6}
"""in some of the runs only"""
