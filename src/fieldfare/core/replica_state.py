"""Replicas of sessions, as plain values: the view of the session's node, and the view of a replica holder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from fieldfare.core.state import Pending
from fieldfare.protocol.handover import StoredDelivery
from fieldfare.routing.deduplication import EventId


class ReplicaHolder(msgspec.Struct):
    """A neighbour that holds a replica, seen from the session's node. All fields but the last are values of its row."""

    ticket: str
    subscriptions: dict[str, str] | None
    """Subscriptions of the session, as last sent to the holder; None if the holder may have dropped the replica."""
    ready: bool = False
    """Whether the holder has subscribed to all of them."""
    upto: int = 0
    """Number of the last delivery that the holder may not have got by its own subscriptions."""
    sent: int = 0
    """Number of the last delivery that was sent to the holder."""
    stated: tuple[dict[str, str], bytes, dict[str, str], tuple[str, ...]] = ({}, b"", {}, ())
    """Dynamic filters, values, advertisements and devices, as last sent; after a restart the next change sends all
    again."""


class ReplicaPart(NamedTuple):
    """Some of the waiting deliveries of a session, on their way to a replica holder."""

    name: str
    holder: str
    ticket: str
    items: Sequence[StoredDelivery]
    upto: int | None
    """Number up to which all deliveries are sent or acknowledged after this part; None: this is the last part."""


class Replica(msgspec.Struct):
    """A copy of a session, seen from the holder."""

    ticket: str
    node: str
    identity: str
    owner: str
    mark: str
    """Name of the replica in journal entries."""
    sequence: int = 0
    count: int = 0
    acknowledged: int = 0
    moves: int = 0
    last_events: dict[tuple[str, str], int] = {}
    """By publisher and identity: the last event that the client has acknowledged."""
    former: int | None = None
    """Number of the last delivery here by former filters, until the session's node has sent all that waits there; None:
    the replica is complete."""
    wanted: float | None = None
    """Time at which somebody first wanted to take over, though the replica is not complete."""
    carried: dict[int, tuple[Pending, EventId]] = {}
    """Deliveries that the session's node has sent, by their numbers there."""
    event_ids: dict[int, EventId] = {}
    """Events that the holder got by its own subscriptions, by their numbers here."""

    def may_need(self, event: EventId) -> bool:
        """Tell whether the client may not have acknowledged an event yet."""
        return event[2] > self.last_events.get(event[:2], -1)
