"""Actions of clients: events, filters, and journeys from node to node."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product
from typing import Final

from fieldfare.events.event import Event
from fieldfare.filters import parse
from fieldfare.filters.filter import Filter
from fieldfare.protocol import messages as m
from fieldfare.simulation.actions.act import Act, Chances, client_of, node_of
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.core_clients import Change
from fieldfare.simulation.core_network import CoreNetwork

PLACES: Final = "abcd"
EVENTS: Final = tuple(Event({"x": x, "y": y, "at": PLACES[x]}) for x, y in product(range(4), repeat=2))
TYPES: Final = ("red", "blue", "grey")
"""types of events in networks with channels, of which the first have one"""
TYPED: Final = tuple(Event({**event, "type": TYPES[int(event["x"] * 0.8)]}) for event in EVENTS)  # type: ignore[operator]
FILTERS: Final[tuple[Filter, ...]] = tuple(
    parse(text)
    for text in (
        "TRUE",
        *(f"{field} BETWEEN {low} AND {high}" for field in "xy" for low in range(4) for high in range(low, 4)),
        "x < 2 AND y > 0",
        "x = 0 AND y BETWEEN 1 AND 2",
        "x > 0 AND y = 2",
        "x = 1 OR y = 1",
    )
)
IDS: Final = ("one", "two")
TTLS: Final = (0.01, 0.3, 10.0, 1e5)
"""times to live in seconds: shorter than a way through the network, and longer than any run"""


class Publish(Act, frozen=True):
    """A client publishes events at once."""

    client: int
    events: tuple[int, ...]
    ttl: float = 0.0
    """seconds for which the events are of use; 0: for ever"""

    def perform(self, network: CoreNetwork) -> None:
        """Publish, here or as soon as a node serves the client."""
        events = TYPED if network.options.channels.homes else EVENTS
        client_of(network, self.client).publish([events[one % len(events)] for one in self.events], self.ttl)

    def simpler(self) -> Iterable[Act]:
        """Return a publication of the first event alone, and one without an end."""
        found = (Publish(self.client, self.events[:1], self.ttl), Publish(self.client, self.events))
        return [one for one in found if one != self]


class Subscribe(Act, frozen=True):
    """A client subscribes, perhaps under an id in use."""

    client: int
    id: str
    filter: int

    def perform(self, network: CoreNetwork) -> None:
        """Replace the filter, if the id is in use."""
        change(network, self.client, m.Subscribe(self.id, FILTERS[self.filter % len(FILTERS)]))


class Unsubscribe(Act, frozen=True):
    """A client ends a subscription."""

    client: int
    id: str

    def perform(self, network: CoreNetwork) -> None:
        """Request the end, also of an unknown subscription."""
        change(network, self.client, m.Unsubscribe(self.id))


class Advertise(Act, frozen=True):
    """A client advertises, besides the first advertisement."""

    client: int
    id: str
    filter: int

    def perform(self, network: CoreNetwork) -> None:
        """Widen or narrow what the client may publish."""
        change(network, self.client, m.Advertise(self.id, FILTERS[self.filter % len(FILTERS)]))


class Unadvertise(Act, frozen=True):
    """A client ends an advertisement."""

    client: int
    id: str

    def perform(self, network: CoreNetwork) -> None:
        """Request the end, also of an unknown advertisement."""
        change(network, self.client, m.Unadvertise(self.id))


class Move(Act, frozen=True):
    """A client goes to a node; with `keep` the former connection lasts until the new node answers."""

    client: int
    node: int
    keep: bool = False

    def perform(self, network: CoreNetwork) -> None:
        """Connect the client to the node, which may be down."""
        client = client_of(network, self.client)
        client.attach(node_of(network, self.node, near=client.home), make_before_break=self.keep)


class LeaveFor(Act, frozen=True):
    """A client says that it will go to a node, which need not be true."""

    client: int
    node: int

    def perform(self, network: CoreNetwork) -> None:
        """Send the hint to the node that serves the client, if any."""
        client = client_of(network, self.client)
        client.leave_for(node_of(network, self.node, near=client.home))


class Detach(Act, frozen=True):
    """A client goes away, until the next move or settlement."""

    client: int

    def perform(self, network: CoreNetwork) -> None:
        """Leave the session behind, with a farewell."""
        client_of(network, self.client).detach()


class BreakLine(Act, frozen=True):
    """The connection of a client breaks, with the frames on the way; the client comes back at once."""

    client: int

    def perform(self, network: CoreNetwork) -> None:
        """Break the line of the client, which the node notices later."""
        network.break_line(client_of(network, self.client))


class Deafen(Act, frozen=True):
    """A client hears nothing of the node, and the node hears the client: half of the connection is broken."""

    client: int

    def perform(self, network: CoreNetwork) -> None:
        """Lose the frames of the node until the client connects again."""
        network.deafen(client_of(network, self.client))


def change(network: CoreNetwork, number: int, message: Change) -> None:
    """Request a change of filters, unless an earlier request has no answer yet that may come behind."""
    client = client_of(network, number)
    if client.may_change(message.id):
        client.change(message)


def publish(dice: Dice, client: int | None = None) -> Act:
    """Draw up to three events of a client, any or the given one."""
    events = tuple(dice.randrange(len(EVENTS)) for _ in range(dice.randint(1, 3)))
    ttl = dice.choice(TTLS) if dice.random() < 0.1 else 0.0
    return Publish(dice.client() if client is None else client, events, ttl)


def register(dice: Dice) -> Act:
    """Draw a subscription, or sometimes an advertisement."""
    client, id, filter = dice.client(), dice.choice(IDS), dice.choice((0, dice.randrange(64)))
    return Advertise(client, id, filter) if dice.random() < 0.1 else Subscribe(client, id, filter)


CHANCES: Final[Chances] = {
    publish: 40,
    register: 4,
    lambda dice: Unsubscribe(dice.client(), dice.choice(IDS)): 2,
    lambda dice: Unadvertise(dice.client(), dice.choice(IDS)): 1,
    lambda dice: Move(dice.client(), dice.node(), dice.random() < 0.3): 14,
    lambda dice: LeaveFor(dice.client(), dice.node()): 5,
    lambda dice: Detach(dice.client()): 6,
    lambda dice: BreakLine(dice.client()): 4,
    lambda dice: Deafen(dice.client()): 2,
}
