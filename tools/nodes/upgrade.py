"""A network of real nodes that is upgraded node by node under load, and back: `make upgrades ROUNDS=5`.

    python -m tools.nodes.upgrade 2e55862 5      # an older revision of this repository, and back, five times

Durable nodes of the older code form a tree; publishers and durable subscribers are clients of both codes, by the
library and by hand, and move from node to node. In each round every node is stopped or killed, one after the other, and
started with the newer code on the same folder; then all go back in the same way. The judge is that of `soak`: nothing
accepted is lost, nothing comes twice, unasked or out of order.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import os
import random
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any, NamedTuple

from tools.nodes import library_client, soak
from tools.nodes.kills import Process
from tools.nodes.soak import BAD, Book, Cast

LAST_RELEASED = "2e55862"
"""the last revision that speaks version 2 and nothing newer"""


class Code(NamedTuple):
    """What a process runs: the name of the code, and the environment that chooses it."""

    name: str
    environment: dict[str, str]


NEWER = Code("newer", {})


def older(revision: str, folder: Path) -> Code:
    """Write the sources of a revision into a folder, and return the code there; the packages are those of this one."""
    data = subprocess.run(["git", "archive", revision, "src"], check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        archive.extractall(folder, filter="data")
    return Code("older", {"PYTHONPATH": str(folder / "src")})


class LibraryClient:
    """A client of the library of some code, in a process of its own; see `library_client`."""

    def __init__(self, session: str, url: str, code: Code, *arguments: str) -> None:
        self.session, self.problems = session, list[str]()
        self._command = [sys.executable, library_client.__file__, url, session, *arguments]
        self._environment = {**os.environ, **code.environment}
        self.process: asyncio.subprocess.Process | None = None

    async def live(self) -> None:
        pipe = asyncio.subprocess.PIPE
        options: dict[str, Any] = {"env": self._environment, "stdin": pipe, "stdout": pipe, "limit": 1 << 20}
        self.process = process = await asyncio.create_subprocess_exec(*self._command, **options)
        assert process.stdout is not None
        try:
            async for line in process.stdout:
                self.take(json.loads(line))
            self.problems.append(f"{self.session} ended")
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    def take(self, said: Any) -> None:
        """Take a line of the process."""


class LibrarySubscriber(LibraryClient):
    """Writes each event into a book, as it comes out of the library."""

    def __init__(self, url: str, code: Code, book: Book) -> None:
        super().__init__(book.name, url, code, "subscribe", book.filter)
        self._book = book

    def take(self, said: Any) -> None:
        self._book.take(said)


class LibraryPublisher(LibraryClient):
    """Publishes as fast as the judge can follow, until its input ends."""

    published, accepted = 1, 0
    """the first is one too many until the process has ended: an event may be under way"""

    def __init__(self, session: str, url: str, code: Code) -> None:
        super().__init__(session, url, code, "publish")

    @property
    def end(self) -> bool:
        return self.process is None

    @end.setter
    def end(self, _: bool) -> None:
        assert self.process is not None
        assert self.process.stdin is not None
        self.process.stdin.close()

    def take(self, said: Any) -> None:
        match said:
            case [published, accepted]:
                self.published, self.accepted = published + 1, accepted
            case "the end":
                self.published -= 1
            case _:
                self.problems.append(f"{self.session} was refused: {said}")


def cast(folder: Path, chance: random.Random, old: Code, parents: tuple[int | None, ...]) -> Cast:
    """Nodes of the older code, with the clients of `soak` and clients of the older library."""
    all_ = soak.cast(folder, chance, parents)
    urls = [node.url for node in all_.nodes]
    for node in all_.nodes:
        node.environment = dict(old.environment)
    for filter in list(soak.FILTERS)[::2]:
        book = Book(f"old-{len(all_.books)}", filter)
        all_.books.append(book)
        all_.subscribers.append(LibrarySubscriber(chance.choice(urls), old, book))
    all_.publishers.append(LibraryPublisher("p3", chance.choice(urls), old))
    return all_


async def run(
    old: Code, new: Code, rounds: int, seed: int, parents: tuple[int | None, ...] = soak.PARENTS, *, say: bool = False
) -> dict[str, int]:
    """Upgrade all nodes and bring them back, so many times; return counts."""
    chance = random.Random(seed)
    with soak.kept_if_bad("fieldfare-upgrade-") as (folder, verdict):
        all_ = cast(folder, chance, old, parents)
        async with soak.playing(all_) as tasks:
            counts: Counter[str] = Counter()
            for number in range(rounds):
                for code in (new, old):
                    for node in chance.sample(all_.nodes, len(all_.nodes)):
                        await _change(all_, node, code, chance, counts)
                        for task in tasks:
                            if task.done():
                                task.result()
                if say:
                    accepted = sum(one.accepted for one in all_.publishers)
                    sys.stdout.write(f"round {number + 1}: {accepted:,} accepted\n")
                    sys.stdout.flush()
            verdict.update(await soak.judged(all_, counts, tasks))
        return verdict


async def _change(all_: Cast, node: Process, code: Code, chance: random.Random, counts: Counter[str]) -> None:
    """Start a node with another code on its folder; then every publisher must be heard, and clients move."""
    how = chance.choice([signal.SIGTERM, signal.SIGKILL])
    node.kill(how)
    node.environment = dict(code.environment)
    await asyncio.sleep(chance.choice([0.0, 0.0, chance.uniform(0, 2)]))
    node.start()
    await node.answers()
    counts[f"nodes {'stopped' if how is signal.SIGTERM else 'killed'}, and started with the {code.name} code"] += 1
    before = {one.session: one.accepted for one in all_.publishers}
    await all_.heard(before)
    movers = [one for one in [*all_.publishers, *all_.subscribers] if hasattr(one, "move")]
    await asyncio.gather(*(one.move(chance.choice(all_.nodes).url) for one in movers if chance.random() < 0.5))


def main() -> int:
    """Run with the arguments of the command line: revision, rounds, seed; return the exit status."""
    revision, rounds, seed, *_ = [*sys.argv[1:], *(LAST_RELEASED, "3", str(int(time.time())))[len(sys.argv) - 1 :]]
    sys.stdout.write(f"older: {revision}, seed {seed}\n")
    with tempfile.TemporaryDirectory(prefix="fieldfare-older-") as folder:
        counts = asyncio.run(run(older(revision, Path(folder)), NEWER, int(rounds), int(seed), say=True))
    for what, count in counts.items():
        sys.stdout.write(f"{count:10,}  {what}\n")
    return int(any(counts[what] for what in BAD))


if __name__ == "__main__":
    sys.exit(main())
