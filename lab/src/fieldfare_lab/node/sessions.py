"""Many idle sessions on a node: memory and CPU time of each, and a test that the node still delivers."""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import resource
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any, Final

import msgspec

from fieldfare.events.event import Event
from fieldfare.events.msgpack import encode
from fieldfare.protocol import frames as f
from fieldfare_lab.node import fieldfare_node
from fieldfare_lab.node.load import cpu_seconds, memory_mb
from fieldfare_lab.node.servers import answer, next_order
from fieldfare_lab.node.websocket import WebSocket, opened

_SHARE: Final = 2500
"""largest number of sessions in a client process"""
_AT_ONCE: Final = 25
"""number of sessions that a process opens at the same time"""
_SPARE: Final = 200
"""open files of a process besides its connections"""
_QUIET: Final = 25.0
"""seconds of idleness; longer than the time between two pings, so that pings count"""


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """The cost of many idle sessions with a subscription each."""

    sessions: int
    durable: bool
    idle_mb: float
    """memory of the node before the first session"""
    first_mb: float
    """memory with a single session: by then the modules of matching are loaded"""
    full_mb: float
    """memory with all sessions"""
    open_seconds: float
    open_cpu_seconds: float
    """CPU time of the node while all sessions are opened"""
    idle_cores: float
    """cores that the node keeps busy while all sessions are idle"""
    reached: int
    """number of the `tried` sessions that received an event"""
    tried: int
    """number of sessions that an event was published for, the first and the last among them"""
    reached_ms: float
    """from the publication to the last of these deliveries"""

    @property
    def kb_each(self) -> float:
        """Return the kilobytes of the node for each session, the first left out."""
        return (self.full_mb - self.first_mb) * 1000 / max(1, self.sessions - 1)


def raise_connection_limit() -> int:
    """Raise the process' limit of open files as far as allowed; return the number of connections it leaves."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most - _SPARE


def steps(count: int) -> int:
    """Return how often `measure` calls its `step`, for a progress bar."""
    return -(-(count - 1) // _SHARE) + 3


def measure(
    count: int, *, durable: bool = False, quiet: float = _QUIET, step: Callable[[str], None] = lambda _: None
) -> Sessions:
    """Open `count` sessions, leave the node alone for `quiet` seconds, then publish events for some sessions."""
    if count > (most := raise_connection_limit()):
        raise ValueError(f"a process may have {most:,} connections here: raise that with ulimit -n")
    with fieldfare_node.running(durable=durable) as server, contextlib.ExitStack() as stack:

        def spent() -> float:
            return cpu_seconds(server.pids)

        before, began = spent(), time.monotonic()
        step("one session")
        pipes = [stack.enter_context(_holding(server.port, range(1), durable=durable))]
        first_mb = memory_mb(server.pids)
        for first in range(1, count, _SHARE):
            share = range(first, min(first + _SHARE, count))
            step(f"{share.stop:,} sessions")
            pipes.append(stack.enter_context(_holding(server.port, share, durable=durable)))
        open_seconds, open_cpu = time.monotonic() - began, spent() - before
        step("doing nothing")
        before = spent()
        time.sleep(quiet)
        idle, full = (spent() - before) / quiet if quiet else 0.0, memory_mb(server.pids)
        step("some events")
        some = sorted({0, count // 3, count // 2, count - 1})
        begun = time.monotonic_ns()
        asyncio.run(_publish(server.port, some))
        reached, last = _reached(pipes, len(some))
        return Sessions(
            sessions=count,
            durable=durable,
            idle_mb=server.idle_mb,
            first_mb=first_mb,
            full_mb=full,
            open_seconds=open_seconds,
            open_cpu_seconds=open_cpu,
            idle_cores=idle,
            reached=reached,
            tried=len(some),
            reached_ms=(last - begun) / 1e6,
        )


def _reached(pipes: list[Connection], due: int, patience: float = 10.0) -> tuple[int, int]:
    """Wait for `due` deliveries; return the number of deliveries and the time of the last, in nanoseconds."""
    deadline = time.monotonic() + patience
    while True:
        for pipe in pipes:
            pipe.send("count")
        counts = [answer(pipe) for pipe in pipes]
        count, last = sum(count for count, _ in counts), max(last for _, last in counts)
        if count >= due or time.monotonic() > deadline:
            return count, last
        time.sleep(0.05)


async def _publish(port: int, numbers: list[int]) -> None:
    """Publish an event for each of the sessions with the given numbers."""
    safe: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def receive(frame: f.FromNode) -> None:
        if isinstance(frame, f.Accepted) and not safe.done():
            safe.set_result(None)

    socket = await opened(port, receive)
    socket.send(f.Hello(), f.Publish(1, [msgspec.Raw(encode(Event({"to": number}))) for number in numbers]))
    await safe
    socket.close()


@contextlib.contextmanager
def _holding(port: int, share: range, *, durable: bool) -> Iterator[Connection]:
    """Start a process that opens a share of the sessions; yield its pipe when all are open."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_hold, args=(theirs, port, share, durable), daemon=True)
    process.start()
    theirs.close()
    try:
        answer(ours)
        yield ours
    finally:
        process.terminate()
        process.join()
        ours.close()


def _hold(pipe: Connection, port: int, share: range, durable: bool) -> None:
    raise_connection_limit()
    asyncio.run(_held(pipe, port, share, durable=durable))


async def _held(pipe: Connection, port: int, share: range, *, durable: bool) -> None:
    got, last = 0, 0
    gate = asyncio.Semaphore(_AT_ONCE)

    async def open_one(number: int) -> WebSocket:
        ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def receive(frame: f.FromNode) -> None:
            nonlocal got, last
            match frame:
                case f.Deliveries(items=items):
                    got, last = got + len(items), time.monotonic_ns()
                case f.Done():
                    ready.set_result(None)
                case f.Refused() | f.Bye() if not ready.done():
                    ready.set_exception(RuntimeError(f"the node says {frame}"))

        async with gate:
            socket = await opened(port, receive)
            name = f"session-{number}" if durable else ""
            socket.send(f.Hello(session=name, credit=100), f.Subscribe(1, "mine", f"to = {number}"))
            await ready
        return socket

    sockets: list[Any] = await asyncio.gather(*map(open_one, share))
    pipe.send("open")
    while await next_order(pipe) is not None:
        pipe.send((got, last))
    del sockets
