"""The layout of a segment: a flat buffer of 64-bit words that is mapped, shared and handed to kernels as is.

A segment holds *entries* (conjunctions of predicates, see `entries`), clustered by their most selective predicate, the
*access* predicate, and cut into *blocks* of 512. For every column that pays a block has 32 *rows* of 512 bits: bit e of
row r tells whether a key in bucket r can satisfy entry e; row 0 is for a missing key. Matching an event is the AND of a
row per column for every block that the keys lead to, and an exact look at the few entries that are left.

    header │ columns: role, mode, bounds of buckets, row of a bucket │ (column, bucket) → blocks to visit
    alive bits │ columns of a block │ rows │ owner of an entry │ predicates, most selective first │ sets of keys
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.int64]

BLOCK: Final = 512
ROWS: Final = 32
LANES: Final = BLOCK // 64

# The header: counts, then the offset of each section in words.
(
    MAGIC, VERSION, TOTAL, COLUMNS, BLOCKS, ENTRIES, PREDICATES, SET_KEYS, INDEXED, ALWAYS_BLOCKS,
    ROLE, MODE, BOUNDS_AT, BOUNDS, BUCKETS_AT, ROW_OF, VISITS_AT, VISITS, ALWAYS, SPAN, ALIVE, BLOCK_COLUMNS_AT,
    BLOCK_COLUMNS, BITS, OWNER, PREDICATES_AT, PREDICATE, SETS,
) = range(28)  # fmt: skip
HEADER: Final = 32
SECTIONS: Final = (
    ROLE, MODE, BOUNDS_AT, BOUNDS, BUCKETS_AT, ROW_OF, VISITS_AT, VISITS, ALWAYS, SPAN, ALIVE, BLOCK_COLUMNS_AT,
    BLOCK_COLUMNS, BITS, OWNER, PREDICATES_AT, PREDICATE, SETS,
)  # fmt: skip
DTYPES: Final = {
    ROLE: np.int64, MODE: np.int64, BOUNDS_AT: np.int64, BOUNDS: np.int64, BUCKETS_AT: np.int64, ROW_OF: np.uint8,
    VISITS_AT: np.int32, VISITS: np.int32, ALWAYS: np.int32, SPAN: np.int32, ALIVE: np.uint64,
    BLOCK_COLUMNS_AT: np.int32, BLOCK_COLUMNS: np.uint16, BITS: np.uint64, OWNER: np.int64, PREDICATES_AT: np.int32,
    PREDICATE: np.int64, SETS: np.int64,
}  # fmt: skip

HASHED, ORDERED = 0, 1
"""modes of a column: keys spread over buckets by hash, or buckets cut at bounds"""

VERIFY_FLAG: Final = 1 << 62
SHARED_FLAG: Final = 1 << 61
"""flags of an owner: the entry must be verified; the filter has several entries"""
NUMBER_MASK: Final = SHARED_FLAG - 1

_MAGIC: Final = int.from_bytes(b"fldfare1", "little")
FORMAT: Final = 1


def allocate(counts: dict[int, int], sizes: dict[int, int]) -> Words:
    """Return a zeroed arena with the given counts in the header and a section of the given length for each size."""
    offset = HEADER
    header = np.zeros(HEADER, np.int64)
    for name in SECTIONS:
        header[name] = offset
        offset += -(-sizes.get(name, 0) * np.dtype(DTYPES[name]).itemsize // 64) * 8  # whole cache lines
    for name, count in counts.items():
        header[name] = count
    header[MAGIC], header[VERSION], header[TOTAL] = _MAGIC, FORMAT, offset
    raw = np.zeros(offset + 8, np.int64)
    shift = (-raw.ctypes.data % 64) // 8
    arena = raw[shift : shift + offset]
    arena[:HEADER] = header
    return arena


def section(arena: Words, name: int) -> NDArray[np.generic]:
    """Return a section as an array of its type; a few unused elements may follow at the end."""
    place = SECTIONS.index(name)
    end = arena[TOTAL] if place + 1 == len(SECTIONS) else arena[SECTIONS[place + 1]]
    return arena[arena[name] : end].view(DTYPES[name])


def is_arena(words: Words) -> bool:
    """Tell whether a buffer begins as an arena does."""
    return len(words) >= HEADER and int(words[MAGIC]) == _MAGIC


def renumbered(arena: Words, live: Sequence[int], count: int) -> Words:
    """Return a copy of an arena in which the live ones of `count` filters have the numbers 0, 1, 2, ... in order."""
    numbers = np.zeros(max(1, count), np.int64)
    numbers[live] = np.arange(len(live))
    arena = arena.copy()
    owner: Any = section(arena, OWNER)[: int(arena[ENTRIES])]
    owner[:] = numbers[owner & NUMBER_MASK] | (owner & ~NUMBER_MASK)
    return arena
