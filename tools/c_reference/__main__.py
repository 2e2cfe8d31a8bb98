"""How much slower than C are the kernels? Both match the events of the benchmark's workloads, in turns.

Answers are compared first. Then the best of some rounds counts, in CPU time, without the cost of calls from Python: a
round of single events is one loop, in numba as in C.
"""

from __future__ import annotations

import math
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numba as nb
import numpy as np
from rich.console import Console
from rich.table import Table

from fieldfare.matching import kernels
from fieldfare.matching.match.lookup import CHUNK
from fieldfare.matching.store.state import scratch
from fieldfare_lab.bench.fieldfare_contenders import index_of
from fieldfare_lab.bench.workloads import generate
from tools.c_reference.native import Ints, Native, asked, batch_of, build, compiler, owners, pairs

WORKLOADS: Final = ("eq", "stock", "begen")
FILTERS: Final = (1_000, 10_000, 100_000)
EVENTS: Final = 8 * CHUNK
ROUNDS: Final = 5
SHORTEST: Final = 0.1
"""seconds that a round lasts at least"""
LIMIT: Final = 1.5
"""times C's time; what takes longer is red"""

Run = Callable[[], int]
match_one = kernels.match_one


class Figures(NamedTuple):
    """Matches of an event, and its microseconds."""

    way: str
    matches: float
    numba: float
    native: float


def _match_many(arena: Any, keys: Any, work: Any, out: Any) -> Any:
    """The twin of the loop in C."""
    matched = 0
    for event in range(len(keys)):
        matched += match_one(arena, keys[event], work, out)
    return matched


match_many = nb.njit(nogil=True, boundscheck=False)(_match_many)
"""compiled every time: a cached one would go on with the `match_one` it was compiled with"""


def single_runs(arena: Ints, keys: Ints, native: Native) -> tuple[Run, Run]:
    """One event after the other, by numba and in C."""
    work, most = scratch(arena), 0
    for one in keys:
        found = owners(native.match_one, arena, one, work)
        assert np.array_equal(found, owners(kernels.match_one, arena, one, work))
        most = max(most, len(found))
    out = np.empty(most, np.int64)
    return lambda: int(match_many(arena, keys, work, out)), lambda: native.match_many(arena, keys, work, out)


def batch_runs(arena: Ints, keys: Ints, native: Native) -> tuple[Run, Run]:
    """Batch after batch, by numba and in C."""
    batches, most = [batch_of(keys[at : at + CHUNK]) for at in range(0, len(keys), CHUNK)], 0
    for batch in batches:
        rows, found = pairs(native.match_batch, arena, batch)
        expected_rows, expected = pairs(kernels.match_batch, arena, batch)
        assert np.array_equal(rows, expected_rows)
        assert np.array_equal(found, expected)
        most = max(most, len(found))
    event, owner = np.empty(most, np.int32), np.empty(most, np.int64)

    def run(kernel: Any) -> int:
        return sum(int(kernel(arena, batch, event, owner)) for batch in batches)

    return lambda: run(kernels.match_batch), lambda: run(native.match_batch)


def seconds(run: Run, times: int) -> float:
    """CPU time of a run, the mean of some."""
    begin = time.process_time()
    for _ in range(times):
        run()
    return (time.process_time() - begin) / times


def compared(way: str, runs: tuple[Run, Run], events: int) -> Figures:
    """Both in turns; the best round of each."""
    numba, native = runs
    matches = numba()
    assert native() == matches
    times = math.ceil(SHORTEST / max(1e-6, seconds(native, 1)))
    rounds = [(seconds(numba, times), seconds(native, times)) for _ in range(ROUNDS)]
    ours, theirs = (1e6 * min(side) / events for side in zip(*rounds, strict=True))
    return Figures(way, matches / events, ours, theirs)


def measured(name: str, filters: int, native: Native) -> Iterator[Figures]:
    """A workload as batches and as single events."""
    workload = generate(name, filters, EVENTS)
    ((arena, keys),) = asked(index_of(workload, "numba"), workload.events)
    yield compared("batch", batch_runs(arena, keys, native), len(keys))
    yield compared("single", single_runs(arena, keys, native), len(keys))


def main(names: Sequence[str]) -> None:
    """Print the table, of the named workloads or of all."""
    console = Console()
    if compiler() is None:
        console.print("There is no C compiler: neither gcc nor cc.")
        return
    table = Table(title=f"Kernels beside C: µs of CPU time for an event, best of {ROUNDS}", title_justify="left")
    for heading in ("workload", "filters", "events", "matches", "numba", "C", "numba / C"):
        table.add_column(heading, justify="left" if heading in {"workload", "events"} else "right")
    with tempfile.TemporaryDirectory() as folder, console.status("compiling") as status:
        native = build(Path(folder))
        for name in names or WORKLOADS:
            for filters in FILTERS:
                status.update(f"{name}, {filters:,} filters")
                for way, matches, numba, theirs in measured(name, filters, native):
                    cells = (f"{matches:,.1f}", f"{numba:,.3f}", f"{theirs:,.3f}", f"{numba / theirs:.2f}")
                    late = "red" if numba > LIMIT * theirs else None
                    table.add_row(name, f"{filters:,}", way, *cells, style=late)
    console.print(table)


if __name__ == "__main__":
    main(sys.argv[1:])
