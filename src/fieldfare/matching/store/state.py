"""What readers of an index see: immutable segments and growing deltas, held by one reference.

An update adds the new entries of a filter before it kills the old ones. A reader that came too late for the old ones
therefore finds the new ones behind those it has read: it looks through segments first, then through the deltas, and
again through what has come since, until nothing has. So a filter that is being updated is never missed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldfare.matching.store import layout
from fieldfare.matching.store.delta import Delta
from fieldfare.matching.store.layout import NUMBER_MASK, SHARED_FLAG, Words

Ints = NDArray[np.int64]


class Segment:
    """An arena with what is needed to find the entries of a filter, and spare working memory."""

    def __init__(self, arena: Words) -> None:
        self.arena = arena
        self.entries = int(arena[layout.ENTRIES])
        self.indexed = bool(arena[layout.INDEXED])
        """has it rows and lists for kernels, or predicates only?"""
        self.plain = bool((layout.section(arena, layout.OWNER)[: self.entries] < SHARED_FLAG).all())  # type: ignore[operator]
        """are all owners just numbers?"""
        self._alive = layout.section(arena, layout.ALIVE)
        self._pool: list[Ints] = []

    @cached_property
    def _by_number(self) -> tuple[Ints, Ints]:
        """Filter numbers in order, and the entries in that order."""
        numbers = layout.section(self.arena, layout.OWNER)[: self.entries].astype(np.int64) & NUMBER_MASK
        order = np.argsort(numbers, kind="stable")
        return numbers[order], order

    def entries_of(self, number: int) -> Ints:
        """The entries of a filter."""
        numbers, order = self._by_number
        first, last = np.searchsorted(numbers, [number, number + 1])
        return order[first:last]

    def kill(self, number: int) -> bool:
        """Let the entries of a filter match nothing any more."""
        entries = self.entries_of(number)
        for entry in entries.tolist():
            self._alive[entry >> 6] &= np.uint64(~(1 << (entry & 63)) & 0xFFFFFFFFFFFFFFFF)
        return len(entries) > 0

    def borrow(self) -> Ints:
        """Working memory for `match_one`, to be given back."""
        try:
            return self._pool.pop()
        except IndexError:
            return scratch(self.arena)

    def give_back(self, work: Ints) -> None:
        """Let others use it."""
        self._pool.append(work)


def scratch(arena: Words) -> Ints:
    """Working memory for `match_one` on an arena."""
    blocks = int(arena[layout.BLOCKS])
    return np.zeros(2 + 2 * blocks + blocks * layout.BLOCK + int(arena[layout.COLUMNS]), np.int64)


class State(NamedTuple):
    """Replaced as a whole, never changed."""

    segments: tuple[Segment, ...]
    deltas: tuple[Delta, ...]

    def arenas(self) -> Iterator[Words]:
        """All arenas that have entries."""
        yield from (part.arena for part in self.segments)
        yield from (delta.arena for delta in self.deltas if delta.count)

    @property
    def indexed(self) -> bool:
        """Can kernels look through all segments?"""
        for part in self.segments:  # noqa: SIM110 - asked for every event, and `all` takes three times as long
            if not part.indexed:
                return False
        return True


def recent(state: State, now: Callable[[], State]) -> Iterator[tuple[Words, int, int]]:
    """The ranges of entries in the deltas of a state, and all that is added while they are looked through."""
    deltas = list(state.deltas)
    done = [0] * len(deltas)
    while True:
        quiet = True
        for i, delta in enumerate(deltas):
            count = delta.count
            if count > done[i]:
                yield delta.arena, done[i], count
                done[i] = count
                quiet = False
        fresh = [delta for delta in now().deltas if not any(delta is known for known in deltas)]
        if quiet and not fresh:
            return
        deltas += fresh
        done += [0] * len(fresh)
