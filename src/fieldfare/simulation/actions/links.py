"""Faults of links: cuts and delays in one direction or both, breaks, half-open connections, partitions."""

from __future__ import annotations

from typing import Final

from fieldfare.simulation.actions.act import Act, Chances, link_of, nodes_of
from fieldfare.simulation.core_network import CoreNetwork


class Cut(Act, frozen=True):
    """Frames of a link vanish, in one direction or both, until the network heals."""

    link: int
    forth: bool = True
    back: bool = True

    def perform(self, network: CoreNetwork) -> None:
        """Cut the link silently: each end notices later, and not at once with the other."""
        if (link := link_of(network, self.link)) is not None:
            network.cut(*link, forth=self.forth, back=self.back)


class BreakLink(Act, frozen=True):
    """A link breaks, with the frames on the way, and can be made again."""

    link: int

    def perform(self, network: CoreNetwork) -> None:
        """Lose the frames on the way; both ends notice later."""
        if (link := link_of(network, self.link)) is not None:
            network.break_link(*link)


class HalfOpen(Act, frozen=True):
    """The connection of a link breaks, unnoticed by a node for long, while the other connects anew."""

    link: int
    dialler: bool = False
    """whether the end that dials is the one that does not notice"""

    def perform(self, network: CoreNetwork) -> None:
        """Lose all frames of the connection in both directions."""
        if (link := link_of(network, self.link)) is not None:
            network.half_open(*reversed(link) if self.dialler else link)


class SlowLink(Act, frozen=True):
    """Frames of a link take longer, in one direction or both, until the network heals."""

    link: int
    seconds: float
    forth: bool = True
    back: bool = True

    def perform(self, network: CoreNetwork) -> None:
        """Let the frames come later than all that goes over other links: nobody gives up the connection."""
        if (link := link_of(network, self.link)) is not None:
            for ends, slow in ((link, self.forth), (link[::-1], self.back)):
                if slow:
                    network.slow_down(*ends, self.seconds)


class Part(Act, frozen=True):
    """Some nodes are parted from the others, by the bits of a number."""

    nodes: int

    def perform(self, network: CoreNetwork) -> None:
        """Break all links between the two groups until the network heals."""
        network.partition([node for number, node in enumerate(nodes_of(network)) if self.nodes & 1 << number])


class Heal(Act, frozen=True):
    """Cuts, delays and partitions end, and frames pass everywhere."""

    def perform(self, network: CoreNetwork) -> None:
        """Let all links be made again."""
        network.heal()


DIRECTIONS: Final = ((True, True), (True, False), (False, True))
CHANCES: Final[Chances] = {
    lambda dice: BreakLink(dice.link()): 5,
    lambda dice: Cut(dice.link(), *dice.choice(DIRECTIONS)): 3,
    lambda dice: SlowLink(dice.link(), dice.choice((0.2, 2.0)), *dice.choice(DIRECTIONS)): 3,
    lambda dice: HalfOpen(dice.link(), dice.random() < 0.3): 2,
    lambda _: Heal(): 3,
    lambda dice: Part(dice.randrange(16)): 2,
}
