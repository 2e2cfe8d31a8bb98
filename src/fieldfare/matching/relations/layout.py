"""The layout of a query: a branch in terms of an index, in arrays that kernels compare stored entries with.

Values fall into eleven *kinds*: missing, and the ten tags of `keys`. Along each attribute a branch allows none of a
kind, all of the kind, or a *part*; ranges of keys describe a part of the numbers or times, and tables with a byte for
every known text describe a part of the strings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fieldfare.filters.strings import StringSet

Ints = NDArray[np.int64]
Bytes = NDArray[np.uint8]

COVERED, OVERLAPPING, COVERING = range(3)
"""the relation of an entry to the branch: covered by the branch, overlapping the branch, covering the branch"""
NO, DOUBT, MAYBE, YES = range(4)
"""the verdict; DOUBT is maybe if the filter takes lists that its entry does not describe, else no"""
DOUBT_FLAG: Final = 1 << 60
"""flag of an owner: DOUBT"""
ALL, SURE, UNSURE = range(3)
"""the entries to compare: all, entries that describe their filter exactly, entries that need verification"""

# The words of a query: the number of sides, whether the branch demands more than the sides; the sides; the parts.
SIDES, MORE, SIDES_AT = range(3)
# A side: the kinds inside as a whole (except for lists with conditions on elements), as a whole, and at all; whether
# the side is a single piece of a single kind; the offsets of the parts of numbers, strings and times.
FULL, WHOLE, SOME, SINGLE, PARTS = range(5)
SIDE: Final = PARTS + 3
# A part: the ranges of keys; the ends of the part, and of the complement; the number of points of each, 0 if there are
# more than points; whether each is a single piece; whether keys can decide at all.
(
    RANGES_AT, RANGES, LOW, HIGH, OPENS, CO_LOW, CO_HIGH, CO_OPENS, POINTS, CO_POINTS, JOINED, CO_JOINED, DECIDED,
) = range(13)  # fmt: skip
PART: Final = 13
KINDS: Final = (1 << 11) - 1

# A byte of a table describes a text, or all texts with an affix: all lie in the part, some do, the part lies among
# them, the complement does; or the byte is still open; or a kernel has requested the byte.
INSIDE, MEETS, AROUND, CO_AROUND, OPEN, REQUESTED = 1, 2, 4, 8, 64, 128

# A plan describes the entries that the bits of a column can rule out: the column, whether entries must have a predicate
# on the column, whether the keys are the ends of a range, the start and the end of the keys.
PLAN: Final = 5


class Query(NamedTuple):
    """A branch in terms of an index."""

    words: Ints
    columns: Ints
    """for every column -1, or the side, role and table"""
    tables: Bytes
    plan: Ints
    hopeless: bool
    """no exact entry can be covered"""
    joined: bool
    """all sides are single pieces: several entries that cover the branch together then include an entry that covers
    alone"""
    open: tuple[Table, ...]
    """tables whose bytes are filled on request of a kernel"""


class Table(NamedTuple):
    """The known texts of a column with their relations to a part; all tables share an array."""

    column: int
    role: int
    start: int
    size: int
    usual: int
    known: Mapping[int, int]
    part: StringSet
