"""The clients of a measured server: processes that publish and subscribe, led by the benchmark through pipes.

A `Contender` knows how to start its server, to subscribe and to publish. Everything else, order, times and counts, is
the same for all contenders.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import multiprocessing
import time
from array import array
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from itertools import islice
from multiprocessing.connection import Connection
from typing import Final, NamedTuple, TypeAlias, get_args

from fieldfare_lab.node.load import Load, LoadEvent, Shape, SubscriberFilter, cpu_seconds, events, machine_cpu_seconds
from fieldfare_lab.node.servers import Server, answer, next_order

PATIENCE: Final = 30.0
"""seconds without any delivery after which missing events count as lost"""

Take: TypeAlias = Callable[[int, int, int], None]
"""called for a delivery: number of the subscriber, number of the event, time at which the event was due"""
Send: TypeAlias = Callable[[int, int, Sequence[int]], Awaitable[None]]
"""publishes a slice of a publisher's events: first place, end, and the time at which each event was due"""
FiltersBySubscriber: TypeAlias = Mapping[int, Sequence[SubscriberFilter]]
"""filters by the number of the subscriber"""


class Contender(NamedTuple):
    """A server with its clients; all fields must be picklable, because contenders are sent to other processes."""

    name: str
    running: Callable[[], contextlib.AbstractContextManager[Server]]
    subscribe: Callable[[int, FiltersBySubscriber, Take], Awaitable[object]]
    """opens subscribers at a port; the caller must hold the result for as long as the subscribers listen"""
    publisher: Callable[[int, Sequence[LoadEvent]], Awaitable[Send]]
    """opens a publisher of the given events at a port"""
    batch: int = 1
    """largest number of events in a call of `Send`"""
    publishers: int = 2
    shapes: tuple[Shape, ...] = get_args(Shape)
    """the loads that the server can have"""


class Batch(NamedTuple):
    """The outcome of a run: times, deliveries, latencies and CPU seconds."""

    events: int
    pace: float | None
    """events a second; None: full speed"""
    seconds: float
    got: list[array[int]]
    """numbers of the events that each subscriber received"""
    latencies: array[float]
    """seconds of each delivery"""
    server_cpu: float
    client_cpu: float
    other_cpu: float


Run: TypeAlias = Callable[[int, float | None], Batch]
"""publishes a number of events, at a rate or (None) at full speed, and waits for the deliveries"""


@contextlib.contextmanager
def clients(load: Load, contender: Contender, server: Server, *, most: int, consumers: int) -> Iterator[Run]:
    """Start the processes of publishers and subscribers; yield a function that makes the processes do a run."""
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

        mine: dict[int, list[SubscriberFilter]] = {subscriber: [] for subscriber in range(load.subscribers)}
        for filter in load.filters:
            mine[filter.subscriber].append(filter)
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
            due = sum(len(event.receivers) for event in events(load, count))
            before = cpu_seconds(server.pids), cpu_seconds(clients), machine_cpu_seconds()
            begin = time.monotonic_ns() + 50_000_000  # a moment ahead, so that all publishers begin together
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
    """Wait for `due` deliveries, or until no more come; the comparison with the oracle finds missing events later."""
    there, since = 0, time.monotonic() + pause
    while there < due and time.monotonic() - since < PATIENCE:
        time.sleep(0.05)
        for pipe in pipes:
            pipe.send("count")
        now = sum(answer(pipe) for pipe in pipes)
        if now > there:
            there, since = now, max(since, time.monotonic())
    time.sleep(0.2)  # time for surplus deliveries, which are a fault


# Main functions of the processes


def _consume(pipe: Connection, contender: Contender, port: int, by_subscriber: FiltersBySubscriber) -> None:
    """Be a process with some subscribers, until the pipe closes."""
    asyncio.run(_consuming(pipe, contender, port, by_subscriber))


async def _consuming(pipe: Connection, contender: Contender, port: int, by_subscriber: FiltersBySubscriber) -> None:
    numbers: dict[int, array[int]] = {one: array("q") for one in by_subscriber}
    waits: array[float] = array("d")
    last = 0

    def take(subscriber: int, number: int, at: int) -> None:
        nonlocal last
        last = time.monotonic_ns()
        numbers[subscriber].append(number)
        waits.append((last - at) / 1e9)

    kept = await contender.subscribe(port, by_subscriber, take)
    _never_pause()
    pipe.send("ready")
    while (order := await next_order(pipe)) is not None:
        if order == "count":
            pipe.send(len(waits))
        else:
            pipe.send((numbers, waits, last))
            numbers = {one: array("q") for one in by_subscriber}
            waits = array("d")
    del kept


def _publish(pipe: Connection, contender: Contender, port: int, load: Load, turns: tuple[int, int, int]) -> None:
    """Be a process with a publisher; `turns` is the first event, the end, and the step from event to event."""
    first, last, every = turns
    mine = list(islice(events(load, last), first, None, every))
    asyncio.run(_publishing(pipe, contender, port, mine))


async def _publishing(pipe: Connection, contender: Contender, port: int, mine: Sequence[LoadEvent]) -> None:
    send, batch = await contender.publisher(port, mine), contender.batch
    numbers = [event.number for event in mine]
    _never_pause()
    pipe.send("ready")
    while (order := await next_order(pipe)) is not None:
        count, rate, begin = order
        await asyncio.sleep(max(0.0, (begin - time.monotonic_ns()) / 1e9))
        stop = sum(number < count for number in numbers)
        if rate is None:
            for place in range(0, stop, batch):
                until = min(place + batch, stop)
                await send(place, until, [time.monotonic_ns()] * (until - place))
                if not place % 64:
                    await asyncio.sleep(0)  # lets the loop write, and read the server's answers
        else:
            await _paced(send, [begin + int(number * 1e9 / rate) for number in numbers[:stop]], batch)
        pipe.send("sent")


def _never_pause() -> None:
    """Stop the garbage collector of a client: its looks through all events would count as latency of the server."""
    gc.collect()
    gc.freeze()
    gc.disable()


async def _paced(send: Send, due: Sequence[int], batch: int) -> None:
    """Publish each event at the time it is due; overdue events go together, up to `batch`."""
    place = 0
    while place < len(due):
        if (wait := (due[place] - time.monotonic_ns()) / 1e9) > 0:
            await asyncio.sleep(wait)
        until, now = place + 1, time.monotonic_ns()
        while until < len(due) and until - place < batch and due[until] <= now:
            until += 1
        await send(place, until, due[place:until])
        place = until
