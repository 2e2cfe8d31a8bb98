"""Pairs of events and filters, after a match."""

from __future__ import annotations

import numpy as np

from fieldfare.matching.kernels.compiled import jit


@jit
def drop_repeats(event, number, numbers):  # type: ignore[no-untyped-def]
    """Keep each pair once, in place; return the number. Pairs are sorted by event; filters are below `numbers`."""
    last = np.full(numbers, -1, np.int64)  # the event that a filter was seen with
    kept = 0
    for i in range(len(event)):
        if last[number[i]] != event[i]:
            last[number[i]] = event[i]
            event[kept], number[kept] = event[i], number[i]
            kept += 1
    return kept
