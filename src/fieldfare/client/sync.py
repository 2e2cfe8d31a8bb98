"""The client for programs without asyncio: the same calls, without `await`. The client runs in a separate thread.

A call waits for the answer, and Ctrl-C interrupts the call. An event of a subscription is acknowledged when the program
takes the next event. Several threads may use a client at once, but each subscription belongs to a single thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Generic, TypeVar, overload

from fieldfare.client.client import Client
from fieldfare.client.driver import WINDOW, Driver
from fieldfare.client.errors import NotEntered
from fieldfare.client.reader import Reader
from fieldfare.client.receipt import Receipt
from fieldfare.client.registrations import Item, Since
from fieldfare.client.subscription import Delivery
from fieldfare.client.thread import LoopThread
from fieldfare.client.transactions import Advertisement
from fieldfare.client.typed import event_of
from fieldfare.events.event import Event
from fieldfare.protocol.frames import PublishOptions

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

PREFETCH: Final = 100
"""events that a subscription takes from the client's thread at once, because each call to another thread is slow"""


def connect_sync(url: str | list[str], **options: Any) -> SyncClient:
    """Return a client of the node at a URL, to be used with `with`; for the options see `connect`."""
    return SyncClient(lambda: Driver(url, **options))


class SyncClient:
    """A client in a separate thread; made by `connect_sync`."""

    def __init__(self, make: Callable[[], Driver]) -> None:
        """Make a client; `make` is called in the client's thread."""
        self._make = make
        self._thread = LoopThread()
        self._entered: tuple[Driver, Client] | None = None
        self._capacity = threading.BoundedSemaphore(WINDOW)

    def __enter__(self) -> SyncClient:
        self._thread.start()
        try:
            self._entered = self._thread.call(self._start())
        except BaseException:
            self._thread.stop()
            raise
        return self

    async def _start(self) -> tuple[Driver, Client]:
        driver = self._make()
        return driver, await Client(driver).__aenter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._thread.call(self._client.__aexit__(kind, error, trace))
        finally:
            self._thread.stop()

    def _check(self) -> tuple[Driver, Client]:
        if self._entered is None:
            raise NotEntered("the client is not connected: use it inside `with ff.connect_sync(...) as client:`")
        return self._entered

    @property
    def _client(self) -> Client:
        return self._check()[1]

    @property
    def node(self) -> str:
        """The name of the node."""
        return self._client.node

    @property
    def session(self) -> str:
        """The name of the session; the node makes up a name for a client without one."""
        return self._client.session

    @property
    def closed(self) -> bool:
        """Tell whether the client has ended."""
        return self._client.closed

    @property
    def dropped(self) -> int:
        """The number of events for the client, dropped by the node."""
        return self._client.dropped

    def publish(self, event: object, *, ttl: float | None = None, replaces: str = "") -> bool:
        """Publish an event and wait until the event is safe; False if no subscription matches (see `quench`)."""
        return self._thread.call(self._client.publish(event, ttl=ttl, replaces=replaces))

    def publish_batch(self, events: Iterable[object], *, ttl: float | None = None, replaces: str = "") -> int:
        """Publish events, all or none, and return how many."""
        return self._thread.call(self._client.publish_batch(list(events), ttl=ttl, replaces=replaces))

    def publish_soon(self, event: object, *, ttl: float | None = None, replaces: str = "") -> SyncReceipt:
        """Publish without waiting, unless 10,000 events are not safe yet. The receipt, or `drain`, gives the answer."""
        driver, given, future = self._check()[0], event_of(event), SyncReceipt()
        self._thread.running()

        def resolve(outcome: bool | Exception) -> None:
            self._capacity.release()
            if isinstance(outcome, Exception):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)

        def publish() -> None:
            try:
                future.receipt = driver.publish((given,), PublishOptions(ttl=ttl, replaces=replaces))
            except (ValueError, OSError) as error:
                resolve(error)
            else:
                future.receipt.add_callback(resolve)
                future.receipt.observed = False  # not before the program looks

        self._capacity.acquire()
        self._thread.call_soon(publish)
        return future

    def drain(self) -> None:
        """Wait until all published events are safe; `Refused` for a refused event without a read receipt."""
        self._thread.call(self._client.drain())

    @contextlib.contextmanager
    def transaction(self, *, ttl: float | None = None, replaces: str = "") -> Iterator[SyncTransaction]:
        """Open a block: the events inside are published together at the end, or not at all if the block raises."""
        self._thread.running()
        transaction = SyncTransaction()
        yield transaction
        self.publish_batch(transaction.events, ttl=ttl, replaces=replaces)

    @overload
    def subscribe(
        self,
        filter: object,
        *,
        since: Since | datetime = ...,
        id: str | None = ...,
        keep: bool = ...,
        type: None = ...,
        timeout: float | None = ...,
    ) -> SyncSubscription[Event]: ...

    @overload
    def subscribe(
        self,
        filter: object,
        *,
        since: Since | datetime = ...,
        id: str | None = ...,
        keep: bool = ...,
        type: type[T],
        timeout: float | None = ...,
    ) -> SyncSubscription[T]: ...

    def subscribe(
        self,
        filter: object,
        *,
        since: Since | datetime = None,
        id: str | None = None,
        keep: bool = False,
        type: type[Any] | None = None,
        timeout: float | None = None,
    ) -> SyncSubscription[Any]:
        """Return a subscription, as `Client.subscribe`; a loop ends when no event arrives for `timeout` seconds."""

        async def make() -> Reader[Any]:
            usage = "with client.subscribe(...) as events:"
            driver = self._check()[0]
            return Reader(driver, filter, since=since, id=id, keep=keep, type=type, usage=usage)

        return SyncSubscription(self._thread, self._thread.call(make()), timeout)

    def set(self, **values: object) -> None:
        """State values for the parameters of filters, as `Client.set`."""
        self._thread.call(self._client.set(**values))

    def set_place(self, place: str | None) -> None:
        """State the place of the session, as `Client.set_place`."""
        self._thread.call(self._client.set_place(place))

    @contextlib.contextmanager
    def advertise(self, filter: object, *, id: str | None = None) -> Iterator[Advertisement]:
        """Announce the events of a filter, to be published inside a `with` block."""
        advertisement = self._client.advertise(filter, id=id)
        self._thread.call(advertisement.__aenter__())
        try:
            yield advertisement
        finally:
            self._thread.call(advertisement.__aexit__(None, None, None))

    def request(self, event: object, *, timeout: float = 5.0) -> Event:
        """Publish an event and wait for another client's `reply`; TimeoutError after so many seconds."""
        return self._thread.call(self._client.request(event, timeout=timeout))

    def reply(self, request: object, answer: object) -> None:
        """Reply to a request, as received from a subscription."""
        self._thread.call(self._client.reply(request, answer))

    def interest(self) -> tuple[str, ...]:
        """Return the filters of all subscriptions in the network."""
        return self._thread.call(self._client.interest())

    def move(self, to: str) -> None:
        """Go to another node, at a URL, with the session."""
        self._thread.call(self._client.move(to))

    def leave_for(self, node: str) -> None:
        """Name the next node of this client, and go on as before."""
        self._thread.call(self._client.leave_for(node))

    def leave(self) -> None:
        """End the session, with all subscriptions and waiting events, and disconnect."""
        self._thread.call(self._client.leave())


