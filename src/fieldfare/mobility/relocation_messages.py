"""What is said when a client relocates as the book has it: `resub`, `fetch` and `replay`.

A fetch is a resub that has passed the junction: it says the same, and goes where older entries point. So both are one.
"""

from __future__ import annotations

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.mobility.sessions import Publisher
from fieldfare.protocol.messages import Deliver, Message


class Resubscribe(Message, frozen=True):
    """A client is at a border broker now, and wants this: whatever is for it goes the way from which you hear this."""

    client: str
    moves: int
    """how often the client had moved: the relocation counter. The highest is the latest"""
    border: str
    subscriptions: dict[str, Filter] = msgspec.field(default_factory=dict)
    change: int = 0
    """how often it has changed its mind there"""
    received: int = 0
    """the number of the last delivery that it had got when it came"""
    source: str = ""
    """the broker where it was before, for when advertisements do not show the way"""

    @property
    def age(self) -> tuple[int, int]:
        """The higher, the later."""
        return self.moves, self.change


class Replay(Message, frozen=True):
    """What was kept for a client during some of its visits, all of it."""

    client: str
    moves: int
    """the visit that it is for"""
    first: int
    last: int
    """the visits that it is of"""
    deliveries: tuple[Deliver, ...] = ()
    had: tuple[tuple[Publisher, int], ...] = ()
    """the highest count of each publisher that the client has got"""
    lost: int = 0
    """how many had to be thrown away, because the buffer was full"""
    border: str = ""
    """who waits itself for more, and will send it on"""


class ReleaseEntry(Message, frozen=True):
    """What a client left behind is on its way; who has its entry only for that need keep it no longer."""

    client: str
    moves: int


class VisitComplete(Message, frozen=True):
    """A client's visit has got all that there was of those before: nobody need send anything on."""

    client: str
    moves: int


class ClientGone(Message, frozen=True):
    """A client has left for good."""

    client: str
    moves: int


class GapNotice(Message, frozen=True):
    """To a client: some events are missing."""

    visits: tuple[int, ...] = ()
    """nothing is known of what came for you there"""
    lost: int = 0
    """so many were thrown away"""
