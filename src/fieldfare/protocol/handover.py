"""Handover messages: how a session moves from one node to another, and how replicas of a session are kept.

    target                                     source
      | ---- SessionRequest ------------------> |   the client is here: give me the session
      | <--- SessionDescription --------------- |   these are its filters; deliveries are noted from now on
      | (subscribes to the same, and stores the events that arrive meanwhile)
      | ---- TargetReady ---------------------> |   behind the subscriptions, on the same links
      | <--- ClientVoucher -------------------- |   if the client was at the source: its identity, and its ticket
      | <--- StoredDeliveries … SessionTransferred

Every message goes from link to link, in order, behind all earlier messages on the same links. So when `TargetReady` is
at the source, every event that the target will not get is at the source already; and when `SessionTransferred` is at
the target, so are all subscriptions that the source knew and that overlap the session's advertisements: a publisher
that continues at the target is heard by all. An event that both nodes got is dropped at the target: of each publisher's
events the source has the beginning and the target the end.

A *replica holder* of a session, for the case that its node fails for good, uses the same messages: the holder
subscribes to the same filters and stores the events, gets the waiting deliveries, and hears which events the client has
acknowledged (`ReplicaProgress`). There is no final message: a client that cannot get the session from its node has it
taken over from the holder (`SessionRequest` with `take_over`).
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

import msgspec

from fieldfare.protocol.numbers import Number


class HandoverMessage(msgspec.Struct, frozen=True, tag=True, tag_field="is", omit_defaults=True):
    """Base class of the messages about the handover or the replica of a session."""

    session: str
    ticket: str
    """Name of one attempt to move the session, which tells it from earlier and later attempts."""


class SessionRequest(HandoverMessage, frozen=True):
    """Request of the target: its client is here, so the session should move here."""

    owner: str | None = None
    """Owner that the session must have; None: any."""
    take_over: bool = False
    """To a replica holder: the session's node does not answer, so the replica becomes the session."""


class SessionOffer(HandoverMessage, frozen=True):
    """Offer of the source: the receiver may send a `SessionRequest`."""

    owner: str


class SessionDescription(HandoverMessage, frozen=True):
    """Identity and filters of a session that will be handed over, or of which the receiver is a replica holder."""

    identity: str
    owner: str
    subscriptions: dict[str, str] = {}
    advertisements: dict[str, str] = {}
    replica: bool = False
    """Whether the session stays, and the receiver becomes a replica holder."""
    moves: Number = 0
    """For a replica holder: how often the session has changed its node, since a taken-over session counts on."""
    dynamic: dict[str, str] = {}
    """Filters with parameters, as texts by id; `subscriptions` has those that match something now, filled in."""
    parameters: bytes = b""
    """Values of the parameters, as an event."""
    devices: tuple[str, ...] = ()
    """For a replica holder: names of the session's devices."""


class ClientVoucher(HandoverMessage, frozen=True):
    """Identity and roles of a client that follows its session and will show a ticket of the given digest.

    The source sends the voucher before `SessionTransferred`. The field `ticket` names the handover, as in all messages.
    """

    digest: bytes
    owner: str
    roles: tuple[str, ...] = ()
    until: float | None = None
    """Time at which the client's token ends."""
    token: str = ""
    """Id of the client's token, which may be revoked."""
    issued: float | None = None
    """Time at which the token was issued."""


class TargetReady(HandoverMessage, frozen=True):
    """The target, or the replica holder, has subscribed to all filters; this message follows on the same links."""


class StoredDelivery(msgspec.Struct, frozen=True, array_like=True):
    """A delivery that waits for the session, with its event."""

    number: Number
    subscriptions: tuple[str, ...]
    expires: float
    publisher: str
    sequence: Number
    by: str
    source: str
    replaces: str
    event: bytes
    replayed: bool = False
    """Whether the event happened before the session subscribed."""
    channel_number: Number = 0


