"""Actions on the versions of nodes: upgrades, and ways back. Such a plan uses nothing else of the newest version."""

from __future__ import annotations

from typing import Final

from fieldfare.protocol.versions import NEWEST, OLDEST
from fieldfare.simulation.actions.act import Act, Chances, node_of
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.core_network import CoreNetwork
from fieldfare.simulation.disk import Stage


class Upgrade(Act, frozen=True):
    """A node is killed, and starts again with a core that speaks up to another version."""

    node: int
    speaks: int = NEWEST
    stage: Stage = Stage.ALL
    kept: int = 0
    seconds: float = 0.0

    def perform(self, network: CoreNetwork) -> None:
        """Kill the node at once; a node that is down starts with the version later."""
        node = node_of(network, self.node)
        network.speaks[node] = self.speaks
        network.note(node, f"speaks version {self.speaks} from its next start on")
        network.kill(node, self.stage, self.kept, seconds=self.seconds)


def upgrade(dice: Dice) -> Act:
    """Draw a version, and the moment of the kill."""
    stage, kept = Stage(dice.randrange(4)), dice.randrange(4)
    return Upgrade(dice.randrange(64), dice.choice((OLDEST, NEWEST)), stage, kept, dice.choice((0.0, 0.05, 0.5)))


MIXED: Final[Chances] = {upgrade: 15}
