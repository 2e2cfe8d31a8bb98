"""What brokers say to each other when a subscriber moves. A visit is known by its client and how often it had moved."""

from __future__ import annotations

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.mobility.sessions import MobileSession
from fieldfare.protocol.messages import Message


class PrepareSubscriber(Message, frozen=True):
    """A client goes from me to you: ask for what it wants."""

    client: str
    moves: int
    subscriptions: dict[str, Filter] = msgspec.field(default_factory=dict)


class MoveUpdate(Message, frozen=True):
    """What a client wants is asked for at the target; so the source is to hand the session over, and to ask no more.

    Where it goes from link to link it comes behind these subscriptions, and proves that they are in force.
    """

    client: str
    source: str
    target: str
    moves: int
    """the visit at the target; what is asked for is the one before that"""
    filters: tuple[Filter, ...] = ()
    """what the client wants, for those on the way"""
    addressed: bool = True
    """whether those on the way know where the source is"""
    again: bool = False
    """whether it has been sent back on the last link, and comes behind more subscriptions now"""


class SubscriberTransfer(Message, frozen=True):
    """Here is the session for a visit."""

    client: str
    moves: int
    session: MobileSession


class ReturnedUpdate(Message, frozen=True):
    """This update met an advertisement on the link between us: send it again, behind what that makes you tell me."""

    update: MoveUpdate


class UpwardUpdate(Message, frozen=True):
    """An update on its way up to the rendezvous point, behind the subscriptions."""

    update: MoveUpdate


class CompleteToRendezvous(Message, frozen=True):
    """The subscriptions that an update came behind are in force all the way from its target to the rendezvous point."""

    update: MoveUpdate
