"""Text tables: the relation of every known text or affix of an index to the strings of a query.

A table has a byte for each text. A kernel that meets an open byte marks the byte as requested and goes on; `resolve`
then fills the requested bytes, and the kernel runs again.
"""

from __future__ import annotations

import numpy as np

from fieldfare.filters import strings
from fieldfare.filters.intervals import Intervals, after_prefix
from fieldfare.filters.machines import TooComplex
from fieldfare.filters.patterns import MANY
from fieldfare.filters.strings import StringSet
from fieldfare.matching.relations.layout import (
    AROUND,
    CO_AROUND,
    INSIDE,
    MEETS,
    OPEN,
    REQUESTED,
    Query,
    Table,
)
from fieldfare.matching.store.columns import Columns
from fieldfare.matching.store.decoder import affix
from fieldfare.matching.store.keys import PREFIX, STRING, SUFFIX


def resolve(query: Query, columns: Columns) -> bool:
    """Fill the bytes that a kernel requested; tell whether there were any."""
    found = False
    for table in query.open:
        known = query.tables[table.start : table.start + table.size]
        requested = np.flatnonzero(known & REQUESTED).tolist()
        lone = _affix_of(table.part) if requested else None
        for key in requested:
            known[key] = _judged(table, columns.text(table.column, key), lone)
            found = True
    return found


def _judged(table: Table, text: str, lone: tuple[int, str] | None) -> int:
    """Return the byte of a text, or of an affix; `lone` is the affix that the part equals, if any."""
    role, part = table.role, table.part
    if role == STRING:
        return INSIDE | MEETS if text in part else 0
    if lone is not None:
        return _between_affixes(role, text, *lone)
    some = affix(role, text).strings
    try:
        return (
            INSIDE * strings.contains(part, some)
            | MEETS * strings.overlap(part, some)
            | AROUND * strings.contains(some, part)
            | CO_AROUND * strings.contains(some, ~part)
        )
    except TooComplex:
        return OPEN


def _affix_of(part: StringSet) -> tuple[int, str] | None:
    """Return the prefix or suffix that a part equals, or None."""
    if isinstance(part, Intervals):
        if part.start or len(part.cuts) != 2:
            return None
        (text, _), (after, _) = part.cuts
        return (PREFIX, text) if after == after_prefix(text) else None
    (fits, fails, leaf), *others = part.paths()
    if others or len(fits) != 1 or fails or not leaf.is_full or fits[0].ignore_case or fits[0].tokens[0] is not MANY:
        return None
    text = [token for token in fits[0].tokens if isinstance(token, str)]
    return (SUFFIX, "".join(text)) if len(text) == len(fits[0].tokens) - 1 else None


def _between_affixes(role: int, text: str, other_role: int, other: str) -> int:
    """Return the byte for texts with an affix in relation to texts with another affix."""
    if role != other_role:
        return MEETS
    inside, around = (
        (text.startswith(other), other.startswith(text))
        if role == PREFIX
        else (text.endswith(other), other.endswith(text))
    )
    return INSIDE * inside | AROUND * around | MEETS * (inside or around)
