"""`Subscription`: events that a client asked for, as they come.

An event is done with when the next one is asked for, or, taken as a `Delivery`, when you say so. What is not done with
comes again to a session that survives; and the node sends no more than the client's credit allows, so whoever is slow
makes the node wait, and with it all other subscriptions of the same client.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from fieldfare.client.acknowledgements import Outstanding
from fieldfare.client.errors import NotEntered
from fieldfare.client.typed import instance_of
from fieldfare.events.event import Event
from fieldfare.protocol import frames as f

if TYPE_CHECKING:
    from fieldfare.client.client import Client

T_co = TypeVar("T_co", covariant=True)
Since = int | float | str | None


class Item:
    """Something that came, and the book in which it stands."""

    __slots__ = ("book", "delivery")

    def __init__(self, book: Outstanding, delivery: f.Delivery) -> None:
        self.book = book
        self.delivery = delivery


class Delivery(Generic[T_co]):
    """An event with all that the node says of it."""

    __slots__ = ("_item", "_subscription", "event")

    def __init__(self, subscription: Subscription[T_co], item: Item, event: T_co) -> None:
        """It is not done with."""
        self._subscription = subscription
        self._item = item
        self.event = event

    @property
    def number(self) -> int:
        """Its number in the session."""
        return self._item.delivery.number

    @property
    def position(self) -> int:
        """Its position in the log of the node."""
        return self._item.delivery.position

    @property
    def time(self) -> float:
        """When it was logged, in seconds since 1970."""
        return self._item.delivery.time

    @property
    def publisher(self) -> str:
        """The session that published it."""
        return self._item.delivery.publisher

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The ids of all subscriptions of the session that it matches."""
        return self._item.delivery.subscriptions

    async def done(self) -> None:
        """You are done with it: it need not come again. To say so twice does no harm."""
        self._subscription.finish(self._item)

    def __repr__(self) -> str:
        return f"Delivery({self.number}, {self.event!r})"


@contextlib.asynccontextmanager
async def _within(seconds: float | None) -> AsyncIterator[None]:
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            yield
    except TimeoutError:
        if limit.expired():
            raise TimeoutError(f"no event came in {seconds:g} seconds") from None
        raise


class Subscription(Generic[T_co]):
    """Events that match a filter, as long as it is used with `async with`; made by `Client.subscribe`."""

    def __init__(
        self, client: Client, id: str, filter: object, since: Since, type: type[T_co] | None, *, keep: bool
    ) -> None:
        self.id = id
        self.filter = filter
        self._client = client
        self._since = since
        self._type = type
        self._keep = keep
        self._queue: deque[Item] = deque()
        self._taken: dict[Item, None] = {}
        """handed out, and not done with"""
        self._current: Item | None = None
        self._ready = asyncio.Event()
        self._over: Exception | None = None
        self.over = False
        """whether it was left"""
        self.answer: asyncio.Future[None] | None = None
        """whether the node knows of it"""
        self._last = (0.0, 0)
        """time and position of the last that came"""
        self._elsewhere = False
        """whether it goes on at another node, whose times and positions are others"""

    async def __aenter__(self) -> Subscription[T_co]:
        await self._client.open(self)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.shut(self)

    # For those who want events

    def __aiter__(self) -> Subscription[T_co]:
        return self

    async def __anext__(self) -> T_co:
        self.finish(self._current)
        item = await self._next()
        self._current = item
        return self.event(item)

    async def next(self, timeout: float | None = None) -> T_co:
        """The next event; a TimeoutError if there is none in so many seconds. The one before is done with."""
        async with _within(timeout):
            try:
                return await anext(self)
            except StopAsyncIteration:
                raise EOFError("the subscription is over") from None

    async def deliveries(self) -> AsyncIterator[Delivery[T_co]]:
        """What comes, for you to say when you are `done` with it, in any order. Until then it uses up credit."""
        while True:
            try:
                delivery = await self.next_delivery()
            except StopAsyncIteration:
                return
            yield delivery

    async def next_delivery(self) -> Delivery[T_co]:
        """One of `deliveries`."""
        item = await self._next()
        return Delivery(self, item, self.event(item))

    @property
    def waiting(self) -> int:
        """How many events are here and not asked for yet."""
        return len(self._queue)

    def finish(self, item: Item | None) -> None:
        """Be done with something that was handed out."""
        if item is not None and item in self._taken:
            del self._taken[item]
            self._client.finish(item)

    async def _next(self) -> Item:
        if self.answer is None:
            raise NotEntered("nothing is subscribed yet: use it inside `async with client.subscribe(...) as events:`")
        while not self._queue:
            if self._over is not None:
                raise self._over
            self._ready.clear()
            await self._ready.wait()
        item = self._queue.popleft()
        self._taken[item] = None
        return item

    async def take(self, limit: int, timeout: float | None) -> list[Item]:
        """What is here, at most so much; at least one, or a TimeoutError, or an EOFError. For the client of threads."""
        async with _within(timeout):
            try:
                items = [await self._next()]
            except StopAsyncIteration:
                raise EOFError("the subscription is over") from None
        while self._queue and len(items) < limit:
            items.append(await self._next())
        return items

    def event(self, item: Item) -> T_co:
        """What somebody gets to see of something that came."""
        event: Event = self._client.codec.event(bytes(item.delivery.event))
        if self._type is None:
            return cast("T_co", event)
        return instance_of(event, self._type, item.delivery.position)

    # For the client

    def frame(self, request: int, *, anew: bool) -> f.Subscribe:
        """How to ask for it: the first time, or of a node that has forgotten it, with all that happened since."""
        time, position = self._last
        since = self._since if anew else None
        if since is not None and position:
            since = time
        return f.Subscribe(request, self.id, self.filter, since)

    def wants(self, delivery: f.Delivery) -> bool:
        """Is it new? What happened before may come twice, if the connection broke before the node could answer."""
        time, position = self._last
        return self._since is None or self._elsewhere or delivery.time > time or delivery.position > position

    def moved(self) -> None:
        """The session has gone to another node, where nothing that happened before is said again."""
        self._elsewhere = self.answer is not None and self.answer.done()

    def put(self, item: Item) -> None:
        """Something came."""
        self._last = item.delivery.time, item.delivery.position
        self._queue.append(item)
        self._ready.set()

    def end(self, error: Exception | None = None) -> None:
        """Nothing will come any more."""
        if self._over is None:
            self._over = error or StopAsyncIteration()
        self._ready.set()

    @property
    def kept(self) -> bool:
        """Does it stay when nobody uses it?"""
        return self._keep

    def left(self) -> list[Item]:
        """All that is not done with."""
        left = [*self._taken, *self._queue]
        self._taken, self._current = {}, None
        self._queue.clear()
        return left


AnySubscription = Subscription[Any]
