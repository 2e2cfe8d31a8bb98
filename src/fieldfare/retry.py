"""Delays between attempts, for every part of Fieldfare that tries a failed piece of work again.

`Backoff` only computes delays; the caller waits, with its own clock, unless `call` suits. The jitter spreads the
attempts of many clients that lost the same node at the same moment.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from itertools import count, islice
from typing import NamedTuple, TypeVar

T = TypeVar("T")


class Backoff(NamedTuple):
    """Delays in seconds that double after each attempt: `first`, twice `first`, and so on up to `longest`.

    >>> list(Backoff(0.5, 3.0, attempts=5).delays())
    [0.5, 1.0, 2.0, 3.0]
    """

    first: float
    longest: float
    jitter: tuple[float, float] = (1.0, 1.0)
    """bounds of a random factor of each delay; the factor applies after `longest`"""
    attempts: int | None = None
    """attempts in all, the first one included; None: no limit"""

    def delay(self, failed: int, uniform: Callable[[float, float], float] = random.uniform) -> float:
        """Return the delay after so many failed attempts, 1 or more; `uniform` picks the factor within `jitter`."""
        doubled = self.first * 2.0 ** min(failed - 1, 60)  # a larger exponent would overflow after a long outage
        return min(self.longest, doubled) * uniform(*self.jitter)

    def delays(self, uniform: Callable[[float, float], float] = random.uniform) -> Iterator[float]:
        """Return the delays between the attempts; there is none after the last attempt."""
        endless = (self.delay(failed, uniform) for failed in count(1))
        return endless if self.attempts is None else islice(endless, self.attempts - 1)


def call(
    work: Callable[[], T],
    backoff: Backoff,
    errors: type[Exception] | tuple[type[Exception], ...],
    sleep: Callable[[float], object] = time.sleep,
) -> T:
    """Call a function until one attempt does not fail with `errors`; the error of the last attempt is raised.

    The function must bear to be called twice: a failed attempt may have had its effect all the same.

    >>> answers = iter([0, 5])
    >>> call(lambda: 10 // next(answers), Backoff(0.0, 0.0, attempts=2), ZeroDivisionError)
    2
    """
    for delay in backoff.delays():
        try:
            return work()
        except errors:
            sleep(delay)
    return work()