class StoredDeliveries(HandoverMessage, frozen=True):
    """Some of the deliveries that wait for the session."""

    items: list[StoredDelivery]


class DevicePlace(NamedTuple):
    """The place of a device in the queue of its session."""

    acknowledged: Number = 0
    """Number of the last delivery that the device has acknowledged."""
    dropped: Number = 0
    """Number of dropped deliveries that the device had not acknowledged."""
    lost: Number = 0
    """Number of the last of these deliveries."""
    warned: Number = 0
    """Number of dropped deliveries that the device has confirmed to know."""


class SessionTransferred(HandoverMessage, frozen=True):
    """Last message of the source: the counts of the session, which belongs to the target from now on."""

    sequence: Number
    """Sequence number of the last event that the session published."""
    count: Number
    """Number of the last delivery."""
    acknowledged: Number
    dropped: Number
    last_events: list[tuple[str, str, Number]]
    """By publisher and identity: the last event that the session got at the source since the description."""
    doubt: Number = 0
    """Deliveries up to this number may be events that the client has had under other numbers."""
    moves: Number = 0
    """How often the session had changed its node before this handover."""
    lives: tuple[tuple[str, Number], ...] = ()
    """Lives of the logs in which deliveries were numbered."""
    warned: Number = 0
    """Number of dropped deliveries that the client has confirmed to know."""
    devices: dict[str, DevicePlace] = {}
    """Places of the session's devices in the queue."""


class ReplicaProgress(HandoverMessage, frozen=True):
    """Counts of a session, and the events that its client has acknowledged, for a replica holder."""

    sequence: Number
    count: Number
    acknowledged: Number
    moves: Number
    last_events: list[tuple[str, str, Number]]
    """By publisher and identity: the last event that the client has acknowledged."""
    complete: bool = False
    """Whether the holder was sent all deliveries that wait from before the description of this ticket."""


class SessionTakenOver(HandoverMessage, frozen=True):
    """Message of a replica holder to the session's node, which did not answer: the replica is the session now."""

    identity: str


class SessionNotHere(HandoverMessage, frozen=True):
    """Answer to `SessionRequest`: the session is at another node, or the request is refused."""

    node: str = ""
    """Node that may have the session; empty if none is known. With a reason: members share the session there."""
    refused: str = ""
    """Reason of a refusal; empty if the session is elsewhere."""
    gone: bool = False
    """Whether the sender has no session of the name, and nothing of such a session is on the way from there."""


class CancelHandover(HandoverMessage, frozen=True):
    """End of an attempt, such as when the client has gone to another node."""


class StandInRequest(HandoverMessage, frozen=True):
    """Request to advertise for a publisher whose session is at the sender, as if the session were here.

    No part of a handover: the ticket is empty. Such a message prepares a move, or is for a proxy; see `core.stand_ins`.
    A hint at an older node is refused; an older proxy hears nothing, and advertises for nobody.
    """

    identity: str
    advertisements: dict[str, str] = {}
    """All advertisements of the session; none: stop."""
    seconds: float = 0.0
    moves: Number = 0
    """How often the session had changed its node."""


AnyHandoverMessage: TypeAlias = (
    SessionRequest
    | SessionOffer
    | SessionDescription
    | ClientVoucher
    | TargetReady
    | StoredDeliveries
    | SessionTransferred
    | ReplicaProgress
    | SessionTakenOver
    | SessionNotHere
    | CancelHandover
    | StandInRequest
)
encode: Final = msgspec.msgpack.Encoder().encode
_decode: Final = msgspec.msgpack.Decoder(AnyHandoverMessage).decode


def decode(data: bytes) -> AnyHandoverMessage:
    """Return the message in the content of an envelope; ValueError if there is none."""
    try:
        message: AnyHandoverMessage = _decode(data)
    except msgspec.DecodeError as error:
        raise ValueError(f"no handover message: {error}") from None
    return message
