"""The client for programs without asyncio: the same calls, without `await`. It runs in a thread of its own.

A call waits for its answer, and Ctrl-C interrupts it. An event of a subscription is done with when the next one is
asked for. Several threads may use a client at once, but each subscription belongs to one of them.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from datetime import datetime
from queue import Empty, SimpleQueue
from types import TracebackType
from typing import Any, Final, Generic, TypeVar, overload

from fieldfare.client.client import WINDOW, Client, connect
from fieldfare.client.errors import ConnectionLost, NotEntered
from fieldfare.client.receipt import Receipt
from fieldfare.client.subscription import Delivery, Item, Since, Subscription
from fieldfare.client.transactions import Advertisement
from fieldfare.client.typed import event_of
from fieldfare.events.event import Event

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

AT_ONCE: Final = 100
"""events that are taken from the client's thread at once"""

LOOK_UP: Final = 0.5
"""seconds after which a call that waits looks whether Ctrl-C was pressed, if it was not woken by it"""


def connect_sync(url: str | list[str], **options: Any) -> SyncClient:
    """A client of the node at a URL, to be used with `with`; the options are those of `connect`."""
    return SyncClient(lambda: connect(url, **options))


class SyncClient:
    """A client in a thread of its own; made by `connect_sync`."""

    def __init__(self, make: Callable[[], Client]) -> None:
        """Nothing happens yet."""
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._client: Client | None = None
        self._room = threading.BoundedSemaphore(WINDOW)

    def __enter__(self) -> SyncClient:
        if self._loop is not None:
            raise RuntimeError("a client is used once: make another one with connect_sync()")
        self._loop = loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=loop.run_forever, name="fieldfare client", daemon=True)
        self._thread.start()
        try:
            self._client = self.call(self._started())
        except BaseException:
            self._stop()
            raise
        return self

    async def _started(self) -> Client:
        return await self._make().__aenter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.call(self._it.__aexit__(kind, error, trace))
        finally:
            self._stop()

    def _stop(self) -> None:
        loop = self._loop
        assert loop is not None
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join()
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()

    def call(self, work: Coroutine[Any, Any, T]) -> T:
        """Let something be done in the client's thread, and wait for it."""
        try:
            loop = self._running()
        except (NotEntered, ConnectionLost):
            work.close()
            raise
        tasks, answer = list[asyncio.Task[T]](), SimpleQueue[asyncio.Task[T]]()

        def begin() -> None:
            tasks.append(loop.create_task(work))
            tasks[0].add_done_callback(answer.put)

        # A queue without a lock that Ctrl-C might leave held: the client's thread would wait for it for ever.
        try:
            loop.call_soon_threadsafe(begin)
            done = _waited(answer)
        except BaseException:  # such as Ctrl-C, while the work goes on
            loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise
        return done.result()

    def _running(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise NotEntered("the client is not connected: use it inside `with ff.connect_sync(...) as client:`")
        if not self._thread.is_alive():
            raise ConnectionLost("the client is closed")
        return self._loop

    @property
    def _it(self) -> Client:
        if self._client is None:
            raise NotEntered("the client is not connected: use it inside `with ff.connect_sync(...) as client:`")
        return self._client

    @property
    def node(self) -> str:
        """The name of the node."""
        return self._it.node

    @property
    def session(self) -> str:
        """The name of the session."""
        return self._it.session

    @property
    def closed(self) -> bool:
        """Is it over?"""
        return self._it.closed

    @property
    def dropped(self) -> int:
        """How many events for this client were dropped at the node."""
        return self._it.dropped

    def publish(self, event: object, *, ttl: float | None = None, replaces: str = "") -> bool:
        """Publish an event; it is safe afterwards. False: nobody wants it."""
        return self.call(self._it.publish(event, ttl=ttl, replaces=replaces))

    def publish_batch(self, events: Iterable[object], *, ttl: float | None = None, replaces: str = "") -> int:
        """Publish events, all of them or none; says how many."""
        return self.call(self._it.publish_batch(list(events), ttl=ttl, replaces=replaces))

    def post(self, event: object, *, ttl: float | None = None, replaces: str = "") -> SyncReceipt:
        """Publish without waiting, unless too much is under way. The future, or `drain`, says whether it is safe."""
        client, loop, given, future = self._it, self._running(), event_of(event), SyncReceipt()

        def done(answer: bool | Exception) -> None:
            self._room.release()
            if isinstance(answer, Exception):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        def put() -> None:
            try:
                future.ticket = client.put(given, ttl, replaces)
            except (ValueError, OSError) as error:
                done(error)
            else:
                future.ticket.then(done)
                future.ticket.heard = False  # not before somebody looks

        self._room.acquire()
        loop.call_soon_threadsafe(put)
        return future

    def soon(self, work: Callable[..., object], *arguments: object) -> None:
        """Let something be done in the client's thread, without waiting for it."""
        self._running().call_soon_threadsafe(work, *arguments)

    def drain(self) -> None:
        """Wait until all that was posted is safe."""
        self.call(self._it.drain())

    @contextlib.contextmanager
    def transaction(self, *, ttl: float | None = None, replaces: str = "") -> Iterator[SyncTransaction]:
        """Events that are published together when the block ends, and not at all if it raises."""
        self._running()
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
        """Events that match a filter; a loop over them ends when none came for `timeout` seconds."""

        async def made() -> Subscription[Any]:
            return self._it.subscribe(filter, since=since, id=id, keep=keep, type=type)

        return SyncSubscription(self, self.call(made()), timeout)

    @contextlib.contextmanager
    def advertise(self, filter: object, *, id: str | None = None) -> Iterator[Advertisement]:
        """Promise to publish such events."""
        advertisement = self._it.advertise(filter, id=id)
        self.call(advertisement.__aenter__())
        try:
            yield advertisement
        finally:
            self.call(advertisement.__aexit__(None, None, None))

    def request(self, event: object, *, timeout: float = 5.0) -> Event:
        """Publish an event and wait for somebody's answer."""
        return self.call(self._it.request(event, timeout=timeout))

    def reply(self, request: object, answer: object) -> None:
        """Answer a request."""
        self.call(self._it.reply(request, answer))

    def wanted(self) -> tuple[str, ...]:
        """The filters that anybody wants."""
        return self.call(self._it.wanted())

    def move(self, to: str) -> None:
        """Go to another node, at a URL, and take the session along."""
        self.call(self._it.move(to))

    def leave(self) -> None:
        """End the session, and hang up."""
        self.call(self._it.leave())


def _waited(answer: SimpleQueue[T]) -> T:
    while True:  # now and then look up: a signal just before a thread falls asleep does not wake it
        with contextlib.suppress(Empty):
            return answer.get(timeout=LOOK_UP)


class SyncReceipt(Future[bool]):
    """The promise that something will be published: look at its result, or leave it to `drain`."""

    ticket: Receipt | None = None

    def result(self, timeout: float | None = None) -> bool:
        """True when it is safe, False if nobody wanted it; or `Refused` is raised."""
        try:
            return super().result(timeout)
        finally:
            if self.ticket is not None and self.done():
                self.ticket.heard = True


class SyncTransaction:
    """Events that are published together."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def publish(self, event: object) -> None:
        """Let an event be published when the block ends."""
        self.events.append(event_of(event))


class SyncSubscription(Generic[T_co]):
    """Events that match a filter, as long as it is used with `with`."""

    def __init__(self, client: SyncClient, subscription: Subscription[T_co], timeout: float | None) -> None:
        self._client = client
        self._subscription = subscription
        self._timeout = timeout
        self._here: deque[Item] = deque()
        """taken, but not handed out"""
        self._current: Item | None = None

    @property
    def id(self) -> str:
        """The id of the subscription."""
        return self._subscription.id

    def __enter__(self) -> SyncSubscription[T_co]:
        self._client.call(self._subscription.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.call(self._subscription.__aexit__(kind, error, trace))

    def __iter__(self) -> Iterator[T_co]:
        while True:
            try:
                event = self.next(self._timeout)
            except (TimeoutError, EOFError):
                return
            yield event

    def next(self, timeout: float | None = None) -> T_co:
        """The next event; a TimeoutError if there is none in so many seconds. The one before is done with."""
        if self._current is not None:
            self._client.soon(self._subscription.finish, self._current)
        self._current = None
        self._current = item = self._next(timeout)
        return self._subscription.event(item)

    def deliveries(self) -> Iterator[SyncDelivery[T_co]]:
        """What comes, for you to say when you are `done` with it."""
        while True:
            try:
                item = self._next(self._timeout)
            except (TimeoutError, EOFError):
                return
            event = self._subscription.event(item)
            yield SyncDelivery(self._client, Delivery(self._subscription, item, event))

    def _next(self, timeout: float | None) -> Item:
        if self._subscription.answer is None:
            raise NotEntered("nothing is subscribed yet: use it inside `with client.subscribe(...) as events:`")
        if not self._here:  # to ask another thread takes time: take some at once
            self._here.extend(self._client.call(self._subscription.take(AT_ONCE, timeout)))
        return self._here.popleft()


class SyncDelivery(Generic[T_co]):
    """An event with all that the node says of it."""

    def __init__(self, client: SyncClient, delivery: Delivery[T_co]) -> None:
        self._client = client
        self._delivery = delivery

    def __getattr__(self, name: str) -> Any:
        return getattr(self._delivery, name)

    @property
    def event(self) -> T_co:
        """The event."""
        return self._delivery.event

    def done(self) -> None:
        """You are done with it."""
        self._client.call(self._delivery.done())
