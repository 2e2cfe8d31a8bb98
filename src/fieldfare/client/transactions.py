"""What holds for the length of a block: a promise to publish certain events, and events that belong together."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import TYPE_CHECKING

from fieldfare.client.typed import event_of
from fieldfare.events.event import Event
from fieldfare.protocol import frames as f

if TYPE_CHECKING:
    from fieldfare.client.client import Client


class Advertisement:
    """A promise to publish such events; made by `Client.advertise`."""

    def __init__(self, client: Client, id: str, filter: object) -> None:
        self.id = id
        self.filter = filter
        self.answer: asyncio.Future[None] | None = None
        """whether the node knows of it"""
        self.over = False
        """whether it was left; the node may not know yet"""
        self._client = client

    async def __aenter__(self) -> Advertisement:
        await self._client.open(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.shut(self)

    def frame(self, request: int, *, anew: bool) -> f.Advertise:
        """How to say it."""
        del anew  # it is said the same way again
        return f.Advertise(request, self.id, self.filter)

    def end(self, error: Exception | None = None) -> None:
        """The node does not know of it any more: whoever publishes hears of that."""


class Transaction:
    """Events that are published together; made by `Client.transaction`."""

    def __init__(self, client: Client, ttl: float | None, replaces: str) -> None:
        self._client = client
        self._ttl = ttl
        self._replaces = replaces
        self._events: list[Event] = []
        self._over = False

    async def __aenter__(self) -> Transaction:
        return self

    def publish(self, event: object) -> None:
        """Let an event be published when the block ends."""
        if self._over:
            raise RuntimeError("the transaction is over: publish inside its block")
        self._events.append(event_of(event))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if error is None and self._events:
            await self._client.publish_batch(self._events, ttl=self._ttl, replaces=self._replaces)
