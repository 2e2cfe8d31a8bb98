"""The bars themselves. All names of Fieldfare that a bar needs are imported in this file."""

# ruff: noqa: PLC0415 - a bar imports its own packages only; a workload is repeatable, not unpredictable

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, AsyncExitStack, ExitStack
from pathlib import Path
from typing import Any, Final, TypeAlias

from tools.bars.history import Figure

ROUNDS: Final = 5
FILTERS: Final = 10_000
SEED: Final = 20261116
PATIENCE: Final = 60.0
"""seconds for a node to start, and for events to come through"""

Round: TypeAlias = Callable[[], float]
"""one round of a bar: gives microseconds of CPU for one unit of work"""
Bar: TypeAlias = Callable[[], AbstractContextManager[Round]]
"""prepares a bar, and clears up after it"""


def figure(bar: Bar, rounds: int = ROUNDS) -> Figure:
    """Measure a bar: one round to warm up, then rounds that take turns with the yardstick."""
    with bar() as run:
        run()
        yardstick()
        gc.collect()
        costs, lengths = [], []
        for _ in range(rounds):
            lengths.append(yardstick())
            costs.append(run())
    return Figure(round(min(costs), 4), round(min(lengths), 4), [round(cost, 4) for cost in costs])


# The yardstick


def yardstick() -> float:
    """Microseconds of CPU to hold one event, a dict, against ten rules in plain Python.

    The loop must stay as it is: every entry of the history is in units of it.
    """
    rules = [(number % 7, number * 3 % 100) for number in range(10)]
    events = [{field: (field * 31 + number) % 100 for field in range(7)} for number in range(1000)]

    def loop() -> int:
        found = 0
        for _ in range(50):
            for event in events:
                for field, limit in rules:
                    if event[field] < limit:
                        found += 1
        return found

    return min(_spent(loop, 50 * len(events)) for _ in range(5))


# The workload: a market


def _filters(count: int) -> list[str]:
    chance = random.Random(SEED)
    made = []
    for _ in range(count):
        low = chance.randrange(0, 900)
        parts = [f"symbol = 'S{int(1000 * chance.random() ** 2)}'", f"price BETWEEN {low} AND {low + 100}"]
        if chance.random() < 0.3:
            parts.append(f"volume > {chance.randrange(0, 10_000)}")
        if chance.random() < 0.1:
            parts[0] = f"sector IN ('T{chance.randrange(20)}', 'T{chance.randrange(20)}')"
        made.append(" AND ".join(parts))
    return made


def _events(count: int) -> list[dict[str, Any]]:
    chance = random.Random(SEED + 1)
    return [
        {
            "symbol": f"S{int(1000 * chance.random() ** 2)}",
            "sector": f"T{chance.randrange(20)}",
            "price": round(chance.uniform(0, 1000), 2),
            "volume": chance.randrange(0, 10_000),
        }
        for _ in range(count)
    ]


def _spent(work: Callable[[], object], units: int) -> float:
    """Microseconds of this process's CPU for one of so many units."""
    started = time.process_time()
    work()
    return (time.process_time() - started) * 1e6 / units


# Matching


@contextlib.contextmanager
def match() -> Iterator[Round]:
    """Events in Arrow batches through an index of 10,000 filters."""
    import pyarrow as pa

    index, events = _index(), _events(20_000)
    batch = pa.RecordBatch.from_pylist(events)
    yield lambda: min(_spent(lambda: index.match_batch(batch), len(events)) for _ in range(5))


@contextlib.contextmanager
def match_single() -> Iterator[Round]:
    """Events one by one through an index of 10,000 filters."""
    index, events = _index(), _events(5_000)

    def all_of_them() -> None:
        for event in events:
            index.match(event)

    yield lambda: min(_spent(all_of_them, len(events)) for _ in range(3))


def _index() -> Any:
    from fieldfare import Index

    index: Index[int] = Index()
    index.add_many(enumerate(_filters(FILTERS)))
    for event in _events(500):
        index.match(event)
    return index


# Routing


@contextlib.contextmanager
def route() -> Iterator[Round]:
    """Events through a broker that has clients and one neighbour, in batches, by the way that a node's events take."""
    from fieldfare.events.event import Event
    from fieldfare.filters import parse
    from fieldfare.protocol.messages import Connect, Forward, Subscribe
    from fieldfare.routing.broker import Broker
    from fieldfare.routing.routes import LOCAL

    oslo, rome = Broker("oslo"), Broker("rome")
    filters = [parse(text) for text in _filters(2_000)]
    for number, filter in enumerate(filters):
        broker = oslo if number % 2 else rome
        broker.receive(Subscribe(str(number), filter), f"client-{number % 100}", 0.0)
    waiting = [(oslo, rome, send) for send in rome.receive(Connect(), "oslo", 0.0)]
    waiting += [(rome, oslo, send) for send in oslo.receive(Connect(), "rome", 0.0)]
    while waiting:
        to, by, send = waiting.pop(0)
        waiting += [(by, to, answer) for answer in to.receive(send.message, by.name, 0.0)]
    events = [Event(event) for event in _events(5_000)]
    sequence = 0

    def run() -> float:
        nonlocal sequence
        sent = [Forward(event, "ana", sequence + number, "", "oslo") for number, event in enumerate(events)]
        sequence += len(events)
        batches = [sent[start : start + 100] for start in range(0, len(sent), 100)]
        now = float(sequence)
        return _spent(lambda: [oslo.route(batch, LOCAL, now) for batch in batches], len(events))

    yield run


