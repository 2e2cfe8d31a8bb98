"""The interface of a bridge: a way to another messaging system, written without knowledge of nodes.

A `Bridge` has two filters, for the events that go out and for those that may come in. `connect` opens a connection with
two directions. Neither side forgets a message before the other has it: `incoming` yields batches with a function to
call when the events are stored here, and `outgoing` returns when all events are stored there. A `Runner` does the rest:
publish, subscribe, reconnect, and count.

A system with numbered messages, such as a log, need not remember the position of the bridge: the node stores the
number of the last message with the event. `LogConnection` is the form for such systems.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol, TypeAlias, runtime_checkable

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter


class BridgeError(Exception):
    """A broken connection, for a reason that may pass: the runner connects again."""


class IncomingEvent(NamedTuple):
    """An event from the other system."""

    event: Event
    ttl: float | None = None
    """seconds after which no subscriber gets the event"""
    id: str = ""
    """an id that no other message has: a second message with the same id is not published; empty: unknown"""
    number: int = 0
    """the number of the message in the source of its batch, from 1 on; a later message has a larger number"""


class Rejection(NamedTuple):
    """A message or event that the bridge cannot translate: the runner counts the rejection, and goes on."""

    reason: str


class Batch(NamedTuple):
    """Messages from the other system, and the function to call when all their events are stored here."""

    messages: Sequence[IncomingEvent | Rejection]
    done: Callable[[], Awaitable[None]]
    source: str = ""
    """the source that numbers the messages; the node publishes no number of a source twice, also after a restart"""


Positions: TypeAlias = Callable[[str], Awaitable[int]]
"""Gives the number of the last message of a source that the node has stored; 0: none."""


class OutgoingEvent(NamedTuple):
    """An event for the other system."""

    event: Event
    id: str
    """an id that no other event has, and that stays the same when the event is sent again"""
    expires: float | None = None
    """end of its life, in seconds since 1970"""


class BridgeConnection(Protocol):
    """An open connection to the other system. Any call may raise BridgeError or OSError: then the connection ends."""

    def incoming(self) -> AsyncIterator[Batch]:
        """Yield batches for as long as the connection lasts; a bridge with no incoming events waits for the end."""
        ...

    async def outgoing(self, events: Sequence[OutgoingEvent], /) -> Sequence[Rejection]:
        """Hand over events, in order; on return the other system has stored all but the rejected ones."""
        ...


@runtime_checkable
class LogConnection(Protocol):
    """An open connection to a log: a system with numbered messages, readable from any number on."""

    def incoming_from(self, position: Positions, /) -> AsyncIterator[Batch]:
        """Yield batches of numbered messages, from the position of each source on, in the order of the numbers."""
        ...

    async def outgoing(self, events: Sequence[OutgoingEvent], /) -> Sequence[Rejection]:
        """Hand over events, as with a `BridgeConnection`."""
        ...


class Bridge(Protocol):
    """A way to another system, with its settings."""

    @property
    def subscription(self) -> Filter | None:
        """The filter of the events that go out; None: none go out."""
        ...

    @property
    def advertisement(self) -> Filter | None:
        """The filter of the events that may come in; None: none come in."""
        ...

    def connect(self) -> AbstractAsyncContextManager[BridgeConnection | LogConnection]:
        """Open a connection; the runner makes each further attempt."""
        ...
