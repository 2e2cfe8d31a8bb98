"""A soak of real nodes in trouble, with a judge of its own: `make soak-nodes MINUTES=10`.

Five durable nodes form a tree; their links go through relays. Nodes are killed and stopped, links are cut and swallow
what is sent, connections of clients break, sessions move. Some clients speak the protocol by hand, in JSON and
MessagePack; others use the library and roam. Their filters are evaluated here by plain Python, not by the engine. At
the end each session has every accepted event it asked for once, in the order of its publisher, and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import shutil
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from fieldfare.client.client import Client, connect
from tools.nodes.faults import Trouble, Wire
from tools.nodes.kills import Process
from tools.nodes.patience import Patience
from tools.nodes.raw_clients import RawPublisher, RawSubscriber

PARENTS = (None, 0, 1, 1, 3)
"""the tree: whom each node joins"""
FILTERS: dict[str, Callable[[dict[str, Any]], bool]] = {
    "k >= 0": lambda event: event["k"] >= 0,
    "k = 1": lambda event: event["k"] == 1,
    "k > 2": lambda event: event["k"] > 2,
    "by = 'p0' AND k != 3": lambda event: event["by"] == "p0" and event["k"] != 3,
    "text CONTAINS 'ä' OR k IN (0, 1)": lambda event: "ä" in event["text"] or event["k"] in {0, 1},
    "NOT (by = 'p1') AND n < 1000000": lambda event: event["by"] != "p1" and event["n"] < 1_000_000,
}
TOGETHER = 6
"""faults between two moments of peace"""
TEXTS = ("", "quiet", "ärger", "x" * 200, "line\nbreak", "🐦")


def made(by: str, number: int) -> dict[str, Any]:
    """The event of a publisher with a number: anybody can tell whether it is the right one."""
    return {"by": by, "n": number, "k": number % 5, "text": TEXTS[number % len(TEXTS)]}


class Book:
    """What one session got, and whether it may have."""

    def __init__(self, name: str, filter: str) -> None:
        self.name, self.filter = name, filter
        self.got: dict[str, list[int]] = {}
        self.probes: set[str] = set()
        self.unasked = 0

    def take(self, event: dict[str, Any]) -> None:
        """An event has come."""
        if "probe" in event:
            self.probes.add(event["probe"])
        elif event != made(event["by"], event["n"]) or not FILTERS[self.filter](event):
            self.unasked += 1
        else:
            self.got.setdefault(event["by"], []).append(event["n"])

    def due(self, by: str, accepted: int) -> set[int]:
        """What it must have of a publisher, all of whose events up to a number were accepted."""
        return {number for number in range(1, accepted + 1) if FILTERS[self.filter](made(by, number))}

    def verdict(self, accepted: dict[str, int]) -> dict[str, int]:
        """How many events are lost, came twice, before an earlier one, or unasked."""
        counts = {"deliveries": 0, "lost": 0, "twice": 0, "out of order": 0, "unasked": self.unasked}
        for by, last in accepted.items():
            got, due = self.got.get(by, []), self.due(by, last)
            counts["deliveries"] += len(got)
            counts["lost"] += len(due - set(got))
            counts["twice"] += len(got) - len(set(got))
            counts["unasked"] += len(set(got) - due)
            highest = 0
            for number in got:
                counts["out of order"] += number < highest
                highest = max(highest, number)
        return counts


async def there(url: str, session: str = "") -> Client:
    """A client of the library that has found its node; a busy one may take a while for the first hello.

    It has one address: with several, a node that took the first hello and answered too late would keep a second session
    of that name, and refuse this one when it comes.
    """
    while True:
        with contextlib.suppress(OSError):
            return await connect(url, session=session).__aenter__()
        await asyncio.sleep(0.1)


class Roaming:
    """A session of the library that moves from node to node."""

    def __init__(self, name: str, url: str) -> None:
        self.session, self.url = name, url
        self.client: Client | None = None
        self.moved = 0

    async def move(self, url: str) -> None:
        """Go, unless it cannot be done now: then everything stays as it is."""
        with contextlib.suppress(OSError, TimeoutError):
            if self.client is not None:
                await asyncio.wait_for(self.client.move(url), 60)
                self.moved += 1


class RoamingSubscriber(Roaming):
    """Takes what comes; it counts on the library that nothing comes twice."""

    def __init__(self, name: str, url: str, book: Book) -> None:
        super().__init__(name, url)
        self._book = book

    async def live(self) -> None:
        self.client = client = await there(self.url, self.session)
        try:
            async with client.subscribe(self._book.filter, id="s", keep=True) as events:
                async for event in events:
                    self._book.take(dict(event.tree))
        finally:
            await client.close()


class RoamingPublisher(Roaming):
    """Posts, whatever happens: the library keeps events until a node has taken them."""

    def __init__(self, name: str, url: str, chance: random.Random) -> None:
        super().__init__(name, url)
        self.published = self.accepted = 0
        self.end = False
        self.problems: list[str] = []
        self._chance = chance

    def _heard(self, answer: bool | Exception) -> None:
        self.accepted += answer is True
        if answer is not True:
            self.problems.append(f"{self.session} was refused: {answer}")

    async def live(self) -> None:
        self.client = client = await there(self.url, self.session)
        try:
            while not self.end:
                self.published += 1
                client.publish_soon(made(self.session, self.published)).add_callback(self._heard)
                await asyncio.sleep(self._chance.uniform(0, 0.05))
                await client.wait_for_capacity()
            await client.drain()
            await asyncio.Event().wait()
        finally:
            await client.close()


class Cast(NamedTuple):
    """All that take part."""

    nodes: list[Process]
    wires: list[Wire]
    publishers: list[Any]
    subscribers: list[Any]
    books: list[Book]

    def patience(self) -> Patience:
        """How long to wait for these nodes."""
        return Patience(lambda: [pid for node in self.nodes for pid in node.pids()])

    async def heard(self, before: Mapping[str, int]) -> None:
        """Wait until more events are accepted of every publisher."""

        def deaf() -> list[str]:
            return [one.session for one in self.publishers if one.accepted <= before[one.session]]

        await self.patience().until(lambda: not deaf(), lambda: f"nothing more is accepted of {', '.join(deaf())}")


def cast(folder: Path, chance: random.Random, parents: Sequence[int | None]) -> Cast:
    """Nodes with their wires, and clients of all kinds."""
    nodes: list[Process] = []
    wires: list[Wire] = []
    for number, parent in enumerate(parents):
        if parent is not None:
            wires.append(Wire(nodes[parent].port))
        nodes.append(Process(f"n{number}", folder / f"n{number}", wires[-1].url if parent is not None else ""))
    urls = [node.url for node in nodes]
    books = [Book(f"s{number}", filter) for number, filter in enumerate([*FILTERS, *FILTERS])]
    subscribers: list[Any] = []
    for number, book in enumerate(books):
        kind = ("json", "msgpack", "roaming")[(number + number // len(FILTERS)) % 3]
        if kind == "roaming":
            subscribers.append(RoamingSubscriber(book.name, chance.choice(urls), book))
        else:
            subscribers.append(RawSubscriber(book.name, chance.choice(urls), kind, (book.filter, book.take), chance))
    publishers = [
        RawPublisher("p0", chance.choice(urls), "json", made, chance),
        RawPublisher("p1", chance.choice(urls), "msgpack", made, chance),
        RoamingPublisher("p2", chance.choice(urls), chance),
    ]
    return Cast(nodes, wires, publishers, subscribers, books)


async def known(all_: Cast) -> None:
    """Wait until every session gets what is published at every node: what was published before is due to nobody."""
    names = {node.name for node in all_.nodes}
    async with contextlib.AsyncExitStack() as stack:
        clients = {node.name: await there(node.url) for node in all_.nodes}
        for client in clients.values():
            stack.push_async_callback(client.close)
        patience = all_.patience()
        while missing := [book.name for book in all_.books if book.probes != names]:
            assert not patience.over(), f"{missing} never heard of some node"
            for name, client in clients.items():
                for by, k in (("p0", 1), ("p2", 4)):
                    await client.publish({"by": by, "n": 0, "k": k, "text": "ä", "probe": name})
            await asyncio.sleep(0.2)


@contextlib.asynccontextmanager
async def playing(all_: Cast) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Start all nodes, then the subscribers, then the publishers; the block has their tasks."""
    tasks: list[asyncio.Task[None]] = []
    try:
        for wire in all_.wires:
            await wire.start()
        for node in all_.nodes:
            node.start()
            await node.answers()
        tasks += [asyncio.create_task(one.live(), name=one.session) for one in all_.subscribers]
        await known(all_)
        tasks += [asyncio.create_task(one.live(), name=one.session) for one in all_.publishers]
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for wire in all_.wires:
            await wire.close()
        for node in all_.nodes:
            node.kill()


