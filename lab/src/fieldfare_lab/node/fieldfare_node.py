"""A node of ours under the load: `fieldfare up` in a process, a WebSocket for each subscriber.

Clients are either as cheap as can be, so that the node is what is measured, or those of `fieldfare.client`, which is
what programs use. A subscriber acknowledges what it got a moment later, as our client does.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
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
from fieldfare.events.msgpack import encode
from fieldfare.protocol import frames as f
from fieldfare_lab.node.client_processes import Contender, More, Send, Take, Wishes
from fieldfare_lab.node.load import Said, family, memory_mb
from fieldfare_lab.node.servers import Server, answers, child, free_ports, wait_for
from fieldfare_lab.node.websocket import WebSocket, opened

_CREDIT: Final = 1000
"""deliveries that a subscriber takes at once"""
_MOMENT: Final = 0.02
"""seconds for which acknowledgements wait for more of them, as with our client"""


class Variant(msgspec.Struct, frozen=True):
    """How a node is used."""

    name: str
    durable: bool = False
    """with a log on disk, and sessions that survive a restart"""
    batch: int = 1
    """events in a frame"""
    window: int = 500
    """how many events a publisher sends ahead of what the node says is safe"""
    ours: bool = False
    """with the clients that programs use"""


VARIANTS: Final = (
    Variant("in memory"),
    Variant("in memory, batches of 100", batch=100, window=2000),
    Variant("durable", durable=True),
    Variant("durable, batches of 100", durable=True, batch=100, window=2000),
    Variant("durable, batches of 100, fieldfare.client", durable=True, batch=100, window=2000, ours=True),
)


def contender(variant: Variant) -> Contender:
    """A node, used in such a way."""
    return Contender(
        f"Fieldfare, {variant.name}",
        partial(running, durable=variant.durable),
        partial(_subscribe_ours if variant.ours else _subscribe, variant),
        partial(_publisher_ours if variant.ours else _publisher, variant),
        batch=variant.batch,
    )


@contextlib.contextmanager
def running(*, durable: bool) -> Iterator[Server]:
    """A node on loopback, with all that it keeps in a temporary folder; it ends with the context."""
    with tempfile.TemporaryDirectory(prefix="fieldfare-node-") as name, contextlib.ExitStack() as stack:
        home, (port,) = Path(name), free_ports(1)
        log = stack.enter_context((home / "output").open("wb"))
        command = [sys.executable, "-m", "fieldfare", "up", "--port", str(port), "--name", "bench"]
        command += ["--data", str(home / "data")] if durable else []
        process = stack.enter_context(child(command, os.environ, home, log))

        def ready() -> bool:
            if process.poll() is not None:
                told = (home / "output").read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"the node ended at once; it said:\n{told[-3000:]}")
            return answers(port)

        wait_for(ready, "the node takes too long to start")
        time.sleep(1)  # for whatever is left of its start
        pids = tuple(family(process.pid))
        yield Server(port, pids, memory_mb(pids))


# Clients that cost little


async def _subscribe(variant: Variant, port: int, wishes: Wishes, take: Take) -> list[WebSocket]:
    return [await _subscriber(variant, port, number, wished, take) for number, wished in wishes.items()]


async def _subscriber(variant: Variant, port: int, subscriber: int, wished: Sequence[Any], take: Take) -> WebSocket:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    decode = msgspec.msgpack.Decoder(More).decode
    done = last = since = 0
    waiting = False

    def acknowledge() -> None:
        nonlocal since, waiting
        waiting = False
        socket.send(f.Credit(since), f.Acknowledge(last))
        since = 0

    def hear(frame: f.FromNode) -> None:
        nonlocal done, last, since, waiting
        match frame:
            case f.Deliveries(items=items):
                for item in items:
                    more = decode(item.event)
                    take(subscriber, more.number, more.at)
                since += len(items)
                last = items[-1].number
                if since >= _CREDIT // 4:
                    acknowledge()
                elif not waiting:
                    waiting = True
                    loop.call_later(_MOMENT, lambda: acknowledge() if waiting else None)
            case f.Done():
                done += 1
                if done == len(wished):
                    ready.set_result(None)
            case f.Refused() | f.Bye():
                ready.set_exception(RuntimeError(f"the node says {frame}"))

    socket = await opened(port, hear)
    session = f"subscriber-{subscriber}" if variant.durable else ""
    socket.send(f.Hello(session=session, credit=_CREDIT))
    socket.send(*(f.Subscribe(place, str(place), wish.text) for place, wish in enumerate(wished)))
    if wished:
        await ready
    return socket


async def _publisher(variant: Variant, port: int, mine: Sequence[Said]) -> Send:
    sent = accepted = 0
    refused: f.FromNode | None = None
    moved = asyncio.Event()

    def hear(frame: f.FromNode) -> None:
        nonlocal accepted, refused
        if isinstance(frame, f.Accepted):
            accepted = frame.number
        elif not isinstance(frame, f.Welcome):
            refused = frame
        moved.set()

    socket = await opened(port, hear)
    socket.send(f.Hello(session=f"publisher-{os.getpid()}" if variant.durable else ""))
    # What is the same each time is made once: the client's work is not what is measured.
    ready = [_all_but_the_time(said) for said in mine]

    async def send(start: int, stop: int, due: Sequence[int]) -> None:
        nonlocal sent
        while sent + (stop - start) - accepted > variant.window:
            if refused is not None:
                raise RuntimeError(f"the node says {refused}")
            moved.clear()
            await moved.wait()
        made = [msgspec.Raw(head + _TIME.pack(at)) for head, at in zip(ready[start:stop], due, strict=True)]
        socket.send(f.Publish(sent + 1, made))
        sent += stop - start

    return send


_TIME: Final = struct.Struct(">Q")


def _all_but_the_time(said: Said) -> bytes:
    """An event in MessagePack without its last eight bytes, which are the time."""
    return encode(Event({**said.fields, "at": 1 << 62}))[: -_TIME.size]


# Our own client


async def _subscribe_ours(variant: Variant, port: int, wishes: Wishes, take: Take) -> list[object]:
    kept: list[object] = []

    async def listen(subscriber: int, events: Subscription[Event]) -> None:
        async for event in events:
            take(subscriber, event["number"], event["at"])  # type: ignore[arg-type]

    for subscriber, wished in wishes.items():
        session = f"subscriber-{subscriber}" if variant.durable else ""
        client = await connect(f"ws://127.0.0.1:{port}", session=session, credit=_CREDIT).__aenter__()
        subscriptions = [await client.subscribe(wish.text, id=str(n)).__aenter__() for n, wish in enumerate(wished)]
        kept += [client, *(asyncio.create_task(listen(subscriber, one)) for one in subscriptions)]
    return kept


async def _publisher_ours(variant: Variant, port: int, mine: Sequence[Said]) -> Send:
    session = f"publisher-{os.getpid()}" if variant.durable else ""
    client = await connect(f"ws://127.0.0.1:{port}", session=session).__aenter__()

    async def send(start: int, stop: int, due: Sequence[int]) -> None:
        await client.wait_for_capacity()
        for said, at in zip(mine[start:stop], due, strict=True):
            client.publish_soon({**said.fields, "at": at})

    return send
