"""Actions on patterns: clients subscribe to detections, and go to other nodes while the detectors stay."""

from __future__ import annotations

from fieldfare.simulation.actions import clients
from fieldfare.simulation.actions.act import Act
from fieldfare.simulation.actions.clients import IDS, Move, Publish, Unsubscribe, change
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.core_network import CoreNetwork
from fieldfare.simulation.detections import TEXTS, Detections

ID = "pattern"


class SubscribePattern(Act, frozen=True):
    """A client subscribes to a pattern, perhaps under an id in use."""

    client: int
    id: str
    pattern: int

    def perform(self, network: CoreNetwork) -> None:
        """Subscribe; a session with a subscription to the same pattern keeps the detector."""
        change(network, self.client, Detections(self.id, TEXTS[self.pattern % len(TEXTS)]))


def subscribe(dice: Dice, client: int) -> Act:
    """Draw a subscription to a pattern."""
    return SubscribePattern(client, dice.choice((ID, ID, *IDS)), dice.randrange(64))


def journey(dice: Dice, client: int) -> list[Act]:
    """Draw events, a move of a client, and what may follow: more events, the same subscription again, or its end."""
    again = dice.choice((subscribe(dice, client), Unsubscribe(client, ID), clients.publish(dice)))
    return [
        clients.publish(dice),
        Move(client, dice.node(), keep=dice.random() < 0.3),
        Publish(dice.client(), (4, 8, 1)),
        again,
    ]
