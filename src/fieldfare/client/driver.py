"""`Driver`: the engine and the connection of a client together, with the waiting by asyncio.

The classes for programs (`Client`, `Subscription`, `Advertisement`, and their counterparts without asyncio) call the
driver, and so show only methods for programs.
"""

from __future__ import annotations

import asyncio
import logging
import ssl as tls
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from fieldfare.client.connection import Connection, StateHook
from fieldfare.client.engine import DroppedHook, Engine
from fieldfare.client.errors import ConnectionLost, NotEntered, Refused
from fieldfare.client.outbox import FRAME_EVENTS
from fieldfare.client.receipt import Receipt
from fieldfare.client.registrations import Item, Registration
from fieldfare.events.event import Event
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import JSON_CODEC, MSGPACK_CODEC, Codec

logger = logging.getLogger("fieldfare.client")

WINDOW: Final = 10_000
"""published events that may be under way: sent or waiting, and not safe"""
CREDIT: Final = 1000
"""deliveries that a client may hold, unless the program says otherwise"""
MEMBER_CREDIT: Final = 20
"""the same for a member of a shared session: deliveries that a busy member holds keep others idle"""
MAX_REFUSALS: Final = 1000
"""refused receipts that `drain` remembers"""
LEAVE_TIMEOUT: Final = 30.0
"""seconds without a connection after which a client that leaves its block gives up"""

_PLAIN: Final = f.PublishOptions()


