"""The state that readers of an index see: immutable segments and growing deltas, held by a single reference.

An update adds the new entries of a filter before the old entries are killed. A reader that came too late for the old
entries finds the new entries behind the entries read so far: the reader looks through segments first, then through the
deltas, and again through later additions, until there are none. A filter under update is therefore never missed.
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
    """An arena with an index from filters to entries, and spare working memory."""

    def __init__(self, arena: Words) -> None:
        self.arena = arena
        self.entries = int(arena[layout.ENTRIES])
        self.indexed = bool(arena[layout.INDEXED])
        """whether there are rows and lists for kernels, or predicates only"""
        self.plain = bool((layout.section(arena, layout.OWNER)[: self.entries] < SHARED_FLAG).all())  # type: ignore[operator]
        """whether all owners are plain numbers"""
        self._alive = layout.section(arena, layout.ALIVE)
        self._pool: list[Ints] = []
        self.lists: object | None = None
        """lists for relations between filters, see `relations.lists`"""

    @cached_property
    def _by_number(self) -> tuple[Ints, Ints]:
        """Filter numbers in order, and the entries in that order."""
        numbers = layout.section(self.arena, layout.OWNER)[: self.entries].astype(np.int64) & NUMBER_MASK
        order = np.argsort(numbers, kind="stable")
        return numbers[order], order

    def entries_of(self, number: int) -> Ints:
        """Return the entries of a filter."""
        numbers, order = self._by_number
        first, last = np.searchsorted(numbers, [number, number + 1])
        return order[first:last]

    def kill(self, number: int) -> bool:
        """Clear the alive bits of the entries of a filter; tell whether there were any."""
        entries = self.entries_of(number)
        for entry in entries.tolist():
            self._alive[entry >> 6] &= np.uint64(~(1 << (entry & 63)) & 0xFFFFFFFFFFFFFFFF)
        return len(entries) > 0

    def borrow(self) -> Ints:
        """Return working memory for `match_one`, to be given back."""
        try:
            return self._pool.pop()
        except IndexError:
            return scratch(self.arena)

    def give_back(self, work: Ints) -> None:
        """Return working memory to the pool."""
        self._pool.append(work)


def scratch(arena: Words) -> Ints:
    """Return working memory for `match_one` on an arena."""
    blocks = int(arena[layout.BLOCKS])
    return np.zeros(2 + 2 * blocks + blocks * layout.BLOCK + int(arena[layout.COLUMNS]), np.int64)


class State(NamedTuple):
    """The segments and deltas of a store; replaced as a whole, never changed."""

    segments: tuple[Segment, ...]
    deltas: tuple[Delta, ...]

    def arenas(self) -> Iterator[Words]:
        """Yield all arenas that have entries."""
        yield from (part.arena for part in self.segments)
        yield from (delta.arena for delta in self.deltas if delta.count)

    @property
    def indexed(self) -> bool:
        """Tell whether kernels can look through all segments."""
        for part in self.segments:  # noqa: SIM110 - called for every event, and `all` takes three times as long
            if not part.indexed:
                return False
        return True


def recent(state: State, now: Callable[[], State]) -> Iterator[tuple[Words, int, int]]:
    """Yield the ranges of entries in the deltas of a state, and all entries that are added meanwhile."""
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
        current = now().deltas
        if quiet and current is state.deltas:
            return  # the usual end, without comparisons
        fresh = [delta for delta in current if not any(delta is known for known in deltas)]
        if quiet and not fresh:
            return
        deltas += fresh
        done += [0] * len(fresh)
