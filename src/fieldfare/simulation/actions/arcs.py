"""Arcs: sequences of actions that bring several faults together, which chance alone rarely does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from fieldfare.simulation.actions.act import Act
from fieldfare.simulation.actions.clients import IDS, Detach, Move, Subscribe, publish
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.actions.links import Cut, Heal
from fieldfare.simulation.actions.nodes import kill

Arc: TypeAlias = Callable[[Dice], list[Act]]


def waiting(dice: Dice) -> list[Act]:
    """Events wait for a client who is away, moves, and is away again when the session arrives at a node that dies."""
    client, node = dice.client(), dice.node()
    return [Detach(client), publish(dice), Move(client, node), Detach(client), publish(dice), kill(dice, node)]


def crowded(dice: Dice) -> list[Act]:
    """Filters and events wait for a link together, and come to a node that dies with a part of them written."""
    link, client = dice.link(), dice.client()
    subscribe = Subscribe(client, dice.choice(IDS), dice.randrange(64))
    return [Cut(link), subscribe, publish(dice, client), publish(dice), kill(dice), Heal()]


def errant(dice: Dice) -> list[Act]:
    """A client looks for its session while nodes die."""
    client, node = dice.client(), dice.node()
    return [kill(dice, node), Move(client, dice.node()), publish(dice), Move(client, node), kill(dice)]


ARCS: Final[tuple[Arc, ...]] = (waiting, crowded, errant)
