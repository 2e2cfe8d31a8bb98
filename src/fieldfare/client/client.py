"""`Client`: a program's access to a node: publish, subscribe, and stay connected.

- With a durable `session` nothing is lost and no event comes twice, not even if the node is restarted.
- Without a session the node forgets the client when the connection breaks. Events without an answer are published
  again, so an event may be in the log twice; events of other clients are missed meanwhile, except by subscriptions
  with `since`.

The client here only has the methods for programs. The protocol is in `engine`, the waiting in `driver`.
"""

from __future__ import annotations

import asyncio
import ssl as tls
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, TypeVar, overload

from fieldfare.client.connection import StateHook
from fieldfare.client.driver import WINDOW, Driver
from fieldfare.client.engine import DroppedHook
from fieldfare.client.errors import WindowFull
from fieldfare.client.reader import Reader
from fieldfare.client.receipt import Receipt
from fieldfare.client.registrations import Since
from fieldfare.client.request_reply import Requester, reply_to
from fieldfare.client.subscription import AnySubscription, Subscription
from fieldfare.client.transactions import Advertisement, Transaction
from fieldfare.client.typed import event_of
from fieldfare.events.event import Event
from fieldfare.protocol.frames import PublishOptions

T = TypeVar("T")


def connect(
    url: str | Sequence[str],
    *,
    session: str = "",
    token: str | Callable[[], str] = "",
    shared: bool = False,
    member: str = "",
    key: str = "",
    device: str = "",
    oldest: bool = False,
    credit: int | None = None,
    quench: bool = False,
    json: bool = False,
    ssl: tls.SSLContext | None = None,
    reconnect: bool = True,
    at: str = "",
    on_state: StateHook = lambda state, reason: None,
    on_dropped: DroppedHook = lambda count, reason: None,
    insecure: bool = False,
) -> Client:
    """Return a client of the node at a URL, to be used with `async with`.

    Args:
        url: such as `ws://127.0.0.1:7400`; of several addresses, the client tries the next if a node does not answer.
        session: the name of a durable session: the node keeps subscriptions and waiting events while the client is
            away. Another node gets the session from the last node: nothing is lost and no event comes twice.
        token: the client's identity, for a node with security; or a function returning a token for each connection.
        shared: be a member of the session: each event goes to one of the members that are connected, and again to
            another if the member goes without an acknowledgement. A member publishes as a client without a session.
        member: the name of the member; a second connection of the same name takes the place of the first.
        key: a field; events with the same value there go to the same member while one is not acknowledged.
        device: be this device of the session: each device gets every event, and goes on where it was when it was away.
        oldest: if the device is new, begin with the oldest event that waits for another device, not with the next one.
        credit: the number of events from the node before the client has to acknowledge some; 1000, and for a member 20.
        quench: do not send events without a matching subscription.
        json: use JSON frames, which are slower, but readable.
        ssl: the context for `wss://`, if the default is not enough.
        reconnect: connect again when the connection breaks, however long it takes. The first connection must succeed.
        at: the name of the node with the session, if another node is at the URL.
        on_state: called with `connected`, `reconnecting`, `waiting` (for a session from another node) or `closed`, and
            the reason.
        on_dropped: called when the node has lost events for the client, with how many (0: not known) and the reason.
        insecure: send the token even over `ws://` to another machine, where others can read it.
    """
    return Client(
        Driver(
            url,
            session=session,
            token=token,
            shared=shared,
            member=member,
            key=key,
            device=device,
            oldest=oldest,
            credit=credit,
            quench=quench,
            json=json,
            ssl=ssl,
            reconnect=reconnect,
            at=at,
            on_state=on_state,
            on_dropped=on_dropped,
            insecure=insecure,
        )
    )


