"""Actions on channels: an administrator gives a channel another home."""

from __future__ import annotations

from fieldfare.core.channel_inputs import MoveChannel as Request
from fieldfare.simulation.actions.act import Act, node_of
from fieldfare.simulation.actions.clients import TYPED, TYPES, Move, Publish
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.actions.nodes import kill
from fieldfare.simulation.core_network import CoreNetwork


class MoveChannel(Act, frozen=True):
    """A channel goes to a node, on a request at any node; a node that is down does not hear the request."""

    type: int
    target: int
    at: int = 0

    def perform(self, network: CoreNetwork) -> None:
        """Ask for the move; the node may refuse, as one that has just started does."""
        host = network.hosts[node_of(network, self.at)]
        host.submit(Request(TYPES[self.type % len(TYPES)], node_of(network, self.target)))


def move(dice: Dice) -> Act:
    """Draw a channel and two nodes."""
    return MoveChannel(dice.randrange(2), dice.node(), dice.node())


def busy(dice: Dice) -> list[Act]:
    """A client publishes events of a channel without pause, while the channel comes and goes, and nodes die."""
    type, client = dice.randrange(2), dice.client()
    numbers = [number for number, event in enumerate(TYPED) if event["type"] == TYPES[type]]
    acts: list[Act] = []
    for _ in range(dice.randint(3, 8)):
        acts += [Publish(client, (dice.choice(numbers),)) for _ in range(dice.randint(1, 3))]
        kind = dice.random()
        if kind < 0.5:
            acts.append(MoveChannel(type, dice.node(), dice.node()))
        elif kind < 0.65:
            acts.append(Move(client, dice.node()))
        elif kind < 0.8:
            acts.append(kill(dice))
    return acts
