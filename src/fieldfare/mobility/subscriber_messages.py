"""Messages between brokers about moving subscribers.

A visit is known by its client and the client's number of moves.
"""

from __future__ import annotations

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.mobility.sessions import MobileSession
from fieldfare.protocol.messages import Message


class PrepareSubscriber(Message, frozen=True):
    """A client is on its way to the recipient, which subscribes in advance."""

    client: str
    moves: int
    subscriptions: dict[str, Filter] = msgspec.field(default_factory=dict)


class MoveUpdate(Message, frozen=True):
    """A client is at the target, which has subscribed; the source must hand the session over and unsubscribe.

    Where the update goes from link to link, it comes behind the new subscriptions, and proves that they are in force.
    """

    client: str
    source: str
    target: str
    moves: int
    """number of the visit at the target; the requested session is that of the visit before"""
    filters: tuple[Filter, ...] = ()
    """the client's filters, for the brokers on the way"""
    addressed: bool = True
    """whether the brokers on the way know the way to the source"""
    again: bool = False
    """whether the update was returned on the last link, and now comes behind more subscriptions"""


class SubscriberTransfer(Message, frozen=True):
    """The session for a visit."""

    client: str
    moves: int
    session: MobileSession


class ReturnedUpdate(Message, frozen=True):
    """An update that met an advertisement on the link.

    The recipient sends it again, behind the resulting subscriptions.
    """

    update: MoveUpdate


class UpwardUpdate(Message, frozen=True):
    """An update on its way up to the rendezvous point, behind the subscriptions."""

    update: MoveUpdate


class CompleteToRendezvous(Message, frozen=True):
    """The subscriptions before an update are in force from its target to the rendezvous point."""

    update: MoveUpdate