@contextlib.contextmanager
def kept_if_bad(prefix: str) -> Iterator[tuple[Path, dict[str, int]]]:
    """Make a folder for a run and its verdict; the folder stays if the run does not end well."""
    folder, verdict = Path(tempfile.mkdtemp(prefix=prefix)), dict[str, int]()
    try:
        yield folder, verdict
    finally:
        if verdict and not any(verdict[what] for what in BAD):
            shutil.rmtree(folder)
        else:
            sys.stdout.write(f"folders and logs of the nodes: {folder}\n")


async def run(minutes: float, seed: int, *, say: bool = False) -> dict[str, int]:
    """Let it run; gives counts."""
    chance = random.Random(seed)
    with kept_if_bad("fieldfare-soak-") as (folder, verdict):
        all_ = cast(folder, chance, PARENTS)
        async with playing(all_) as tasks:
            trouble = Trouble(chance, all_.nodes, all_.wires, [*all_.publishers, *all_.subscribers])
            await _play(all_, trouble, tasks, minutes, say=say)
            verdict.update(await judged(all_, trouble.counts, tasks))
        return verdict


async def _play(all_: Cast, trouble: Trouble, tasks: list[asyncio.Task[None]], minutes: float, *, say: bool) -> None:
    """Trouble for some minutes, with a look each minute; then peace.

    After some faults, several at a time, all is well for a moment: where nothing goes on, a fault tells nothing.
    """
    began = told = time.monotonic()
    while time.monotonic() - began < 60 * minutes:
        for _ in range(TOGETHER):
            await asyncio.sleep(trouble.chance.uniform(0.1, 1.0))
            trouble.strike()
        before = {one.session: one.accepted for one in all_.publishers}
        await trouble.over()
        await all_.heard(before)
        for task in tasks:
            if task.done():
                task.result()
        if say and time.monotonic() - told > 60:
            told = time.monotonic()
            faults, accepted = trouble.counts.total(), sum(one.accepted for one in all_.publishers)
            sys.stdout.write(f"{(told - began) / 60:5.1f} min: {faults} faults, {accepted:,} accepted\n")
            sys.stdout.flush()
    await trouble.over()


