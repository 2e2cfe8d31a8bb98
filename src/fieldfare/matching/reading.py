"""Looking through a store: which entries do an event's keys satisfy, or those of a whole batch?

The answers are *owners*: the number of a filter, with flags that say whether the entry must be verified and whether the
filter has others; -owner - 1 where a wild key leaves an entry undecided.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from fieldfare.events import arrow
from fieldfare.events.event import fields_of
from fieldfare.matching import scan
from fieldfare.matching.batches import Encoder
from fieldfare.matching.encoding import encode
from fieldfare.matching.keys import MISSING_KEY
from fieldfare.matching.state import State, recent
from fieldfare.matching.store import Store

Ints = NDArray[np.int64]
Pairs = tuple[NDArray[np.int32], Ints]
"""events and owners, side by side"""
CHUNK: Final = 1024
"""events that a block meets while it is in cache"""
_NOTHING: Final[Pairs] = (np.zeros(0, np.int32), np.zeros(0, np.int64))


class Reader:
    """Reads a store; may be used by many threads. What it keeps between calls is only to save time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._encoder = Encoder(store.columns)
        self._blank = b""
        self._real: Ints = np.zeros(0, np.int64)
        self._room = 4.0
        self._turn = 0

    def owners(self, fields: Mapping[str, object]) -> list[int]:
        """The owners of the entries that an event satisfies, and of those whose needles it contains."""
        needles = self._store.needles
        while True:
            version = needles.version
            found = self._in_arenas(fields)
            if needles.version:
                found += needles.owners(fields)
            if needles.version == version:  # else a filter may have moved from there to here between the two
                return found

    def _in_arenas(self, fields: Mapping[str, object]) -> list[int]:
        store = self._store
        state, kernels = store.state, store.kernels
        if len(self._blank) != 8 * len(store.columns):
            self._blank = np.full(len(store.columns), MISSING_KEY, np.int64).tobytes()
        keys = np.frombuffer(encode(store.columns, fields, self._blank), np.int64).reshape(-1, 1)
        self._notice(keys, 1)
        if kernels is None or not state.indexed:
            return [int(owner) for _, owners in self._scanned(state, keys) for owner in owners]
        kernels.number_keys_of(self._number_columns(), keys)
        owners: list[int] = []
        for part in state.segments:
            work, out = part.borrow(), np.empty(256, np.int64)
            found = kernels.match_one(part.arena, keys, work, out)
            if found > len(out):
                out = np.empty(found, np.int64)
                found = kernels.match_one(part.arena, keys, work, out)
            part.give_back(work)
            owners += out[:found].tolist()
        for arena, first, last in recent(state, lambda: store.state):
            events, out = np.empty(last - first, np.int32), np.empty(last - first, np.int64)
            owners += out[: kernels.scan(arena, first, last, keys, events, out)].tolist()
        return owners

    def pairs(self, part: Any) -> Pairs:
        """Rows and owners of a record batch of a few thousand rows."""
        while True:
            version = self._store.needles.version
            found = [_NOTHING, *self._pairs_in_arenas(part)]
            if self._store.needles.version:
                found.append(self._with_needles(part))
            if self._store.needles.version == version:
                events, owners = (np.concatenate(side) for side in zip(*found, strict=True))
                self._room = max(4.0, 1.25 * len(events) / max(1, part.num_rows))
                return events, owners

    def _pairs_in_arenas(self, part: Any) -> Iterator[Pairs]:
        state = self._store.state
        kernels = self._store.kernels if state.indexed else None
        keys = self._encoder.encode(part, kernels)
        self._notice(keys, part.num_rows)
        if kernels is None:
            yield from self._scanned(state, keys)
            return
        kernels.number_keys_of(self._number_columns(), keys)
        for start in range(0, part.num_rows, CHUNK):
            some = np.ascontiguousarray(keys[:, start : start + CHUNK])
            for event, owner in self._chunk(kernels, state, some):
                yield event + np.int32(start), owner

    def _with_needles(self, part: Any) -> Pairs:
        """Rows and owners found by needles."""
        found = [
            (row, owner)
            for row, fields in enumerate(arrow.rows(part))
            for owner in self._store.needles.owners(fields_of(fields))
        ]
        pairs = np.array(found, np.int64).reshape(-1, 2)
        return pairs[:, 0].astype(np.int32), pairs[:, 1]

    def _chunk(self, kernels: ModuleType, state: State, keys: Ints) -> Iterator[Pairs]:
        room = int(self._room * keys.shape[1])
        for s in state.segments:
            yield _grown(lambda e, o, a=s.arena: kernels.match_batch(a, keys, e, o), room)
        for arena, first, last in recent(state, lambda: self._store.state):
            yield _grown(lambda e, o, a=arena, f=first, n=last: kernels.scan(a, f, n, keys, e, o), room)

    def _scanned(self, state: State, keys: Ints) -> Iterator[Pairs]:
        """The same without kernels."""
        scan.number_keys(self._number_columns(), keys)
        for part in state.segments:
            yield scan.scan(part.arena, 0, part.entries, keys)
        for arena, first, last in recent(state, lambda: self._store.state):
            yield scan.scan(arena, first, last, keys)

    def _number_columns(self) -> Ints:
        """The columns whose keys come as raw floats."""
        if len(self._real) != len(self._store.columns.numbers):
            self._real = np.array(self._store.columns.numbers, np.int64)
        return self._real

    def _notice(self, keys: Ints, rows: int) -> None:
        """Now and then, remember what events look like, and see whether kernels have been compiled."""
        self._turn += 1
        if self._turn & 15 and (rows == 1 or self._turn > 1):
            return
        self._store.upgrade()
        chosen = keys[:, :: max(1, rows // 64)].copy()
        scan.number_keys(self._number_columns(), chosen)
        for event in chosen.T:
            self._store.remember(event)


def _grown(kernel: Any, room: int) -> Pairs:
    """The pairs a kernel finds; it is run again with enough room if there was not."""
    event, owner = np.empty(max(16, room), np.int32), np.empty(max(16, room), np.int64)
    found = kernel(event, owner)
    if found > len(event):
        event, owner = np.empty(found, np.int32), np.empty(found, np.int64)
        found = kernel(event, owner)
    return event[:found], owner[:found]
