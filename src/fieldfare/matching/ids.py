"""`IdTable`: the ids of the filters of an index, by number and back.

The store knows filters by numbers, which are never used twice. The ids of an opened snapshot stay an Arrow array until
a caller needs them as a list or a dict: a process that only matches batches never makes one.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Any, Final, Generic

import pyarrow as pa

from fieldfare.matching.matcher import Id

GONE: Final = object()
"""the entry of a removed filter in `IdTable.by_number`"""


class IdTable(Generic[Id]):
    """Ids by number and numbers by id. Writers hold `lock`; readers need none."""

    def __init__(self, lock: AbstractContextManager[Any], stored: Any = None) -> None:
        """Start empty, or with the ids of a snapshot as an Arrow array."""
        self._lock = lock
        self._stored = stored
        self._by_number: list[Any] | None = [] if stored is None else None
        self._numbers: dict[Id, int] | None = {} if stored is None else None
        self._chunks: list[Any] = [] if stored is None else [stored]

    @property
    def by_number(self) -> list[Any]:
        """The id of each number, `GONE` for a removed filter; made from a snapshot at first use."""
        if self._by_number is None:
            with self._lock:
                self._by_number = self._stored.to_pylist()
        return self._by_number

    @property
    def numbers(self) -> dict[Id, int]:
        """The number of each id; made from a snapshot at first use."""
        if self._numbers is None:
            with self._lock:
                self._numbers = {id: number for number, id in enumerate(self.by_number)}
        return self._numbers

    def arrow(self) -> Any:
        """Return all ids by number as a chunked Arrow array, null for a removed filter; new ids become a new chunk."""
        with self._lock:
            known = sum(len(chunk) for chunk in self._chunks)
            if self._by_number is not None and known < len(self._by_number):
                fresh = [None if id is GONE else id for id in self._by_number[known:]]
                self._chunks.append(arrow_ids(fresh, "match_batch"))
            return pa.chunked_array(self._chunks) if self._chunks else pa.chunked_array([], pa.string())

    def named(self, numbers: Iterable[int]) -> list[Id]:
        """Return the ids of some numbers without those of removed filters."""
        ids = self.by_number
        return [id for number in numbers if (id := ids[number]) is not GONE]

    def __len__(self) -> int:
        return len(self._stored) if self._numbers is None else len(self._numbers)


def arrow_ids(ids: list[Any], what: str) -> Any:
    """Return ids as an Arrow array; `what` names the caller in the error for ids of several types."""
    try:
        return pa.array(ids) if ids else pa.array([], pa.string())
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise TypeError(f"{what} needs ids of one type that Arrow has, such as str: {error}") from None
