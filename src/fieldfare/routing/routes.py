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
from fieldfare.protocol.messages import About, Change, FilterUpdate, Forward, Role

LOCAL: Final = ""
"""the clients of the broker, all together"""


class ProtocolError(ValueError):
    """A message that its sender may not send. Nothing has changed."""


class To(NamedTuple):
    """What a neighbour is to be told; or, to LOCAL, an event that may go on its way now."""

    neighbour: str
    change: Change | Forward


class Routes(ABC):
    """The routing state of one broker."""

    def __init__(self) -> None:
        """No neighbours yet."""
        self.roles: dict[str, Role] = {}

    @property
    def neighbours(self) -> Collection[str]:
        """The brokers that it is linked to."""
        return self.roles

    def knows(self, neighbour: str) -> bool:
        """May it talk to us?"""
        return neighbour in self.roles

    @abstractmethod
    def connect(self, neighbour: str, role: Role) -> list[To]:
        """There is a new neighbour, of whom nothing is known and who knows nothing."""

    @abstractmethod
    def disconnect(self, neighbour: str) -> list[To]:
        """A neighbour is gone, with all it wanted and promised."""

    @abstractmethod
    def tell(self, tell: FilterUpdate, sender: str) -> list[To]:
        """An interface changes what it wants, or what it will publish."""

    @property
    def untidy(self) -> bool:
        """Is there something that may have to be forgotten some time after?"""
        return False

    def tidy(self) -> list[To]:
        """Forget what was useless the last time too."""
        return []

    @property
    def wakes(self) -> float | None:
        """When it wants `tick` to be called, if at all."""
        return None

    def tick(self, now: float) -> list[To]:
        """Let time pass."""
        return []

    def reached(self, neighbour: str) -> list[To]:
        """A neighbour can be talked to from now on. A running node finds it so again and again."""
        return []

    def lost(self, neighbour: str) -> list[To]:
        """For now it cannot."""
        return []

    def mark(self, event: Forward) -> Forward:
        """An event is published here: let it have what helps others to forward it."""
        return event

    def enter(self, event: Forward) -> list[To]:
        """An event is published here, and clients have it: let it go to neighbours, at once or after others."""
        return [To(LOCAL, event)]

    def retire(self) -> list[To]:
        """Say goodbye to those who would otherwise have to find out."""
        return []

    def hear(self, change: Change, sender: str, now: float) -> list[To]:
        """A neighbour says something that only some overlays know of."""
        raise ProtocolError(f"{type(change).__name__} means nothing to this strategy: do all brokers have the same?")

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
    def turn(self, neighbour: str, role: Role) -> list[To]:
        """Let a neighbour have another role from now on. What it told us stays; what we told it we take back."""


class Flooding(LinkRoutes):
    """Every event goes everywhere, and nobody is told anything."""

    def connect(self, neighbour: str, role: Role) -> list[To]:
        """One more to flood."""
        self.roles[neighbour] = role
        return []

    def disconnect(self, neighbour: str) -> list[To]:
        """One less."""
        del self.roles[neighbour]
        return []

    def turn(self, neighbour: str, role: Role) -> list[To]:
        """It is flooded from now on, or no more."""
        self.roles[neighbour] = role
        return []

    def tell(self, tell: FilterUpdate, sender: str) -> list[To]:
        """Clients want something: that concerns nobody else."""
        return []

    def match(self, event: Forward, sender: str) -> set[str]:
        """All but the one that it came from."""
        return {one for one, role in self.roles.items() if one != sender and role is not Role.RESTING} | {LOCAL}

    @property
    def entries(self) -> int:
        """One for each neighbour."""
        return len(self.roles)
