"""Messages of relocation as in the book: `resub`, `fetch` and `replay`.

A fetch is a resub behind the junction: the same content, sent towards older entries. So both are a single message.
"""

from __future__ import annotations

import msgspec

from fieldfare.filters.filter import Filter
from fieldfare.mobility.sessions import Publisher
from fieldfare.protocol.messages import Deliver, Message


class Resubscribe(Message, frozen=True):
    """A client is at a border broker, with these subscriptions; its events go back the way of this message."""

    client: str
    moves: int
    """the client's number of moves, the relocation counter: the highest is the latest"""
    border: str
    subscriptions: dict[str, Filter] = msgspec.field(default_factory=dict)
    change: int = 0
    """number of changes of the subscriptions during the visit"""
    received: int = 0
    """number of the last delivery which the client had received at arrival"""
    source: str = ""
    """the broker before, in case advertisements do not show the way"""

    @property
    def age(self) -> tuple[int, int]:
        """The moves and changes: the higher, the later."""
        return self.moves, self.change


class Replay(Message, frozen=True):
    """All kept events of a client from some of its visits."""

    client: str
    moves: int
    """number of the visit to which the replay goes"""
    first: int
    last: int
    """the last of the visits from which the replay comes"""
    deliveries: tuple[Deliver, ...] = ()
    had: tuple[tuple[Publisher, int], ...] = ()
    """the highest count of each publisher which the client has received"""
    lost: int = 0
    """number of events that were dropped from a full buffer"""
    border: str = ""
    """the broker that waits for more events itself, and will send them on"""


class ReleaseEntry(Message, frozen=True):
    """A client's old events are on their way; an entry for them is no longer needed."""

    client: str
    moves: int


class VisitComplete(Message, frozen=True):
    """A visit has received the events of all earlier visits: no broker need send on more."""

    client: str
    moves: int


class ClientGone(Message, frozen=True):
    """A client has left for good."""

    client: str
    moves: int


class GapNotice(Message, frozen=True):
    """To a client: some events are missing."""

    visits: tuple[int, ...] = ()
    """visits whose events are unknown"""
    lost: int = 0
    """number of dropped events"""
