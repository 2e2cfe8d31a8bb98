"""The clients of a server that is measured: processes that publish and subscribe, led through pipes.

A `Contender` says how its server is started, how its subscribers listen and how its publishers publish. All the rest,
what they do when and what they count, is here and the same for all.
"""

from __future__ import annotations

import asyncio
import contextlib
import multiprocessing
import time
from array import array
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice
from multiprocessing.connection import Connection
from typing import Final, NamedTuple, TypeAlias

import msgspec

from fieldfare_lab.node.load import Load, Said, Wish, cpu_seconds, events, machine_cpu_seconds
from fieldfare_lab.node.servers import Server, answer, asked

PATIENCE: Final = 30.0
"""seconds without any delivery after which what is missing counts as lost"""

Take: TypeAlias = Callable[[int, int, int], None]
"""a subscriber got an event: its number, and when that event was due"""
Send: TypeAlias = Callable[[int, int, Sequence[int]], Awaitable[None]]
"""publish some of a publisher's events, from one place to another, each with when it was due"""
Wishes: TypeAlias = Mapping[int, Sequence[Wish]]
"""by subscriber"""


class Contender(NamedTuple):
    """A server and how to use it. It goes to other processes: functions of a module, or partial ones."""

    name: str
    running: Callable[[], contextlib.AbstractContextManager[Server]]
    subscribe: Callable[[int, Wishes, Take], Awaitable[object]]
    """at the server on a port, subscribers with what they wish; gives what must be kept as long as they listen"""
    publisher: Callable[[int, Sequence[Said]], Awaitable[Send]]
    """at the server on a port, somebody who publishes these events"""
    batch: int = 1
    """events that are published in one go, at most"""
    publishers: int = 2


class More(msgspec.Struct):
    """What a subscriber reads of an event."""

    number: int
    at: int
    """when it was due, in nanoseconds of the system's monotonic clock"""


class Batch(NamedTuple):
    """What came of some events."""

    events: int
    pace: float | None
    """so many a second, or as fast as can be"""
    seconds: float
    got: list[array[int]]
    """the numbers of the events that each subscriber got"""
    latencies: array[float]
    """of all deliveries, in seconds"""
    server_cpu: float
    client_cpu: float
    other_cpu: float


Run: TypeAlias = Callable[[int, float | None], Batch]
"""let so many events pass, at full speed or so many a second"""


@contextlib.contextmanager
def clients(load: Load, contender: Contender, server: Server, *, most: int, consumers: int) -> Iterator[Run]:
    """Processes that publish and consume, and a function that has them run."""
    context = multiprocessing.get_context("spawn")  # a fork would share the parent's threads and sockets
    with contextlib.ExitStack() as stack:

        def started(target: Callable[..., None], *arguments: object) -> tuple[Connection, int]:
            ours, theirs = context.Pipe()
            process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
            process.start()
            theirs.close()
            stack.callback(ours.close)
            stack.callback(process.join)
            stack.callback(process.terminate)
            assert process.pid is not None
            return ours, process.pid

        mine: dict[int, list[Wish]] = {subscriber: [] for subscriber in range(load.subscribers)}
        for wish in load.wishes:
            mine[wish.subscriber].append(wish)
        shares = [{one: mine[one] for one in range(first, load.subscribers, consumers)} for first in range(consumers)]
        taking = [started(_consume, contender, server.port, share) for share in shares]
        for pipe, _ in taking:
            answer(pipe)
        count = contender.publishers
        giving = [started(_publish, contender, server.port, load, (first, most, count)) for first in range(count)]
        for pipe, _ in giving:
            answer(pipe)
        clients = [pid for _, pid in taking + giving]

        def run(count: int, rate: float | None) -> Batch:
            due = sum(len(said.receivers) for said in events(load, count))
            before = cpu_seconds(server.pids), cpu_seconds(clients), machine_cpu_seconds()
            begin = time.monotonic_ns() + 50_000_000  # so that all publishers begin together
            for pipe, _ in giving:
                pipe.send((count, rate, begin))
            _all_delivered([pipe for pipe, _ in taking], due, count / rate if rate else 0.0)
            after = cpu_seconds(server.pids), cpu_seconds(clients), machine_cpu_seconds()
            by_server, by_clients, by_all = (late - early for early, late in zip(before, after, strict=True))
            for pipe, _ in giving:
                answer(pipe)
            got: list[array[int]] = [array("q") for _ in range(load.subscribers)]
            latencies: array[float] = array("d")
            last = begin
            for (pipe, _), share in zip(taking, shares, strict=True):
                pipe.send("collect")
                numbers, waits, end = answer(pipe)
                for subscriber in share:
                    got[subscriber] = numbers[subscriber]
                latencies.extend(waits)
                last = max(last, end)
            by_others = max(0.0, by_all - by_server - by_clients)
            return Batch(count, rate, (last - begin) / 1e9, got, latencies, by_server, by_clients, by_others)

        yield run


