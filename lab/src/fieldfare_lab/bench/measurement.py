"""The measurement: first the answers, then CPU time, in rounds that the contenders take in turns.

Other work on the machine slows contenders alike if contenders take turns, and CPU time hardly counts other work; the
best round is the least disturbed. A contender with a wrong answer is not timed. Slowness is never a failure.
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
"""number of pairs of a filter and an event that brute force checks"""


@dataclass
class Row:
    """The times and the answer of a contender on a workload."""

    workload: str
    filters: int
    contender: str
    about: str
    events: int = 0
    """events in a round; fewer than the workload has if the contender is slow"""
    status: str = "ok"
    """ok, skipped, failed or WRONG"""
    reason: str = ""
    matches: int | None = None
    prepare_seconds: float = 0.0
    seconds: list[float] = field(default_factory=list)
    """CPU seconds of each round"""

    @property
    def best(self) -> float | None:
        """Return the CPU seconds of the fastest round, or None before the first round."""
        return min(self.seconds, default=None)

    @property
    def rate(self) -> float | None:
        """Return the events a second in the fastest round."""
        return self.events / max(self.best, 1e-9) if self.best is not None else None


@dataclass
class Entrant:
    """A contender with loaded filters; `run` is there after the answers were compared."""

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
    """Measure the contenders and return a row for each, in the same order.

    `step` receives the name of each part that begins; an effort below 1 gives slow contenders fewer events.
    """
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
    """Compare the totals of all contenders, for as many events as the slowest matches, then the next slowest, and on.

    A known total is right; otherwise the most frequent total is, and in doubt the first contender's. Brute force also
    counts a few events, in case all contenders made the same mistake.
    """
    for events in sorted({few, *(entrant.row.events for entrant in entrants)}):
        totals: dict[str, int] = {}
        for entrant in entrants:
            if events <= entrant.row.events and entrant.row.status == "ok":
                with _told(entrant.row):
                    run = entrant.feed(workload.events[:events])
                    totals[entrant.row.contender] = run()  # also warms the contender up
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
    """Write the failure of a contender into its row, so that the others go on."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 - foreign code may fail in any way
        row.status, row.reason = "failed", f"{type(error).__name__}: {str(error).partition(chr(10))[0][:120]}"


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the garbage collector from walking through the data of all contenders during a round."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
