"""Real nodes that are killed at random: `python -m tools.nodes.kills 200`, or `make kills KILLS=200`.

Nodes are processes with folders of their own, linked in a line. Publishers and subscribers have sessions; they are cut
off at random too, and come back as a program would that knows only what it has stored: a publisher what was accepted, a
subscriber the number of the last event that it is done with. In the end every accepted event has reached every
subscriber that asked for it, once, in the order of its publisher. Patterns stand at the nodes; see `watchers`.

The load follows what the machine can do: publishers wait for subscribers that are far behind, and slow down when kills
take long; and limits leave out the time in which a process waits for a CPU (`patience`).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldfare.client.client import connect
from fieldfare.filters import parse
from tools.nodes.patience import Patience
from tools.nodes.ports import free_port
from tools.nodes.watchers import TEXTS, Watcher
from tools.nodes.watchers import judge as judge_patterns
from tools.waiting import PATIENCE

FAR = 2000
"""events of one publisher; one that a subscriber lacks more of waits"""


class Process:
    """A node in a process of its own."""

    def __init__(self, name: str, folder: Path, join: str = "", *options: str) -> None:
        self.name, self.folder, self.port = name, folder, free_port()
        self.arguments = [*(["--join", join] if join else []), *options]
        self.environment: dict[str, str] = {}
        """what the next start adds to the environment"""
        self.running: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def start(self) -> None:
        command = [sys.executable, "-m", "fieldfare", "up", "--name", self.name, "--port", str(self.port)]
        log = (self.folder.parent / f"{self.name}.log").open("ab")
        self.running = subprocess.Popen(
            [*command, "--data", str(self.folder), *self.arguments],
            env={"FIELDFARE_KERNELS": "numpy", **os.environ, **self.environment},  # a node starts in half the time
            stdout=log,
            stderr=log,
        )
        log.close()

    def kill(self, how: int = signal.SIGKILL) -> None:
        if self.running is not None:
            self.running.send_signal(how)
            self.running.wait()
            self.running = None

    def pids(self) -> list[int]:
        return [] if self.running is None else [self.running.pid]

    async def answers(self) -> None:
        patience = Patience(self.pids)
        while True:
            with contextlib.suppress(OSError):
                _, writer = await asyncio.open_connection("127.0.0.1", self.port)
                writer.close()
                await writer.wait_closed()
                return
            if patience.over() or (self.running is not None and self.running.poll() is not None):
                log = (self.folder.parent / f"{self.name}.log").read_text()[-2000:]
                raise AssertionError(f"{self.name} does not answer; it said:\n{log}")
            await asyncio.sleep(0.05)


class Marks:
    """Numbers, a byte each: there may be millions."""

    def __init__(self) -> None:
        self._bytes = bytearray(1 << 12)
        self.count = 0

    def add(self, number: int) -> None:
        if number >= len(self._bytes):
            self._bytes.extend(bytes(max(number + 1 - len(self._bytes), len(self._bytes))))
        self.count += not self._bytes[number]
        self._bytes[number] = 1

    def array(self, size: int) -> NDArray[np.bool_]:
        marks = np.zeros(size, np.bool_)
        known = np.frombuffer(bytes(self._bytes), np.uint8)[:size]
        marks[: len(known)] = known != 0
        return marks


class Publisher:
    """Publishes numbered events; knows which were accepted."""

    pause = 0.05
    """most seconds between some events and the next"""
    enough = 1000
    """events after a kill; then all goes ten times as slowly until the next one"""

    def __init__(self, name: str, url: str, chance: random.Random) -> None:
        self.name, self.url, self.chance = name, url, chance
        self.count = 0
        self.accepted = Marks()
        self.heard = 0
        """how many were accepted when one last looked"""
        self.room: Callable[[], bool] = lambda: True
        """are the subscribers near enough?"""

    async def live(self, until: asyncio.Event) -> None:
        """Until it is cut off (cancelled), or told to end: then it waits for all to be safe."""
        async with connect(self.url, session=self.name) as client:
            while not until.is_set():
                for _ in range(self.chance.randrange(1, 20)):
                    await client.wait_for_capacity()
                    self.count += 1
                    number = self.count
                    receipt = client.publish_soon({"by": self.name, "n": number, "k": number % 5})
                    receipt.add_callback(lambda answer, n=number: self.accepted.add(n) if answer is True else None)  # type: ignore[misc]
                slow = 10 if self.accepted.count - self.heard > self.enough else 1
                await asyncio.sleep(self.chance.random() * self.pause * slow)
                while not self.room() and not until.is_set():
                    await asyncio.sleep(self.pause)
            await client.drain()


class Subscriber:
    """Stores what it gets together with the number under which it came, as one does who must not do anything twice."""

    def __init__(self, name: str, url: str, filter: str) -> None:
        self.name, self.url, self.filter = name, url, filter
        self.done = 0
        self.got: dict[str, Marks] = {}
        self.last: dict[str, int] = {}
        self.again = 0
        self.problems: list[str] = []

    def take(self, by: str, number: int) -> None:
        if number <= self.last.get(by, 0):
            self.problems.append(f"{self.name} got {by} {number} after {self.last[by]}")
        self.last[by] = number
        self.got.setdefault(by, Marks()).add(number)

    async def live(self) -> None:
        async with (
            connect(self.url, session=self.name) as client,
            client.subscribe(self.filter, id="s", keep=True) as events,
        ):
            async for delivery in events.deliveries():
                if delivery.number > self.done:
                    self.done = delivery.number
                    self.take(str(delivery.event["by"]), int(str(delivery.event["n"])))
                else:
                    self.again += 1
                await delivery.acknowledge()


async def run(kills: int, seed: int, *, pause: float = 1.0, nodes: int = 3, say: bool = False) -> dict[str, int]:
    """Kill so many times, and see; gives counts."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        line: list[Process] = []
        for number in range(nodes):
            join = line[-1].url if line else ""
            line.append(Process(f"n{number}", Path(folder) / f"n{number}", join))
        subscribers = [
            Subscriber(f"s{i}", line[i % nodes].url, filter)
            for i, filter in enumerate(["k >= 0", "k = 1", "k > 2", "by = 'p0' AND k != 3"])
        ]
        watchers = [Watcher(f"w{i}", line[i % nodes].url, text) for i, text in enumerate(TEXTS)]
        publishers = [Publisher(f"p{i}", line[i % nodes].url, chance) for i in range(3)]
        try:
            for node in line:
                node.start()
                await node.answers()
            counts = await _play(World(chance, line, subscribers, publishers, watchers), kills, pause, say=say)
            for node in line:
                node.kill()
            groups = [(node, [one for one in watchers if one.url == node.url]) for node in line]
            found = sum(judge_patterns(node.name, node.folder, own) for node, own in groups if own)
            return {**counts, "detections of patterns": found}
        finally:
            for node in line:
                node.kill()


