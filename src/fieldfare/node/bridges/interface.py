"""What a bridge is: a way to another messaging system that knows nothing of nodes.

A `Bridge` says what it wants of us, and what may come from it, as filters. It can `connect`; the connection gives what
comes in, and takes what goes out. Either way nobody lets go of a message before the other side has it: `incoming` gives
batches with something to call when they are safe here, and `outgoing` returns when all is safe there. A `Runner` does
the rest: it publishes, subscribes, connects again, and counts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple, Protocol

from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter


class BridgeError(Exception):
    """The connection is of no use any more, for a reason that may pass: there will be another one."""


class Arrived(NamedTuple):
    """Something that came from the other system."""

    event: Event
    ttl: float | None = None
    """seconds after which nobody is to get it any more"""
    id: str = ""
    """no other message ever has it. What comes again under the same one is not published twice; empty: nobody knows"""


class Problem(NamedTuple):
    """A message that nothing can be made of: it is counted, and what follows goes on."""

    text: str


class Batch(NamedTuple):
    """Some messages, and what to call when all of them are safe here."""

    messages: Sequence[Arrived | Problem]
    done: Callable[[], Awaitable[None]]


class Leaving(NamedTuple):
    """An event for the other system."""

    event: Event
    id: str
    """the same whenever it is sent again, and no other event has it"""
    expires: float | None = None
    """when it is of no use any more, in seconds since 1970"""


class BridgeConnection(Protocol):
    """A way to the other system, as long as it works. Any of its calls may raise BridgeError or OSError."""

    def incoming(self) -> AsyncIterator[Batch]:
        """What comes, for as long as the connection lasts. Without anything to come it waits for the end."""
        ...

    async def outgoing(self, leaving: Sequence[Leaving], /) -> Sequence[Problem]:
        """Hand over events, in order. Afterwards they are safe there, but for those that can never be."""
        ...


class Bridge(Protocol):
    """A kind of connection with its settings."""

    @property
    def wants(self) -> Filter | None:
        """What goes out; None: nothing does."""
        ...

    @property
    def promises(self) -> Filter | None:
        """What may come in; None: nothing does."""
        ...

    def connect(self) -> AbstractAsyncContextManager[BridgeConnection]:
        """Go there, once."""
        ...
