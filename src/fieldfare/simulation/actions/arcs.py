"""Arcs: sequences of actions with several faults together, rare by chance alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from fieldfare.simulation.actions.act import Act
from fieldfare.simulation.actions.clients import IDS, Deafen, Detach, Move, Subscribe, publish
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.actions.links import Cut, Heal
from fieldfare.simulation.actions.nodes import Kill, Lose, Maintain, Settle, kill
from fieldfare.simulation.disk import Stage

Arc: TypeAlias = Callable[[Dice], list[Act]]


def waiting(dice: Dice) -> list[Act]:
    """Events wait for an absent client, whose session arrives at a dying node without the client."""
    client, node = dice.client(), dice.node()
    return [Detach(client), publish(dice), Move(client, node), Detach(client), publish(dice), kill(dice, node)]


def crowded(dice: Dice) -> list[Act]:
    """Filters and events wait for a link together, and come to a node dying in the middle of the write."""
    link, client = dice.link(), dice.client()
    subscribe = Subscribe(client, dice.choice(IDS), dice.randrange(64))
    return [Cut(link), subscribe, publish(dice, client), publish(dice), kill(dice), Heal()]


def errant(dice: Dice) -> list[Act]:
    """A client looks for the session while nodes die."""
    client, node = dice.client(), dice.node()
    return [kill(dice, node), Move(client, dice.node()), publish(dice), Move(client, node), kill(dice)]


def orphaned(dice: Dice) -> list[Act]:
    """Events wait for a deaf client, the session gets another replica, and the node fails for good."""
    client, node = dice.client(), dice.node()
    subscribe = Subscribe(client, dice.choice(IDS), dice.randrange(64))
    deaf = [Deafen(client), publish(dice), publish(dice), subscribe, publish(dice)]
    return [Move(client, node), Settle(), *deaf, Lose(node, dice.node(), dice.random() < 0.3)]


def forgotten(dice: Dice) -> list[Act]:
    """A power failure comes when rows know more of the log than the disk has."""
    node = dice.node()
    stop = Kill(node, 0, Stage.ALL, 0, dice.choice((0.0, 0.5)), power=True)
    return [publish(dice), publish(dice), Maintain(node), publish(dice), stop, publish(dice), publish(dice)]


ARCS: Final[tuple[Arc, ...]] = (waiting, crowded, errant)
WITH_REPLICAS: Final[tuple[Arc, ...]] = (*ARCS, orphaned)
UNSYNCED: Final[tuple[Arc, ...]] = (*ARCS, forgotten, forgotten)
