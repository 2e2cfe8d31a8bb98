"""A contest of servers under the same load, with the same clients, rounds and clocks, so that only the servers differ.

The rate is taken over enough events for the given time, from the first publication to the last delivery. The best round
counts: other work on the machine only slows a server down. Contenders take turns in rounds. Latency counts from the
time at which an event was due, even if the publisher was late. Latency is measured twice: at 70 % of the contender's
own rate, and at 70 % of the slowest contender's rate.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace
from rich.table import Table

from fieldfare_lab.node.client_processes import Batch, Contender, Run, clients
from fieldfare_lab.node.load import Load, Result, is_correct, load_of, memory_mb, percentiles
from fieldfare_lab.node.servers import Server


class Effort(NamedTuple):
    """The size of a contest: events, seconds, rounds, processes."""

    events: int = 200_000
    """largest number of events in a round"""
    seconds: float = 10.0
    """approximate length of a round"""
    rounds: int = 3
    paced: float | None = 0.7
    """share of the best rate at which latency is measured; None: latency is not measured"""
    consumers: int = 1
    """number of processes that share the subscribers"""


FULL: Final = Effort()
OURS: Final = "Fieldfare"
"""prefix of the names of Fieldfare's contenders"""


class _Seat(NamedTuple):
    """A contender with its running server and clients."""

    contender: Contender
    server: Server
    run: Run


def contend(
    load: Load, contenders: Sequence[Contender], effort: Effort = FULL, step: Callable[[str], None] = lambda _: None
) -> list[Result]:
    """Start all contenders with the filters of the load, and measure; `step` is called `steps(...)` times."""
    with contextlib.ExitStack() as stack:
        seats: list[_Seat] = []
        for one in contenders:
            step(f"{one.name}: starting, {len(load.filters):,} filters")
            server = stack.enter_context(one.running())
            run = stack.enter_context(clients(load, one, server, most=effort.events, consumers=effort.consumers))
            seats.append(_Seat(one, server, run))
        found: list[list[Batch]] = []
        for seat in seats:
            step(f"{seat.contender.name}: how many events are enough")
            found.append(_enough(seat.run, effort))
        for _ in range(effort.rounds - 1):
            for seat, batches in zip(seats, found, strict=True):
                step(f"{seat.contender.name}: {batches[-1].events:,} events")
                batches.append(seat.run(batches[-1].events, None))
        rates = [_best(batches).events / _best(batches).seconds for batches in found]
        slow = min(rates)
        results = []
        for seat, batches, rate in zip(seats, found, rates, strict=True):
            busy = memory_mb(seat.server.pids)
            paces = () if effort.paced is None else (rate * effort.paced, slow * effort.paced)
            paced: list[Batch] = []
            for pace in paces:
                step(f"{seat.contender.name}: latency at {pace:,.0f} events/s")
                paced.append(seat.run(max(1, min(effort.events, int(pace * effort.seconds))), pace))
            results.append(_result(load, seat, batches, paced, busy))
        return results


def steps(contenders: int, rounds: int) -> int:
    """Return how often `contend` calls its `step`, for a progress bar."""
    return contenders * (rounds + 3)


def _enough(run: Run, effort: Effort) -> list[Batch]:
    """Do runs of growing size, until a run takes about `effort.seconds`.

    A run is at most ten times larger than the run before, because the times of small runs say little.
    """
    batches = [run(min(effort.events, 50), None)]
    while batches[-1].events < effort.events and batches[-1].seconds < effort.seconds / 2:
        count, seconds = batches[-1].events, batches[-1].seconds
        batches.append(run(min(effort.events, max(count + 1, int(count * min(10.0, effort.seconds / seconds)))), None))
    return batches


def _best(batches: Sequence[Batch]) -> Batch:
    """The fastest among the runs with the most events."""
    most = max(batch.events for batch in batches)
    return min((batch for batch in batches if batch.events == most), key=lambda batch: batch.seconds)


def _result(load: Load, seat: _Seat, batches: Sequence[Batch], paced: Sequence[Batch], busy: float) -> Result:
    best = _best(batches)
    result = Result(
        contender=seat.contender.name,
        shape=load.shape,
        filters=len(load.filters),
        events=best.events,
        deliveries=sum(map(len, best.got)),
        seconds=best.seconds,
        cpu_seconds=best.server_cpu,
        client_cpu_seconds=best.client_cpu,
        other_cpu_seconds=best.other_cpu,
        idle_mb=seat.server.idle_mb,
        busy_mb=busy,
        correct=all(is_correct(load, batch.events, batch.got) for batch in (*batches, *paced)),
    )
    if not paced:
        return result
    (p50, p99), (slow_p50, slow_p99) = [percentiles(batch.latencies) or (None, None) for batch in paced]
    return replace(
        result,
        paced=paced[0].pace,
        p50_ms=p50,
        p99_ms=p99,
        slow=paced[1].pace,
        slow_p50_ms=slow_p50,
        slow_p99_ms=slow_p99,
    )


def table(results: Sequence[Result]) -> Table:
    """Make a table with a row for each result."""
    shown = Table()
    for heading in ("contender", "load", "events/s", "events/CPU s", "deliveries/s"):
        shown.add_column(heading, justify="left" if heading in ("contender", "load") else "right")
    for heading in (
        "p50 ms",
        "p99 ms",
        "at events/s",
        "p50 ms",
        "p99 ms",
        "at events/s",
        "MB",
        "busy cores",
        "correct",
    ):
        shown.add_column(heading, justify="right")
    for one in results:
        shown.add_row(
            one.contender,
            one.load,
            f"{one.events_per_second:,.0f}",
            f"{one.events_per_cpu_second:,.0f}",
            f"{one.deliveries_per_second:,.0f}",
            *(_number(value) for value in (one.p50_ms, one.p99_ms)),
            "" if one.paced is None else f"{one.paced:,.0f}",
            *(_number(value) for value in (one.slow_p50_ms, one.slow_p99_ms)),
            "" if one.slow is None else f"{one.slow:,.0f}",
            f"{one.idle_mb:,.0f} → {one.busy_mb:,.0f}",
            load_of(one),
            "yes" if one.correct else "WRONG",
        )
    return shown


def ratios(results: Sequence[Result]) -> list[str]:
    """Return a line for each load and Fieldfare contender: the rate as a multiple of the best peer's."""
    lines = []
    for load in dict.fromkeys(one.load for one in results):
        same = [one for one in results if one.load == load]
        ours = [one for one in same if one.contender.startswith(OURS)]
        others = [one for one in same if not one.contender.startswith(OURS)]
        if ours and others:
            best = max(others, key=lambda one: one.events_per_second)
            leanest = max(others, key=lambda one: one.events_per_cpu_second)
            lines += [
                f"{one.contender}, {load}: {one.events_per_second / best.events_per_second:,.1f} × as many"
                f" events a second as {best.contender};"
                f" {one.events_per_cpu_second / leanest.events_per_cpu_second:,.1f} × for each second of CPU"
                for one in ours
            ]
    return lines


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:,.1f}"
