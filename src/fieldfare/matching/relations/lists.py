"""Lists of the entries of a segment for relations between filters, made at first use.

The lists take some twenty bytes a filter and a few milliseconds for a hundred thousand filters, much less than the
segment, and are needed only for a search for covered filters. The lists are therefore neither stored nor saved.
"""

from __future__ import annotations

from functools import cached_property
from types import ModuleType

import numpy as np
from numpy.typing import NDArray

from fieldfare.matching.store import layout
from fieldfare.matching.store.layout import VERIFY_FLAG
from fieldfare.matching.store.state import Segment

Ints = NDArray[np.int64]


class EntryLists:
    """Lists of the entries of a segment: entries to verify, and postings by column."""

    def __init__(self, part: Segment, kernels: ModuleType) -> None:
        self._arena = part.arena
        self._entries = part.entries
        self._kernels = kernels

    @cached_property
    def unsure(self) -> Ints:
        """The entries that must be verified."""
        owner = layout.section(self._arena, layout.OWNER)[: self._entries].astype(np.int64)
        return np.flatnonzero(owner & VERIFY_FLAG)

    @cached_property
    def postings(self) -> tuple[Ints, NDArray[np.int32]]:
        """The entries with a predicate on each column: the start of each column's list, and the entries."""
        arena = self._arena
        places = int(arena[int(arena[layout.BUCKETS_AT]) + int(arena[layout.COLUMNS])])
        count = np.zeros(places, np.int64)
        self._kernels.post_entries(arena, count, np.zeros(1, np.int32), False)
        at = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])
        entries = np.zeros(int(at[-1]), np.int32)
        self._kernels.post_entries(arena, at[:-1].copy(), entries, True)
        return at, entries


def lists_of(part: Segment, kernels: ModuleType) -> EntryLists:
    """Return the lists of a segment, made at the first call and kept with the segment."""
    found = part.lists
    if found is None:
        found = part.lists = EntryLists(part, kernels)
    assert isinstance(found, EntryLists)
    return found
