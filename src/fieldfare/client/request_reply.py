"""`Questions`: requests and their answers, as events like any other.

A request has a field `reply_to`, a name that nothing else has; the answer has it as `in_reply_to`. All answers to one
client come by one subscription, which begins with the first request.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from typing import Final

from fieldfare.client.errors import Refused
from fieldfare.client.subscription import Subscription
from fieldfare.client.typed import event_of
from fieldfare.events.event import Event

INBOX: Final = "~inbox"
"""the id of the subscription to answers"""


class Questions:
    """What a client has asked others."""

    def __init__(self, subscribe: Callable[[str, str], Subscription[Event]]) -> None:
        """Nothing; `subscribe` takes a filter and an id."""
        self._subscribe = subscribe
        self._name = secrets.token_hex(8)
        self._count = 0
        self._open: dict[str, asyncio.Future[Event]] = {}
        self._ready: asyncio.Future[None] | None = None
        self.task: asyncio.Task[None] | None = None

    async def ask(self, question: object) -> tuple[Event, asyncio.Future[Event]]:
        """The event to publish, and what will be answered."""
        if self._ready is None:
            self._ready = asyncio.get_running_loop().create_future()
            self.task = asyncio.create_task(self._listen(self._ready))
        await asyncio.shield(self._ready)
        self._count += 1
        name = f"{self._name}.{self._count}"
        future: asyncio.Future[Event] = asyncio.get_running_loop().create_future()
        self._open[name] = future
        future.add_done_callback(lambda _: self._open.pop(name))
        return _with(question, reply_to=name), future

    async def _listen(self, ready: asyncio.Future[None]) -> None:
        try:
            async with self._subscribe(f"in_reply_to STARTS WITH '{self._name}.'", INBOX) as answers:
                ready.set_result(None)
                async for event in answers:
                    future = self._open.get(str(event.get("in_reply_to")))
                    if future is not None and not future.done():
                        future.set_result(event)
        except (Refused, ConnectionError) as error:
            self._ready = None  # it may be tried again
            if not ready.done():
                ready.set_exception(error)
            for future in list(self._open.values()):
                if not future.done():
                    future.set_exception(error)


def answer_to(request: object, answer: object) -> Event:
    """The event that answers a request."""
    to = event_of(request).get("reply_to")
    if not isinstance(to, str):
        raise ValueError("this event wants no answer: it has no field reply_to")
    return _with(answer, in_reply_to=to)


def _with(given: object, **fields: str) -> Event:
    event = event_of(given)
    return Event({**event.tree, **fields}, valid=event.valid)
