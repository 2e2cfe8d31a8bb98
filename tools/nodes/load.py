"""A long run of real nodes under load, with kills: `python -m tools.nodes.load 30`, or `make soak-load MINUTES=30`.

First the rate is found at which the machine is 70 % busy; then publishers keep to it, while nodes and clients are
killed at random. In the end nothing accepted may be missing or have come twice (as in `kills`), and a
node must need no more memory than in the beginning.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import mean

from fieldfare.client.client import connect
from tools.nodes.kills import Process, Publisher, Subscriber, World, anew, judge, knows

SHARE = 0.7
FILTERS = ["k >= 0", "k = 1", "k > 2", "by = 'p0' AND k != 3"]


class Paced(Publisher):
    """A publisher that keeps to a rate."""

    rate: float = 100.0

    async def live(self, until: asyncio.Event) -> None:
        async with connect(self.url, session=self.name) as client:
            began, sent, rate = time.monotonic(), 0, self.rate
            while not until.is_set():
                if self.rate != rate:
                    began, sent, rate = time.monotonic(), 0, self.rate
                due = int((time.monotonic() - began) * rate)
                if sent >= due:
                    await asyncio.sleep(0.01)
                    continue
                sent = max(sent, due - int(rate))  # what was missed for more than a second is not made up for
                await client.wait_for_capacity()
                self.count += 1
                number = self.count
                sent += 1
                receipt = client.publish_soon({"by": self.name, "n": number, "k": number % 5, "text": "x" * 40})
                receipt.add_callback(lambda answer, n=number: self.accepted.add(n) if answer is True else None)  # type: ignore[misc]
            await client.drain()


def memory_mb(node: Process) -> float:
    if node.running is None:
        return 0.0
    try:
        return int(Path(f"/proc/{node.running.pid}/statm").read_text().split()[1]) * 4096 / 1e6
    except OSError:
        return 0.0


async def run(minutes: float, seed: int, *, every: float = 20.0) -> dict[str, float]:
    """Let it run; gives counts."""
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        line: list[Process] = []
        for number in range(3):
            line.append(Process(f"n{number}", Path(folder) / f"n{number}", line[-1].url if line else ""))
        subscribers = [Subscriber(f"s{i}", line[i % 3].url, filter) for i, filter in enumerate(FILTERS)]
        publishers: list[Publisher] = [Paced(f"p{i}", line[i % 3].url, chance) for i in range(3)]
        try:
            for node in line:
                node.start()
                await node.answers()
            return await _play(World(chance, line, subscribers, publishers), minutes, every)
        finally:
            for node in line:
                node.kill()


async def _find_rate() -> float:
    """The rate of a publisher at which the machine is 70 % busy, all of it: nodes, clients and whatever else runs."""
    Paced.rate = 300.0
    for _ in range(5):
        await asyncio.sleep(2)
        busy = await _busy(8)
        Paced.rate = max(50.0, Paced.rate * min(3.0, SHARE / busy))
    return Paced.rate


async def _busy(seconds: float) -> float:
    def jiffies() -> tuple[int, int]:
        times = list(map(int, Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]))
        return sum(times), times[3] + times[4]

    before = jiffies()
    await asyncio.sleep(seconds)
    after = jiffies()
    return 1 - (after[1] - before[1]) / max(1, after[0] - before[0])


async def _play(world: World, minutes: float, every: float) -> dict[str, float]:
    chance, line, subscribers, publishers, _ = world
    end = asyncio.Event()
    listening = {one.name: asyncio.create_task(one.live()) for one in subscribers}
    for node in line:
        await knows(node, FILTERS)
    talking = {one.name: asyncio.create_task(one.live(end)) for one in publishers}
    rate = await _find_rate() * len(publishers)
    sys.stdout.write(f"{rate:,.0f} events/s in keep this machine {SHARE:.0%} busy\n")
    kills = cut = 0
    samples: list[tuple[float, float]] = []
    born = dict.fromkeys((node.name for node in line), time.monotonic())
    began = last = time.monotonic()
    while time.monotonic() - began < 60 * minutes:
        await asyncio.sleep(every * (0.5 + chance.random()))
        now = time.monotonic()
        samples += [(now - began, memory_mb(node)) for node in line if now - born[node.name] > every]
        everybody: list[Process | Subscriber | Publisher] = [*line, *subscribers, *publishers]
        victim = chance.choice(everybody)
        if isinstance(victim, Process):
            kills += 1
            victim.kill()
            await asyncio.sleep(chance.random() * 2)
            victim.start()
            born[victim.name] = time.monotonic()
        elif isinstance(victim, Subscriber):
            cut += 1
            listening[victim.name] = await anew(listening[victim.name], victim.live)
        else:
            cut += 1
            talking[victim.name] = await anew(talking[victim.name], partial(victim.live, end))
        if time.monotonic() - last > 60:
            last = time.monotonic()
            accepted = sum(one.accepted.count for one in publishers)
            sizes = ", ".join(f"{memory_mb(node):.0f}" for node in line)
            minute = (last - began) / 60
            sys.stdout.write(f"{minute:5.1f} min: {kills} kills, {accepted:,} accepted; nodes have {sizes} MB\n")
            sys.stdout.flush()
    for node in line:
        await node.answers()
    end.set()
    async with asyncio.timeout(300):
        await asyncio.gather(*talking.values())
    counts = await judge(subscribers, publishers, world.patience())
    for task in listening.values():
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, ConnectionError):
            await task
    half = samples[len(samples) // 2][0] if samples else 0.0
    early = [size for when, size in samples if when < half] or [0.0]
    late = [size for when, size in samples if when >= half] or [0.0]
    return {
        "events/s": rate, "node kills": kills, "clients cut off": cut, **counts,
        "MB of a node, first half": mean(early), "MB of a node, second half": mean(late), "MB at most": max(late),
    }  # fmt: skip


if __name__ == "__main__":
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    counts = asyncio.run(run(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0, seed))
    for what, count in {"seed": seed, **counts}.items():
        sys.stdout.write(f"{count:12,.0f}  {what}\n")