class Client:
    """A client of a node, which connects again when the connection breaks; made by `connect`."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._requester = Requester(lambda filter, id: self.subscribe(filter, id=id))

    async def __aenter__(self) -> Client:
        await self._driver.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if error is None:
                await self._driver.finish()
        finally:
            await self.close()

    @property
    def node(self) -> str:
        """The name of the node."""
        return self._driver.engine.node

    @property
    def session(self) -> str:
        """The name of the session; the node makes up a name for a client without one."""
        return self._driver.engine.session

    @property
    def dropped(self) -> int:
        """The number of events for the client, dropped by the node."""
        return self._driver.engine.dropped

    @property
    def closed(self) -> bool:
        """Tell whether the client has ended: after `close`, or refused by the node."""
        return self._driver.closed

    @property
    def connected(self) -> bool:
        """Tell whether there is a connection now."""
        return self._driver.connection.socket is not None

    async def close(self) -> None:
        """Disconnect for good. Unsafe events may be lost: `drain` first, as `async with` does."""
        driver = self._driver
        if not self.closed:
            driver.check()
        replies = self._requester.task
        if replies is not None and driver.engine.durable and self.connected:
            replies.cancel()  # unsubscribes, lest replies wait for a session that has gone
            await asyncio.wait([replies], timeout=1)
        await driver.connection.stop()
        if replies is not None:
            replies.cancel()
            await asyncio.gather(replies, return_exceptions=True)

    async def move(self, to: str) -> None:
        """Go to another node, at a URL, with the session. The old node delivers until the move is complete.

        The two nodes must be linked, perhaps through others. If the move fails, nothing changes.
        """
        self._driver.check()
        await self._driver.connection.move(to)

    async def leave_for(self, node: str) -> None:
        """Name the next node of this client, and go on as before.

        With a strategy with advertisements and a policy with prefetching, the client's advertisements are at the next
        node before the client. A wrong hint does no harm.
        """
        await self._driver.leave_for(node)

    async def leave(self) -> None:
        """End the session, with all subscriptions and waiting events, and disconnect; of several devices, only this."""
        await self._driver.end_session()
        await self.close()

    # Publishing

    async def publish(self, event: object, *, ttl: float | None = None, replaces: str = "") -> bool:
        """Publish an event (a mapping, an `Event`, a dataclass or a `msgspec.Struct`) and wait until the event is safe.

        With `ttl`, no subscriber gets the event later than so many seconds from now. Of waiting events with the
        same `replaces`, a subscriber gets only the last. Returns False if the event was not sent,
        because no subscription matches (see `quench`).
        """
        await self._driver.wait_for_capacity()
        return await self._driver.publish((event_of(event),), PublishOptions(ttl=ttl, replaces=replaces))

    async def publish_batch(self, events: Iterable[object], *, ttl: float | None = None, replaces: str = "") -> int:
        """Publish events, all or none, and return how many. `Refused` for more events than fit into a frame."""
        batch = tuple(map(event_of, events))
        await self._driver.wait_for_capacity()
        interest = self._driver.engine.interest
        matching = tuple(filter(interest.matches, batch)) if interest.quench else batch
        if not matching:
            return 0
        options = PublishOptions(ttl=ttl, replaces=replaces)
        return len(matching) if await self._driver.publish(matching, options, quench=False) else 0

    def publish_soon(self, event: object, *, ttl: float | None = None, replaces: str = "") -> Receipt:
        """Publish without waiting. Await the receipt, or `drain`, to be sure that the event is safe.

        If 10,000 events are not safe yet, `WindowFull` is raised: `await client.wait_for_capacity()` before more.
        """
        self._driver.check()
        if (count := self._driver.engine.unsafe) >= WINDOW:
            raise WindowFull(f"{count} published events are not safe yet: await client.wait_for_capacity() first")
        return self._driver.publish((event_of(event),), PublishOptions(ttl=ttl, replaces=replaces))

    async def wait_for_capacity(self) -> None:
        """Wait until `publish_soon` accepts another event."""
        await self._driver.wait_for_capacity()

    async def drain(self) -> None:
        """Wait until all published events are safe; `Refused` for a refused event without an awaited receipt."""
        await self._driver.drain()

    def transaction(self, *, ttl: float | None = None, replaces: str = "") -> Transaction:
        """Return a block: the events inside are published together at the end, or not at all if the block raises."""
        self._driver.check()
        return Transaction(lambda events: self.publish_batch(events, ttl=ttl, replaces=replaces))

    async def interest(self) -> tuple[str, ...]:
        """Return the filters of all subscriptions in the network: other events need not be published."""
        return await self._driver.interest()

    # Subscribing

    @overload
    def subscribe(
        self, filter: object, *, since: Since | datetime = ..., id: str | None = ..., keep: bool = ..., type: None = ...
    ) -> Subscription[Event]: ...

    @overload
    def subscribe(
        self, filter: object, *, since: Since | datetime = ..., id: str | None = ..., keep: bool = ..., type: type[T]
    ) -> Subscription[T]: ...

    def subscribe(
        self,
        filter: object,
        *,
        since: Since | datetime = None,
        id: str | None = None,
        keep: bool = False,
        type: type[Any] | None = None,
    ) -> AnySubscription:
        """Return a subscription: `async with client.subscribe(...) as events: async for event in events: ...`.

        Args:
            filter: a text, a `Filter`, a document of CloudEvents' subscriptions, or a pattern (`parse_pattern`), whose
                composite events come then.
            since: also earlier events: from a position in the log (a whole number) or a time on.
            id: the id under which a durable session keeps the subscription; by default made from the filter.
            keep: let the session keep the subscription when the block ends. Else the waiting events are dropped.
            type: a class; the subscription gives instances of the class instead of events.
        """
        return Subscription(Reader(self._driver, filter, since=since, id=id, keep=keep, type=type))

    async def set(self, **values: object) -> None:
        """State values for the parameters of filters: `set(budget=120)` for `price <= :budget`; None forgets a value.

        All filters of the session change at once. After this call, events accepted at the node are matched by the
        filters with the new values; an event that matches before and after the change is not lost.
        """
        await self._driver.set_parameters(values)

    async def set_place(self, place: str | None) -> None:
        """State the place of the session, for filters such as `location IN myloc`; see `set`."""
        await self._driver.set_parameters({"myloc": place})

    def advertise(self, filter: object, *, id: str | None = None) -> Advertisement:
        """Announce the events of a filter, to be published inside an `async with` block."""
        return Advertisement(self._driver, filter, id)

    # Requests and replies

    async def request(self, event: object, *, timeout: float = 5.0) -> Event:
        """Publish an event and wait for another client's `reply`; TimeoutError after so many seconds."""
        self._driver.check()
        if self._driver.engine.shared or self._driver.engine.device:
            raise ValueError("a member of a shared session makes no requests: any member could get the reply")
        reply: asyncio.Future[Event] | None = None
        try:
            async with asyncio.timeout(timeout):
                request, reply = await self._requester.add(event)
                await self._driver.wait_for_capacity()
                await self._driver.publish((request,), PublishOptions(ttl=timeout), quench=False)
                return await reply
        except TimeoutError:
            raise TimeoutError(f"no client replied in {timeout} seconds") from None
        finally:
            if reply is not None:
                reply.cancel()

    async def reply(self, request: object, answer: object) -> None:
        """Reply to a request, as received from a subscription."""
        await self._driver.wait_for_capacity()
        await self._driver.publish((reply_to(request, answer),), quench=False)
