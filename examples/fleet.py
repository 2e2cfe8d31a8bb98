"""A fleet of taxis and its dispatchers: publishers and subscribers move from node to node, and no event is lost.

Run the example with `python examples/fleet.py`. It starts three nodes, one for each district of a small city. Taxis
drive round the city and publish their state; when a taxi crosses a border, its client moves to the node of the new
district. Dispatchers subscribe to some of the events, and walk from office to office. Now and then a taxi or dispatcher
is in a tunnel: the connection breaks without a closing frame, and the client reconnects at another node. In the end
the example compares all published events with all received events.
"""

import argparse
import asyncio
import os
import random
import socket
import sys
import time
from contextlib import AsyncExitStack, ExitStack, closing, suppress
from itertools import pairwise
from pathlib import Path
from subprocess import DEVNULL, Popen
from tempfile import TemporaryDirectory

import fieldfare as ff

DISTRICTS = ("north", "east", "west")  # round the city; each has a node of this name
DISPATCHERS = {
    "ada": ff.parse("district = 'north' AND fare = 'free'"),
    "bob": ff.parse("speed > 90"),
    "eve": ff.parse("district IN ('east', 'west') AND speed < 40"),
    "max": ff.parse("taxi IN ('taxi 1', 'taxi 2')"),
}
chance = random.Random()  # noqa: S311


class Station:
    """A node in a process of its own, and a mast, the proxy through which clients reach the node; each has a port."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as other:
            self.node_port, self.mast_port = one.getsockname()[1], other.getsockname()[1]
        self.node, self.mast = f"ws://127.0.0.1:{self.node_port}", f"ws://127.0.0.1:{self.mast_port}"
        self._open, self._silent_until, self.cuts = set[asyncio.StreamWriter](), 0.0, 0

    def start(self, name: str, folder: Path, join: str) -> Popen[bytes]:
        """Start the node, which tells clients the address of the mast.

        The node has a process session of its own, so that Ctrl-C reaches only the example, which then ends the node.
        """
        options = [f"--name={name}", f"--port={self.node_port}", f"--data={folder / name}"]
        command = [sys.executable, "-m", "fieldfare", "up", *options, *([f"--join={join}"] if join else [])]
        settings = {**os.environ, "FIELDFARE_PUBLIC_URL": self.mast}
        return Popen(command, env=settings, stdout=DEVNULL, stderr=DEVNULL, start_new_session=True)  # noqa: S603

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Copy the bytes between a client and the node, in both directions."""
        with closing(writer), suppress(ConnectionError):
            if time.monotonic() > self._silent_until:
                back, there = await asyncio.open_connection("127.0.0.1", self.node_port)
                self._open.add(writer)
                await asyncio.gather(_copy(reader, there), _copy(back, writer))
        self._open.discard(writer)

    def cut(self) -> None:
        """Abort the connection of a random client, and accept no connection for a while: a tunnel."""
        if self._open:
            chance.choice(list(self._open)).transport.abort()
            self._silent_until = time.monotonic() + 0.5
            self.cuts += 1

    async def knows(self, filters: list[ff.Filter]) -> None:
        """Wait until the node knows all subscriptions of all nodes; an event published earlier has no receivers."""
        while True:
            with suppress(ConnectionError):
                async with ff.connect(self.node) as client:
                    interest = [ff.parse(text) for text in await client.interest()]
                    if all(any(known.covers(filter) for known in interest) for filter in filters):
                        return
            await asyncio.sleep(0.1)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with closing(writer):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


class Roamer:
    """A client that moves from node to node."""

    def __init__(self, name: str, city: dict[str, Station]) -> None:
        self.name, self.city, self.moves = name, city, 0
        self.events: list[ff.Event] = []
        urls = [city[district].mast for district in chance.sample(DISTRICTS, 3)]
        self.client = ff.connect(urls, session=name)  # to the first node that answers, also after each tunnel

    async def move(self, district: str) -> None:
        """Move to another node; if the node does not answer, the client stays where it is."""
        with suppress(ConnectionError):
            await self.client.move(to=self.city[district].mast)
            self.moves += 1


