"""`Requester`: requests to other clients and replies, as ordinary events.

A request has a field `reply_to` with a unique name; the reply has the name as `in_reply_to`. All replies to a client
arrive by a single subscription, made with the first request.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

from fieldfare.client.errors import Refused
from fieldfare.client.registrations import REPLIES
from fieldfare.client.subscription import Subscription
from fieldfare.client.typed import event_of
from fieldfare.events.event import Event


class Requester:
    """The open requests of a client to other clients."""

    def __init__(self, subscribe: Callable[[str, str], Subscription[Event]]) -> None:
        """Make a requester; `subscribe` takes a filter and an id."""
        self._subscribe = subscribe
        self._name = secrets.token_hex(8)
        self._count = 0
        self._open: dict[str, asyncio.Future[Event]] = {}
        self._ready: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None
        """reads the replies"""

    async def add(self, request: object) -> tuple[Event, asyncio.Future[Event]]:
        """Return the event to publish for a request, and the future reply."""
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self.task = asyncio.create_task(self._read_replies(self._ready))
        await asyncio.shield(self._ready)
        self._count += 1
        name = f"{self._name}.{self._count}"
        future: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self._open[name] = future
        future.add_done_callback(lambda _: self._open.pop(name))
        return _with(request, reply_to=name), future

    async def _read_replies(self, ready: asyncio.Future[None]) -> None:
        try:
            async with self._subscribe(f"in_reply_to STARTS WITH '{self._name}.'", REPLIES) as replies:
                ready.set_result(None)
                async for event in replies:
                    future = self._open.get(str(event.get("in_reply_to")))
                    if future is not None and not future.done():
                        future.set_result(event)
        except (Refused, ConnectionError) as error:
            self._ready = None  # the next request may try again
            if not ready.done():
                ready.set_exception(error)
            for future in list(self._open.values()):
                if not future.done():
                    future.set_exception(error)


def reply_to(request: object, reply: object) -> Event:
    """Return the event of a reply; ValueError if the request wants none."""
    name = event_of(request).get("reply_to")
    if not isinstance(name, str):
        raise ValueError("the event is no request: it has no field reply_to")
    return _with(reply, in_reply_to=name)


def _with(given: object, **fields: str) -> Event:
    event = event_of(given)
    return Event({**event.tree, **fields}, valid=event.valid)