class Driver:
    """Runs a client, with the options of `connect`."""

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        session: str = "",
        token: str | Callable[[], str] = "",
        shared: bool = False,
        member: str = "",
        device: str = "",
        oldest: bool = False,
        key: str = "",
        credit: int | None = None,
        quench: bool = False,
        json: bool = False,
        ssl: tls.SSLContext | None = None,
        reconnect: bool = True,
        at: str = "",
        on_state: StateHook = lambda state, reason: None,
        on_dropped: DroppedHook = lambda count, reason: None,
        insecure: bool = False,
    ) -> None:
        self.codec: Codec[Any] = JSON_CODEC if json else MSGPACK_CODEC
        self.engine = Engine(
            encode_event=self.codec.raw,
            session=session,
            at=at,
            credit=credit if credit is not None else MEMBER_CREDIT if shared else CREDIT,
            shared=shared,
            member=member,
            device=device,
            oldest=oldest,
            key=key,
            quench=quench,
            on_dropped=on_dropped,
        )
        self.connection = Connection(
            self.engine,
            [url] if isinstance(url, str) else list(url),
            self.codec,
            token=token,
            ssl=ssl,
            reconnect=reconnect,
            on_state=on_state,
            on_change=self._update,
            insecure=insecure,
        )
        self._capacity, self._safe = asyncio.Event(), asyncio.Event()
        self._burst = 0
        """events that were published since the last pause"""
        self._refusals: deque[Receipt] = deque(maxlen=MAX_REFUSALS)
        self._withdrawals: set[asyncio.Future[None]] = set()
        """subscriptions and advertisements that have ended, and of which the node has not heard"""

    # The life of a client

    @property
    def closed(self) -> bool:
        """Tell whether the client has ended."""
        return self.engine.error is not None

    def check(self) -> None:
        """Raise an error if the client has ended, or has not started: no answer would ever arrive."""
        if self.engine.error is not None:
            raise self.engine.error
        if not self.connection.started:
            raise NotEntered("the client is not connected: use it inside `async with ff.connect(...) as client:`")

    async def start(self) -> None:
        """Connect for the first time."""
        self._update()
        await self.connection.start()
        if self.engine.interest.quench:
            await self.interest()

    async def finish(self) -> None:
        """Wait until the node has received everything, but not for a node away for good."""
        if self.closed:
            self.raise_refusals()
            return
        away = asyncio.create_task(self.connection.wait_disconnected(LEAVE_TIMEOUT))
        finishing = asyncio.create_task(self._finish())
        try:
            await asyncio.wait([finishing, away], return_when=asyncio.FIRST_COMPLETED)
            if finishing.done() or self.closed:
                await finishing
                return
        finally:
            away.cancel()
            finishing.cancel()
        if self.engine.unsafe:
            raise ConnectionLost(f"{self.engine.unsafe} published events are not safe: no node answers")
        logger.warning("the session %s goes on at %s as it was: no node answers", self.engine.session, self.engine.node)

    async def _finish(self) -> None:
        await self.drain()
        if self.engine.durable and self._withdrawals:
            await asyncio.wait(self._withdrawals)

    def _update(self) -> None:
        """Set the events of asyncio as the engine is now."""
        for event, holds in (
            (self._safe, not self.engine.unsafe),
            (self._capacity, self.engine.unsafe < WINDOW),
        ):
            if holds != event.is_set():
                (event.set if holds else event.clear)()

    # Publishing

    def publish(self, events: tuple[Event, ...], options: f.PublishOptions = _PLAIN, *, quench: bool = True) -> Receipt:
        """Publish events together, without regard to the window; with `quench`, only if a subscription matches."""
        self.check()
        engine = self.engine
        receipt = Receipt(self._refusals)
        if quench and engine.interest.quench and not any(map(engine.interest.matches, events)):
            receipt.resolve(False)
            return receipt
        engine.publish(events, options, receipt.resolve, time.monotonic())
        self._burst += len(events)
        self._update()
        self.connection.pump()
        return receipt

    async def wait_for_capacity(self) -> None:
        """Wait until fewer than `WINDOW` events are under way."""
        self.check()
        if self._burst >= FRAME_EVENTS:
            self._burst = 0
            await asyncio.sleep(0)  # so that frames are sent while the program makes more events
        while self.engine.unsafe >= WINDOW and not self.closed:
            await self._capacity.wait()
        self.check()

    async def wait_until_safe(self) -> None:
        """Wait until all published events are answered."""
        if not self.closed:
            self.check()
        await self._safe.wait()
        self.check()

    async def drain(self) -> None:
        """Wait until all published events are safe; raise the first error unknown to the program."""
        await self.wait_until_safe()
        self.raise_refusals()

    def raise_refusals(self) -> None:
        """Raise the error of the first refused receipt without an awaiting program; forget the others."""
        refused = [receipt for receipt in self._refusals if not receipt.observed]
        self._refusals.clear()
        for receipt in refused:
            receipt.observed = True
        if refused and refused[0].error is not None:
            raise refused[0].error

    # Subscriptions and advertisements

    async def open(self, registration: Registration) -> None:
        """Register a subscription or an advertisement, and wait until the node knows."""
        self.check()
        answer = _future()
        self.engine.register(registration, partial(_resolve, answer))
        self.connection.pump()
        try:
            await answer
        except Refused:
            self.engine.discard(registration)
            raise
        except BaseException:
            await self.close(registration)
            raise

    async def close(self, registration: Registration) -> None:
        """Withdraw a registration. A node away hears of the end later, and the program does not wait."""
        told = _future()
        self._withdrawals.add(told)
        told.add_done_callback(self._withdrawals.discard)
        self.engine.withdraw(registration, lambda error: _resolve(told, None))
        self.connection.pump()
        await self.connection.wait_while_connected(told)

    def acknowledge(self, item: Item) -> None:
        """Acknowledge a delivery for a subscription."""
        self.engine.acknowledge(item)
        self.connection.pump()

    async def set_parameters(self, values: Mapping[str, object]) -> None:
        """State values for the parameters of filters, and wait until the filters are in force at the node."""
        self.check()
        answer = _future()
        self.engine.set_parameters(values, partial(_resolve, answer))
        self.connection.pump()
        await answer

    # Requests

    async def interest(self) -> tuple[str, ...]:
        """Return the filters of all subscriptions in the network."""
        self.check()
        while self.engine.interest.texts is None:
            answer = _future()
            self.engine.watch_interest(partial(_resolve, answer))
            self.connection.pump()
            await answer
            self.check()
        return self.engine.interest.texts

    async def leave_for(self, node: str) -> None:
        """Tell the node where the client goes next."""
        self.check()
        answer = _future()
        self.engine.request(lambda request: f.LeaveFor(request, node), partial(_resolve, answer))
        self.connection.pump()
        await answer

    async def end_session(self) -> None:
        """Tell the node to end the session, when all published events are safe."""
        await self.wait_until_safe()
        answer = _future()
        self.engine.request(f.Leave, partial(_resolve, answer))
        self.connection.pump()
        await answer


def _future() -> asyncio.Future[None]:
    return asyncio.get_running_loop().create_future()


def _resolve(future: asyncio.Future[None], error: Exception | None) -> None:
    """Resolve a future, unless the waiting program was cancelled."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