# A node


@contextlib.contextmanager
def node() -> Iterator[Round]:
    """Events through a node in a process of its own; the clients work here, and their CPU time is not counted."""
    import fieldfare

    subscribers, each, count = 10, 100, 20_000
    with ExitStack() as stack:
        process, url = stack.enter_context(_running_node())
        runner = stack.enter_context(asyncio.Runner())
        clients = AsyncExitStack()
        received = 0
        complete = asyncio.Event()

        async def listen(subscription: Any) -> None:
            nonlocal received
            async for _ in subscription:
                received += 1
                if received == count:
                    complete.set()

        async def enter() -> tuple[Any, list[asyncio.Task[None]]]:
            tasks = []
            for number in range(subscribers):
                client = await clients.enter_async_context(fieldfare.connect(url, session=f"subscriber-{number}"))
                for place in range(each):
                    wanted = f"symbol = 'S{number * each + place}' AND price < 2000"
                    subscription = await clients.enter_async_context(client.subscribe(wanted))
                    tasks.append(asyncio.create_task(listen(subscription)))
            return await clients.enter_async_context(fieldfare.connect(url, session="publisher")), tasks

        publisher, tasks = runner.run(enter())
        chance = random.Random(SEED)
        events = [{**event, "symbol": f"S{chance.randrange(subscribers * each)}"} for event in _events(count)]

        async def publish() -> None:
            nonlocal received
            received = 0
            complete.clear()
            for start in range(0, count, 100):
                await publisher.publish_batch(events[start : start + 100])
            await asyncio.wait_for(complete.wait(), PATIENCE)

        def run() -> float:
            started = _cpu_seconds([process.pid])
            runner.run(publish())
            return (_cpu_seconds([process.pid]) - started) * 1e6 / count

        async def leave() -> None:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await clients.aclose()

        try:
            yield run
        finally:
            runner.run(leave())


@contextlib.contextmanager
def _running_node() -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """`fieldfare up` on a free port, with its log in a temporary folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with tempfile.TemporaryDirectory(prefix="fieldfare-bars-") as folder:
        command = [sys.executable, "-m", "fieldfare", "up", "--port", str(port), "--name", "bars"]
        with (Path(folder) / "output").open("w+b") as output:
            process = subprocess.Popen([*command, "--data", f"{folder}/data"], stdout=output, stderr=output)
            try:
                deadline = time.monotonic() + PATIENCE
                while not _answers(port):
                    if process.poll() is not None or time.monotonic() > deadline:
                        output.seek(0)
                        raise RuntimeError(f"the node did not start: {output.read().decode(errors='replace')[-2000:]}")
                    time.sleep(0.1)
                yield process, f"ws://127.0.0.1:{port}"
            finally:
                process.terminate()
                process.wait(PATIENCE)


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


# Spark


@contextlib.contextmanager
def spark() -> Iterator[Round]:
    """Rows of a DataFrame through `match_events`, each match a row; the CPU time is that of Java and all workers."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from fieldfare.pipeline import match_events, spark_session

    count = 200_000
    with tempfile.TemporaryDirectory(prefix="fieldfare-bars-") as folder:
        pq.write_table(pa.Table.from_pylist(_events(count)), f"{folder}/events.parquet", row_group_size=count // 8)
        wanted = [{"id": f"s{n}", "filter": text, "owner": f"o{n % 100}"} for n, text in enumerate(_filters(FILTERS))]
        pq.write_table(pa.Table.from_pylist(wanted), f"{folder}/subscriptions.parquet")
        running = spark_session("local[2]", {"spark.sql.shuffle.partitions": "2"}, log=f"{folder}/log")
        try:
            events = running.read.parquet(f"{folder}/events.parquet").repartition(2).cache()
            events.count()
            matched = match_events(events, f"{folder}/subscriptions.parquet")

            def run() -> float:
                started = _cpu_seconds(_family(os.getpid()))
                matched.write.format("noop").mode("overwrite").save()
                return (_cpu_seconds(_family(os.getpid())) - started) * 1e6 / count

            run()  # Java compiles what is run often: one more round to warm up
            yield run
        finally:
            running.stop()


# CPU time of other processes, from /proc


def _cpu_seconds(pids: list[int]) -> float:
    """User and system time of processes, and of children that they have waited for."""
    ticks = 0
    for pid in pids:
        with contextlib.suppress(OSError):
            ticks += sum(map(int, _stat(pid)[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


def _family(pid: int) -> list[int]:
    """A process and all its descendants."""
    children: dict[int, list[int]] = {}
    for place in Path("/proc").iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError):
                children.setdefault(int(_stat(int(place.name))[1]), []).append(int(place.name))
    found = [pid]
    for one in found:
        found += children.get(one, ())
    return found


def _stat(pid: int) -> list[str]:
    """The fields of a process after its name, which may hold spaces."""
    text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    return text.rpartition(")")[2].split()


BARS: Final[dict[str, Bar]] = {
    "match": match,
    "match-single": match_single,
    "route": route,
    "node": node,
    "spark": spark,
}
