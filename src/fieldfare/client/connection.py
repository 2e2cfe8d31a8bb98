"""`Connection`: a conversation with a node that goes on when the socket breaks.

One task connects and reads, another sends: first what waits in the outbox, then whatever the listener has to say. The
listener is told of each new beginning, and says again what the node may not have heard. Requests that were not answered
are said again from here.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl as tls
from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

import websockets

from fieldfare.client.errors import ConnectionLost, ConnectionRefused, NotEntered, Refused
from fieldfare.client.handshake import Dialled, check_url, dial, reason_of
from fieldfare.protocol import frames as f
from fieldfare.protocol.codec import Codec, FrameError
from fieldfare.retry import Backoff

Answer = Callable[[Exception | None], None]
StateHook = Callable[[str, str], None]

BACKOFF: Final = Backoff(0.1, 10.0, (0.5, 1.0))
"""before an attempt to reconnect; the jitter keeps the clients of a node from coming back all at once"""


class Listener(Protocol):
    """Whoever has the conversation."""

    def hello(self, *, moving: bool = False, ticket: str = "") -> f.Hello:
        """How to begin; if it is moving, while there is another connection still; with a ticket instead of a token."""

    @property
    def has_token(self) -> bool:
        """Is there a token that must not get into wrong hands?"""

    def begin(self, welcome: f.Welcome) -> None:
        """The node has answered: say again what it may not have heard."""

    def hear(self, frame: f.FromNode) -> None:
        """The node says something that is no answer to a request."""

    def next_frame(self) -> f.Frame | None:
        """What there is to say."""

    def last_word(self) -> f.Frame | None:
        """What to say before hanging up."""

    def over(self, error: Exception) -> None:
        """There is no node any more."""


class Connection:
    """A connection that is made again when it breaks."""

    def __init__(
        self,
        listener: Listener,
        urls: list[str],
        codec: Codec[Any],
        *,
        ssl: tls.SSLContext | None,
        reconnect: bool,
        on_state: StateHook,
        insecure: bool = False,
    ) -> None:
        """Nothing happens yet."""
        for url in urls:
            check_url(url)
        if not urls:
            raise ValueError("say where: a client needs at least one URL such as ws://127.0.0.1:7400")
        self._listener = listener
        self._urls = urls
        self._invited: tuple[str, str] | None = None
        """the address of the node where the session is, if only nodes have named it, and the ticket to show there"""
        self._codec = codec
        self._ssl = ssl
        self._reconnect = reconnect
        self._insecure = insecure
        self._on_state = on_state
        self.socket: websockets.ClientConnection | None = None
        self.error: Exception | None = None
        """why it is over, if it is"""
        self._task: asyncio.Task[None] | None = None
        self._wake = asyncio.Event()
        self._outbox: deque[f.Frame] = deque()
        self._move: asyncio.Task[Dialled] | None = None
        """a connection to another node, while there is one to this"""
        self._up, self._down = asyncio.Event(), asyncio.Event()
        self._moves = asyncio.Event()
        self._begun = asyncio.Event()
        self._request = 0
        self._asked: dict[int, tuple[f.Frame | None, Answer]] = {}

    async def start(self) -> None:
        """Get through, the first time."""
        if self._task is not None:
            raise RuntimeError("a client is used once: make another one with connect()")
        try:
            await self._dial()
        except (ConnectionRefused, ConnectionLost) as error:
            self.fail(error)
            raise
        self._task = asyncio.create_task(self._run(), name="fieldfare client")

    async def stop(self) -> None:
        """Hang up."""
        self.fail(ConnectionLost("the client is closed"))
        if self._move is not None:
            self._move.cancel()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self._hang_up()  # a task that is cancelled before it began has not done so

    def check(self) -> None:
        """Complain if it is over, or has not begun: then nothing would ever answer."""
        if self.error is not None:
            raise self.error
        if self._task is None:
            raise NotEntered("the client is not connected: use it inside `async with ff.connect(...) as client:`")

    async def move(self, url: str) -> None:
        """Go to another node; the old connection is used until the new one is there. If that fails, nothing changes."""
        check_url(url)
        if self.socket is None:  # who is just coming back must not come twice
            self._prefer(url)
            await self._up.wait()
            self.check()
            if self._urls[0] == url:
                return
        if self._move is not None:
            raise RuntimeError("the client is on its way to another node already")
        dialling = self._get_through([url], lambda: self._listener.hello(moving=True))
        move = self._move = asyncio.create_task(dialling)
        self._begun.clear()
        self._moves.set()
        try:
            await asyncio.wait({move})
            if move.cancelled():
                raise ConnectionLost("the client is closed")
            move.result()
        except BaseException:
            move.cancel()
            self._move = None
            raise
        self._prefer(url)
        await self._begun.wait()

    def _prefer(self, url: str) -> None:
        """Try a URL before the others."""
        self._urls[:] = [url, *(other for other in self._urls if other != url)]

    def _wait(self, source: str) -> None:
        self._on_state("waiting", f"the session comes from {source}")

    # Saying something

    def wake(self) -> None:
        """The listener has something to say."""
        self._wake.set()

    def say(self, frame: f.Frame) -> None:
        """Say something, if there is a connection; if not, the listener says it when there is one."""
        if self.socket is not None:
            self._outbox.append(frame)
            self._wake.set()

    def request(self, make: Callable[[int], f.Frame], answer: Answer, *, again: bool) -> None:
        """Ask for something, and call somebody when it is answered; say it `again` after a pause, or not."""
        self._request += 1
        frame = make(self._request)
        self._asked[self._request] = frame if again else None, answer
        self.say(frame)

    def ask(self, make: Callable[[int], f.Frame]) -> asyncio.Future[None]:
        """Ask for something, as often as it takes."""
        self.check()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.request(make, lambda error: settle(future, error), again=True)
        return future

    async def while_up(self, awaited: asyncio.Future[Any]) -> bool:
        """Wait for something that only the node can bring about, while there is a connection; says whether it is."""
        down: asyncio.Future[Any] = asyncio.create_task(self._down.wait())
        try:
            await asyncio.wait([awaited, down], return_when=asyncio.FIRST_COMPLETED)
        finally:
            down.cancel()
        return awaited.done()

    async def away_for(self, seconds: float) -> None:
        """Wait until there was no connection for so many seconds."""
        while self.error is None:
            await self._down.wait()
            try:
                async with asyncio.timeout(seconds):
                    await self._up.wait()
            except TimeoutError:
                return

    # Connecting

    async def _run(self) -> None:
        try:
            while True:
                reason = await self._serve()
                if await self._moved():
                    continue
                if not self._reconnect:
                    raise ConnectionLost(reason)
                self._on_state("reconnecting", reason)
                await self._dial_again()
        except (ConnectionRefused, ConnectionLost) as error:
            self.fail(error)
        except asyncio.CancelledError:  # by whoever ends the program, say
            self.fail(ConnectionLost("the client was cancelled"))
            raise
        except Exception as error:
            self.fail(error)
            raise
        finally:
            await self._hang_up()

    async def _moved(self) -> bool:
        """If there is a connection to another node, use it; it may take a while until that is known."""
        move = self._move
        if move is None:
            return False
        await asyncio.wait({move})
        if not move.cancelled() and move.exception() is None:
            self._begin(*move.result())
        self._move = None
        self._begun.set()
        return self.socket is not None

    async def _dial(self) -> None:
        if not await self._dial_invited():
            self._begin(*await self._get_through(self._urls, self._listener.hello))

    async def _get_through(self, urls: list[str], hello: Callable[[], f.Hello]) -> Dialled:
        return await dial(urls, self._codec, self._ssl, hello, self._wait, insecure=self._insecure)

    async def _dial_invited(self) -> bool:
        """Go where only nodes say that the session is: with a ticket, never with the token.

        If that fails, the addresses that the user gave are next: their node gets the session back.
        """
        if self._invited is None:
            return False
        url, ticket = self._invited
        try:
            dialled = await self._get_through([url], lambda: self._listener.hello(ticket=ticket))
        except ConnectionRefused:
            self._invited = None
            return False
        except ConnectionLost:
            return False
        self._begin(*dialled)
        self._invited = (url, dialled.welcome.ticket) if dialled.welcome.ticket else None
        return True

    def _follow(self, to: str, ticket: str) -> None:
        """The session goes on at an address that a node has named."""
        self._invited = None
        if to in self._urls:
            self._prefer(to)
        elif not (self._urls[0].startswith("ws:") or to.startswith("wss:")):  # not from a safe one to another
            return
        elif ticket:
            self._invited = to, ticket
        elif not self._listener.has_token:
            self._prefer(to)

    def _begin(self, socket: websockets.ClientConnection, welcome: f.Welcome) -> None:
        self._invited = None
        self.socket = socket
        self._up.set()
        self._down.clear()
        self._outbox.clear()
        self._asked = {request: (frame, answer) for request, (frame, answer) in self._asked.items() if frame}
        for frame, _ in self._asked.values():
            assert frame is not None
            self.say(frame)
        self._listener.begin(welcome)
        self._wake.set()
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
        """Stay until the connection breaks; says why."""
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
            await self._moves.wait()
            self._moves.clear()
            move = self._move
            if move is not None:
                await asyncio.wait({move})
                if not move.cancelled() and move.exception() is None:
                    return "moved"

    async def _hang_up(self) -> None:
        socket, self.socket = self.socket, None
        self._up.clear()
        self._down.set()
        if socket is not None:
            with contextlib.suppress(websockets.ConnectionClosed, OSError):
                if (frame := self._listener.last_word()) is not None:
                    await socket.send(self._codec.encode(frame))
                await socket.close()

    def fail(self, error: Exception) -> None:
        """It is over, for everybody who waits."""
        if self.error is not None:
            return
        self.error = error
        asked, self._asked = self._asked, {}
        for _, answer in asked.values():
            answer(error)
        self._listener.over(error)
        self._begun.set()
        self._up.set()
        self._on_state("closed", str(error))

    # Reading and sending

    async def _read_all(self, socket: websockets.ClientConnection) -> str:
        try:
            while True:
                self._hear(self._codec.from_node(await socket.recv()))
        except websockets.ConnectionClosed as closed:
            return reason_of(closed)
        except FrameError as error:
            raise ConnectionRefused(f"the node said something that is {error}") from None

    def _hear(self, frame: f.FromNode) -> None:
        match frame:
            case f.Done(request=request, gone=gone):
                if gone:
                    self._listener.hear(frame)
                self._answer(request, None)
            case f.Refused(request=request, reason=reason, code=code) if request:
                self._answer(request, Refused(reason, code))
            case f.Bye(reason=reason, again=False):
                if self._move is None:  # else it may be that the other connection took its place
                    raise ConnectionRefused(reason)
            case f.Bye(to=to, ticket=ticket) if to:
                if self._move is None:  # else it goes there already, or somewhere else
                    self._follow(to, ticket)
            case _:
                self._listener.hear(frame)

    def _answer(self, request: int, error: Exception | None) -> None:
        _, answer = self._asked.pop(request, (None, None))
        if answer is not None:
            answer(error)

    async def _send_all(self, socket: websockets.ClientConnection) -> str:
        send, encode = socket.send, self._codec.encode
        try:
            while True:
                await self._wake.wait()
                self._wake.clear()
                while (frame := self._outbox.popleft() if self._outbox else self._listener.next_frame()) is not None:
                    await send(encode(frame))
        except websockets.ConnectionClosed as closed:
            return reason_of(closed)


def settle(future: asyncio.Future[None], error: Exception | None) -> None:
    """Let whoever waits know, if he still does."""
    if future.done():
        return
    if error is None:
        future.set_result(None)
    else:
        future.set_exception(error)
