"""RabbitMQ under the load: a headers exchange, a queue for each subscriber, a binding for each filter.

A private server runs in a temporary directory on loopback and ends with the measurement, its name service too. Each
subscriber has a connection of its own. Publishers and subscribers run in processes of their own, so that what is
measured is the server: a headers exchange routes in the process of the publisher's channel, so it takes more publishers
than cores to keep all of them busy to the end. Queues acknowledge by themselves, the cheapest for the server.

The rate is that of a batch of events large enough for the time given, from the first event published to the last one
delivered, in the best of some rounds: other work on the machine only slows a server down.
Latency counts from when an event was due, not from when a late publisher got round to it.

The client is pika, which is no dependency of Fieldfare: `pip install pika`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import multiprocessing
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
from rich.console import Console
from rich.table import Table

from fieldfare.lab.node.load import (
    Load,
    Result,
    cpu_seconds,
    events,
    family,
    is_correct,
    load_of,
    machine_cpu_seconds,
    make,
    memory_mb,
    percentiles,
)

_SCRIPT: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""what Debian's `rabbitmq-server` runs after it has become the user rabbitmq"""
_EXCHANGE: Final = "bench"
_PATIENCE: Final = 30.0
"""seconds without any delivery after which what is missing counts as lost"""
_START_SECONDS: Final = 90.0


class Missing(Exception):
    """RabbitMQ or its client is not installed; the message says how to get it."""


class Variant(msgspec.Struct, frozen=True):
    """How events are published."""

    name: str
    durable: bool = False
    """exchange, queues and messages survive a restart"""
    window: int | None = 500
    """how many events a publisher sends ahead of the server's confirmations; None asks for no confirmations"""


VARIANTS: Final = (
    Variant("transient, confirms"),
    Variant("transient, no confirms", window=None),
    Variant("durable, confirms", durable=True),
)


class Server(NamedTuple):
    """A RabbitMQ that runs: its port on loopback, its processes, and its memory when it had nothing to do."""

    port: int
    pids: tuple[int, ...]
    idle_mb: float


class Batch(NamedTuple):
    """What came of some events."""

    events: int
    seconds: float
    got: list[array[int]]
    """the numbers of the events that each subscriber got"""
    latencies: array[float]
    """of all deliveries, in seconds"""
    server_cpu: float
    client_cpu: float
    other_cpu: float


class _More(msgspec.Struct):
    """What a subscriber reads of an event."""

    number: int
    at: int
    """when it was due, in nanoseconds of the system's monotonic clock"""


def missing() -> str | None:
    """Why this cannot be measured here, and what to do; None if it can."""
    if not _SCRIPT.exists() or shutil.which("epmd") is None:
        return "RabbitMQ is not here: apt-get install rabbitmq-server"
    try:
        importlib.import_module("pika")
    except ImportError:
        return "its Python client is not here: pip install pika"
    return None