def _all_delivered(pipes: Sequence[Connection], due: int, pause: float) -> None:
    """Wait until the consumers have got so many deliveries, or no more come; what is missing is found out later."""
    there, since = 0, time.monotonic() + pause
    while there < due and time.monotonic() - since < PATIENCE:
        time.sleep(0.05)
        for pipe in pipes:
            pipe.send("count")
        now = sum(answer(pipe) for pipe in pipes)
        if now > there:
            there, since = now, max(since, time.monotonic())
    time.sleep(0.2)  # for deliveries that should not be


# The processes


def _consume(pipe: Connection, contender: Contender, port: int, wishes: Wishes) -> None:
    """A process: some subscribers."""
    asyncio.run(_consuming(pipe, contender, port, wishes))


async def _consuming(pipe: Connection, contender: Contender, port: int, wishes: Wishes) -> None:
    numbers: dict[int, array[int]] = {one: array("q") for one in wishes}
    waits: array[float] = array("d")
    last = 0

    def take(subscriber: int, number: int, at: int) -> None:
        nonlocal last
        last = time.monotonic_ns()
        numbers[subscriber].append(number)
        waits.append((last - at) / 1e9)

    kept = await contender.subscribe(port, wishes, take)
    pipe.send("ready")
    while (order := await asked(pipe)) is not None:
        if order == "count":
            pipe.send(len(waits))
        else:
            pipe.send((numbers, waits, last))
            numbers = {one: array("q") for one in wishes}
            waits = array("d")
    del kept


def _publish(pipe: Connection, contender: Contender, port: int, load: Load, turns: tuple[int, int, int]) -> None:
    """A process: a publisher, which takes every so-manieth event from one of the first up to some last."""
    first, last, every = turns
    mine = list(islice(events(load, last), first, None, every))
    asyncio.run(_publishing(pipe, contender, port, mine))


async def _publishing(pipe: Connection, contender: Contender, port: int, mine: Sequence[Said]) -> None:
    send, batch = await contender.publisher(port, mine), contender.batch
    numbers = [said.number for said in mine]
    pipe.send("ready")
    while (order := await asked(pipe)) is not None:
        count, rate, begin = order
        await asyncio.sleep(max(0.0, (begin - time.monotonic_ns()) / 1e9))
        stop = sum(number < count for number in numbers)
        if rate is None:
            for place in range(0, stop, batch):
                until = min(place + batch, stop)
                await send(place, until, [time.monotonic_ns()] * (until - place))
                if not place % 64:
                    await asyncio.sleep(0)  # to write, and to hear what the server says
        else:
            await _paced(send, [begin + int(number * 1e9 / rate) for number in numbers[:stop]], batch)
        pipe.send("sent")


async def _paced(send: Send, due: Sequence[int], batch: int) -> None:
    """Publish events when they are due; those that are due already, together."""
    place = 0
    while place < len(due):
        if (wait := (due[place] - time.monotonic_ns()) / 1e9) > 0:
            await asyncio.sleep(wait)
        until, now = place + 1, time.monotonic_ns()
        while until < len(due) and until - place < batch and due[until] <= now:
            until += 1
        await send(place, until, due[place:until])
        place = until
