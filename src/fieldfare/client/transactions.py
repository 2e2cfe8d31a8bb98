"""`Advertisement` and `Transaction`: objects of a client with an `async with` block."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType

from fieldfare.client.driver import Driver
from fieldfare.client.reader import make_id, write_filter
from fieldfare.client.registrations import AdvertisementRegistration
from fieldfare.client.typed import event_of
from fieldfare.events.event import Event


class Advertisement:
    """The announcement of a client's future events, as a filter; made by `Client.advertise`."""

    def __init__(self, driver: Driver, filter: object, id: str | None = None) -> None:
        driver.check()
        written = write_filter(filter)
        self._registration = AdvertisementRegistration(id or make_id(written, driver.engine.advertisements), written)
        self._driver = driver

    @property
    def id(self) -> str:
        """The id under which the session has the advertisement."""
        return self._registration.id

    @property
    def filter(self) -> object:
        """The filter, as a text or a document."""
        return self._registration.filter

    async def __aenter__(self) -> Advertisement:
        await self._driver.open(self._registration)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._driver.close(self._registration)


class Transaction:
    """Events to publish together at the end of an `async with` block; made by `Client.transaction`."""

    def __init__(self, publish: Callable[[list[Event]], Awaitable[object]]) -> None:
        self._publish = publish
        self._events: list[Event] = []
        self._over = False

    async def __aenter__(self) -> Transaction:
        return self

    def publish(self, event: object) -> None:
        """Add an event to the transaction."""
        if self._over:
            raise RuntimeError("the transaction is over: publish inside its block")
        self._events.append(event_of(event))

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over = True
        if error is None and self._events:
            await self._publish(self._events)
