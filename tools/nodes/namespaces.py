"""Real nodes on a real network that breaks: `python -m tools.nodes.namespaces 20` cuts its lines 20 times.

Each of three nodes has a network namespace of its own, as if it were a machine, and so have the clients: the *radio*.
Pairs of virtual interfaces make a line a – b – c, and a way from the radio to each node. A cut takes down one end: then
packets are lost and nobody is told, until it is up again or TCP gives up. Meanwhile subscribers and publishers go from
node to node. In the end every event has reached everybody that asked for it, once, in the order of its publisher.

The program starts itself again inside of the radio, where it is the first process: when it ends, so do all others, and
with them the namespaces. Nothing is left behind, and the interfaces of the machine are out of reach.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fieldfare.client.client import Client, connect
from fieldfare.client.errors import ConnectionLost
from fieldfare.filters import parse
from tools.nodes.kills import Publisher, Subscriber, judge
from tools.nodes.patience import Patience

ROOT = Path(__file__).parents[2]
SELF = Path("/proc/self/ns/net")
ALONE = ("--net", "--pid", "--fork", "--kill-child")
WAYS = (("unshare", "--user", "--map-root-user", *ALONE), ("unshare", *ALONE))
PROBE = "ip link add probe type veth peer name other && ip link set probe up && unshare --net true"
IMPATIENCE = "echo 3 >/proc/sys/net/ipv4/tcp_retries2; echo 1 >/proc/sys/net/ipv4/tcp_syn_retries"
"""TCP gives up after about 3 seconds and not 15 minutes, so that connections do break while we watch"""
FILTERS = ("k >= 0", "by = 'p0' AND k != 3")


def way() -> tuple[tuple[str, ...], str]:
    """How to make namespaces here; if it cannot be done, why not."""
    problems = []
    for command in WAYS:
        try:
            done = subprocess.run(
                [*command, "sh", "-c", PROBE], capture_output=True, text=True, timeout=20, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            problems.append(str(error))
        else:
            if not done.returncode:
                return command, ""
            problems.append(f"{' '.join(command)}: {done.stderr.strip() or done.returncode}")
    return (), "; ".join(problems)


def run(cuts: int, seed: int, *, seconds: float = 3600.0) -> dict[str, int]:
    """Cut so many times, and see; gives counts."""
    command, problem = way()
    assert command, problem
    with tempfile.TemporaryDirectory() as folder:
        arguments = [str(cuts), str(seed), folder, str(SELF.readlink())]
        inside = [*command, sys.executable, "-m", "tools.nodes.namespaces", *arguments]
        done = subprocess.run(inside, cwd=ROOT, stdout=subprocess.PIPE, timeout=seconds, check=False)
        logs = "\n".join(f"{log.name}: {log.read_text()[-1000:]}" for log in Path(folder).glob("*.log"))
    assert not done.returncode, f"seed {seed}; the nodes said:\n{logs}"
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


# Inside


class Space:
    """A network namespace: a shell that does there what it is told."""

    def __init__(self, name: str, *command: str) -> None:
        self.name = name
        self._shell = subprocess.Popen([*command, "sh"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.do("ip link set lo up")
        self.do(f"{{ {IMPATIENCE}; }} 2>/dev/null || true")  # where that cannot be set, we wait longer

    @property
    def process(self) -> int:
        return self._shell.pid

    def do(self, command: str) -> None:
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(f"{{ {command}\n}} </dev/null >&2 && echo done || echo failed\n")
        self._shell.stdin.flush()
        answer = self._shell.stdout.readline().strip()
        assert answer == "done", f"{self.name}: {command}: {answer}"

    def start_node(self, folder: Path, url: str, join: str) -> None:
        settings = {
            "HOST": "0.0.0.0",
            "INSECURE": "true",
            "PUBLIC_URL": url,
            "NAME": self.name,
            "JOIN": join,
            "KERNELS": "numpy",
        }
        environment = [f"FIELDFARE_{key}={value}" for key, value in settings.items()]
        command = [
            "env",
            *environment,
            sys.executable,
            "-m",
            "fieldfare",
            "up",
            "-v",
            "--data",
            str(folder / self.name),
        ]
        self.do(f"{shlex.join(command)} >{shlex.quote(str(folder / self.name))}.log 2>&1 &")


class Wire(NamedTuple):
    """A pair of interfaces."""

    one: Space
    other: Space
    net: str

    @property
    def ends(self) -> tuple[tuple[Space, str], tuple[Space, str]]:
        return (self.one, f"to-{self.other.name}"), (self.other, f"to-{self.one.name}")

    def lay(self) -> None:
        (one, here), (other, there) = self.ends
        one.do(f"ip link add {here} type veth peer name {there} netns {other.process}")
        for host, (space, device) in enumerate(self.ends, 1):
            space.do(f"ip addr add {self.net}.{host}/24 dev {device} && ip link set {device} up")

    @property
    def url(self) -> str:
        """Of the node at the other end."""
        return f"ws://{self.net}.2:7400"


class Roamer:
    """What a client does besides its work: it goes to another node now and then."""

    def __init__(self, name: str, urls: dict[str, str], seed: int) -> None:
        self.name, self._urls, self._chance = name, urls, random.Random(f"{seed} {name}")
        self.moves = self.failed = self.breaks = 0

    def connect(self) -> Client:
        urls = self._chance.sample(list(self._urls.values()), len(self._urls))
        return connect(urls, session=self.name, on_state=self._note)

    def _note(self, state: str, _: str) -> None:
        self.breaks += state == "reconnecting"

    async def roam(self, client: Client) -> None:
        while True:
            await asyncio.sleep(self._chance.uniform(0.2, self._chance.choice((1, 8))))  # or it is cut off first
            to = self._chance.choice([url for name, url in self._urls.items() if name != client.node])
            try:
                await client.move(to)
                self.moves += 1
            except ConnectionLost:
                self.failed += 1


class Taxi(Publisher):
    """A publisher that roams."""

    def __init__(self, roamer: Roamer) -> None:
        super().__init__(roamer.name, "", random.Random(roamer.name))
        self.roamer = roamer

    async def live(self, until: asyncio.Event) -> None:
        async with self.roamer.connect() as client:
            roaming = asyncio.create_task(self.roamer.roam(client))
            while not until.is_set():
                self.count += 1
                receipt = client.publish_soon({"by": self.name, "n": self.count, "k": self.count % 5})
                receipt.add_callback(lambda answer, n=self.count: self.accepted.add(n) if answer is True else None)  # type: ignore[misc]
                await asyncio.sleep(self.chance.uniform(0, 0.04))
                assert not roaming.done(), roaming
            await stop(roaming)
            await client.drain()


class Office(Subscriber):
    """A subscriber that roams. It leaves it to its client that nothing comes twice."""

    def __init__(self, roamer: Roamer, filter: str) -> None:
        super().__init__(roamer.name, "", filter)
        self.roamer = roamer

    async def live(self) -> None:
        async with self.roamer.connect() as client, client.subscribe(self.filter) as events:
            roaming = asyncio.create_task(self.roamer.roam(client))
            try:
                async for event in events:
                    self.take(str(event["by"]), int(str(event["n"])))
                    assert not roaming.done(), roaming
            finally:
                await stop(roaming)


async def stop(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def knows(url: str, filters: Sequence[str]) -> None:
    """Wait until a node is there, and knows what is wanted anywhere: what was published before is due to nobody."""
    async with asyncio.timeout(90):
        while True:
            with contextlib.suppress(ConnectionError):
                async with connect(url) as client:
                    wanted = [parse(text) for text in await client.interest()]
                    if all(any(one.covers(parse(filter)) for one in wanted) for filter in filters):
                        return
            await asyncio.sleep(0.1)


async def first(cuts: int, seed: int, folder: Path) -> None:
    """What the first process does. If it fails it ends at once, and with it all others: clients would wait for them."""
    try:
        sys.stdout.write(json.dumps(await inside(cuts, seed, folder)))
    except BaseException:  # noqa: BLE001 - whatever it is
        traceback.print_exc()
        os._exit(1)


async def inside(cuts: int, seed: int, folder: Path) -> dict[str, int]:
    """The whole story, in the radio."""
    chance = random.Random(seed)
    radio = Space("radio")
    a, b, c = (Space(name, "unshare", "--net") for name in "abc")
    air = [Wire(radio, node, f"10.7.{number}") for number, node in enumerate((a, b, c), 1)]
    line = [Wire(b, a, "10.8.1"), Wire(c, b, "10.8.2")]  # who joins, and whom
    for wire in (*air, *line):
        wire.lay()
    for way, node, join in zip(air, (a, b, c), ("", *(wire.url for wire in line)), strict=True):
        node.start_node(folder, way.url, join)
    urls = {wire.other.name: wire.url for wire in air}
    for url in urls.values():
        await knows(url, ())
    offices = [Office(Roamer(f"s{number}", urls, seed), filter) for number, filter in enumerate(FILTERS)]
    listening = [asyncio.create_task(one.live()) for one in offices]
    for url in urls.values():
        await knows(url, FILTERS)
    end = asyncio.Event()
    taxis = [Taxi(Roamer(f"p{number}", urls, seed)) for number in range(2)]
    talking = [asyncio.create_task(one.live(end)) for one in taxis]
    for number in range(cuts):
        await asyncio.sleep(chance.uniform(0.3, 1.5))
        broken = [chance.choice(wire.ends) for wire in chance.sample([*air, *line], chance.choice((1, 1, 2)))]
        for space, device in broken:
            space.do(f"ip link set {device} down")
        await asyncio.sleep(chance.choice((0.2, 1, 2, 5)))
        for space, device in broken:
            space.do(f"ip link set {device} up")
        note(f"{number + 1} cuts, {sum(one.accepted.count for one in taxis):,} events accepted")
    await asyncio.sleep(0.5)
    end.set()
    await asyncio.wait_for(asyncio.gather(*talking), 120)
    for task in listening:
        assert not task.done(), task
    counts = await judge(list(offices), list(taxis), Patience(list))
    for task in listening:
        await stop(task)
    links = sum(log.read_text().count("linked to") for log in folder.glob("*.log"))
    roamers = [office.roamer for office in offices] + [taxi.roamer for taxi in taxis]
    return {
        "cuts": cuts,
        "moves": sum(one.moves for one in roamers),
        "moves that failed": sum(one.failed for one in roamers),
        "times that a client was cut off, or still was": sum(one.breaks for one in roamers),
        "ends of links that were made again": links - 2 * len(line),
        **counts,
    }


def note(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    match sys.argv[1:]:
        case [cuts, seed, folder, outside]:
            assert str(SELF.readlink()) != outside, "this is not a namespace of our own"
            asyncio.run(first(int(cuts), int(seed), Path(folder)))
        case [cuts, *rest]:
            chosen = int(rest[0]) if rest else int(time.time())
            note(f"seed {chosen}")
            for what, count in run(int(cuts), chosen).items():
                sys.stdout.write(f"{count:10,}  {what}\n")
        case _:
            sys.exit("python -m tools.nodes.namespaces CUTS [SEED]")
