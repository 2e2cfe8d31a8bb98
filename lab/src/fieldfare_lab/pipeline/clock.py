"""What work costs: time on the wall, and CPU time of this process with all below it, Java and workers among them."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

from fieldfare_lab.node.load import family

T = TypeVar("T")


class Spent(NamedTuple):
    """Seconds."""

    wall: float
    cpu: float


def timed(work: Callable[[], T]) -> tuple[T, Spent]:
    """Do something, and say what it cost."""
    cpu, wall = _tree_cpu(), time.perf_counter()
    found = work()
    wall = time.perf_counter() - wall
    return found, Spent(wall, _tree_cpu() - cpu)


def best(rounds: Sequence[Spent]) -> Spent:
    """The least of each: other work on the machine only adds."""
    return Spent(min(one.wall for one in rounds), min(one.cpu for one in rounds))


def _tree_cpu() -> float:
    """Of a process that has ended, the parent knows what it used."""
    ticks = 0
    for pid in family(os.getpid()):
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        ticks += sum(map(int, stat.rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")
