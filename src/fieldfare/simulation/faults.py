"""Faults: what goes wrong in a scenario, or is mended, and when."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, TypeAlias

import msgspec

from fieldfare.protocol.messages import Role
from fieldfare.routing.broker import Broker
from fieldfare.simulation.network import Network

Roles: TypeAlias = Mapping[tuple[str, str], Role]
"""of all links, in both directions: what the second broker is to the first"""


class _Fault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="do"):
    """Something that goes wrong, or is mended, at a time."""

    time: Annotated[float, msgspec.Meta(ge=0)]

    def links(self) -> Iterable[tuple[str, str]]:
        """The links that it names."""
        return ()

    def brokers(self) -> Iterable[str]:
        """The brokers that it names."""
        return [broker for link in self.links() for broker in link]

    def act(self, network: Network[Broker], roles: Roles) -> None:
        """Do it."""
        raise NotImplementedError


class Down(_Fault, frozen=True, tag="down"):
    """A link goes down."""

    link: tuple[str, str]

    def links(self) -> Iterable[tuple[str, str]]:
        """The one."""
        return [self.link]

    def act(self, network: Network[Broker], roles: Roles) -> None:
        """Do it."""
        network.disconnect(*self.link)


class Up(Down, frozen=True, tag="up"):
    """It comes up again."""

    def act(self, network: Network[Broker], roles: Roles) -> None:
        """Do it."""
        network.connect(*self.link, roles[self.link])


class Crash(_Fault, frozen=True, tag="crash"):
    """A broker stops."""

    broker: str

    def brokers(self) -> Iterable[str]:
        """The one."""
        return [self.broker]

    def act(self, network: Network[Broker], roles: Roles) -> None:
        """Do it."""
        network.crash(self.broker)


class Restart(Crash, frozen=True, tag="restart"):
    """It is back."""

    keep: bool = True
    """whether it knows its clients still, from a snapshot"""

    def act(self, network: Network[Broker], roles: Roles) -> None:
        """Do it."""
        network.restart(self.broker, network.brokers[self.broker].snapshot() if self.keep else None)


class Partition(_Fault, frozen=True, tag="partition"):
    """Only links within a group stay up."""

    groups: list[list[str]]

    def brokers(self) -> Iterable[str]:
        """All in some group."""
        return [broker for group in self.groups for broker in group]

    def act(self, network: Network[Broker], roles: Roles) -> None:
        """Do it."""
        network.partition(*self.groups)


class Heal(_Fault, frozen=True, tag="heal"):
    """The partition ends."""

    def act(self, network: Network[Broker], roles: Roles) -> None:
        """Do it."""
        network.heal()


Fault: TypeAlias = Down | Up | Crash | Restart | Partition | Heal
