"""What comparing filters needs of a segment beyond its arena: lists of entries, made when first asked for.

They take some twenty bytes a filter and a few milliseconds for a hundred thousand filters, much less than the segment
itself, and only where somebody asks which filters are covered. So they are neither stored nor saved.
"""

from __future__ import annotations

from functools import cached_property
from types import ModuleType
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from fieldfare.matching.store import layout
from fieldfare.matching.store.layout import VERIFY_FLAG
from fieldfare.matching.store.state import Segment

Ints = NDArray[np.int64]
_known: Final[WeakKeyDictionary[Segment, EntryLists]] = WeakKeyDictionary()


class EntryLists:
    """Lists of the entries of a segment."""

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
        """The entries that look at each column: where those of a column begin, and the entries."""
        arena = self._arena
        places = int(arena[int(arena[layout.BUCKETS_AT]) + int(arena[layout.COLUMNS])])
        count = np.zeros(places, np.int64)
        self._kernels.post_entries(arena, count, np.zeros(1, np.int32), False)
        at = np.concatenate([np.zeros(1, np.int64), np.cumsum(count)])
        entries = np.zeros(int(at[-1]), np.int32)
        self._kernels.post_entries(arena, at[:-1].copy(), entries, True)
        return at, entries


def lists_of(part: Segment, kernels: ModuleType) -> EntryLists:
    """The lists of a segment."""
    found = _known.get(part)
    if found is None:
        found = _known[part] = EntryLists(part, kernels)
    return found