async def judged(all_: Cast, faults: Mapping[str, int], tasks: list[asyncio.Task[None]]) -> dict[str, int]:
    """Wait until all is accepted and nothing is missing, or it takes too long; and a moment for what comes twice."""
    for one in all_.publishers:
        one.end = True
    patience = all_.patience()

    def going() -> int:
        came = sum(len(numbers) for book in all_.books for numbers in book.got.values())
        return came + sum(int(one.accepted) for one in all_.publishers)

    with contextlib.suppress(AssertionError):
        await patience.until(lambda: all(one.accepted == one.published for one in all_.publishers), str, going)
    accepted = {one.session: one.accepted for one in all_.publishers}
    with contextlib.suppress(AssertionError):
        await patience.until(lambda: not any(book.verdict(accepted)["lost"] for book in all_.books), str, going, 1.0)
    await asyncio.sleep(2)
    verdicts = {book.name: book.verdict(accepted) for book in all_.books}
    problems = [text for one in [*all_.publishers, *all_.subscribers] for text in getattr(one, "problems", [])]
    problems += [f"{name}: {verdict}" for name, verdict in verdicts.items() if any(list(verdict.values())[1:])]
    problems += [f"{task.get_name()} ended: {task.exception()!r}" for task in tasks if task.done()]
    for text in problems[:20]:
        sys.stdout.write(f"problem: {text}\n")
    return {
        **faults,
        "published": sum(one.published for one in all_.publishers),
        "accepted": sum(accepted.values()),
        "moves": sum(getattr(one, "moved", 0) for one in [*all_.publishers, *all_.subscribers]),
        "delivered again, and left out by number": sum(getattr(one, "again", 0) for one in all_.subscribers),
        **{what: sum(one[what] for one in verdicts.values()) for what in ("deliveries", *BAD[:4])},
        "never accepted": sum(one.published - one.accepted for one in all_.publishers),
        "other problems": len(problems),
    }


BAD = ("lost", "twice", "out of order", "unasked", "never accepted", "other problems")

if __name__ == "__main__":
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
    sys.stdout.write(f"seed {seed}\n")
    counts = asyncio.run(run(float(sys.argv[1]) if len(sys.argv) > 1 else 10.0, seed, say=True))
    for what, count in counts.items():
        sys.stdout.write(f"{count:10,}  {what}\n")
    sys.exit(1 if any(counts[what] for what in BAD) else 0)