def measure(
    load: Load,
    *,
    events: int = 100_000,
    seconds: float = 10.0,
    paced: float | None = 0.5,
    rounds: int = 3,
    variant: Variant = VARIANTS[0],
    publishers: int | None = None,
    consumers: int = 1,
) -> Result:
    """Start a RabbitMQ, give it the filters, and measure.

    The rate is taken over at most so many `events`, or over as many as take about so many `seconds`; the best of some
    `rounds` counts. Then latency is measured for as long at the share `paced` of this rate; None leaves that out. There
    are two publishers a core unless told otherwise; the subscribers' connections are shared out among `consumers`
    processes.
    """
    with (
        running() as server,
        _clients(
            load, server, variant, publishers=publishers or 2 * (os.cpu_count() or 1), consumers=consumers, most=events
        ) as run,
    ):
        _bind(load, server.port)
        count = min(events, 50)
        batch = run(count, None)
        correct = is_correct(load, count, batch.got)
        while count < events and batch.seconds < seconds / 2:
            # At most tenfold: the first few events say little about the rate.
            count = min(events, max(count + 1, int(count * min(10.0, seconds / batch.seconds))))
            batch = run(count, None)
            correct = correct and is_correct(load, count, batch.got)
        for _ in range(rounds - 1):
            again = run(count, None)
            correct = correct and is_correct(load, count, again.got)
            batch = min(batch, again, key=lambda one: one.seconds)
        busy, rate, latency = memory_mb(server.pids), None, None
        if paced is not None:
            rate = paced * batch.events / batch.seconds
            some = max(1, min(events, int(rate * seconds)))
            slow = run(some, rate)
            correct = correct and is_correct(load, some, slow.got)
            latency = percentiles(slow.latencies)
        return Result(
            contender=f"RabbitMQ, {variant.name}",
            filters=len(load.wishes),
            events=batch.events,
            deliveries=sum(map(len, batch.got)),
            seconds=batch.seconds,
            cpu_seconds=batch.server_cpu,
            client_cpu_seconds=batch.client_cpu,
            other_cpu_seconds=batch.other_cpu,
            idle_mb=server.idle_mb,
            busy_mb=busy,
            paced=rate,
            p50_ms=latency and latency[0],
            p99_ms=latency and latency[1],
            correct=correct,
        )


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """A private RabbitMQ on loopback, as Debian sets it up but for where it keeps things; it ends with the context."""
    if reason := missing():
        raise Missing(reason)
    pika = importlib.import_module("pika")
    with tempfile.TemporaryDirectory(prefix="fieldfare-rabbitmq-") as name, contextlib.ExitStack() as stack:
        home = Path(name)
        port, dist, names = _free_ports(3)
        # Whoever has the cookie may command the server.
        cookie = home / ".erlang.cookie"
        cookie.touch(mode=0o600)
        cookie.write_text(secrets.token_hex(16), encoding="ascii")
        cookie.chmod(0o400)
        (home / "rabbitmq.conf").write_text(
            f"listeners.tcp.1 = 127.0.0.1:{port}\nlog.console = false\n", encoding="utf-8"
        )
        (home / "enabled_plugins").write_text("[].\n", encoding="utf-8")
        (home / "rabbitmq-env.conf").write_text("", encoding="utf-8")
        environment = {
            "PATH": os.environ.get("PATH", os.defpath),
            "LANG": "C.UTF-8",
            "HOME": name,
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_EPMD_PORT": str(names),
            "RABBITMQ_NODENAME": f"fieldfare-bench-{port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port),
            "RABBITMQ_DIST_PORT": str(dist),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "RABBITMQ_BASE": name,
            "RABBITMQ_MNESIA_BASE": str(home / "mnesia"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
            "RABBITMQ_CONF_ENV_FILE": str(home / "rabbitmq-env.conf"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
            "RABBITMQ_PID_FILE": str(home / "pid"),
        }
        log = stack.enter_context((home / "output").open("wb"))
        # The name service is started here, in the foreground: Erlang would start one that outlives it.
        stack.enter_context(_child(["epmd", "-address", "127.0.0.1", "-port", str(names)], environment, home, log))
        _wait_for(lambda: _answers(names), "the Erlang name service epmd does not answer")
        process = stack.enter_context(_child([str(_SCRIPT)], environment, home, log))

        def ready() -> bool:
            if process.poll() is not None:
                told = (home / "output").read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"RabbitMQ ended at once; it said:\n{told[-3000:]}")
            if not _answers(port):
                return False
            try:
                pika.BlockingConnection(_parameters(pika, port)).close()
            except (pika.exceptions.AMQPError, OSError):
                return False
            return True

        _wait_for(ready, "RabbitMQ takes too long to start")
        time.sleep(3)  # it still has some starting up to do after it lets clients in
        pids = tuple(family(process.pid))
        yield Server(port, pids, memory_mb(pids))


def table(results: Sequence[Result]) -> Table:
    """The results as a table to print."""
    shown = Table()
    for heading in ("contender", "filters", "events", "events/s", "deliveries/s", "p50 ms", "p99 ms", "at events/s"):
        shown.add_column(heading, justify="left" if heading == "contender" else "right")
    for heading in ("busy", "events per CPU s", "idle MB", "busy MB", "correct"):
        shown.add_column(heading, justify="right")
    for one in results:
        shown.add_row(
            one.contender,
            f"{one.filters:,}",
            f"{one.events:,}",
            f"{one.events_per_second:,.0f}",
            f"{one.deliveries_per_second:,.0f}",
            *("" if value is None else f"{value:,.2f}" for value in (one.p50_ms, one.p99_ms)),
            "" if one.paced is None else f"{one.paced:,.0f}",
            load_of(one),
            f"{one.events_per_cpu_second:,.0f}",
            f"{one.idle_mb:,.0f}",
            f"{one.busy_mb:,.0f}",
            "yes" if one.correct else "NO",
        )
    return shown


def _bind(load: Load, port: int) -> None:
    """A binding for each filter."""
    pika = importlib.import_module("pika")
    connection = pika.BlockingConnection(_parameters(pika, port))
    channel = connection.channel()
    for wish in load.wishes:
        channel.queue_bind(_queue(wish.subscriber), _EXCHANGE, arguments=wish.arguments)
    connection.close()


@contextlib.contextmanager
def _clients(
    load: Load, server: Server, variant: Variant, *, publishers: int, consumers: int, most: int
) -> Iterator[Callable[[int, float | None], Batch]]:
    """Processes that publish and consume; a function that has them run some events, at full speed or at a rate."""
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

        shares = [range(first, load.subscribers, consumers) for first in range(consumers)]
        taking = [started(_consume, server.port, variant, share) for share in shares]
        for pipe, _ in taking:
            _answer(pipe)
        giving = [started(_publish, server.port, variant, load, (n, most, publishers)) for n in range(publishers)]
        for pipe, _ in giving:
            _answer(pipe)
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
                _answer(pipe)
            got: list[array[int]] = [array("q") for _ in range(load.subscribers)]
            latencies: array[float] = array("d")
            last = begin
            for (pipe, _), share in zip(taking, shares, strict=True):
                pipe.send("collect")
                numbers, waits, end = _answer(pipe)
                for subscriber in share:
                    got[subscriber] = numbers[subscriber]
                latencies.extend(waits)
                last = max(last, end)
            by_others = max(0.0, by_all - by_server - by_clients)
            return Batch(count, (last - begin) / 1e9, got, latencies, by_server, by_clients, by_others)

        yield run


def _all_delivered(pipes: Sequence[Connection], due: int, pause: float) -> None:
    """Wait until the consumers have got so many deliveries, or no more come; what is missing is found out later."""
    there, since = 0, time.monotonic() + pause
    while there < due and time.monotonic() - since < _PATIENCE:
        time.sleep(0.05)
        for pipe in pipes:
            pipe.send("count")
        now = sum(_answer(pipe) for pipe in pipes)
        if now > there:
            there, since = now, max(since, time.monotonic())
    time.sleep(0.2)  # for deliveries that should not be


def _answer(pipe: Connection) -> Any:
    """What a process of ours says; if it failed, it says how."""
    try:
        said = pipe.recv()
    except EOFError:
        raise RuntimeError("a client of RabbitMQ ended before its time; what it wrote stands above") from None
    if isinstance(said, Exception):
        raise said
    return said


def _consume(pipe: Connection, port: int, variant: Variant, subscribers: Sequence[int]) -> None:
    """A process: connections of some subscribers, each with its queue."""
    asyncio.run(_consuming(pipe, port, variant, subscribers))


async def _consuming(pipe: Connection, port: int, variant: Variant, subscribers: Sequence[int]) -> None:
    pika = importlib.import_module("pika")
    numbers: dict[int, array[int]] = {one: array("q") for one in subscribers}
    waits: array[float] = array("d")
    last = 0
    decode = msgspec.json.Decoder(_More).decode

    def taker(subscriber: int) -> Callable[..., None]:
        def take(_channel: object, _method: object, _properties: object, body: bytes) -> None:
            nonlocal last
            last = time.monotonic_ns()
            more = decode(body)
            numbers[subscriber].append(more.number)
            waits.append((last - more.at) / 1e9)

        return take

    async def subscribe(subscriber: int) -> None:
        channel = await _channel(pika, port)
        consuming = asyncio.Event()
        await _done(channel.exchange_declare, exchange=_EXCHANGE, exchange_type="headers", durable=variant.durable)
        await _done(
            channel.queue_declare,
            queue=_queue(subscriber),
            durable=variant.durable,
            auto_delete=not variant.durable,
        )
        channel.basic_consume(_queue(subscriber), taker(subscriber), auto_ack=True, callback=lambda _: consuming.set())
        await consuming.wait()

    for subscriber in subscribers:
        await subscribe(subscriber)
    pipe.send("ready")
    while (asked := await _asked(pipe)) is not None:
        if asked == "count":
            pipe.send(len(waits))
        else:
            pipe.send((numbers, waits, last))
            numbers = {one: array("q") for one in subscribers}
            waits = array("d")


def _publish(pipe: Connection, port: int, variant: Variant, load: Load, turns: tuple[int, int, int]) -> None:
    """A process: a publisher, which takes every so-manieth event from one of the first up to some last."""
    first, last, step = turns
    asyncio.run(_publishing(pipe, port, variant, list(islice(events(load, last), first, None, step))))


async def _publishing(pipe: Connection, port: int, variant: Variant, mine: Sequence[Any]) -> None:
    pika = importlib.import_module("pika")
    channel = await _channel(pika, port)
    sent = confirmed = 0
    moved = asyncio.Event()

    def confirm(frame: Any) -> None:
        nonlocal confirmed
        if isinstance(frame.method, pika.spec.Basic.Nack):
            pipe.send(RuntimeError("RabbitMQ refused an event"))
        confirmed = frame.method.delivery_tag  # also of all before it, or soon: queues confirm nearly in order
        moved.set()

    if variant.window is not None:
        await _done(channel.confirm_delivery, confirm)
    mode = 2 if variant.durable else 1
    # What is the same each time is made once: the client's work is not what is measured.
    encode = msgspec.json.encode
    ready = [(said.number, pika.BasicProperties(headers=said.asked, delivery_mode=mode), said.more) for said in mine]
    pipe.send("ready")
    while (asked := await _asked(pipe)) is not None:
        count, rate, begin = asked
        await asyncio.sleep(max(0.0, (begin - time.monotonic_ns()) / 1e9))
        for number, properties, more in ready:
            if number >= count:
                break
            if rate is None:
                at = time.monotonic_ns()
                if not sent % 50:
                    await asyncio.sleep(0)  # to write, and to read confirmations
            else:
                at = begin + int(number * 1e9 / rate)
                if (wait := (at - time.monotonic_ns()) / 1e9) > 0:
                    await asyncio.sleep(wait)
            while variant.window is not None and sent - confirmed >= variant.window:
                moved.clear()
                await moved.wait()
            channel.basic_publish(_EXCHANGE, "", encode({**more, "at": at}), properties)
            sent += 1
        pipe.send("sent")


async def _asked(pipe: Connection) -> Any:
    """What the parent asks for next, while connections go on; None if it is gone."""
    loop = asyncio.get_running_loop()
    there = asyncio.Event()
    loop.add_reader(pipe.fileno(), there.set)
    await there.wait()
    loop.remove_reader(pipe.fileno())
    try:
        return pipe.recv()
    except EOFError:
        return None


async def _channel(pika: Any, port: int) -> Any:
    """A channel on a connection of its own."""
    adapter = importlib.import_module("pika.adapters.asyncio_connection")
    opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def lost(_connection: object, why: BaseException) -> None:
        if not opened.done():
            opened.set_exception(why)

    connection = adapter.AsyncioConnection(
        _parameters(pika, port),
        on_open_callback=lambda it: it.channel(on_open_callback=opened.set_result),
        on_open_error_callback=lost,
    )
    channel = await opened
    channel.kept = connection  # nothing else holds it
    return channel


async def _done(method: Callable[..., object], *arguments: object, **options: object) -> None:
    """Call a method of a channel and wait until the server has done it."""
    done = asyncio.Event()
    method(*arguments, **options, callback=lambda _: done.set())
    await done.wait()


def _parameters(pika: Any, port: int) -> Any:
    # Heartbeats are off: a busy client must not be taken for a dead one.
    return pika.ConnectionParameters("127.0.0.1", port, heartbeat=0, blocked_connection_timeout=None)


def _queue(subscriber: int) -> str:
    return f"subscriber-{subscriber}"


def _free_ports(count: int) -> list[int]:
    with contextlib.ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _wait_for(there: Callable[[], bool], otherwise: str) -> None:
    deadline = time.monotonic() + _START_SECONDS
    while not there():
        if time.monotonic() > deadline:
            raise RuntimeError(otherwise)
        time.sleep(0.1)


@contextlib.contextmanager
def _child(
    command: list[str], environment: dict[str, str], directory: Path, log: Any
) -> Iterator[subprocess.Popen[bytes]]:
    """A process group of ours, which ends with the context."""
    process = subprocess.Popen(  # noqa: S603  # our own command lines
        command,
        env=environment,
        cwd=directory,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        for how in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, how)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(30)


def main(arguments: Sequence[str]) -> None:
    """Measure all variants with 100, 1,000 and 10,000 filters, or with as many as the arguments say; print a table."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # else the server would outlive us
    console = Console(width=220)
    results: list[Result] = []
    for filters in [int(one) for one in arguments] or [100, 1_000, 10_000]:
        for variant in VARIANTS:
            results.append(measure(make(1, filters=filters), variant=variant))
            console.print(table(results[-1:]))
    console.print(table(results))


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except Missing as problem:
        sys.exit(str(problem))
