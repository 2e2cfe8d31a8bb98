"""How long to wait for real processes, on a machine that may hardly let them run.

Seconds tell little there: a node that gets a tenth of a CPU starts ten times as slowly, and nothing is wrong with it.
Linux counts how long each thread stood in the queue for a CPU; that time is left out here.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from tools.waiting import PATIENCE

Waits = dict[str, float]
"""seconds that each thread has stood in the queue for a CPU, so far"""


def waits_of(pids: Iterable[int]) -> Waits:
    """Read the waits of all threads of some processes; nothing where the system does not tell."""
    found: Waits = {}
    for pid in pids:
        for path in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            with contextlib.suppress(OSError, IndexError):  # a thread may end at any time
                found[path.parent.name] = int(path.read_text().split()[1]) / 1e9
    return found


class Patience:
    """Is over after some seconds in which the processes could have worked.

    In each second the thread that waited longest counts: a step is as slow as the slowest of those who take part.
    """

    def __init__(
        self,
        pids: Callable[[], Iterable[int]],
        seconds: float = PATIENCE,
        *,
        clock: Callable[[], float] = time.monotonic,
        waits: Callable[[Iterable[int]], Waits] = waits_of,
    ) -> None:
        self._pids, self._seconds, self._clock, self._waits = pids, seconds, clock, waits
        self.begin()

    def begin(self) -> None:
        """Begin anew: something has gone on."""
        self._used, self._looked, self._before = 0.0, self._clock(), self._now()

    def _now(self) -> Waits:
        return self._waits([os.getpid(), *self._pids()])

    def over(self) -> bool:
        """Is it too long now? Looks once a second."""
        passed = self._clock() - self._looked
        if passed >= min(1.0, self._seconds):
            now = self._now()
            starved = max((wait - self._before.get(thread, 0.0) for thread, wait in now.items()), default=0.0)
            self._used += max(0.0, passed - starved)
            self._looked, self._before = self._clock(), now
        return self._used >= self._seconds

    async def until(
        self,
        true: Callable[[], Any],
        otherwise: Callable[[], str],
        progress: Callable[[], Any] = int,
        every: float = 0.02,
    ) -> None:
        """Wait until something holds; as long as `progress` returns new values, no time counts."""
        self.begin()
        last = progress()
        while not true():
            if (now := progress()) != last:
                last = now
                self.begin()
            assert not self.over(), otherwise()
            await asyncio.sleep(every)
