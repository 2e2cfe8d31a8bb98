"""Actions of members of a shared session, workers or devices: they come, go, move, and change the filters of all."""

from __future__ import annotations

from typing import Final

from fieldfare.protocol import messages as m
from fieldfare.simulation.actions.act import Act, Chances, node_of
from fieldfare.simulation.actions.clients import FILTERS, IDS
from fieldfare.simulation.actions.dice import Dice
from fieldfare.simulation.core_network import CoreNetwork
from fieldfare.simulation.member_clients import SessionMember


def member_of(network: CoreNetwork, number: int) -> SessionMember | None:
    """Return the member of a number; None in a network without a shared session."""
    members = list(network.members.values())
    return members[number % len(members)] if members else None


class MoveMember(Act, frozen=True):
    """A member goes to a node, which may send the member back to the others."""

    member: int
    node: int

    def perform(self, network: CoreNetwork) -> None:
        """Hang up, and connect to the node."""
        member = member_of(network, self.member)
        if member is not None:
            member.attach(node_of(network, self.node))


class DetachMember(Act, frozen=True):
    """A member goes away, until the next move or settlement."""

    member: int

    def perform(self, network: CoreNetwork) -> None:
        """Leave what the member holds to the others."""
        member = member_of(network, self.member)
        if member is not None:
            member.detach()


class BreakMember(Act, frozen=True):
    """The connection of a member breaks, with the frames on the way; the member comes back at once."""

    member: int

    def perform(self, network: CoreNetwork) -> None:
        """Break the line of the member, which the node notices later."""
        member = member_of(network, self.member)
        if member is not None and not member.away:
            network.break_line(member)


class SubscribeShared(Act, frozen=True):
    """The first member subscribes for all, or ends a subscription."""

    id: str
    filter: int
    ends: bool = False

    def perform(self, network: CoreNetwork) -> None:
        """Request the change, unless an earlier request has no answer yet."""
        member = member_of(network, 0)
        if member is not None and not member.changes:
            filter = FILTERS[self.filter % len(FILTERS)]
            member.change(m.Unsubscribe(self.id) if self.ends else m.Subscribe(self.id, filter))


class MoveTogether(Act, frozen=True):
    """All members go to a node: the first takes the session there, and the others follow."""

    node: int

    def perform(self, network: CoreNetwork) -> None:
        """Detach all members before any of them comes back."""
        for member in network.members.values():
            member.detach()
        for member in network.members.values():
            member.attach(node_of(network, self.node))


class AddDevice(Act, frozen=True):
    """A further device comes to a node, from now on or from the oldest waiting event on."""

    node: int
    oldest: bool = False

    def perform(self, network: CoreNetwork) -> None:
        """Add the device, unless no device of the beginning knows a node yet."""
        first = member_of(network, 0)
        if first is not None and first.node:
            label = network.fresh("late").replace("/", "")  # two devices of a name would be one, at two places
            network.add_device(
                first.name, label, node_of(network, self.node), lag=first.lag, late=True, oldest=self.oldest
            )


class RemoveDevice(Act, frozen=True):
    """A device that came late is removed."""

    device: int

    def perform(self, network: CoreNetwork) -> None:
        """Remove the device at the node of the session."""
        late = [one for one in network.members.values() if one.label.startswith("late")]
        if late:
            device = late[self.device % len(late)]
            network.remove_device(device.name, device.label)


COPIED: Final[Chances] = {
    lambda dice: AddDevice(dice.node(), dice.random() < 0.5): 3,
    lambda dice: RemoveDevice(dice.randrange(64)): 2,
}
"""drawn in runs with devices"""
SHARED: Final[Chances] = {
    lambda dice: MoveMember(dice.randrange(64), dice.node()): 5,
    lambda dice: DetachMember(dice.randrange(64)): 5,
    lambda dice: BreakMember(dice.randrange(64)): 5,
    lambda dice: MoveTogether(dice.node()): 4,
    lambda dice: SubscribeShared(dice.choice(IDS), dice.randrange(64), dice.random() < 0.2): 2,
}
"""drawn in runs with a shared session"""


def subscribe_shared(dice: Dice) -> Act:
    """Draw a subscription of the shared session, often to everything."""
    return SubscribeShared(dice.choice(IDS), dice.choice((0, dice.randrange(64))))
