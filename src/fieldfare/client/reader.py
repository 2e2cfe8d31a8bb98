"""`Reader`: takes the deliveries of a subscription out of the engine, and waits for more.

`Subscription` and `SyncSubscription` are two faces of a reader.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncIterator, Container
from datetime import datetime
from typing import Any, Generic, TypeVar, cast

import msgspec

from fieldfare.client.driver import Driver
from fieldfare.client.errors import NotEntered
from fieldfare.client.registrations import AnyPattern, Item, Since, SubscriptionRegistration, WrittenPattern
from fieldfare.client.typed import instance_of
from fieldfare.events.event import Event
from fieldfare.filters.filter import Filter

T_co = TypeVar("T_co", covariant=True)


class Reader(Generic[T_co]):
    """The deliveries of a subscription, in order."""

    def __init__(
        self,
        driver: Driver,
        filter: object,
        *,
        since: Since | datetime = None,
        id: str | None = None,
        keep: bool = False,
        type: type[T_co] | None = None,
        usage: str = "async with client.subscribe(...) as events:",
    ) -> None:
        """Make a subscription, still unknown to the node; `usage` is shown if the program forgets `with`."""
        driver.check()
        if isinstance(since, datetime):
            since = since.timestamp()
        if keep and not driver.engine.durable:
            raise ValueError("keep=True needs a durable session: connect(..., session='a name')")
        written, keep = write_filter(filter), keep or driver.engine.is_member
        self.registration = SubscriptionRegistration(
            id or make_id(written, driver.engine.inbox.subscriptions),
            written,
            since,
            keep=keep or driver.engine.is_member,
        )
        self._driver = driver
        self._type = type
        self._usage = usage
        self._changed = asyncio.Event()
        self.registration.on_change = self._changed.set

    async def open(self) -> None:
        """Subscribe, and wait until the node knows."""
        await self._driver.open(self.registration)

    async def close(self) -> None:
        """Unsubscribe, unless the session keeps the subscription."""
        await self._driver.close(self.registration)

    def check(self) -> None:
        """Raise `NotEntered` if the program has not entered the subscription: no event would ever arrive."""
        if not self.registration.opened:
            raise NotEntered(f"nothing is subscribed yet: use it inside `{self._usage}`")

    async def next(self) -> Item:
        """Wait for the next delivery; StopAsyncIteration at the end of the subscription."""
        self.check()
        registration = self.registration
        while not registration.queue:
            if registration.ended is not None:
                raise registration.ended
            self._changed.clear()
            await self._changed.wait()
        return registration.take()

    async def take(self, limit: int, timeout: float | None) -> list[Item]:
        """Wait for the next delivery and return all queued deliveries, at most `limit`.

        TimeoutError if none arrives in so many seconds, EOFError at the end of the subscription.
        """
        async with within(timeout):
            try:
                items = [await self.next()]
            except StopAsyncIteration:
                raise EOFError("the subscription is over") from None
        while self.registration.queue and len(items) < limit:
            items.append(self.registration.take())
        return items

    def acknowledge(self, item: Item | None) -> None:
        """Acknowledge a taken delivery. None and a second time have no effect."""
        if item is not None and self.registration.release(item):
            self._driver.acknowledge(item)

    def event(self, item: Item) -> T_co:
        """Return the event of a delivery, as an instance of the program's class, if any."""
        event: Event = self._driver.codec.event(bytes(item.delivery.event))
        if self._type is None:
            return cast("T_co", event)
        return instance_of(event, self._type, item.delivery.position)


@contextlib.asynccontextmanager
async def within(seconds: float | None) -> AsyncIterator[None]:
    """Limit the time of a block, with a TimeoutError for people."""
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise TimeoutError(f"no event came in {seconds:g} seconds") from None
        raise


def write_filter(filter: object) -> object:
    """Return a filter or a pattern in the form of frames: a text, or a document."""
    if isinstance(filter, AnyPattern):
        return WrittenPattern(filter.text)
    if isinstance(filter, Filter):
        return str(filter)
    if isinstance(filter, (str, dict, list)):
        return filter
    raise TypeError(f"a filter is a text, a Filter or a document, not {type(filter).__name__}")


def make_id(written: Any, used: Container[str]) -> str:
    """Make an id from a filter.

    A restarted program makes the same id, and so finds the waiting events of the session.
    """
    text = str(written) if isinstance(written, str) else msgspec.json.encode(written).decode()
    if len(text) > 64:
        text = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    id, count = text, 1
    while id in used:
        count += 1
        id = f"{text} #{count}"
    return id
