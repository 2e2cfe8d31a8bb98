"""`Routes`: the routing state of a broker. Every routing strategy is an implementation.

The broker handles clients and messages; routes know *interfaces* only: the neighbours by name, and all clients together
as `LOCAL`. An interface changes its filters by a `FilterUpdate`, and routes return the messages for neighbours in turn.
`Routes` is `administer` of the book's framework; all the rest is the same for every strategy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter
from fieldfare.protocol.messages import About, FilterUpdate, Forward, Role, RoutingMessage
from fieldfare.tables.shared_index import Entries

LOCAL: Final = ""
"""the interface of all clients of the broker together"""


class ProtocolError(ValueError):
    """A message that its sender may not send. The broker is unchanged."""


class Outgoing(NamedTuple):
    """A message for a neighbour; or, addressed to LOCAL, an event that may leave now."""

    neighbour: str
    message: RoutingMessage | Forward


class Routes(ABC):
    """The routing state of a single broker."""

    def __init__(self) -> None:
        self.roles: dict[str, Role] = {}

    @property
    def neighbours(self) -> Collection[str]:
        """The names of the linked brokers."""
        return self.roles

    def accepts(self, neighbour: str) -> bool:
        """Tell whether messages from a broker are allowed."""
        return neighbour in self.roles

    @abstractmethod
    def connect(self, neighbour: str, role: Role) -> list[Outgoing]:
        """Add a neighbour, which knows nothing yet; return the messages that introduce the broker."""

    @abstractmethod
    def disconnect(self, neighbour: str) -> list[Outgoing]:
        """Remove a neighbour with all its filters; return the messages for the other neighbours."""

    @abstractmethod
    def apply(self, update: FilterUpdate, sender: str) -> list[Outgoing]:
        """Apply a change of an interface's subscriptions or advertisements; return the updates for neighbours."""

    @property
    def needs_sweep(self) -> bool:
        """Whether there is state that may become stale with time."""
        return False

    def sweep(self) -> list[Outgoing]:
        """Forget the state that was already stale at the last sweep."""
        return []

    @property
    def wakes(self) -> float | None:
        """The time at which the caller must call `tick`; None if no work is planned."""
        return None

    def tick(self, now: float) -> list[Outgoing]:
        """Do the work that is due by now."""
        return []

    def link_up(self, neighbour: str) -> list[Outgoing]:
        """Begin to send control messages to a reachable neighbour. A node reports reachability again and again."""
        return []

    def link_down(self, neighbour: str) -> list[Outgoing]:
        """Stop sending control messages to a neighbour that cannot be reached for now."""
        return []

    def tag(self, event: Forward) -> Forward:
        """Return an event that is published here with a tag for the brokers on its way."""
        return event

    def publish(self, event: Forward) -> list[Outgoing]:
        """Return an event that is published here if the event may leave now; an overlay may hold the event back."""
        return [Outgoing(LOCAL, event)]

    def retire(self) -> list[Outgoing]:
        """Return the goodbyes of a broker that leaves the network, so that others need not detect its absence."""
        return []

    def receive(self, message: RoutingMessage, sender: str, now: float) -> list[Outgoing]:
        """Process a message that only some overlays know; by default a ProtocolError."""
        raise ProtocolError(f"{type(message).__name__} means nothing to this strategy: do all brokers have the same?")

    def read(self, event: Forward, sender: str) -> set[str] | None:
        """Return the interfaces which the tag of an event names; None if the filters that match must decide."""
        return None

    @abstractmethod
    def match(self, event: Forward, sender: str, matched: Entries) -> set[str]:
        """Return the neighbours that must get an event; never the neighbour from which the event came.

        `matched` are the matches of the event in the index of the broker, which also tell the clients.
        """

    def note_forwards(  # noqa: B027 - most routes learn nothing from it
        self, neighbour: str, wanted: int, unwanted: Sequence[Event]
    ) -> None:
        """Count events of a neighbour, wanted and unwanted.

        Routes with merged filters learn the waste of the mergers, and act at the next `tick`.
        """

    def subjects(self) -> tuple[About, ...]:
        """Return the kinds of filters which neighbours learn, in the order in which they must learn them."""
        return ()

    def exports(self, neighbour: str, about: About = "subscriptions") -> tuple[Filter, ...]:
        """Return all filters which a neighbour must know, in the form in which they were sent."""
        return ()

    @property
    @abstractmethod
    def entries(self) -> int:
        """The size of the routing tables: the number of (filter, interface) pairs."""


class LinkRoutes(Routes):
    """Routes whose neighbours may change roles, so that an overlay with cycles can let links rest."""

    @abstractmethod
    def set_role(self, neighbour: str, role: Role) -> list[Outgoing]:
        """Change the role of a neighbour.

        The neighbour's filters stay; the filters sent to the neighbour are withdrawn.
        """


class Flooding(LinkRoutes):
    """Every event goes to every broker, and no broker sends filters."""

    def connect(self, neighbour: str, role: Role) -> list[Outgoing]:
        """Add a neighbour, which gets all events from now on."""
        self.roles[neighbour] = role
        return []

    def disconnect(self, neighbour: str) -> list[Outgoing]:
        """Remove a neighbour; there is nothing to withdraw."""
        del self.roles[neighbour]
        return []

    def set_role(self, neighbour: str, role: Role) -> list[Outgoing]:
        """Start or stop sending events to a neighbour."""
        self.roles[neighbour] = role
        return []

    def apply(self, update: FilterUpdate, sender: str) -> list[Outgoing]:
        """Ignore the filters of clients: no neighbour learns them."""
        return []

    def match(self, event: Forward, sender: str, matched: Entries) -> set[str]:
        """Return all neighbours except the sender and those over resting links."""
        return {one for one, role in self.roles.items() if one != sender and role is not Role.RESTING}

    @property
    def entries(self) -> int:
        """The number of neighbours: each counts as a table entry."""
        return len(self.roles)
