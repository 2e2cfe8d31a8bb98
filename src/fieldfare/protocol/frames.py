"""The frames of the client protocol. A frame is one message of a WebSocket.

A client sends `Hello` and gets `Welcome`; then both sides send at any time. A request of a client has a number, and
the node answers with `Done` or `Refused` with the same number, in the order of the requests.

- **Publishing.** A publisher counts events; `Publish` has the number of the first. `Accepted` says up to which
  number all events are safe. After a broken connection a client repeats unanswered events; the node knows the
  numbers and does not accept an event twice. The events of a frame are accepted all or none.
- **Delivering.** The node counts the deliveries of a session, and sends no more than the client gave `Credit` for. The
  client acknowledges all deliveries up to a number. After a broken connection the node repeats unacknowledged
  deliveries, under the old numbers.

Events inside a frame are in the form of the frame, MessagePack or JSON: see `codec`. Test vectors for clients in other
languages are in `docs/reference/vectors/client-frames.json`.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final, TypeAlias

import msgspec


class Frame(msgspec.Struct, frozen=True, tag=True, tag_field="is", omit_defaults=True):
    """Base class of all frames between a client and a node."""


# From clients


class Hello(Frame, frozen=True):
    """The first frame of a client."""

    version: int = 0
    """Version of the connection; 0: the version that the subprotocol names."""
    session: str = ""
    """Name of a durable session; without a name the node forgets the client when the connection ends."""
    token: str = ""
    """Proof of the client's identity, unless the HTTP header `Authorization` has one."""
    credit: int = 0
    """Number of deliveries that the client can take; 0: none until the client sends `Credit`."""
    at: str = ""
    """Name of the node that had the session last, if it is another one: this node gets the session from there."""
    identity: str = ""
    """Identity of the session, from the last `Welcome`."""
    replicas: tuple[str, ...] = ()
    """Nodes that hold a replica of the session, from the last `Welcome`, should the node `at` not answer."""
    moves: int = 0
    """Number of moves of the session, from the last `Welcome`."""
    lives: tuple[tuple[str, int], ...] = ()
    """Lives of the node's log in which deliveries were numbered, from the last `Welcome`."""
    seen: int = 0
    """Number of the last delivery that the client has received."""
    ticket: str = ""
    """Proof of identity instead of a token, from the `Bye` of the last node, or the last `Welcome` of this node."""
    shared: bool = False
    """Whether the client is a member of a shared session: each event goes to one of the attached members."""
    member: str = ""
    """Name of the member, for people; an earlier connection of the same name ends."""
    key: str = ""
    """For members: field whose events of the same value go to the same member while one is not acknowledged."""
    device: str = ""
    """Name of this device of the session: each event goes to every device. An earlier connection of the name ends."""
    oldest: bool = False
    """Whether a new device begins with the oldest event that waits for another one, and not with the next event."""


class PublishOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Everything that a publisher says about the events of a frame besides their fields; see `event_options`."""

    ttl: float | None = None
    """Seconds after which no subscriber is to get the events."""
    replaces: str = ""
    """Events of a publisher with the same name replace each other while they wait for a subscriber."""


_options_of: Final = attrgetter(*PublishOptions.__struct_fields__)
_NO_OPTIONS: Final = _options_of(PublishOptions())


class Publish(Frame, PublishOptions, frozen=True):
    """Events to publish, all or none."""

    number: int
    """Number of the first event."""
    events: list[msgspec.Raw]

    @property
    def has_options(self) -> bool:
        """Tell whether the publisher says anything about the events."""
        return bool(_options_of(self) != _NO_OPTIONS)


class Subscribe(Frame, frozen=True):
    """Request for the events of a filter. An id in use gets the new filter, without a gap."""

    request: int
    id: str
    filter: Any
    """A text, or a document of CloudEvents' subscriptions. A text may have parameters: `price <= :budget`,
    `location IN myloc`."""
    since: int | float | str | None = None
    """Also earlier events: from a position (a whole number), a time (seconds since 1970, or RFC 3339), or a number in a
    channel (`#101`, which nodes of version 2 refuse) on."""
    life: str = ""
    """Life of the node's log in which the client got the position `since`; see `Welcome.life`."""
    complete: bool = False
    """Whether to replay all events of the log, also those that were replaced or are older than their time to live."""


class SubscribePattern(Frame, frozen=True):
    """Request for the composite events of a pattern. An id in use gets the pattern; the same pattern again goes on.

    With a node of an earlier version the client library refuses the request.
    """

    request: int
    id: str
    pattern: str
    """Pattern as a text; see the reference of patterns."""
    since: int | float | str | None = None
    """Let the pattern begin in the past: at a position or a time, as in `Subscribe`."""
    life: str = ""
    """Life of the node's log in which the client got the position `since`."""


class Unsubscribe(Frame, frozen=True):
    """Request to end a subscription. An unknown id is no error."""

    request: int
    id: str


class Advertise(Frame, frozen=True):
    """Announcement of the client's future events, as a filter."""

    request: int
    id: str
    filter: Any


class Unadvertise(Frame, frozen=True):
    """Request to end an advertisement."""

    request: int
    id: str


class SetParameters(Frame, frozen=True):
    """Values of parameters, for the filters of all subscriptions of the session; see `Subscribe.filter`.

    All of the values change at once, or none. A node of version 2 has no parameters: the client library refuses the
    request, and a session that moves to such a node keeps the filters with the last values.
    """

    request: int
    values: msgspec.Raw
    """An event, with a field for each changed parameter; null forgets a value. The place is the value of `myloc`."""