class World(NamedTuple):
    """All that may be killed."""

    chance: random.Random
    line: list[Process]
    subscribers: list[Subscriber]
    publishers: list[Publisher]
    watchers: Sequence[Watcher] = ()

    def patience(self, seconds: float = PATIENCE) -> Patience:
        return Patience(lambda: [pid for node in self.line for pid in node.pids()], seconds)

    def near(self, publisher: Publisher) -> bool:
        """Has every subscriber nearly all that it asked for of a publisher?"""
        got = [
            (_by_k(one.filter, publisher.name), one.got.get(publisher.name, Marks()).count) for one in self.subscribers
        ]
        return all(publisher.accepted.count * by_k.mean() - count < FAR for by_k, count in got)


async def _play(world: World, kills: int, pause: float, *, say: bool) -> dict[str, int]:
    chance, line, subscribers, publishers, watchers = world
    listeners: list[Subscriber | Watcher] = [*subscribers, *watchers]
    end = asyncio.Event()
    patience = world.patience()
    listening = {one.name: persistent(one.live) for one in listeners}
    for node in line:
        await knows(node, [*(one.filter for one in subscribers), "k = 3"])
    for one in publishers:
        one.room = partial(world.near, one)
    talking = {one.name: persistent(partial(one.live, end)) for one in publishers}
    cut = 0
    between: list[int] = []
    for number in range(kills):
        between.append(await _goes_on(world))
        for task in [*listening.values(), *talking.values()]:
            if task.done():
                task.result()
        await asyncio.sleep(pause * (0.2 + chance.random()))
        node = chance.choice(line)
        node.kill()
        if chance.random() < 0.3:
            await asyncio.sleep(chance.random())
        node.start()
        if chance.random() < 0.3:  # a client dies, too
            cut += 1
            if chance.random() < 0.5:
                listener = chance.choice(listeners)
                listening[listener.name] = await anew(listening[listener.name], listener.live)
            else:
                talker = chance.choice(publishers)
                talking[talker.name] = await anew(talking[talker.name], partial(talker.live, end))
        if say and number % 10 == 9:
            sys.stdout.write(f"{number + 1} kills, {sum(one.accepted.count for one in publishers):,} events accepted\n")
            sys.stdout.flush()
    between.append(await _goes_on(world))
    end.set()

    def detected() -> int:
        return sum(len(one.got) for one in watchers)

    if say:
        sys.stdout.write("now all must arrive\n")
    await patience.until(
        lambda: all(one.done() for one in talking.values()), lambda: "publishers wait", partial(arrived, subscribers)
    )
    await asyncio.gather(*talking.values())
    counts = await judge(subscribers, publishers, patience)
    quiet, last = world.patience(3.0), -1
    while not quiet.over():  # the last timers of patterns strike, and watchers get the last detections
        if detected() != last:
            last = detected()
            quiet.begin()
        await asyncio.sleep(0.05)
    for task in listening.values():
        task.cancel()
    await asyncio.gather(*listening.values(), return_exceptions=True)
    least = {"accepted between two kills, at least": min(between[1:], default=0)}
    return {"kills": kills, "clients cut off": cut, **least, **counts}


