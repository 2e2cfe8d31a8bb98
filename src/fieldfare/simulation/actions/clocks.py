"""Faults of clocks: skew, jumps forward and back, wrong rates."""

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


class Slew(Act, frozen=True):
    """The clocks of a node run too fast or too slow, by a bad oscillator or a time service at work."""

    node: int
    rate: float

    def perform(self, network: CoreNetwork) -> None:
        """Change the rate from now on."""
        network.slew(node_of(network, self.node), self.rate)


WILD: Final[Chances] = {
    lambda dice: Jump(dice.node(), dice.choice((-3600.0, -1.0, 0.5, 3600.0))): 5,
    lambda dice: Slew(dice.node(), dice.choice((0.9, 0.9995, 1.0, 1.0005, 1.1))): 2,
}
"""in some of the runs only"""
