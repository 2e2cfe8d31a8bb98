"""The delta: the small mutable part of an index, an arena that grows in place and is scanned entry by entry.

Readers see the entries up to `count`, which is raised only after an entry is written whole; written words never move.
The index turns a full delta into a segment and starts another delta.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from fieldfare.matching.store import layout
from fieldfare.matching.store.entries import Entry
from fieldfare.matching.store.layout import BLOCK, LANES, Words

CAPACITY: Final = 512
"""entries at most that each event and each search scans; more would make both slow, and fewer would make many merges"""
_PREDICATES: Final = 16 * CAPACITY
_SET_KEYS: Final = 16 * CAPACITY


class Delta:
    """An arena of up to `CAPACITY` entries, appended in place."""

    def __init__(self) -> None:
        self.count = 0
        self._slots: dict[int, list[int]] = {}

    @cached_property
    def arena(self) -> Words:
        """The arena, made for the first entry: a megabyte, which a compacted index does not need."""
        blocks = CAPACITY // BLOCK
        made = layout.allocate(
            {layout.BLOCKS: blocks},
            {
                layout.ALIVE: blocks * LANES, layout.OWNER: CAPACITY, layout.PREDICATES_AT: CAPACITY + 1,
                layout.PREDICATE: 3 * _PREDICATES, layout.SETS: _SET_KEYS,
            },
        )  # fmt: skip
        self._alive = layout.section(made, layout.ALIVE)
        self._owner = layout.section(made, layout.OWNER)
        self._at = layout.section(made, layout.PREDICATES_AT)
        self._predicate = layout.section(made, layout.PREDICATE)
        self._sets = layout.section(made, layout.SETS)
        return made

    def fits(self, entries: list[Entry]) -> bool:
        """Tell whether there is room for all entries."""
        keys_before = int(self.arena[layout.SET_KEYS])
        return (
            self.count + len(entries) <= CAPACITY
            and int(self._at[self.count]) + sum(len(e.predicates) for e in entries) <= _PREDICATES
            and keys_before + sum(len(p.keys) for e in entries for p in e.predicates) <= _SET_KEYS
        )

    def append(self, owner: int, number: int, entries: list[Entry]) -> None:
        """Write the entries of a filter, then make all of them visible to readers at once."""
        arena, slot = self.arena, self.count
        for entry in entries:
            place = int(self._at[slot])
            for column, kind, low, high, keys, how in entry.predicates:
                if keys:
                    low = int(arena[layout.SET_KEYS])  # noqa: PLW2901 - where its keys begin
                    high = low + len(keys)  # noqa: PLW2901
                    self._sets[low:high] = keys
                    arena[layout.SET_KEYS] = high
                self._predicate[3 * place : 3 * place + 3] = (column | kind << 16 | how << 18, low, high)
                place += 1
            self._at[slot + 1] = place
            self._owner[slot] = owner | (layout.VERIFY_FLAG if entry.verify else 0)
            self._alive[slot >> 6] |= np.uint64(1 << (slot & 63))
            slot += 1
        self._slots[number] = list(range(self.count, slot))
        arena[layout.ENTRIES] = slot
        arena[layout.BLOCKS] = max(1, -(-slot // BLOCK))
        self.count = slot

    def kill(self, number: int) -> bool:
        """Clear the alive bits of the entries of a filter; tell whether there were any."""
        slots = self._slots.pop(number, None)
        for slot in slots or ():
            self._alive[slot >> 6] &= np.uint64(~(1 << (slot & 63)) & 0xFFFFFFFFFFFFFFFF)
        return slots is not None

    def slots(self, number: int) -> list[int]:
        """Return the entries of a filter."""
        return self._slots.get(number, [])
