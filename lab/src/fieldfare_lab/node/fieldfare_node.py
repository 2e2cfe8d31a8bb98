"""A Fieldfare node under load: `fieldfare up` in a process, a WebSocket for each subscriber.

Clients are either as cheap as can be, so that the node limits the rate, or those of `fieldfare.client`, which programs
use. A subscriber acknowledges deliveries after a moment, as `fieldfare.client` does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from fieldfare import connect
from fieldfare.client.subscription import Subscription
from fieldfare.events.event import Event
from fieldfare.protocol import frames as f
from fieldfare_lab.node.client_processes import Contender, FiltersBySubscriber, Send, Take
from fieldfare_lab.node.event_bytes import TIME, all_but_the_time, decode
from fieldfare_lab.node.load import LoadEvent, family, memory_mb
from fieldfare_lab.node.servers import Server, answers, child, free_ports, wait_for
from fieldfare_lab.node.websocket import WebSocket, opened

_CREDIT: Final = 1000
"""deliveries that the node may send ahead of acknowledgements"""
_MOMENT: Final = 0.02
"""seconds for which an acknowledgement waits to cover later deliveries too, as in `fieldfare.client`"""


class Variant(msgspec.Struct, frozen=True):
    """A way to use a node: in memory or durable, the size of batches, the kind of client."""

    name: str
    durable: bool = False
    """with a log on disk, and sessions that survive a restart"""
    batch: int = 1
    """events in a frame"""
    window: int = 500
    """number of events that a publisher sends ahead of the node's acceptance"""
    ours: bool = False
    """with `fieldfare.client` instead of the cheap clients"""


VARIANTS: Final = (
    Variant("in memory"),
    Variant("in memory, batches of 100", batch=100, window=2000),
    Variant("durable", durable=True),
    Variant("durable, batches of 100", durable=True, batch=100, window=2000),
    Variant("durable, batches of 100, fieldfare.client", durable=True, batch=100, window=2000, ours=True),
)


def contender(variant: Variant) -> Contender:
    """Return the contender that runs a node in the given variant."""
    return Contender(
        f"Fieldfare, {variant.name}",
        partial(running, durable=variant.durable),
        partial(_subscribe_ours if variant.ours else _subscribe, variant),
        partial(_publisher_ours if variant.ours else _publisher, variant),
        batch=variant.batch,
    )


@contextlib.contextmanager
def running(*, durable: bool) -> Iterator[Server]:
    """Run a node on loopback, with its data in a temporary folder, until the context ends."""
    with tempfile.TemporaryDirectory(prefix="fieldfare-node-") as name, contextlib.ExitStack() as stack:
        home, (port,) = Path(name), free_ports(1)
        log = stack.enter_context((home / "output").open("wb"))
        command = [sys.executable, "-m", "fieldfare", "up", "--port", str(port), "--name", "bench"]
        command += ["--data", str(home / "data")] if durable else []
        process = stack.enter_context(child(command, os.environ, home, log))

        def ready() -> bool:
            if process.poll() is not None:
                told = (home / "output").read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"the node ended at once; its output:\n{told[-3000:]}")
            return answers(port)

        wait_for(ready, "the node takes too long to start")
        time.sleep(1)  # the start goes on for a moment after the port is open
        pids = tuple(family(process.pid))
        yield Server(port, pids, memory_mb(pids))


# Cheap clients


async def _subscribe(variant: Variant, port: int, by_subscriber: FiltersBySubscriber, take: Take) -> list[WebSocket]:
    return [await _subscriber(variant, port, number, filters, take) for number, filters in by_subscriber.items()]


async def _subscriber(variant: Variant, port: int, subscriber: int, filters: Sequence[Any], take: Take) -> WebSocket:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    done = last = since = 0
    waiting = False

    def acknowledge() -> None:
        nonlocal since, waiting
        waiting = False
        socket.send(f.Credit(since), f.Acknowledge(last))
        since = 0

    def receive(frame: f.FromNode) -> None:
        nonlocal done, last, since, waiting
        match frame:
            case f.Deliveries(items=items):
                for item in items:
                    received = decode(item.event)
                    take(subscriber, received.number, received.at)
                since += len(items)
                last = items[-1].number
                if since >= _CREDIT // 4:
                    acknowledge()
                elif not waiting:
                    waiting = True
                    loop.call_later(_MOMENT, lambda: acknowledge() if waiting else None)
            case f.Done():
                done += 1
                if done == len(filters):
                    ready.set_result(None)
            case f.Refused() | f.Bye():
                ready.set_exception(RuntimeError(f"the node says {frame}"))

    socket = await opened(port, receive)
    session = f"subscriber-{subscriber}" if variant.durable else ""
    socket.send(f.Hello(session=session, credit=_CREDIT))
    socket.send(*(f.Subscribe(place, str(place), filter.text) for place, filter in enumerate(filters)))
    if filters:
        await ready
    return socket


async def _publisher(variant: Variant, port: int, mine: Sequence[LoadEvent]) -> Send:
    sent = accepted = 0
    refused: f.FromNode | None = None
    moved = asyncio.Event()

    def receive(frame: f.FromNode) -> None:
        nonlocal accepted, refused
        if isinstance(frame, f.Accepted):
            accepted = frame.number
        elif not isinstance(frame, f.Welcome):
            refused = frame
        moved.set()

    socket = await opened(port, receive)
    socket.send(f.Hello(session=f"publisher-{os.getpid()}" if variant.durable else ""))
    ready = [all_but_the_time(event) for event in mine]

    async def send(start: int, stop: int, due: Sequence[int]) -> None:
        nonlocal sent
        while sent + (stop - start) - accepted > variant.window:
            if refused is not None:
                raise RuntimeError(f"the node says {refused}")
            moved.clear()
            await moved.wait()
        made = [msgspec.Raw(head + TIME.pack(at)) for head, at in zip(ready[start:stop], due, strict=True)]
        socket.send(f.Publish(sent + 1, made))
        sent += stop - start

    return send


# Clients of `fieldfare.client`


async def _subscribe_ours(variant: Variant, port: int, by_subscriber: FiltersBySubscriber, take: Take) -> list[object]:
    kept: list[object] = []

    async def listen(subscriber: int, events: Subscription[Event]) -> None:
        async for event in events:
            take(subscriber, event["number"], event["at"])  # type: ignore[arg-type]

    for subscriber, filters in by_subscriber.items():
        session = f"subscriber-{subscriber}" if variant.durable else ""
        client = await connect(f"ws://127.0.0.1:{port}", session=session, credit=_CREDIT).__aenter__()
        subscriptions = [
            await client.subscribe(filter.text, id=str(n)).__aenter__() for n, filter in enumerate(filters)
        ]
        kept += [client, *(asyncio.create_task(listen(subscriber, one)) for one in subscriptions)]
    return kept


async def _publisher_ours(variant: Variant, port: int, mine: Sequence[LoadEvent]) -> Send:
    session = f"publisher-{os.getpid()}" if variant.durable else ""
    client = await connect(f"ws://127.0.0.1:{port}", session=session).__aenter__()

    async def send(start: int, stop: int, due: Sequence[int]) -> None:
        await client.wait_for_capacity()
        for event, at in zip(mine[start:stop], due, strict=True):
            client.publish_soon({**event.fields, "at": at})

    return send
