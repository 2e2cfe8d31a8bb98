"""Messages about clients whose subscriptions depend on their places."""

from __future__ import annotations

from fieldfare.protocol.messages import Message


class Locate(Message, frozen=True):
    """A client's place, with a filter template for the place; an id in use means a move."""

    id: str
    template: str
    place: str


class LocationUpdate(Message, frozen=True):
    """The last known place of a client, from a broker to a neighbour."""

    name: str
    """name of the subscription, the same on all links"""
    template: str
    place: str
    """the last known place; empty: the subscription has ended"""
    hop: int
    """number of links from the client's broker to the recipient"""
