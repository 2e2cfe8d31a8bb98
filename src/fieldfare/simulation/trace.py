"""A trace: the records of a run, in a total order.

A record is made in the very step of the broker, so that the order of records is the order of states in the
specification. Publisher and count together name an event.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, TypeAlias

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter

# At the interface between clients and brokers


class Published(NamedTuple):
    """A client published an event."""

    time: float
    order: int
    broker: str
    client: str
    sequence: int
    event: Event
    ttl: float = 0.0
    """seconds for which the event is of use; 0: for ever"""


class Delivered(NamedTuple):
    """A client was given an event."""

    time: float
    order: int
    broker: str
    client: str
    publisher: str
    sequence: int
    event: Event
    subscriptions: tuple[str, ...]
    channel_number: int = 0


class Subscribed(NamedTuple):
    """A client asked for events."""

    time: float
    order: int
    broker: str
    client: str
    id: str
    filter: Filter


class Unsubscribed(NamedTuple):
    """A client asks no more."""

    time: float
    order: int
    broker: str
    client: str
    id: str


class Advertised(NamedTuple):
    """A client advertised a filter under an id."""

    time: float
    order: int
    broker: str
    client: str
    id: str
    filter: Filter


class Unadvertised(NamedTuple):
    """A client took a promise back."""

    time: float
    order: int
    broker: str
    client: str
    id: str


class Left(NamedTuple):
    """A client ended all subscriptions and advertisements."""

    time: float
    order: int
    broker: str
    client: str


class Departed(NamedTuple):
    """A client went away, which the broker need not notice."""

    time: float
    order: int
    broker: str
    client: str


class Arrived(NamedTuple):
    """A client is back at a broker, after being away."""

    time: float
    order: int
    broker: str
    client: str


class Refused(NamedTuple):
    """A broker refused a client's message."""

    time: float
    order: int
    broker: str
    client: str
    about: str
    reason: str


# Members of shared sessions: the client is the session


class DeliveredToMember(NamedTuple):
    """A member of a session was given an event."""

    time: float
    order: int
    broker: str
    client: str
    publisher: str
    sequence: int
    event: Event
    subscriptions: tuple[str, ...]
    member: str
    redelivered: bool


class DeliveredToDevice(NamedTuple):
    """A device of a session was given its copy of an event."""

    time: float
    order: int
    broker: str
    client: str
    publisher: str
    sequence: int
    event: Event
    subscriptions: tuple[str, ...]
    channel_number: int
    member: str


class DeviceAdded(NamedTuple):
    """A node has welcomed a device for the first time, after others."""

    time: float
    order: int
    broker: str
    client: str
    member: str


class DeviceRemoved(NamedTuple):
    """A node was told to remove a device."""

    time: float
    order: int
    broker: str
    client: str
    member: str


class AcknowledgedByMember(NamedTuple):
    """The acknowledgement of a member is on the disk of the node."""

    time: float
    order: int
    broker: str
    client: str
    member: str
    publisher: str
    sequence: int


class MemberGone(NamedTuple):
    """The connection of a member has ended, as seen from either side."""

    time: float
    order: int
    broker: str
    client: str
    member: str


# Between brokers


class Forwarded(NamedTuple):
    """A broker sent an event to a neighbour."""

    time: float
    order: int
    broker: str
    neighbour: str
    publisher: str
    sequence: int


class Told(NamedTuple):
    """A broker told a neighbour of filters: how many are new, and how many gone."""

    time: float
    order: int
    broker: str
    neighbour: str
    about: str
    added: int
    removed: int


# About the network


class Up(NamedTuple):
    """A link between two brokers came up."""

    time: float
    order: int
    broker: str
    neighbour: str


class Down(NamedTuple):
    """A link went down, and messages on the link are lost."""

    time: float
    order: int
    broker: str
    neighbour: str


class Crashed(NamedTuple):
    """A broker stopped, and cut off all clients."""

    time: float
    order: int
    broker: str


class Restarted(NamedTuple):
    """A broker restarted: with the state before the crash, or empty."""

    time: float
    order: int
    broker: str
    kept: bool


class Forgot(NamedTuple):
    """A broker went back in time: the disk has lost the latest changes."""

    time: float
    order: int
    broker: str


class Quiet(NamedTuple):
    """No message is on a link or waits at a broker."""

    time: float
    order: int


Record: TypeAlias = (
    Published
    | Delivered
    | DeliveredToMember
    | DeliveredToDevice
    | DeviceAdded
    | DeviceRemoved
    | AcknowledgedByMember
    | MemberGone
    | Subscribed
    | Unsubscribed
    | Advertised
    | Unadvertised
    | Left
    | Departed
    | Arrived
    | Refused
    | Forwarded
    | Told
    | Up
    | Down
    | Crashed
    | Restarted
    | Forgot
    | Quiet
)
Trace: TypeAlias = Sequence[Record]

KINDS: Final[dict[str, type[Any]]] = {
    kind.__name__: kind
    for kind in (
        Published,
        Delivered,
        DeliveredToMember,
        DeliveredToDevice,
        DeviceAdded,
        DeviceRemoved,
        AcknowledgedByMember,
        MemberGone,
        Subscribed,
        Unsubscribed,
        Advertised,
        Unadvertised,
        Left,
        Departed,
        Arrived,
        Refused,
        Forwarded,
        Told,
        Up,
        Down,
        Crashed,
        Restarted,
        Forgot,
        Quiet,
    )
}
