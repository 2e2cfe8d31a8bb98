"""RabbitMQ under the load: a headers exchange, a queue for each subscriber, a binding for each filter.

A private server runs in a temporary directory on loopback and ends with the measurement, its name service too. Each
subscriber has a connection of its own. A headers exchange routes in the process of the publisher's channel, so it takes
more publishers than cores to keep all of them busy to the end. Queues acknowledge by themselves, the cheapest for the
server.

The client is pika, which is no dependency of Fieldfare: `pip install pika`.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import os
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec

from fieldfare_lab.node.client_processes import Contender, More, Send, Take, Wishes
from fieldfare_lab.node.load import Said, family, memory_mb
from fieldfare_lab.node.servers import Server, answers, child, free_ports, wait_for

_SCRIPT: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""what Debian's `rabbitmq-server` runs after it has become the user rabbitmq"""
_EXCHANGE: Final = "bench"


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


def contender(variant: Variant) -> Contender:
    """RabbitMQ, used in such a way."""
    return Contender(
        f"RabbitMQ, {variant.name}",
        running,
        partial(_subscribe, variant),
        partial(_publisher, variant),
        publishers=2 * (os.cpu_count() or 1),
    )


def missing() -> str | None:
    """Why this cannot be measured here, and what to do; None if it can."""
    if not _SCRIPT.exists() or shutil.which("epmd") is None:
        return "RabbitMQ is not here: apt-get install rabbitmq-server"
    try:
        importlib.import_module("pika")
    except ImportError:
        return "its Python client is not here: pip install pika"
    return None


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """A private RabbitMQ on loopback, as Debian sets it up but for where it keeps things; it ends with the context."""
    if reason := missing():
        raise Missing(reason)
    pika = importlib.import_module("pika")
    with tempfile.TemporaryDirectory(prefix="fieldfare-rabbitmq-") as name, contextlib.ExitStack() as stack:
        home = Path(name)
        port, dist, names = free_ports(3)
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
        stack.enter_context(child(["epmd", "-address", "127.0.0.1", "-port", str(names)], environment, home, log))
        wait_for(lambda: answers(names), "the Erlang name service epmd does not answer")
        process = stack.enter_context(child([str(_SCRIPT)], environment, home, log))

        def ready() -> bool:
            if process.poll() is not None:
                told = (home / "output").read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"RabbitMQ ended at once; it said:\n{told[-3000:]}")
            if not answers(port):
                return False
            try:
                pika.BlockingConnection(_parameters(pika, port)).close()
            except (pika.exceptions.AMQPError, OSError):
                return False
            return True

        wait_for(ready, "RabbitMQ takes too long to start")
        time.sleep(3)  # it still has some starting up to do after it lets clients in
        pids = tuple(family(process.pid))
        yield Server(port, pids, memory_mb(pids))


async def _subscribe(variant: Variant, port: int, wishes: Wishes, take: Take) -> list[Any]:
    pika = importlib.import_module("pika")
    decode = msgspec.json.Decoder(More).decode

    def taker(subscriber: int) -> Callable[..., None]:
        def taken(_channel: object, _method: object, _properties: object, body: bytes) -> None:
            more = decode(body)
            take(subscriber, more.number, more.at)

        return taken

    channels = []
    for subscriber, wished in wishes.items():
        channel, queue, consuming = await _channel(pika, port), f"subscriber-{subscriber}", asyncio.Event()
        await _done(channel.exchange_declare, exchange=_EXCHANGE, exchange_type="headers", durable=variant.durable)
        await _done(channel.queue_declare, queue=queue, durable=variant.durable, auto_delete=not variant.durable)
        for wish in wished:
            await _done(channel.queue_bind, queue, _EXCHANGE, arguments=wish.arguments)
        channel.basic_consume(queue, taker(subscriber), auto_ack=True, callback=lambda _, done=consuming: done.set())
        await consuming.wait()
        channels.append(channel)
    return channels


async def _publisher(variant: Variant, port: int, mine: Sequence[Said]) -> Send:
    pika = importlib.import_module("pika")
    channel = await _channel(pika, port)
    sent = confirmed = 0
    refused = False
    moved = asyncio.Event()

    def confirm(frame: Any) -> None:
        nonlocal confirmed, refused
        refused = refused or isinstance(frame.method, pika.spec.Basic.Nack)
        confirmed = frame.method.delivery_tag  # also of all before it, or soon: queues confirm nearly in order
        moved.set()

    if variant.window is not None:
        await _done(channel.confirm_delivery, confirm)
    mode = 2 if variant.durable else 1
    # What is the same each time is made once: the client's work is not what is measured.
    encode = msgspec.json.encode
    ready = [(pika.BasicProperties(headers=said.asked, delivery_mode=mode), said.more) for said in mine]

    async def send(start: int, stop: int, due: Sequence[int]) -> None:
        nonlocal sent
        for (properties, more), at in zip(ready[start:stop], due, strict=True):
            while variant.window is not None and sent - confirmed >= variant.window:
                moved.clear()
                await moved.wait()
            if refused:
                raise RuntimeError("RabbitMQ refused an event")
            channel.basic_publish(_EXCHANGE, "", encode({**more, "at": at}), properties)
            sent += 1

    return send


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