class SyncReceipt(Future[bool]):
    """The later answer to a published event: read the `result`, or leave all receipts to `drain`."""

    receipt: Receipt | None = None

    def result(self, timeout: float | None = None) -> bool:
        """Wait for the answer: True if the event is safe, False if no subscription matches; or raises `Refused`."""
        try:
            return super().result(timeout)
        finally:
            if self.receipt is not None and self.done():
                self.receipt.observed = True


class SyncTransaction:
    """Events to publish together at the end of a block."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def publish(self, event: object) -> None:
        """Add an event to the transaction."""
        self.events.append(event_of(event))


class SyncSubscription(Generic[T_co]):
    """Events of a filter, inside a `with` block; made by `SyncClient.subscribe`."""

    def __init__(self, thread: LoopThread, reader: Reader[T_co], timeout: float | None) -> None:
        self._thread = thread
        self._reader = reader
        self._timeout = timeout
        self._prefetched: deque[Item] = deque()
        self._current: Item | None = None
        """the event that the program works on, which is acknowledged with the next one"""

    @property
    def id(self) -> str:
        """The id under which the session has the subscription."""
        return self._reader.registration.id

    def __enter__(self) -> SyncSubscription[T_co]:
        self._thread.call(self._reader.open())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.call(self._reader.close())

    def __iter__(self) -> Iterator[T_co]:
        while True:
            try:
                event = self.next(self._timeout)
            except (TimeoutError, EOFError):
                return
            yield event

    def next(self, timeout: float | None = None) -> T_co:
        """Return the next event, and acknowledge the event before; TimeoutError if none arrives in so many seconds."""
        if self._current is not None:
            self._thread.call_soon(self._reader.acknowledge, self._current)
        self._current = None
        self._current = item = self._next(timeout)
        return self._reader.event(item)

    def deliveries(self) -> Iterator[SyncDelivery[T_co]]:
        """Yield deliveries, which the program acknowledges in any order. Open deliveries use up credit."""
        while True:
            try:
                item = self._next(self._timeout)
            except (TimeoutError, EOFError):
                return
            yield SyncDelivery(self._thread, Delivery(self._reader, item, self._reader.event(item)))

    def _next(self, timeout: float | None) -> Item:
        self._reader.check()
        if not self._prefetched:
            self._prefetched.extend(self._thread.call(self._reader.take(PREFETCH, timeout)))
        return self._prefetched.popleft()


class SyncDelivery(Generic[T_co]):
    """An event with the node's description, and the attributes of `Delivery`."""

    def __init__(self, thread: LoopThread, delivery: Delivery[T_co]) -> None:
        self._thread = thread
        self._delivery = delivery

    def __getattr__(self, name: str) -> Any:
        return getattr(self._delivery, name)

    @property
    def event(self) -> T_co:
        """The event, as an instance of the program's class if the subscription has one."""
        return self._delivery.event

    def acknowledge(self) -> None:
        """Acknowledge the event, which is then not delivered again."""
        self._thread.call(self._delivery.acknowledge())
