"""The lookup of entries in a store: the entries that the keys of an event, or of a whole batch, satisfy.

Results are *owners*: the number of a filter, with flags for an entry to verify and for a filter with several entries;
-owner - 1 where a wild key leaves an entry undecided.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from fieldfare.matching.fallback import match
from fieldfare.matching.match.batch_keys import Encoder, distinct_texts, is_text, leaves
from fieldfare.matching.match.event_keys import KeyBuffer
from fieldfare.matching.store.layout import SHARED_FLAG, Words
from fieldfare.matching.store.rows import ranges
from fieldfare.matching.store.state import State, recent
from fieldfare.matching.store.store import Store

Ints = NDArray[np.int64]
Pairs = tuple[NDArray[np.int32], Ints]
"""events and owners, side by side"""
CHUNK: Final = 1024
"""events that a block meets while the block is in cache"""
_NOTHING: Final[Pairs] = (np.zeros(0, np.int32), np.zeros(0, np.int64))


class _Grown(Exception):
    """Raised for columns that are newer than the keys of an event: begin again."""


class Reader:
    """A reader of a store, for many threads. State between calls only saves time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._encoder = Encoder(store.columns)
        self._buffers: list[KeyBuffer] = []
        self._room = 4.0
        self._turn = 0

    def owners(self, fields: Mapping[str, object]) -> list[int]:
        """Return the owners of the entries that an event satisfies, found by keys or by substrings.

        The event is not sampled: questions about filters are no events, and must not shape segments.
        """
        return self.look(fields, sampled=False)[0]

    def look(self, fields: Mapping[str, object], *, sampled: bool = True) -> tuple[list[int], bool]:
        """Return the owners, and whether they are plain numbers: none to be verified, none that may come twice."""
        substrings = self._store.substrings
        while True:
            version = substrings.version
            try:
                found, plain = self._in_arenas(fields, sampled=sampled)
            except _Grown:
                continue
            if substrings.version and (more := substrings.owners(fields)):
                found += more
                plain = plain and max(more) < SHARED_FLAG
            if substrings.version == version:  # else a filter may have moved from there to here between the two
                return found, plain

    def _in_arenas(self, fields: Mapping[str, object], *, sampled: bool) -> tuple[list[int], bool]:
        store = self._store
        state, kernels = store.state, store.kernels
        size = len(store.columns.columns)  # the state has no column beyond these
        try:
            buffer = self._buffers.pop()
        except IndexError:  # all are in use
            buffer = KeyBuffer(size)
        if len(buffer.keys) < size:
            buffer = KeyBuffer(size)
        try:
            keys = buffer.write(store.columns, fields)
        except IndexError:
            self._check(size)
            raise
        if sampled:
            self._turn += 1
            if not self._turn & 15:
                self._notice(keys)
        if kernels is None or not state.indexed:
            return [int(owner) for _, owners in self._scanned(state, keys, size) for owner in owners], False
        owners: list[int] = []
        plain = not buffer.wild
        for part in state.segments:
            work = part.borrow()
            found = kernels.match_one(part.arena, keys, work, buffer.found)
            if found > len(buffer.found):
                buffer.found = np.empty(2 * found, np.int64)
                kernels.match_one(part.arena, keys, work, buffer.found)
            part.give_back(work)
            if found:
                owners += buffer.found[:found].tolist()
                plain = plain and part.plain
        deltas = state.deltas
        if len(deltas) > 1 or deltas[0].count or store.state.deltas is not deltas:
            plain = False
            for arena, first, last in self._recent(state, size):
                events, out = np.empty(last - first, np.int32), np.empty(last - first, np.int64)
                owners += out[: kernels.scan(arena, first, last, keys, events, out)].tolist()
        self._buffers.append(buffer)
        return owners, plain

    def _recent(self, state: State, size: int) -> Iterator[tuple[Words, int, int]]:
        """Yield the ranges of `recent`; `_Grown` if a range may need newer columns than the keys have."""
        for found in recent(state, lambda: self._store.state):
            self._check(size)
            yield found

    def _check(self, size: int) -> None:
        if len(self._store.columns) != size:
            raise _Grown

    def pairs(self, part: Any) -> Pairs:
        """Return the rows and owners of a record batch of a few thousand rows."""
        while True:
            version = self._store.substrings.version
            try:
                found = [_NOTHING, *self._pairs_in_arenas(part)]
            except _Grown:
                continue
            if self._store.substrings.version:
                found.extend(self._substring_pairs(part))
            if self._store.substrings.version == version:
                events, owners = (np.concatenate(side) for side in zip(*found, strict=True))
                self._room = max(4.0, 1.25 * len(events) / max(1, part.num_rows))
                return events, owners

    def _pairs_in_arenas(self, part: Any) -> Iterator[Pairs]:
        state, size = self._store.state, len(self._store.columns)  # the state has no column beyond these
        kernels = self._store.kernels if state.indexed else None
        try:
            chunks = self._encoder.chunks(part, size, CHUNK, kernels)
        except IndexError:
            self._check(size)
            raise
        start = 0
        for keys in chunks:
            self._turn += 1
            if self._turn == 1 or not self._turn & 15:
                self._notice(keys)
            looked = self._scanned(state, keys, size) if kernels is None else self._chunk(kernels, state, keys)
            for event, owner in looked:
                yield event + np.int32(start), owner
            start += keys.shape[1]

    def _substring_pairs(self, part: Any) -> Iterator[Pairs]:
        """Yield rows and owners found by substrings."""
        substrings = self._store.substrings
        paths = frozenset(substrings.paths)
        for path, array, simple in leaves(part):
            if path not in paths:
                continue
            if simple and is_text(array.type):
                texts, places = distinct_texts(array)
                found = [substrings.owners_in(path, text) for text in texts]
            elif simple and (pa.types.is_primitive(array.type) or pa.types.is_struct(array.type)):
                continue  # numbers, times: no texts
            else:
                found, places = [substrings.undecided(path)], np.where(np.asarray(array.is_valid()), 0, -1)
            yield _spread(found, places)

    def _chunk(self, kernels: ModuleType, state: State, keys: Ints) -> Iterator[Pairs]:
        room = int(self._room * keys.shape[1])
        for s in state.segments:
            yield _with_room(lambda e, o, a=s.arena: kernels.match_batch(a, keys, e, o), room)
        for arena, first, last in self._recent(state, len(keys)):
            yield _with_room(lambda e, o, a=arena, f=first, n=last: kernels.scan(a, f, n, keys, e, o), room)

    def _scanned(self, state: State, keys: Ints, size: int) -> Iterator[Pairs]:
        """Yield rows and owners without kernels."""
        for part in state.segments:
            yield match.scan(part.arena, 0, part.entries, keys)
        for arena, first, last in self._recent(state, size):
            yield match.scan(arena, first, last, keys)

    def _notice(self, keys: Ints) -> None:
        """Sample some events, and check whether the kernels have been compiled; called now and then."""
        self._store.upgrade()
        for event in keys.T[:: max(1, keys.shape[1] // 64)]:
            self._store.remember(event)


def _spread(found: list[list[int]], places: Ints) -> Pairs:
    """Return rows and owners, where row r has the owners found at its place; none if the place is -1."""
    sizes = np.array([*map(len, found), 0], np.int64)  # the last is for -1
    owners = np.fromiter(itertools.chain.from_iterable(found), np.int64, int(sizes.sum()))
    counts = sizes[places]
    starts = (np.cumsum(sizes) - sizes)[places]
    return np.repeat(np.arange(len(places), dtype=np.int32), counts), owners[ranges(starts, counts)]


def _with_room(kernel: Any, room: int) -> Pairs:
    """Return the pairs that a kernel finds; run the kernel again with enough room if there was too little."""
    event, owner = np.empty(max(16, room), np.int32), np.empty(max(16, room), np.int64)
    found = kernel(event, owner)
    if found > len(event):
        event, owner = np.empty(found, np.int32), np.empty(found, np.int64)
        found = kernel(event, owner)
    return event[:found], owner[:found]