class Taxi(Roamer):
    """A taxi that publishes its state all the time: the client keeps events until a node has accepted them."""

    async def work(self, end: float) -> None:
        """Drive until the end; leaving `self.client` waits until a node has accepted all events."""
        angle, speed = chance.uniform(0, 360), 60.0
        moving = asyncio.create_task(asyncio.sleep(0))
        async with self.client:
            while time.monotonic() < end:
                speed = min(120, max(20, speed + chance.gauss(0, 10)))
                angle = (angle + speed / 30) % 360
                district, fare = DISTRICTS[int(angle // 120)], ("free", "taken")[int(angle // 50 % 2)]
                state = {"district": district, "speed": round(speed), "fare": fare}
                self.events.append(ff.Event({"taxi": self.name, "n": len(self.events), **state}))
                self.client.publish_soon(self.events[-1])
                if self.client.node != district and moving.done():
                    moving = asyncio.create_task(self.move(district))
                await asyncio.sleep(0.05)
            await moving


class Dispatcher(Roamer):
    """A dispatcher with a subscription to some of the taxis' events."""

    async def work(self) -> None:
        """Receive events, and walk from office to office meanwhile."""
        async with self.client, self.client.subscribe(DISPATCHERS[self.name]) as events, asyncio.TaskGroup() as both:
            both.create_task(self._walk())
            async for event in events:
                self.events.append(event)

    async def _walk(self) -> None:
        while True:
            await asyncio.sleep(chance.uniform(0.5, 1.5))
            await self.move(chance.choice([name for name in DISTRICTS if name != self.client.node]))

    def verdict(self, fleet: list[Taxi]) -> tuple[int, int, int]:
        """Count the lost events, the duplicates, and the events that came before an earlier event of the same taxi."""
        lost = twice = disorder = 0
        for taxi in fleet:
            due = {event["n"] for event in taxi.events if DISPATCHERS[self.name].matches(event)}
            got = [int(str(event["n"])) for event in self.events if event.get("taxi") == taxi.name]
            lost += len(due - set(got))
            twice += len(got) - len(set(got))
            disorder += sum(n > later for n, later in pairwise(got))
        return lost, twice, disorder


async def play(stations: list[Station], fleet: list[Taxi], dispatchers: list[Dispatcher], seconds: float) -> None:
    """Let taxis and dispatchers work for some seconds, then wait up to 30 seconds for all due events."""
    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        async with asyncio.timeout(60):
            for station in stations:
                mast = await asyncio.start_server(station.relay, "127.0.0.1", station.mast_port)
                await stack.enter_async_context(mast)
            await asyncio.gather(*(station.knows([]) for station in stations))
            watching = [group.create_task(one.work()) for one in dispatchers]
            await asyncio.gather(*(station.knows(list(DISPATCHERS.values())) for station in stations))
        end = time.monotonic() + seconds
        driving = [group.create_task(taxi.work(end)) for taxi in fleet]
        while not all(task.done() for task in driving):
            await asyncio.sleep(0.5)
            chance.choice(stations).cut()
        patience = time.monotonic() + 30
        while any(one.verdict(fleet)[0] for one in dispatchers) and time.monotonic() < patience:
            await asyncio.sleep(0.1)
        await asyncio.sleep(0.3)  # time for duplicates, which would be a fault
        for task in watching:
            task.cancel()


def main() -> int:
    """Run the example and print the counts; the exit code is 1 if an event was lost, doubled or out of order."""
    parser = argparse.ArgumentParser(description="Taxis and dispatchers move from node to node, and no event is lost.")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of the drive")
    parser.add_argument("--taxis", type=int, default=5, help="number of taxis")
    options = parser.parse_args()
    city = {name: Station() for name in DISTRICTS}
    fleet = [Taxi(f"taxi {number + 1}", city) for number in range(options.taxis)]
    dispatchers = [Dispatcher(name, city) for name in DISPATCHERS]
    with TemporaryDirectory(prefix="fieldfare-") as folder, ExitStack() as ended, ExitStack() as ending:
        joins = ["", *(station.node for station in city.values())]  # each node joins the one before: a line
        for (name, station), join in zip(city.items(), joins, strict=False):
            node = station.start(name, Path(folder), join)
            ended.callback(node.wait)
            ending.callback(node.terminate)
        asyncio.run(play(list(city.values()), fleet, dispatchers, options.seconds))

    for one in (*fleet, *dispatchers):
        what = f"received, of {DISPATCHERS[one.name]}" if one.name in DISPATCHERS else "published"
        print(f"{one.name:8}{one.moves:3} moves {len(one.events):5} events {what}")
    lost, twice, disorder = map(sum, zip(*(one.verdict(fleet) for one in dispatchers), strict=True))
    print(f"\ntunnels {sum(one.cuts for one in city.values())}, lost {lost}, twice {twice}, out of order {disorder}")
    return 1 if lost or twice or disorder else 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
