"""`Subscription`: the events of a subscription, as they arrive.

An event is acknowledged when the program takes the next event, or, as a `Delivery`, by hand. A durable session gets
unacknowledged events again. The node sends no more than the client's credit allows, so a slow program makes the node
wait, and with the node all other subscriptions of the same client.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Generic, TypeVar

from fieldfare.client.reader import Reader, within
from fieldfare.client.registrations import Item

T_co = TypeVar("T_co", covariant=True)


class Delivery(Generic[T_co]):
    """An event with the node's description: number, position, time, publisher and subscriptions."""

    __slots__ = ("_item", "_reader", "event")

    def __init__(self, reader: Reader[T_co], item: Item, event: T_co) -> None:
        self._reader = reader
        self._item = item
        self.event = event

    @property
    def number(self) -> int:
        """The number of the delivery in the session: the same each time the event is delivered."""
        return self._item.delivery.number

    @property
    def position(self) -> int:
        """The position of the event in the log of the node."""
        return self._item.delivery.position

    @property
    def time(self) -> float:
        """The time when the node logged the event, in seconds since 1970."""
        return self._item.delivery.time

    @property
    def publisher(self) -> str:
        """The name of the publishing session."""
        return self._item.delivery.publisher

    @property
    def channel_number(self) -> int:
        """The number of the event in the channel of its type, the same for all receivers; 0 without a channel."""
        return self._item.delivery.channel_number

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The ids of all matching subscriptions of the session."""
        return self._item.delivery.subscriptions

    @property
    def redelivered(self) -> bool:
        """Tell whether another member of a shared session may have had the event, and did not acknowledge it."""
        return self._item.redelivered

    async def acknowledge(self) -> None:
        """Acknowledge the event, which is then not delivered again. A second time does no harm."""
        self._reader.acknowledge(self._item)

    def __repr__(self) -> str:
        return f"Delivery({self.number}, {self.event!r})"


class Subscription(Generic[T_co]):
    """Events of a filter, inside an `async with` block; made by `Client.subscribe`."""

    def __init__(self, reader: Reader[T_co]) -> None:
        self._reader = reader
        self._current: Item | None = None
        """the event that the program works on, which is acknowledged with the next one"""

    @property
    def id(self) -> str:
        """The id under which the session has the subscription."""
        return self._reader.registration.id

    @property
    def filter(self) -> object:
        """The filter, as a text or a document."""
        return self._reader.registration.filter

    @property
    def waiting(self) -> int:
        """The number of queued events, not yet taken by the program."""
        return len(self._reader.registration.queue)

    async def __aenter__(self) -> Subscription[T_co]:
        await self._reader.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._reader.close()

    def __aiter__(self) -> Subscription[T_co]:
        return self

    async def __anext__(self) -> T_co:
        self._reader.acknowledge(self._current)
        self._current = item = await self._reader.next()
        return self._reader.event(item)

    async def next(self, timeout: float | None = None) -> T_co:
        """Return the next event, and acknowledge the event before; TimeoutError if none arrives in so many seconds."""
        async with within(timeout):
            try:
                return await anext(self)
            except StopAsyncIteration:
                raise EOFError("the subscription is over") from None

    async def deliveries(self) -> AsyncIterator[Delivery[T_co]]:
        """Yield deliveries, which the program acknowledges in any order. Open deliveries use up credit."""
        while True:
            try:
                delivery = await self.next_delivery()
            except StopAsyncIteration:
                return
            yield delivery

    async def next_delivery(self) -> Delivery[T_co]:
        """Return the next delivery, which the program has to acknowledge."""
        item = await self._reader.next()
        return Delivery(self._reader, item, self._reader.event(item))


AnySubscription = Subscription[Any]