class Acknowledge(Frame, frozen=True):
    """Acknowledgement of all deliveries up to a number; of a member, of the given numbers alone."""

    number: int
    numbers: tuple[int, ...] = ()
    """For members, whose `number` is 0: deliveries in any order."""


class Credit(Frame, frozen=True):
    """Permission to send so many deliveries more."""

    more: int


class WatchInterest(Frame, frozen=True):
    """Request for the interest of all subscribers: answered by `Interest` now, and whenever the interest changes."""

    request: int


class Leave(Frame, frozen=True):
    """Request to end the session, with all subscriptions and waiting events."""

    request: int


class LeaveFor(Frame, frozen=True):
    """The client will go to another node: some publisher policies let the advertisements be there first.

    With an older node the client library refuses the request.
    """

    request: int
    node: str
    """Name of the other node."""


# From nodes


class Welcome(Frame, frozen=True):
    """The answer to `Hello`: the state of the session at the node, and the node's limits."""

    node: str
    """Name of the node."""
    session: str
    """Name of the session; the node makes up a name for a client that gave none."""
    identity: str
    """Random name that tells this session from an earlier one of the same name."""
    accepted: int = 0
    """Number of the client's last event that is safe."""
    acknowledged: int = 0
    """Number of the last delivery that the client has acknowledged."""
    version: int = 2
    """Version of the connection. Nodes of version 2 leave the field out."""
    max_frame: int = 0
    """Largest frame that the node accepts, in bytes."""
    max_batch: int = 0
    """Largest number of events in a frame."""
    replicas: tuple[str, ...] = ()
    """Nodes that hold a replica of the session."""
    moves: int = 0
    """Number of times that the session has moved to another node."""
    may_repeat: int = 0
    """Deliveries up to this number may be events that the client had before, under other numbers."""
    lives: tuple[tuple[str, int], ...] = ()
    """Lives of the node's log in which deliveries were numbered, each with its first number; for the next `Hello`."""
    void_from: int = 0
    """Deliveries from this number on that the client has had are not those that will come: the node has forgotten
    them, after a power failure or with an earlier copy of its folder. 0: there are none."""
    life: str = ""
    """Present life of the node's log, to send with a position of this log."""
    warned: int = 0
    """Number of dropped deliveries of this session that a client was told of; see `Deliveries.dropped`."""
    ticket: str = ""
    """Next ticket for this node, if the client came with one."""
    shared: bool = False
    """Whether the client is a member of a shared session; a node of an earlier version does not know members."""
    device: str = ""
    """Name of the device that the client is; a node of an earlier version does not know devices."""


class Accepted(Frame, frozen=True):
    """The client's events up to a number are safe, except events in refused frames."""

    number: int


class Done(Frame, frozen=True):
    """The answer to a request of the client, which is in effect now."""

    request: int
    log_start: int = 0
    """First position of the log, if `since` asked for older events, which are gone."""


class Refused(Frame, frozen=True):
    """A request or a `Publish` has no effect."""

    reason: str
    request: int = 0
    number: int = 0
    """Number of the first event of the refused `Publish`."""
    code: str = "bad"
    """`bad`: a mistake; `denied`: no permission; `limit`: too much; `version`: a node speaks a version without this."""


class Delivery(msgspec.Struct, frozen=True, array_like=True):
    """An event for the session. Fields are encoded as a list, in order."""

    number: int
    """Number of the delivery in the session."""
    position: int
    """Position in the log of the node."""
    time: float
    """Time when the event was logged, in seconds since 1970."""
    publisher: str
    """Session that published the event."""
    event: msgspec.Raw
    subscriptions: tuple[str, ...]
    """Ids of all subscriptions of the session that the event matches."""
    by: str = ""
    """Identity of the publisher's session; sent if the session has, or had, replicas."""
    sequence: int = 0
    """The publisher's number of the event; sent with `by`."""
    channel_number: int = 0
    """Number of the event in the channel of its type; 0: the type has no channel."""


class Deliveries(Frame, frozen=True):
    """Deliveries in the order of the numbers."""

    items: list[Delivery]
    dropped: int = 0
    """Number of deliveries that were dropped in the life of the session, because too many waited."""
    redelivered: tuple[int, ...] = ()
    """For members: numbers of the deliveries that a client may have had before, and did not acknowledge."""


class Interest(Frame, frozen=True):
    """The interest of all subscribers, as filters; an event without a matching filter need not be published."""

    filters: list[str]


class Waiting(Frame, frozen=True):
    """Sent before `Welcome`, now and then, while the session is moving from another node."""

    source: str
    """Name of the node that has the session."""


class Bye(Frame, frozen=True):
    """The last frame of a node, which closes the connection."""

    reason: str
    retry: bool = True
    """Whether the client may connect again."""
    to: str = ""
    """Address of another node, where the session goes on."""
    ticket: str = ""
    """Ticket to show there instead of the token."""


FromClient: TypeAlias = (
    Hello
    | Publish
    | Subscribe
    | SubscribePattern
    | Unsubscribe
    | SetParameters
    | Advertise
    | Unadvertise
    | Acknowledge
    | Credit
    | WatchInterest
    | Leave
    | LeaveFor
)
FromNode: TypeAlias = Welcome | Waiting | Accepted | Done | Refused | Deliveries | Interest | Bye
