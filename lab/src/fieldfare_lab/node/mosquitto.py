"""Mosquitto under the load: QoS 1 in both directions, with sessions that survive their connections.

An event goes to a topic with a level for each compared field, and a filter is a topic with wildcards. The server
confirms each event, and each subscriber confirms each delivery, as MQTT asks for.
"""

from __future__ import annotations

import contextlib
import getpass
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from fieldfare_lab.node.client_processes import Contender, FiltersBySubscriber, Send, Take
from fieldfare_lab.node.event_bytes import TIME, all_but_the_time, decode
from fieldfare_lab.node.load import LoadEvent, family, memory_mb, topic_of
from fieldfare_lab.node.mqtt_client import IDS, MqttConnection, opened, publish, subscribe
from fieldfare_lab.node.servers import Server, answers, child, free_ports, program, wait_for

_PROGRAM: Final = "mosquitto"
_WINDOW: Final = 500
"""number of events that a publisher sends ahead of the server's confirmations"""
_CREDIT: Final = 1000
"""deliveries that the server may send ahead of acknowledgements"""


def contender() -> Contender:
    """Return the contender that runs Mosquitto."""
    return Contender("Mosquitto, QoS 1", running, _subscribe, _publisher)


def missing() -> str | None:
    """Return what is not installed, with the command to install it, or None."""
    return None if program(_PROGRAM) else "Mosquitto is not installed: apt-get install mosquitto"


@contextlib.contextmanager
def running() -> Iterator[Server]:
    """Run a private Mosquitto on loopback, with its files in a temporary folder, until the context ends."""
    found = program(_PROGRAM)
    if found is None:
        raise RuntimeError(missing())
    with tempfile.TemporaryDirectory(prefix="fieldfare-mosquitto-") as name, contextlib.ExitStack() as stack:
        home, (port,) = Path(name), free_ports(1)
        settings = home / "mosquitto.conf"
        lines = [
            f"listener {port} 127.0.0.1",
            "allow_anonymous true",
            "persistence true",
            f"persistence_location {home}/",
            f"max_inflight_messages {_CREDIT}",
            "max_queued_messages 0",  # else a slow subscriber would lose events: the benchmark counts them
            "set_tcp_nodelay true",
            f"user {getpass.getuser()}",
        ]
        settings.write_text("\n".join(lines) + "\n", encoding="utf-8")
        log = stack.enter_context((home / "output").open("wb"))
        process = stack.enter_context(child([found, "-c", str(settings)], os.environ, home, log))

        def ready() -> bool:
            if process.poll() is not None:
                told = (home / "output").read_text(encoding="utf-8", errors="replace")
                raise RuntimeError(f"Mosquitto ended at once; its output:\n{told[-3000:]}")
            return answers(port)

        wait_for(ready, "Mosquitto takes too long to start")
        pids = tuple(family(process.pid))
        yield Server(port, pids, memory_mb(pids))


async def _subscribe(port: int, by_subscriber: FiltersBySubscriber, take: Take) -> list[MqttConnection]:
    connections = []
    for subscriber, filters in by_subscriber.items():

        def receive(payload: bytes, subscriber: int = subscriber) -> None:
            received = decode(payload)
            take(subscriber, received.number, received.at)

        connection = await opened(port, f"subscriber-{subscriber}", receive)
        connection.write(subscribe([topic_of(dict(filter.equalities), "/", "+") for filter in filters]))
        await connection.subscribed
        connections.append(connection)
    return connections


async def _publisher(port: int, mine: Sequence[LoadEvent]) -> Send:
    connection = await opened(port, f"publisher-{os.getpid()}", lambda _: None)
    ready = [(topic_of(event.compared, "/").encode(), all_but_the_time(event)) for event in mine]
    sent = 0

    async def send(start: int, stop: int, due: Sequence[int]) -> None:
        nonlocal sent
        while sent + (stop - start) - connection.confirmed > _WINDOW:
            connection.moved.clear()
            await connection.moved.wait()
        connection.write(
            *(
                publish(topic, (sent + place) % IDS + 1, head + TIME.pack(at))
                for place, ((topic, head), at) in enumerate(zip(ready[start:stop], due, strict=True))
            )
        )
        sent += stop - start

    return send
