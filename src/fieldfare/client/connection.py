"""`Connection`: runs the engine of a client on a WebSocket, and on another WebSocket when the first breaks.

A task connects and reads, another task sends the frames of the engine. A move to another node connects there while the
old WebSocket is still in use.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl as tls
import time
from collections.abc import Callable
from typing import Any, Final

import websockets

from fieldfare.client.address_book import AddressBook, Invitation
from fieldfare.client.engine import Engine
from fieldfare.client.errors import ConnectionLost, ConnectionRefused
from fieldfare.client.handshake import Dialled, Redirected, check_url, dial, reason_of
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import Codec, FrameError
from fieldfare.retry import Backoff

StateHook = Callable[[str, str], None]
"""called with `connected`, `reconnecting`, `waiting` or `closed`, and the reason"""

BACKOFF: Final = Backoff(0.1, 10.0, (0.5, 1.0))
"""before an attempt to reconnect; the jitter keeps the clients of a node from coming back all at once"""


class Connection:
    """The connection of a client to the present node, over all broken WebSockets."""

    def __init__(
        self,
        engine: Engine,
        urls: list[str],
        codec: Codec[Any],
        *,
        token: str | Callable[[], str],
        ssl: tls.SSLContext | None,
        reconnect: bool,
        on_state: StateHook,
        on_change: Callable[[], None],
        insecure: bool = False,
    ) -> None:
        """Check the addresses; `start` connects. `on_change` is called after each received frame."""
        for url in urls:
            check_url(url)
        self.addresses = AddressBook(urls, has_token=bool(token))
        self.socket: websockets.ClientConnection | None = None
        self._engine = engine
        self._codec = codec
        self._token = token
        self._ssl = ssl
        self._reconnect = reconnect
        self._insecure = insecure
        self._on_state = on_state
        self._on_change = on_change
        self._task: asyncio.Task[None] | None = None
        self._frames_ready = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._move: asyncio.Task[Dialled] | None = None
        """connects to another node, while the socket of the present one is in use"""
        self._connected, self._disconnected = asyncio.Event(), asyncio.Event()
        self._move_wanted, self._move_ended = asyncio.Event(), asyncio.Event()

    @property
    def started(self) -> bool:
        """Tell whether the first connection was made."""
        return self._task is not None

    async def start(self) -> None:
        """Make the first connection; ConnectionLost if no node answers."""
        if self._task is not None:
            raise RuntimeError("a client is used once: make another one with connect()")
        try:
            await self._dial()
        except (ConnectionRefused, ConnectionLost) as error:
            self._fail(error)
            raise
        self._task = asyncio.create_task(self._run(), name="fieldfare client")

    async def stop(self) -> None:
        """Close the connection for good."""
        self._fail(ConnectionLost("the client is closed"), closing=True)
        if self._timer is not None:
            self._timer.cancel()
        if self._move is not None:
            self._move.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._hang_up()  # a task that is cancelled before it began has not done so

    async def move(self, url: str) -> None:
        """Connect to another node; the old connection is used until then. If no connection is made, nothing changes."""
        check_url(url)
        if self.socket is None:  # a client that is just reconnecting must not connect twice
            self.addresses.prefer(url)
            await self._connected.wait()
            self._raise_error()
            if self.addresses.urls[0] == url:
                return
        if self._move is not None:
            raise RuntimeError("the client is on its way to another node already")
        move = self._move = asyncio.create_task(self._dial_one_of([url], moving=True))
        self._move_ended.clear()
        self._move_wanted.set()
        try:
            await asyncio.wait({move})
            if move.cancelled():
                raise ConnectionLost("the client is closed")
            move.result()
        except BaseException:
            move.cancel()
            self._move = None
            raise
        self.addresses.prefer(url)
        await self._move_ended.wait()

    def _raise_error(self) -> None:
        if self._engine.error is not None:
            raise self._engine.error

    def pump(self) -> None:
        """Let the frames of the engine be sent, at once or after the engine's pause."""
        pause = self._engine.pause
        if pause == 0:
            self._frames_ready.set()
        elif pause is not None and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(pause, self._end_pause)

    def _end_pause(self) -> None:
        self._timer = None
        self._frames_ready.set()

    async def wait_while_connected(self, awaited: asyncio.Future[Any]) -> None:
        """Wait for an answer of the node, but not longer than the present WebSocket lives."""
        down: asyncio.Future[Any] = asyncio.create_task(self._disconnected.wait())
        try:
            await asyncio.wait([awaited, down], return_when=asyncio.FIRST_COMPLETED)
        finally:
            down.cancel()

    async def wait_disconnected(self, seconds: float) -> None:
        """Wait until the client has had no connection for so many seconds, or has ended."""
        while self._engine.error is None:
            await self._disconnected.wait()
            try:
                async with asyncio.timeout(seconds):
                    await self._connected.wait()
            except TimeoutError:
                return

    # Connecting

    async def _run(self) -> None:
        try:
            while True:
                reason = await self._serve()
                if await self._finish_move():
                    continue
                if not self._reconnect:
                    raise ConnectionLost(reason)
                self._on_state("reconnecting", reason)
                await self._dial_again()
        except (ConnectionRefused, ConnectionLost) as error:
            self._fail(error)
        except asyncio.CancelledError:  # when the program ends, say
            self._fail(ConnectionLost("the client was cancelled"))
            raise
        except Exception as error:
            self._fail(error)
            raise
        finally:
            await self._hang_up()

    async def _finish_move(self) -> bool:
        """Use the connection to another node, if any. The attempt to connect may still be under way."""
        move = self._move
        if move is None:
            return False
        await asyncio.wait({move})
        if not move.cancelled() and move.exception() is None:
            self._begin(*move.result())
        self._move = None
        self._move_ended.set()
        return self.socket is not None

    async def _dial(self) -> None:
        if not await self._dial_invitation():
            try:
                dialled = await self._dial_one_of(self.addresses.urls)
            except Redirected as error:
                self.addresses.follow(error.to, "")
                if self.addresses.urls[0] != error.to:  # not without a ticket: the address is not the program's choice
                    raise
                dialled = await self._dial_one_of(self.addresses.urls)
            self._begin(*dialled)

    async def _dial_one_of(self, urls: list[str], *, moving: bool = False, ticket: str = "") -> Dialled:
        def hello() -> f.Hello:
            token = "" if ticket else self._token() if callable(self._token) else self._token
            return self._engine.hello(token, moving=moving, ticket=ticket)

        def report(source: str) -> None:
            self._on_state("waiting", f"the session comes from {source}")

        return await dial(urls, self._codec, self._ssl, hello, report, insecure=self._insecure)

    async def _dial_invitation(self) -> bool:
        """Connect to the address named by a node: with a ticket, never with the token.

        After a failure the addresses of the program are next: the node there gets the session back.
        """
        invitation = self.addresses.invitation
        if invitation is None:
            return False
        try:
            dialled = await self._dial_one_of([invitation.url], ticket=invitation.ticket)
        except ConnectionRefused:
            self.addresses.invitation = None
            return False
        except ConnectionLost:
            return False
        self._begin(*dialled)
        ticket = dialled.welcome.ticket
        self.addresses.invitation = Invitation(invitation.url, ticket) if ticket else None
        return True

    def _begin(self, socket: websockets.ClientConnection, welcome: f.Welcome) -> None:
        self.addresses.invitation = None
        self.socket = socket
        self._connected.set()
        self._disconnected.clear()
        self._engine.begin(welcome, time.monotonic())
        self._on_change()
        self._frames_ready.set()
        self._on_state("connected", welcome.node)

    async def _dial_again(self) -> None:
        for delay in BACKOFF.delays():
            await asyncio.sleep(delay)
            try:
                await self._dial()
                return
            except ConnectionLost as error:
                self._on_state("reconnecting", str(error))

    async def _serve(self) -> str:
        """Read and send until the WebSocket breaks; return the reason."""
        socket = self.socket
        assert socket is not None
        jobs = self._read_all(socket), self._send_all(socket), self._wait_for_move()
        tasks = [asyncio.create_task(job) for job in jobs]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return next(task.result() for task in tasks if task in done)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._hang_up()

    async def _wait_for_move(self) -> str:
        while True:
            await self._move_wanted.wait()
            self._move_wanted.clear()
            move = self._move
            if move is not None:
                await asyncio.wait({move})
                if not move.cancelled() and move.exception() is None:
                    return "moved"

    async def _hang_up(self) -> None:
        socket, self.socket = self.socket, None
        self._engine.disconnect()
        self._connected.clear()
        self._disconnected.set()
        if socket is not None:
            with contextlib.suppress(websockets.ConnectionClosed, OSError):
                if (frame := self._engine.last_frame()) is not None:
                    await socket.send(self._codec.encode(frame))
                await socket.close()

    def _fail(self, error: Exception, *, closing: bool = False) -> None:
        """End for good, and wake all waiting calls."""
        if self._engine.error is not None:
            return
        self._engine.fail(error, closing=closing)
        self._on_change()
        self._move_ended.set()
        self._connected.set()
        self._on_state("closed", str(error))

    # Reading and sending

    async def _read_all(self, socket: websockets.ClientConnection) -> str:
        try:
            while True:
                self._receive(self._codec.from_node(await socket.recv()))
        except websockets.ConnectionClosed as closed:
            return reason_of(closed)
        except FrameError as error:
            raise ConnectionRefused(f"the node sent data that is {error}") from None

    def _receive(self, frame: f.FromNode) -> None:
        if isinstance(frame, f.Bye):
            if self._move is not None:  # the other node may have taken the session already
                return
            if not frame.retry:
                raise ConnectionRefused(frame.reason)
            if frame.to:
                self.addresses.follow(frame.to, frame.ticket)
            return
        self._engine.receive(frame)
        self._on_change()
        self.pump()

    async def _send_all(self, socket: websockets.ClientConnection) -> str:
        send, encode, next_frame, now = socket.send, self._codec.encode, self._engine.next_frame, time.monotonic
        try:
            while True:
                await self._frames_ready.wait()
                self._frames_ready.clear()
                while (frame := next_frame(now())) is not None:
                    await send(encode(frame))
        except websockets.ConnectionClosed as closed:
            return reason_of(closed)
