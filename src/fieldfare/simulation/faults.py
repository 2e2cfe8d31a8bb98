"""Faults of a scenario: links and brokers go down and come up, the network is partitioned, each at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeAlias

import msgspec

from fieldfare.protocol.messages import Role
from fieldfare.simulation.durable_network import DurableNetwork
from fieldfare.simulation.network import Network

AnyNetwork: TypeAlias = Network[Any] | DurableNetwork
Roles: TypeAlias = Mapping[tuple[str, str], Role]
"""of all links, in both directions: what the second broker is to the first"""


class _Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do"):
    """A fault, or the end of a fault, at a time."""

    time: Annotated[float, msgspec.Meta(ge=0)]

    def links(self) -> Iterable[tuple[str, str]]:
        """The links named by the fault, which must exist."""
        return ()

    def brokers(self) -> Iterable[str]:
        """The brokers named by the fault, which must exist."""
        return [broker for link in self.links() for broker in link]

    def act(self, network: AnyNetwork, roles: Roles) -> None:
        """Apply the fault to a network."""
        raise NotImplementedError


class Down(_Fault, frozen=True, tag="down"):
    """A link goes down, and messages on the link are lost."""

    link: tuple[str, str]

    def links(self) -> Iterable[tuple[str, str]]:
        """The single link or broker of the fault."""
        return [self.link]

    def act(self, network: AnyNetwork, roles: Roles) -> None:
        """Take the link down in the simulated network."""
        network.disconnect(*self.link)


class Up(Down, frozen=True, tag="up"):
    """A link comes up after a `Down`."""

    def act(self, network: AnyNetwork, roles: Roles) -> None:
        """Bring the link up again in the simulated network."""
        network.connect(*self.link, roles[self.link])


class Crash(_Fault, frozen=True, tag="crash"):
    """A broker stops, and loses the messages in the queue."""

    broker: str

    def brokers(self) -> Iterable[str]:
        """The single link or broker of the fault."""
        return [self.broker]

    def act(self, network: AnyNetwork, roles: Roles) -> None:
        """Stop the broker at once, without a farewell to its neighbours."""
        network.crash(self.broker)


class Restart(Crash, frozen=True, tag="restart"):
    """The restart of a broker that has crashed, with or without its state."""

    keep: bool = True
    """whether the broker restarts from a snapshot, with clients and filters"""

    def act(self, network: AnyNetwork, roles: Roles) -> None:
        """Start the broker again in the simulated network."""
        network.restart(self.broker, network.brokers[self.broker].snapshot() if self.keep else None)


class Partition(_Fault, frozen=True, tag="partition"):
    """Only links within a group stay up."""

    groups: list[list[str]]

    def brokers(self) -> Iterable[str]:
        """The brokers of all groups."""
        return [broker for group in self.groups for broker in group]

    def act(self, network: AnyNetwork, roles: Roles) -> None:
        """Part the network into the groups."""
        network.partition(*self.groups)


class Heal(_Fault, frozen=True, tag="heal"):
    """The partition ends, and links between groups come up."""

    def act(self, network: AnyNetwork, roles: Roles) -> None:
        """End the partition of the network."""
        network.heal()


Fault: TypeAlias = Down | Up | Crash | Restart | Partition | Heal
