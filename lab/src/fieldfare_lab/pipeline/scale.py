"""Bar 3: two cores against a single core; a snapshot opened in a fresh process; a snapshot shared by all workers."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterable
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from fieldfare.pipeline import match_events
from fieldfare_lab.node.load import family
from fieldfare_lab.pipeline.bars import Line, at_least, at_most, figures
from fieldfare_lab.pipeline.clock import Spent, best, timed
from fieldfare_lab.pipeline.data import Data
from fieldfare_lab.pipeline.fresh_process import Opening
from fieldfare_lab.pipeline.spark_sessions import started

FASTER: Final = 1.7
SECONDS: Final = 1.0
WORKERS: Final = (1, 2, 4)
SHARE: Final = 10
"""every tenth event is enough to touch all pages of the snapshot"""
SAME: Final = 1.1
"""tolerance of mapped memory: a few pages that a single worker never touched are no second snapshot"""


def cores(data: Data, rounds: int, step: Callable[[str], None]) -> list[Line]:
    """Measure the wall time of the same job on a single core and on two cores."""
    spent: dict[int, list[Spent]] = {1: [], 2: []}
    for number in range(rounds):
        for count, every in spent.items():
            step(f"cores: round {number + 1} of {rounds}, {count}")
            with started(count) as spark:
                events = spark.read.parquet(str(data.events))
                match_events(events.limit(1), data.subscriptions).count()  # starts the workers, which open the snapshot
                every.append(timed(match_events(events, data.subscriptions).count)[1])
    one, two = best(spent[1]), best(spent[2])
    told = f"{data.count:,} events × {data.filters:,} filters counted in {one.wall:.1f} s and {two.wall:.1f} s"
    return [at_least("two cores against one", told, one.wall / two.wall, FASTER, **figures(one=one, two=two))]


def opening(data: Data, rounds: int, step: Callable[[str], None]) -> list[Line]:
    """Measure the time in which a fresh process opens a snapshot."""
    step("opening: preparing")
    path = data.subscriptions
    found = []
    for number in range(rounds):
        step(f"opening: round {number + 1} of {rounds}")
        command = [sys.executable, "-m", "fieldfare_lab.pipeline.fresh_process", str(path), str(data.events)]
        told = subprocess.run(command, capture_output=True, check=True)  # noqa: S603 - our own command line
        found.append(msgspec.json.decode(told.stdout, type=Opening))
    least = Opening(*(min(getattr(one, name) for one in found) for name in Opening.__struct_fields__))
    return [
        at_most(
            "opening a snapshot",
            f"{data.filters:,} filters, in a fresh process: {least.opened:.2f} s ({least.opened_cpu:.2f} s CPU);"
            f" before that {least.imported:.2f} s to import, after that {least.matched:.2f} s for the first batch",
            least.opened,
            SECONDS,
            **msgspec.structs.asdict(least),
        )
    ]


class Held(NamedTuple):
    """The memory of some workers in megabytes; a shared page is divided among the processes that share the page."""

    snapshot: float
    """pages of the catalogue's files"""
    rest: float


def memory(data: Data, step: Callable[[str], None]) -> list[Line]:
    """Measure the memory of one, two and four workers: the snapshot must be in memory only once."""
    found = {}
    for workers in WORKERS:
        step(f"memory: {workers} workers")
        with started(workers) as spark:
            some = spark.read.parquet(str(data.events)).where(f"event % {SHARE} = 0")
            match_events(some, data.subscriptions).count()
            pids = _workers()
            mine = _held([os.getpid()], data.subscriptions)  # the driver maps the snapshot too and so has a share
            theirs = _held(pids, data.subscriptions)
            found[len(pids)] = Held(mine.snapshot + theirs.snapshot, theirs.rest)
    first, last = found[min(found)], found[max(found)]
    size = sum(file.stat().st_size for file in data.subscriptions.rglob("*") if file.is_file()) / 1e6
    told = "; ".join(f"{count}: {held.snapshot:,.0f} + {held.rest:,.0f}" for count, held in found.items())
    return [
        at_most(
            "one snapshot for all workers",
            f"{data.filters:,} filters, {size:,.0f} MB on disk. Workers: MB mapped + MB of their own: {told}",
            last.snapshot / max(first.snapshot, 0.1),
            SAME,
            **{f"mapped_by_{count}": held.snapshot for count, held in found.items()},
            **{f"own_of_{count}": held.rest for count, held in found.items()},
        )
    ]


def _workers() -> list[int]:
    """The ids of Spark's Python workers: descendants of a `pyspark.daemon` below the driver."""
    daemons = {pid for pid in family(os.getpid()) if b"pyspark.daemon" in _command(pid)}
    return sorted({pid for daemon in daemons for pid in family(daemon)[1:]})


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _held(pids: Iterable[int], files: Path) -> Held:
    parts = [
        _parts(Path(f"/proc/{pid}/smaps").read_text(encoding="utf-8", errors="replace"), str(files)) for pid in pids
    ]
    return Held(sum(part.snapshot for part in parts), sum(part.rest for part in parts))


def _parts(smaps: str, files: str) -> Held:
    r"""Return the memory of a process: pages of files below a path, and all other pages.

    >>> _parts("00-10 r--s 0 0:0 7 /a/index.ff\nPss: 3000 kB\n10-20 rw-p 0 0:0 0\nPss: 500 kB\n", "/a")
    Held(snapshot=3.0, rest=0.5)
    """
    heads = [*re.finditer(r"^[0-9a-f]+-[0-9a-f]+ .*$", smaps, re.MULTILINE)]
    ends = [*(head.start() for head in heads), len(smaps)]
    mapped = own = 0
    for head, (start, end) in zip(heads, pairwise(ends), strict=True):
        share = re.search(r"^Pss: +(\d+)", smaps[start:end], re.MULTILINE)
        size = int(share[1]) if share else 0
        if f" {files}/" in head[0]:
            mapped += size
        else:
            own += size
    return Held(mapped / 1000, own / 1000)
