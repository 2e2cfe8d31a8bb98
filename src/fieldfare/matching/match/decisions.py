"""Decisions: from the owners that a reader finds to the numbers of the filters that match.

Most owners are numbers already. Where keys leave a filter open, it is verified: ranges of computed dimensions by
arrays (`remainders`), everything else in Python (`verification`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fieldfare.filters.constraint import Mode
from fieldfare.matching.match.batch_numbers import BatchNumbers, Rows
from fieldfare.matching.match.batch_rows import fields_by_row
from fieldfare.matching.match.lookup import Pairs
from fieldfare.matching.match.remainders import Remainders
from fieldfare.matching.store.layout import NUMBER_MASK, SHARED_FLAG, VERIFY_FLAG
from fieldfare.matching.store.store import Store

Ints = NDArray[np.int64]
_BLOCK: Final = 1 << 16
"""pairs that are decided at once, so that all arrays of a step are in cache"""
_NO_PAIRS: Final[Pairs] = np.zeros(0, np.int32), np.zeros(0, np.int64)


class Replaced(Exception):
    """A filter was removed or replaced between lookup and verification: match again."""


class Decisions:
    """The decisions about the filters of a store, and how often each filter was verified."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._remainders = Remainders(store)
        self._checks: Counter[int] = Counter()

    def forget(self, number: int) -> None:
        """Forget a filter that was removed."""
        self._checks.pop(number, None)

    def busiest(self, count: int) -> list[tuple[int, int]]:
        """Return the filters that were verified most often, each with the number of times."""
        return self._checks.most_common(count)

    def one(self, owners: list[int], fields: Mapping[str, object], mode: Mode) -> list[int]:
        """Turn owners into filter numbers: verified where necessary, once where a filter has several entries."""
        found: list[int] = []
        seen: set[int] = set()
        for owner in owners:
            if 0 <= owner < SHARED_FLAG:
                found.append(owner)
                continue
            whose = owner if owner >= 0 else -owner - 1
            number = whose & NUMBER_MASK
            if whose & SHARED_FLAG:
                if number in seen:
                    continue
                seen.add(number)  # a filter is verified as a whole
            if (owner >= 0 and not whose & VERIFY_FLAG) or self._verified(number, fields, mode):
                found.append(number)
        return found

    def _verified(self, number: int, fields: Mapping[str, object], mode: Mode) -> bool:
        self._checks[number] += 1
        check = self._store.checks.get(number) or self._store.check(number)
        if check is None:
            raise Replaced
        return check(fields, mode)

    def _count(self, numbers: Ints) -> None:
        """Count filters that were verified."""
        counts = np.bincount(numbers)
        which = counts.nonzero()[0]
        self._checks.update(dict(zip(which.tolist(), counts[which].tolist(), strict=True)))

    def batch(self, part: Any, pairs: Pairs, mode: Mode) -> Pairs:
        """Return the pairs that hold, with owners turned into numbers; a filter may still occur twice."""
        event, owner = pairs
        values = BatchNumbers(part)
        blocks = (slice(at, at + _BLOCK) for at in range(0, len(owner), _BLOCK))
        found = [_NO_PAIRS, *(self._block(part, values, event[at], owner[at], mode) for at in blocks)]
        events, numbers = (np.concatenate(side) for side in zip(*found, strict=True))
        return events, numbers

    def _block(self, part: Any, values: BatchNumbers, event: Rows, owner: Ints, mode: Mode) -> Pairs:
        whose = np.where(owner < 0, -owner - 1, owner)
        check = (owner < 0) | (whose & VERIFY_FLAG != 0)
        number = whose & NUMBER_MASK
        good = ~check
        places = np.flatnonzero(check)
        sure = places[owner[places] >= 0]
        good[sure], undecided = self._remainders.decided(values, event[sure], number[sure])
        self._count(number[sure[~undecided]])
        places = np.concatenate([places[owner[places] < 0], sure[undecided]])
        rows = event[places].tolist()
        fields = fields_by_row(part, rows)
        good[places] = [
            self._verified(one, fields(row), mode) for one, row in zip(number[places].tolist(), rows, strict=True)
        ]
        return event[good], number[good]
