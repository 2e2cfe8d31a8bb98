"""What is said of clients whose subscriptions depend on where they are."""

from __future__ import annotations

from fieldfare.protocol.messages import Message


class Locate(Message, frozen=True):
    """I am at a place, and want what a template says for it; under an id that is in use: I am somewhere else now."""

    id: str
    template: str
    place: str


class LocationUpdate(Message, frozen=True):
    """A broker tells a neighbour where a client was last heard of."""

    name: str
    """of the subscription, the same on all links"""
    template: str
    place: str
    """nowhere, if it is empty: nothing is wanted any more"""
    hop: int
    """how many links the client's broker is away from the one that is told"""
