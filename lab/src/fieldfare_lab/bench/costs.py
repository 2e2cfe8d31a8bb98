"""The costs of an index besides matching: loading, changes, memory, opening a snapshot, starting a program."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Final

from fieldfare.filters import parse
from fieldfare.matching.index import Index
from fieldfare_lab.bench.workloads import Workload, generate

CHANGES: Final = 300
"""number of single additions and removals that are timed"""
TRACED: Final = 10_000
"""number of filters in the index whose memory is traced; tracing slows loading down"""

START: Final = """
import time
from fieldfare.matching.index import Index
index = Index([("a", "price < 10")], kernels="numba")
index.compact()
assert index.match({"price": 5}) == ["a"]
print(time.process_time())
"""


@dataclass(frozen=True)
class Cost:
    """A measured cost with its unit; `value` is None where the cost could not be measured, and `note` says why."""

    name: str
    value: float | None
    unit: str
    note: str = ""


def costs(name: str, filters: int, step: Callable[[str], None] = lambda _: None) -> Iterator[Cost]:
    """Measure all costs on the workload `name` with so many filters; `step` receives the name of each part."""
    workload = generate(name, filters, 1)
    step(f"costs: loading {filters:,} filters")
    started = time.process_time()
    parsed = workload.parsed
    parsing = time.process_time() - started
    yield Cost("parse", filters / parsing, "filters/s", "text to filter")
    index: Index[Any] = Index(kernels="auto")
    gc.collect()  # loading must not pay for the garbage of parsing
    started = time.process_time()
    index.add_many(enumerate(parsed))
    yield Cost("bulk load", filters / (time.process_time() - started), "filters/s", "add_many of parsed filters")
    index.compact()
    yield Cost("segment", index.stats().bytes / filters, "bytes/filter", "size of a snapshot")
    step("costs: memory")
    yield _memory(workload)
    step("costs: changes")
    yield from _changes(index, workload)
    step("costs: snapshot")
    yield _snapshot(index)
    step("costs: cold start")
    yield from _starts()


def _memory(workload: Workload) -> Cost:
    """The memory that Python and NumPy allocate for an index and do not free."""
    texts = workload.filters[:TRACED]
    tracemalloc.start()
    try:
        index: Index[int] = Index(kernels="auto")
        index.add_many((number, parse(text)) for number, text in enumerate(texts))
        index.compact()
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    return Cost("memory", held / len(texts), "bytes/filter", f"everything an index of {len(texts):,} holds")


def _changes(index: Index[Any], workload: Workload) -> Iterator[Cost]:
    """Single changes of a full index; the median, because background merges disturb some of the changes."""
    filters = [parse(text) for text in workload.filters[:CHANGES]]
    ids = [f"new {number}" for number in range(len(filters))]
    adds = [_microseconds(index.add, *pair) for pair in zip(ids, filters, strict=True)]
    removes = [_microseconds(index.remove, id) for id in ids]
    old = [_microseconds(index.remove, id) for id in range(len(filters))]
    yield Cost("add", median(adds), "µs", f"median of {len(filters)}, parsed, at {len(workload.filters):,} filters")
    yield Cost("remove", median(removes), "µs", "of recent filters")
    yield Cost("remove", median(old), "µs", "of compacted filters")


def _microseconds(do: Callable[..., object], *arguments: object) -> float:
    started = time.perf_counter_ns()  # the clock of CPU time is too coarse for one change
    do(*arguments)
    return (time.perf_counter_ns() - started) / 1000


def _snapshot(index: Any) -> Cost:
    if not (hasattr(index, "save") and hasattr(Index, "open")):
        return Cost("snapshot open", None, "ms", "the index cannot be saved yet")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "snapshot"
        index.save(path)
        times = [_microseconds(Index.open, path) for _ in range(5)]
    return Cost("snapshot open", min(times) / 1000, "ms", "best of 5")


def _starts() -> Iterator[Cost]:
    """CPU seconds of a program that makes an index and matches: without compiled kernels, then with cached kernels."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
        for name in ("first start", "later start"):
            done = subprocess.run(  # noqa: S603 - our own program
                [sys.executable, "-c", START], env=environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                yield Cost(name, None, "s", done.stderr.strip().rpartition("\n")[2])
            else:
                yield Cost(name, float(done.stdout), "s", "CPU, imports and compilation included")
