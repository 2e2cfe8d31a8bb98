"""`Routes`: whom a broker tells what, and where it sends an event. Every routing strategy is one of these.

The broker deals with clients and messages; routes see *interfaces* only: its neighbours by name, and all clients
together as `LOCAL`. An interface changes its filters by a `FilterUpdate`, and routes answer with what each neighbour
must be told in turn. This is `administer` of the book's framework; all the rest is the same for every strategy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection
from typing import Final, NamedTuple

from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import About, FilterUpdate, Forward, Role, RoutingMessage

LOCAL: Final = ""
"""the clients of the broker, all together"""


class ProtocolError(ValueError):
    """A message that its sender may not send. Nothing has changed."""


class Outgoing(NamedTuple):
    """What a neighbour is to be told; or, to LOCAL, an event that may go on its way now."""

    neighbour: str
    message: RoutingMessage | Forward


class Routes(ABC):
    """The routing state of one broker."""

    def __init__(self) -> None:
        """No neighbours yet."""
        self.roles: dict[str, Role] = {}

    @property
    def neighbours(self) -> Collection[str]:
        """The brokers that it is linked to."""
        return self.roles

    def accepts(self, neighbour: str) -> bool:
        """May it talk to us?"""
        return neighbour in self.roles

    @abstractmethod
    def connect(self, neighbour: str, role: Role) -> list[Outgoing]:
        """There is a new neighbour, of whom nothing is known and who knows nothing."""

    @abstractmethod
    def disconnect(self, neighbour: str) -> list[Outgoing]:
        """A neighbour is gone, with all it wanted and promised."""

    @abstractmethod
    def apply(self, update: FilterUpdate, sender: str) -> list[Outgoing]:
        """An interface changes what it wants, or what it will publish."""

    @property
    def needs_sweep(self) -> bool:
        """Is there something that may have to be forgotten some time after?"""
        return False

    def sweep(self) -> list[Outgoing]:
        """Forget what was useless the last time too."""
        return []

    @property
    def wakes(self) -> float | None:
        """When it wants `tick` to be called, if at all."""
        return None

    def tick(self, now: float) -> list[Outgoing]:
        """Let time pass."""
        return []

    def link_up(self, neighbour: str) -> list[Outgoing]:
        """A neighbour can be talked to from now on. A running node finds it so again and again."""
        return []

    def link_down(self, neighbour: str) -> list[Outgoing]:
        """For now it cannot."""
        return []

    def tag(self, event: Forward) -> Forward:
        """An event is published here: let it have what helps others to forward it."""
        return event

    def publish(self, event: Forward) -> list[Outgoing]:
        """An event is published here, and clients have it: let it go to neighbours, at once or after others."""
        return [Outgoing(LOCAL, event)]

    def retire(self) -> list[Outgoing]:
        """Say goodbye to those who would otherwise have to find out."""
        return []

    def receive(self, message: RoutingMessage, sender: str, now: float) -> list[Outgoing]:
        """A neighbour says something that only some overlays know of."""
        raise ProtocolError(f"{type(message).__name__} means nothing to this strategy: do all brokers have the same?")

    @abstractmethod
    def match(self, event: Forward, sender: str) -> set[str]:
        """The interfaces that must get an event; never the neighbour that it came from."""

    def subjects(self) -> tuple[About, ...]:
        """What neighbours are told about, in the order in which they must hear it."""
        return ()

    def exports(self, neighbour: str, about: About = "subscriptions") -> tuple[Filter, ...]:
        """All that a neighbour must know, as it was told."""
        return ()

    @property
    @abstractmethod
    def entries(self) -> int:
        """The size of the routing tables: how many pairs of a filter and an interface."""


class LinkRoutes(Routes):
    """Routes whose neighbours may get other roles, as it is done to let links rest."""

    @abstractmethod
    def set_role(self, neighbour: str, role: Role) -> list[Outgoing]:
        """Let a neighbour have another role from now on. What it told us stays; what we told it we take back."""


class Flooding(LinkRoutes):
    """Every event goes everywhere, and nobody is told anything."""

    def connect(self, neighbour: str, role: Role) -> list[Outgoing]:
        """One more to flood."""
        self.roles[neighbour] = role
        return []

    def disconnect(self, neighbour: str) -> list[Outgoing]:
        """One less."""
        del self.roles[neighbour]
        return []

    def set_role(self, neighbour: str, role: Role) -> list[Outgoing]:
        """It is flooded from now on, or no more."""
        self.roles[neighbour] = role
        return []

    def apply(self, update: FilterUpdate, sender: str) -> list[Outgoing]:
        """Clients want something: that concerns nobody else."""
        return []

    def match(self, event: Forward, sender: str) -> set[str]:
        """All but the one that it came from."""
        return {one for one, role in self.roles.items() if one != sender and role is not Role.RESTING} | {LOCAL}

    @property
    def entries(self) -> int:
        """One for each neighbour."""
        return len(self.roles)
