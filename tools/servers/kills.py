"""Bridges that are killed on both sides: `python -m tools.servers.kills kafka 20`, or `nats 50`.

A node with a bridge is a process, and so is the server on the other side. Messages are written to the server, events
are published at the node, and one of the two is killed at random moments. In the end the node's log has every message
once, in order, and the server has every event, in order; an event that came twice has the same id both times.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import msgspec
import nats
from nats.js.api import StreamConfig

from fieldfare.client.client import connect
from fieldfare.events import msgpack
from fieldfare.node.bridges.content import ID
from fieldfare.node.storage.log import Log
from tools.nodes.kills import Process
from tools.servers.kafka import Kafka
from tools.servers.nats import NatsServer

PARTITIONS = 2


class Sent(NamedTuple):
    """An event on the other side."""

    value: int
    id: str


class System(Protocol):
    """A server, with a place for messages and one for events."""

    table: str

    def start(self) -> None: ...
    def kill(self) -> None: ...
    async def prepare(self) -> None: ...
    async def say(self, values: Sequence[int]) -> None: ...
    async def got(self) -> list[Sent]: ...


class OnKafka:
    """Topics with two partitions: the key of an event, and the parity of a message, choose one."""

    def __init__(self, folder: Path) -> None:
        self.kafka = Kafka(folder)
        rules = 'in = [{ topic = "in" }]\nout = [{ filter = "EXISTS y", topic = "out", key = "{parity}" }]'
        self.table = f'kind = "kafka"\nservers = "{self.kafka.servers}"\n{rules}'
        self.start, self.kill = self.kafka.start, self.kafka.kill

    async def prepare(self) -> None:
        for topic in ("in", "out"):
            self.kafka.create(topic, PARTITIONS)

    async def say(self, values: Sequence[int]) -> None:
        records = [{"value": msgspec.json.encode({"x": one}), "partition": one % PARTITIONS} for one in values]
        await asyncio.to_thread(self.kafka.produce, "in", records)

    async def got(self) -> list[Sent]:
        found = await asyncio.to_thread(self.kafka.all, "out")
        return [Sent(msgspec.json.decode(one.value() or b"")["y"], str(dict(one.headers() or ())[ID])) for one in found]


class OnNats:
    """A stream with two subjects."""

    def __init__(self, folder: Path) -> None:
        self.server = NatsServer(folder)
        rules = 'in = [{ subject = "in.*" }]\nout = [{ filter = "EXISTS y", subject = "out.{parity}" }]'
        self.table = f'kind = "nats"\nurl = "{self.server.url}"\n{rules}'
        self.start, self.kill = self.server.start, self.server.kill

    async def prepare(self) -> None:
        client = await nats.connect(self.server.url)
        await client.jetstream().add_stream(StreamConfig(name="all", subjects=["in.*", "out.*"]))
        await client.close()

    async def say(self, values: Sequence[int]) -> None:
        client = await nats.connect(self.server.url)
        for one in values:
            await client.jetstream(timeout=60).publish(f"in.{one % PARTITIONS}", msgspec.json.encode({"x": one}))
        await client.close()

    async def got(self) -> list[Sent]:
        client = await nats.connect(self.server.url)
        stream = client.jetstream(timeout=60)
        last = (await stream.stream_info("all")).state.last_seq
        found = [await stream.get_msg("all", number) for number in range(1, last + 1)]
        await client.close()
        return [
            Sent(msgspec.json.decode(one.data or b"")["y"], (one.headers or {})[ID])
            for one in found
            if (one.subject or "").startswith("out.")
        ]


async def run(system: System, kills: int, folder: Path, seed: int = 0) -> dict[str, int]:
    """Kill one side so many times, then compare both sides with what was sent."""
    dice = random.Random(seed)
    await asyncio.to_thread(system.start)
    await system.prepare()
    (folder / "node.toml").write_text(f"[[bridge]]\n{system.table}\n")
    node = Process("a", folder / "a", "", "--config", str(folder / "node.toml"))
    node.start()
    said = published = 0
    try:
        await node.answers()
        async with connect(node.url, session="publisher") as client:
            for _ in range(kills):
                count = dice.randint(1, 300)
                await system.say(range(said, said + count))
                said += count
                for number in range(published, published + count):
                    await client.wait_for_capacity()
                    client.publish_soon({"y": number, "parity": number % PARTITIONS})
                published += count
                await asyncio.sleep(dice.random())
                if dice.random() < 0.5:
                    node.kill()
                    await asyncio.sleep(dice.random() * 0.3)
                    node.start()
                else:
                    await asyncio.to_thread(system.kill)
                    await asyncio.sleep(dice.random())
                    await asyncio.to_thread(system.start)
            await client.drain()
        await _until_all(system, node, said, published)
        got = await system.got()
    finally:
        node.kill(15)
        await asyncio.to_thread(system.kill)
    log = [dict(msgpack.decode(entry.event).tree) for entry in Log(folder / "a" / "log").read(1)]
    came = [int(str(event["x"])) for event in log if "x" in event]
    counts = {
        "kills": kills,
        "messages in": said,
        "lost in": said - len(set(came)),
        "twice in": len(came) - len(set(came)),
        "disordered in": _disordered(came),
        "events out": published,
        "lost out": published - len({one.value for one in got}),
        "again out": len(got) - len({one.value for one in got}),
        "twice out without id": len({one.id for one in got}) - published,
        "disordered out": _disordered(list(dict.fromkeys(one.value for one in got))),
    }
    if any(count for name, count in counts.items() if name.startswith(("lost", "twice", "disordered"))):
        raise AssertionError(f"{counts}, in {folder}, seed {seed}")
    return counts


async def _until_all(system: System, node: Process, said: int, published: int) -> None:
    await node.answers()
    async with connect(node.url) as client, client.subscribe("EXISTS x", since=1) as events:
        came: set[object] = set()
        while len(came) < said:
            event = await events.next(timeout=300)
            came.add(event["x"])
    while len({one.value for one in await system.got()}) < published:
        await asyncio.sleep(0.5)


def _disordered(values: Sequence[int]) -> int:
    """How many values come after a later one of their partition."""
    count, last = 0, dict.fromkeys(range(PARTITIONS), -1)
    for value in values:
        count += value < last[value % PARTITIONS]
        last[value % PARTITIONS] = value
    return count


SYSTEMS: Final[Mapping[str, Callable[[Path], System]]] = {"kafka": OnKafka, "nats": OnNats}

if __name__ == "__main__":
    name, kills = sys.argv[1], int(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    with tempfile.TemporaryDirectory(prefix="fieldfare-bridge-") as scratch, contextlib.suppress(KeyboardInterrupt):
        found = asyncio.run(run(SYSTEMS[name](Path(scratch) / name), kills, Path(scratch), seed))
        sys.stdout.write(f"{found}, seed {seed}\n")
