"""RabbitMQ under the load: a headers exchange, a queue for each subscriber, a binding for each filter.

A private server runs in a temporary directory on loopback and ends with the measurement, and so does its name service.
Each subscriber has a connection of its own. A headers exchange routes in the process of the publisher's channel, so all
cores are busy to the end only with more publishers than cores. Queues acknowledge automatically, which costs the server
least.

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

from fieldfare_lab.node.client_processes import Contender, FiltersBySubscriber, Send, Take
from fieldfare_lab.node.event_bytes import ReceivedEvent
from fieldfare_lab.node.load import LoadEvent, family, memory_mb
from fieldfare_lab.node.servers import Server, answers, child, free_ports, wait_for

_SCRIPT: Final = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
"""the script that Debian's `rabbitmq-server` runs after changing to the user rabbitmq"""
_EXCHANGE: Final = "bench"


class Missing(Exception):
    """RabbitMQ or its client is not installed; the message names the package."""


class Variant(msgspec.Struct, frozen=True):
    """A way to use RabbitMQ: transient or durable, with or without confirmations."""

    name: str
    durable: bool = False
    """exchange, queues and messages survive a restart"""
    window: int | None = 500
    """number of events that a publisher sends ahead of the server's confirmations; None: no confirmations"""


VARIANTS: Final = (
    Variant("transient, confirms"),
    Variant("transient, no confirms", window=None),
    Variant("durable, confirms", durable=True),
)


def contender(variant: Variant) -> Contender:
    """Return the contender that runs RabbitMQ in the given variant."""
    return Contender(
        f"RabbitMQ, {variant.name}",
        running,
        partial(_subscribe, variant),
        partial(_publisher, variant),
        publishers=2 * (os.cpu_count() or 1),
    )


def missing() -> str | None:
    """Return what is not installed, with the command to install it, or None."""
    if not _SCRIPT.exists() or shutil.which("epmd") is None:
        return "RabbitMQ is not installed: apt-get install rabbitmq-server"
    try:
        importlib.import_module("pika")
    except ImportError:
        return "RabbitMQ's Python client is not installed: pip install pika"
    return None


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Run a private RabbitMQ on loopback until the context ends; configured as by Debian, except for its folders."""
    if reason := missing():
        raise Missing(reason)
    pika = importlib.import_module("pika")
    with tempfile.TemporaryDirectory(prefix="fieldfare-rabbitmq-") as name, contextlib.ExitStack() as stack:
        home = Path(name)
        port, dist, names = free_ports(3)
        # The cookie is the password of the server's control port, so only the owner may read the file.
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
        # The name service runs in the foreground: Erlang would start a service that outlives the benchmark.
        stack.enter_context(child(["epmd", "-address", "127.0.0.1", "-port", str(names)], environment, home, log))
        wait_for(lambda: answers(names), "the Erlang name service epmd does not answer")
        process = stack.enter_context(child([str(_SCRIPT)], environment, home, log))

        def ready() -> bool:
            if process.poll() is not None:
                told = (home / "output").read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"RabbitMQ ended at once; its output:\n{told[-3000:]}")
            if not answers(port):
                return False
            try:
                pika.BlockingConnection(_parameters(pika, port)).close()
            except (pika.exceptions.AMQPError, OSError):
                return False
            return True

        wait_for(ready, "RabbitMQ takes too long to start")
        time.sleep(3)  # the start goes on after the first client was let in
        pids = tuple(family(process.pid))
        yield Server(port, pids, memory_mb(pids))


async def _subscribe(variant: Variant, port: int, by_subscriber: FiltersBySubscriber, take: Take) -> list[Any]:
    pika = importlib.import_module("pika")
    decode = msgspec.json.Decoder(ReceivedEvent).decode

    def taker(subscriber: int) -> Callable[..., None]:
        def taken(_channel: object, _method: object, _properties: object, body: bytes) -> None:
            received = decode(body)
            take(subscriber, received.number, received.at)

        return taken

    channels = []
    for subscriber, filters in by_subscriber.items():
        channel, queue, consuming = await _channel(pika, port), f"subscriber-{subscriber}", asyncio.Event()
        await _done(channel.exchange_declare, exchange=_EXCHANGE, exchange_type="headers", durable=variant.durable)
        await _done(channel.queue_declare, queue=queue, durable=variant.durable, auto_delete=not variant.durable)
        for filter in filters:
            await _done(channel.queue_bind, queue, _EXCHANGE, arguments=filter.arguments)
        channel.basic_consume(queue, taker(subscriber), auto_ack=True, callback=lambda _, done=consuming: done.set())
        await consuming.wait()
        channels.append(channel)
    return channels


async def _publisher(variant: Variant, port: int, mine: Sequence[LoadEvent]) -> Send:
    pika = importlib.import_module("pika")
    channel = await _channel(pika, port)
    sent = confirmed = 0
    refused = False
    moved = asyncio.Event()

    def confirm(frame: Any) -> None:
        nonlocal confirmed, refused
        refused = refused or isinstance(frame.method, pika.spec.Basic.Nack)
        confirmed = frame.method.delivery_tag  # taken to confirm all earlier events too: queues confirm nearly in order
        moved.set()

    if variant.window is not None:
        await _done(channel.confirm_delivery, confirm)
    mode = 2 if variant.durable else 1
    # Properties that do not change are made once, so that the client does not limit the rate.
    encode = msgspec.json.encode
    ready = [(pika.BasicProperties(headers=event.compared, delivery_mode=mode), event.others) for event in mine]

    async def send(start: int, stop: int, due: Sequence[int]) -> None:
        nonlocal sent
        for (properties, others), at in zip(ready[start:stop], due, strict=True):
            while variant.window is not None and sent - confirmed >= variant.window:
                moved.clear()
                await moved.wait()
            if refused:
                raise RuntimeError("RabbitMQ refused an event")
            channel.basic_publish(_EXCHANGE, "", encode({**others, "at": at}), properties)
            sent += 1

    return send


async def _channel(pika: Any, port: int) -> Any:
    """Open a channel on a new connection of its own."""
    adapter = importlib.import_module("pika.adapters.asyncio_connection")
    opened: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def lost(_connection: object, why: BaseException) -> None:
        if not opened.done():
            opened.set_exception(why)

    connection = adapter.AsyncioConnection(
        _parameters(pika, port),
        on_open_callback=lambda connection: connection.channel(on_open_callback=opened.set_result),
        on_open_error_callback=lost,
    )
    channel = await opened
    channel.kept = connection  # a reference, because nothing else keeps the connection alive
    return channel


async def _done(method: Callable[..., object], *arguments: object, **options: object) -> None:
    """Call a method of a channel and wait for the server's answer."""
    done = asyncio.Event()
    method(*arguments, **options, callback=lambda _: done.set())
    await done.wait()


def _parameters(pika: Any, port: int) -> Any:
    # Heartbeats are off: a busy client must not be taken for a dead one.
    return pika.ConnectionParameters("127.0.0.1", port, heartbeat=0, blocked_connection_timeout=None)