async def _goes_on(world: World) -> int:
    """Wait until all nodes are up and every publisher is heard; return how many events were accepted since then.

    A kill that strikes a node that is not up yet tells nothing: after some of them nothing was accepted any more, and a
    run of 200 kills had tested 20.
    """
    for node in world.line:
        await node.answers()

    def deaf() -> list[str]:
        return [one.name for one in world.publishers if one.accepted.count == one.heard]

    await world.patience().until(lambda: not deaf(), lambda: f"nothing more is accepted of {', '.join(deaf())}")
    before = sum(one.heard for one in world.publishers)
    for one in world.publishers:
        one.heard = one.accepted.count
    return sum(one.heard for one in world.publishers) - before


async def knows(node: Process, filters: list[str]) -> None:
    """Wait until a node knows what is wanted, here or elsewhere: what was published before is due to nobody."""
    async with connect(node.url) as client:
        for _ in range(int(PATIENCE / 0.1)):
            wanted = parse(" OR ".join(f"({text})" for text in ("k = 'nothing'", *await client.interest())))
            if all(wanted.covers(parse(one)) for one in filters):
                return
            await asyncio.sleep(0.1)
    raise AssertionError(f"{node.name} does not know what is wanted")


async def anew(task: asyncio.Task[None], live: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
    """End a client without a word, and begin another one."""
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    return persistent(live)


def persistent(live: Callable[[], Coroutine[Any, Any, None]]) -> asyncio.Task[None]:
    """Begin a client; it may take a while until there is a node."""

    async def persist() -> None:
        while True:
            try:
                return await live()
            except OSError:
                await asyncio.sleep(0.1)

    return asyncio.create_task(persist())


async def judge(subscribers: list[Subscriber], publishers: list[Publisher], patience: Patience) -> dict[str, int]:
    """Wait until all has arrived; then nothing may be missing, twice, unasked or out of order."""

    def gaps() -> list[str]:
        return [text for one in subscribers for other in publishers if (text := missing(one, other))]

    await patience.until(lambda: not gaps(), lambda: str(gaps()), partial(arrived, subscribers))
    await asyncio.sleep(0.5)
    for one in subscribers:
        assert not one.problems, one.problems[:5]
        for other in publishers:
            got = one.got.get(other.name, Marks()).array(other.count + 1)
            assert not (got & ~_asked(one, other)).any(), f"{one.name} got what it had not asked for"
    return {
        "published": sum(one.count for one in publishers),
        "accepted": sum(one.accepted.count for one in publishers),
        "delivered": arrived(subscribers),
        "delivered again and left out": sum(one.again for one in subscribers),
    }


@cache
def _by_k(filter: str, by: str) -> NDArray[np.bool_]:
    """Which k does a filter want of a publisher?"""
    wanted = parse(filter)
    return np.array([wanted.matches({"by": by, "n": 1, "k": k}) for k in range(5)])


def _asked(one: Subscriber, other: Publisher) -> NDArray[np.bool_]:
    """By number: does a subscriber want such an event of a publisher? All depends on who it is, and on k."""
    return _by_k(one.filter, other.name)[np.arange(other.count + 1) % 5]


def arrived(subscribers: list[Subscriber]) -> int:
    """How many events have come so far, all in all."""
    return sum(marks.count for one in subscribers for marks in one.got.values())


def missing(one: Subscriber, other: Publisher) -> str:
    """What a subscriber lacks that was accepted from a publisher."""
    size = other.count + 1
    due = other.accepted.array(size) & _asked(one, other)
    (gaps,) = np.nonzero(due & ~one.got.get(other.name, Marks()).array(size))
    return f"{one.name} lacks {len(gaps)} events of {other.name}, from {gaps[0]} on" if len(gaps) else ""


if __name__ == "__main__":
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    counts = asyncio.run(run(int(sys.argv[1]) if len(sys.argv) > 1 else 50, seed, say=True))
    for what, count in {"seed": seed, **counts}.items():
        sys.stdout.write(f"{count:10,}  {what}\n")
