"""The cost of work: wall-clock time, and CPU time of the process with all descendants, Java and workers included."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from fieldfare_lab.node.load import family

T = TypeVar("T")


class Spent(NamedTuple):
    """The cost of a piece of work in seconds: on the wall clock, and of the CPU."""

    wall: float
    cpu: float


def timed(work: Callable[[], T]) -> tuple[T, Spent]:
    """Call a function; return its result and its cost."""
    cpu, wall = _tree_cpu(), time.perf_counter()
    found = work()
    wall = time.perf_counter() - wall
    return found, Spent(wall, _tree_cpu() - cpu)


def best(rounds: Sequence[Spent]) -> Spent:
    """Return the smallest wall time and the smallest CPU time: other work on the machine only adds time."""
    return Spent(min(one.wall for one in rounds), min(one.cpu for one in rounds))


def _tree_cpu() -> float:
    """CPU seconds of all processes that have been in the tree at a call; what has ended keeps the time it had then.

    The time that a process adds up for its ended children is left out: an end between two calls would look like work.
    """
    for pid in family(os.getpid()):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        words = stat.rpartition(")")[2].split()
        _ticks[pid, words[19]] = sum(map(int, words[11:13]))
    return sum(_ticks.values()) / os.sysconf("SC_CLK_TCK")


_ticks: Final[dict[tuple[int, str], int]] = {}
"""by process and the time of its start"""
