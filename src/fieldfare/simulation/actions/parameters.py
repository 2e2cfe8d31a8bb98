"""Actions on dynamic filters: subscriptions with parameters, and places and other values that clients state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from fieldfare.simulation.actions.act import Act, Chances, client_of
from fieldfare.simulation.actions.clients import IDS, PLACES, change
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.core_network import CoreNetwork
from fieldfare.simulation.filling import Dynamic

TEXTS: Final = (
    "at IN myloc",
    "at IN myloc AND y > :low",
    "x BETWEEN :low AND 2",
    "NOT (at IN myloc) AND y < 2",
    "at IN myloc OR y = :low",
    "x IN :some AND y >= :low",
    "at NOT IN myloc AND x NOT IN :some",
)


class SubscribeDynamic(Act, frozen=True):
    """A client subscribes to a filter with parameters, perhaps under an id in use."""

    client: int
    id: str
    filter: int

    def perform(self, network: CoreNetwork) -> None:
        """Subscribe, also before the parameters have values."""
        change(network, self.client, Dynamic(self.id, TEXTS[self.filter % len(TEXTS)]))


class State(Act, frozen=True):
    """A client states a place and other values, or forgets them (None)."""

    client: int
    values: dict[str, str | int | tuple[int, ...] | None]

    def perform(self, network: CoreNetwork) -> None:
        """State all the values at once, unless an earlier request has no answer yet that may come behind."""
        client = client_of(network, self.client)
        if client.may_state:
            client.state(self.values)

    def simpler(self) -> Iterable[Act]:
        """Return the statements of the single values."""
        return [State(self.client, {name: self.values[name]}) for name in self.values] if len(self.values) > 1 else []


def subscribe(dice: Dice) -> Act:
    """Draw a subscription with parameters."""
    return SubscribeDynamic(dice.client(), dice.choice(IDS), dice.randrange(64))


def state(dice: Dice) -> Act:
    """Draw a place mostly, and sometimes other values."""
    values: dict[str, str | int | tuple[int, ...] | None] = {}
    if dice.random() < 0.8:
        values["myloc"] = dice.choice(PLACES)
    if dice.random() < 0.4:
        values["low"] = dice.choice((0, 1, 2, 3, None))
    if dice.random() < 0.2 or not values:
        values["some"] = tuple(dice.sample(range(4), dice.randrange(4)))
    return State(dice.client(), values)


CHANCES: Final[Chances] = {subscribe: 3, state: 10}
