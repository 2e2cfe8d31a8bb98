"""Measuring: first the answers, then CPU time, in rounds that take turns.

Other work on the machine slows all contenders alike if they take turns, and CPU time hardly counts it; the best of some
rounds is the one least disturbed. A contender that is wrong is not timed. Nothing here fails because it is slow.
"""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from fieldfare.matching import BruteForce
from fieldfare_lab.bench.engines import Contender, Feed, Run, events_for, unfit
from fieldfare_lab.bench.workloads import Workload

PROBE_PAIRS: Final = 100_000
"""pairs of a filter and an event that brute force is asked about"""


@dataclass
class Row:
    """How a contender did on a workload."""

    workload: str
    filters: int
    contender: str
    about: str
    events: int = 0
    """in a round; fewer than there are if the contender is slow"""
    status: str = "ok"
    """or skipped, failed, WRONG"""
    reason: str = ""
    matches: int | None = None
    prepare_seconds: float = 0.0
    seconds: list[float] = field(default_factory=list)
    """of each round"""

    @property
    def best(self) -> float | None:
        """Seconds of the best round."""
        return min(self.seconds, default=None)

    @property
    def rate(self) -> float | None:
        """Events a second in the best round."""
        return self.events / max(self.best, 1e-9) if self.best is not None else None


@dataclass
class Entrant:
    """A contender that is ready to run."""

    contender: Contender
    row: Row
    feed: Feed
    run: Run | None = None


def measure(
    workload: Workload,
    chosen: Sequence[Contender],
    rounds: int,
    step: Callable[[str], None] = lambda _: None,
    *,
    effort: float = 1.0,
) -> list[Row]:
    """A row per contender, in their order. `step` is told what begins; less effort gives slow contenders less to do."""
    rows: list[Row] = []
    entrants: list[Entrant] = []
    for contender in chosen:
        row = Row(workload.name, len(workload.filters), contender.name, contender.about)
        rows.append(row)
        if (reason := unfit(contender, workload)) is not None:
            row.status, row.reason = "skipped", reason
            continue
        step(f"{workload.name} {row.filters:,}: preparing {row.contender}")
        with _told(row):
            started = contender.clock()
            feed = contender.prepare(workload)
            row.prepare_seconds = contender.clock() - started
            row.events = events_for(contender, workload, effort)
            entrants.append(Entrant(contender, row, feed))
    step(f"{workload.name} {len(workload.filters):,}: comparing the answers")
    few = max(1, min(len(workload.events), int(effort * PROBE_PAIRS) // max(1, len(workload.filters))))
    _compare(workload, entrants, few)
    sound = [entrant for entrant in entrants if entrant.row.status == "ok"]
    with _quiet():
        for number in range(rounds):
            step(f"{workload.name} {len(workload.filters):,}: round {number + 1} of {rounds}")
            for entrant in sound:
                _time(entrant)
    return rows


def _compare(workload: Workload, entrants: Sequence[Entrant], few: int) -> None:
    """Ask everyone about as many events as the slowest takes, and so on up; then hold the totals against each other.

    Where the total is known, it is right; otherwise the most frequent one is, and in doubt the first contender's. A few
    events are also held against brute force, in case all made the same mistake.
    """
    for events in sorted({few, *(entrant.row.events for entrant in entrants)}):
        totals: dict[str, int] = {}
        for entrant in entrants:
            if events <= entrant.row.events and entrant.row.status == "ok":
                with _told(entrant.row):
                    run = entrant.feed(workload.events[:events])
                    totals[entrant.row.contender] = run()  # also warms it up
                    if events == entrant.row.events:
                        entrant.run, entrant.row.matches = run, totals[entrant.row.contender]
        if not totals:
            continue
        right = Counter(totals.values()).most_common(1)[0][0]
        if events == few:
            oracle: BruteForce[int] = BruteForce()
            oracle.add_many(enumerate(workload.parsed))
            right = sum(map(oracle.count, workload.events[:few]))
        if events == len(workload.events) and workload.expected is not None:
            right = workload.expected
        for entrant in entrants:
            found = totals.get(entrant.row.contender, right)
            if found != right:
                entrant.row.status = "WRONG"
                entrant.row.reason = f"{found:,} matches in {events:,} events instead of {right:,}"


def _time(entrant: Entrant) -> None:
    row, run = entrant.row, entrant.run
    if run is None or row.status != "ok":
        return
    with _told(row):
        started = entrant.contender.clock()
        found = run()
        row.seconds.append(entrant.contender.clock() - started)
        if found != row.matches:
            row.status, row.reason = "WRONG", f"{found:,} matches, and {row.matches:,} before"


@contextmanager
def _told(row: Row) -> Iterator[None]:
    """Let a contender fail without stopping the others."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - foreign code may fail in any way
        row.status, row.reason = "failed", f"{type(error).__name__}: {str(error).partition(chr(10))[0][:120]}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the collector of garbage from walking through what all contenders hold."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
